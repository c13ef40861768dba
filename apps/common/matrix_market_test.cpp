// SPDX-License-Identifier: Apache-2.0
#include "common/matrix_market.hpp"

#include <gtest/gtest.h>

#include <sstream>
#include <tuple>
#include <vector>

namespace wherry::apps {
namespace {

using Entries = std::vector<std::tuple<std::uint32_t, std::uint32_t, double>>;

struct Read {
  Status status;
  MatrixMarket matrix;
  Entries entries;
};

Read read(const std::string& text) {
  Read result;
  std::istringstream in(text);
  result.status = read_matrix_market(in, "m.mtx",
                                     {.begin = [&](const MatrixMarket& found) { result.matrix = found; },
                                      .entry = [&](std::uint32_t row, std::uint32_t column,
                                                   double value) { result.entries.emplace_back(row, column, value); }});
  return result;
}

TEST(MatrixMarket, Read_CommentsBlanksAndAllNumberFormats_ExpectEntries) {
  const Read got = read(
      "%%MatrixMarket MATRIX Coordinate real General\r\n% a comment\n\n  \n 3 4 3\r\n1 1 +1.5\n\n3 4 -2e-3\n"
      "% another\n2\t3\t7");
  ASSERT_TRUE(got.status) << got.status.message();
  EXPECT_EQ(got.matrix.rows, 3u);
  EXPECT_EQ(got.matrix.columns, 4u);
  EXPECT_EQ(got.entries, (Entries{{0, 0, 1.5}, {2, 3, -2e-3}, {1, 2, 7}}));
}

TEST(MatrixMarket, Read_IntegersAndPatterns_ExpectTheirValues) {
  EXPECT_EQ(read("%%MatrixMarket matrix coordinate integer general\n1 2 1\n1 2 -9007199254740992\n").entries,
            (Entries{{0, 1, -9007199254740992.0}}));
  const Read pattern = read("%%MatrixMarket matrix coordinate pattern symmetric\n2 2 2\n1 1\n2 1\n");
  ASSERT_TRUE(pattern.status) << pattern.status.message();
  EXPECT_TRUE(pattern.matrix.symmetric);
  EXPECT_EQ(pattern.entries, (Entries{{0, 0, 1}, {1, 0, 1}}));
}

TEST(MatrixMarket, Read_MalformedFiles_ExpectLineAndReasonInError) {
  const std::string head = "%%MatrixMarket matrix coordinate real general\n";
  const std::pair<std::string, std::string> cases[]{
      {"", "m.mtx: the file is empty"},
      {"1 1 1\n", "m.mtx:1: not a Matrix Market file: the first line begins with '%%MatrixMarket', not '1 1 1'"},
      {"%%MatrixMarket vector coordinate real general\n", "m.mtx:1: want a matrix, not 'vector'"},
      {"%%MatrixMarket matrix array real general\n",
       "m.mtx:1: want the coordinate format, of sparse matrices, not 'array'"},
      {"%%MatrixMarket matrix coordinate complex general\n",
       "m.mtx:1: want real, integer or pattern entries, not 'complex'"},
      {"%%MatrixMarket matrix coordinate real hermitian\n",
       "m.mtx:1: want a general or symmetric matrix, not 'hermitian'"},
      {head + "% only\n", "m.mtx: the file ends before the line with the size of the matrix"},
      {head + "3 x 1\n", "m.mtx:2: want the numbers of rows, columns and entries, not '3 x 1'"},
      {head + "3 3\n", "m.mtx:2: want the numbers of rows, columns and entries, not '3 3'"},
      {head + "3 3 1 9\n", "m.mtx:2: more than rows, columns and entries: '3 3 1 9'"},
      {head + "0 3 0\n", "m.mtx:2: a matrix without rows or columns"},
      {head + "4294967296 1 0\n", "m.mtx:2: 4294967296 rows and 1 columns: at most 4294967295 of either are supported"},
      {"%%MatrixMarket matrix coordinate real symmetric\n2 3 0\n",
       "m.mtx:2: a symmetric matrix with 2 rows and 3 columns"},
      {"%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n1 2 1\n",
       "m.mtx:3: entry (1, 2) lies above the diagonal: the file of a symmetric matrix holds what is below"},
      {head + "2 2 2\n1 1 1\n", "m.mtx: the file ends after 1 of 2 entries"},
      {head + "2 2 1\n1 1 1\n2 2 1\n", "m.mtx:4: an entry more than the 1 promised"},
      {head + "2 2 1\n%\n0 1 1\n", "m.mtx:4: entry (0, 1) of a matrix of 2 x 2; both count from 1"},
      {head + "2 2 1\n1 3 1\n", "m.mtx:3: entry (1, 3) of a matrix of 2 x 2; both count from 1"},
      {head + "2 2 1\n1 1\n", "m.mtx:3: want a finite number, not ''"},
      {head + "2 2 1\n1 1 nan\n", "m.mtx:3: want a finite number, not 'nan'"},
      {head + "2 2 1\n1 1 1e999\n", "m.mtx:3: want a finite number, not '1e999'"},
      {head + "2 2 1\n1 1 +-1\n", "m.mtx:3: want a finite number, not '+-1'"},
      {head + "2 2 1\n1 1 1 1\n", "m.mtx:3: more than an entry: '1 1 1 1'"},
      {head + "2 2 1\n1 \x01\xff 1\n", "m.mtx:3: want a row and a column, not '1 ?? 1'"},
      {"%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 1.5\n", "m.mtx:3: want an integer, not '1.5'"},
      {"%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 9007199254740993\n",
       "m.mtx:3: 9007199254740993 is beyond 2^53, up to which integers are kept exactly"},
  };
  for (const auto& [text, message] : cases) {
    const Read got = read(text);
    EXPECT_EQ(got.status.message(), message);
    EXPECT_FALSE(got.status);
  }
}

TEST(MatrixMarket, Read_NoSuchFile_ExpectItsNameInError) {
  const Status status = read_matrix_market("/nowhere/m.mtx", {});
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "cannot open /nowhere/m.mtx: No such file or directory");
}

TEST(MatrixMarket, Read_EndlessLine_ExpectItsNumberAndTheLimitInError) {
  const std::string banner = "%%MatrixMarket matrix coordinate real general\n";
  for (const auto& [text, line] : {std::pair(std::string(1 << 20, '\0'), ":1:"),
                                   std::pair(banner + "% " + std::string(1 << 20, 'x') + "\n1 1 1\n1 1 1\n", ":2:")}) {
    const Read got = read(text);
    EXPECT_FALSE(got.status);
    EXPECT_NE(got.status.message().find("a line of more than 65536 bytes"), std::string::npos) << got.status.message();
    EXPECT_NE(got.status.message().find(line), std::string::npos) << got.status.message();
  }
  EXPECT_TRUE(read(banner + "% " + std::string(65'533, 'x') + "\n1 1 1\n1 1 1").status);
}

TEST(MatrixMarket, Read_DeviceOrDirectory_ExpectRefusal) {
  for (const char* path : {"/dev/zero", "/dev/null", "/tmp"}) {
    const Status read = read_matrix_market(path, {.begin = [](const MatrixMarket&) {}, .entry = {}});
    EXPECT_EQ(read.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(read.message().find("want a regular file"), std::string::npos) << read.message();
  }
}

}  // namespace
}  // namespace wherry::apps
