// SPDX-License-Identifier: Apache-2.0
#include "base/text_file.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "base/temporary_directory.hpp"

namespace wherry {
namespace {

class TextFileTest : public ::testing::Test {
 protected:
  Result<std::string> read_after_writing(const std::string& text, std::size_t limit) {
    const std::string path = directory_->file("settings");
    std::ofstream(path) << text;
    return read_text_file(path, "the file", limit);
  }
  Result<TemporaryDirectory> directory_ = TemporaryDirectory::create("text");
};

TEST_F(TextFileTest, Read_File_ExpectAllOfIt) {
  const std::string text(10'000, 'x');
  EXPECT_EQ(*read_after_writing(text, text.size()), text);
  EXPECT_EQ(*read_after_writing("", 0), "");
}

TEST_F(TextFileTest, Read_Directory_ExpectInvalidArgumentThatSaysSo) {
  const auto text = read_text_file("/tmp", "the cluster file");
  EXPECT_EQ(text.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(text.status().message(), "cannot read the cluster file '/tmp': Is a directory");
}

TEST_F(TextFileTest, Read_MissingFile_ExpectNotFound) {
  EXPECT_EQ(read_text_file("/nonexistent/x", "the file").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(read_text_file("/dev/null/x", "the file").status().code(), StatusCode::kNotFound);
}

TEST_F(TextFileTest, Read_LargerThanTheLimit_ExpectInvalidArgument) {
  EXPECT_EQ(read_after_writing("12345", 4).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(read_text_file("/dev/zero", "the file").status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace wherry
