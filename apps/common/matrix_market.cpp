// SPDX-License-Identifier: Apache-2.0
#include "common/matrix_market.hpp"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <optional>

namespace wherry::apps {
namespace {

using Field = MatrixMarket::Field;

constexpr std::uint64_t kMaxRows = (std::uint64_t{1} << 32) - 1;  // 32-bit indices
constexpr std::size_t kMaxLineBytes = std::size_t{64} << 10;      // of a line; the format allows 1024
constexpr std::int64_t kMaxExactInteger = std::int64_t{1} << 53;  // integers that a double holds

/// Makes text fit for an error: unprintable characters become '?', and a long text is cut.
std::string in_quotes(std::string_view text) {
  constexpr std::size_t kMaxQuoted = 40;
  std::string out = "'";
  for (const char c : text.substr(0, kMaxQuoted)) out += std::isprint(static_cast<unsigned char>(c)) != 0 ? c : '?';
  return out + (text.size() > kMaxQuoted ? "...'" : "'");
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return static_cast<char>(std::tolower(c & 0x7f)); });
  return out;
}

/// Takes the next word off `line`. Empty: there is none.
std::string_view next_word(std::string_view& line) {
  constexpr std::string_view kBlanks = " \t\r\f\v";
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(kBlanks));
  line.remove_prefix(word.size());
  return word;
}

template <typename T>
std::optional<T> number(std::string_view word) {
  if (word.size() > 1 && word.front() == '+' && word[1] != '-') word.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

/// Takes the lines of a file one by one. The functions' errors do not contain the line's number. Empty: none.
class Reader {
 public:
  explicit Reader(const MatrixMarketSink& sink) : sink_(sink) {}

  std::string line(std::string_view text) {
    ++lines_;
    if (lines_ == 1) return banner(text);
    std::string_view rest = text;
    const std::string_view first = next_word(rest);
    if (first.empty() || first.front() == '%') return {};
    if (!sized_) return size(text);
    return entry(text);
  }
  std::string end() const {
    if (lines_ == 0) return "the file is empty";
    if (!sized_) return "the file ends before the line with the size of the matrix";
    if (seen_ != matrix_.entries) return fmt::format("the file ends after {} of {} entries", seen_, matrix_.entries);
    return {};
  }

 private:
  std::string banner(std::string_view text) {
    const std::string_view whole = text;
    if (next_word(text) != "%%MatrixMarket")
      return fmt::format("not a Matrix Market file: the first line begins with '%%MatrixMarket', not {}",
                         in_quotes(whole));
    const std::string object = lower(next_word(text)), format = lower(next_word(text)), field = lower(next_word(text)),
                      symmetry = lower(next_word(text));
    if (object != "matrix") return fmt::format("want a matrix, not {}", in_quotes(object));
    if (format != "coordinate")
      return fmt::format("want the coordinate format, of sparse matrices, not {}", in_quotes(format));
    if (field == "integer") {
      matrix_.field = Field::kInteger;
    } else if (field == "pattern") {
      matrix_.field = Field::kPattern;
    } else if (field != "real") {
      return fmt::format("want real, integer or pattern entries, not {}", in_quotes(field));
    }
    if (symmetry != "general" && symmetry != "symmetric")
      return fmt::format("want a general or symmetric matrix, not {}", in_quotes(symmetry));
    matrix_.symmetric = symmetry == "symmetric";
    return {};
  }

  std::string size(std::string_view text) {
    const std::string_view whole = text;
    std::array<std::uint64_t, 3> sizes{};
    for (std::uint64_t& value : sizes) {
      const auto parsed = number<std::uint64_t>(next_word(text));
      if (!parsed) return fmt::format("want the numbers of rows, columns and entries, not {}", in_quotes(whole));
      value = *parsed;
    }
    if (!next_word(text).empty()) return fmt::format("more than rows, columns and entries: {}", in_quotes(whole));
    matrix_.rows = sizes[0], matrix_.columns = sizes[1], matrix_.entries = sizes[2];
    if (matrix_.rows == 0 || matrix_.columns == 0) return "a matrix without rows or columns";
    if (matrix_.rows > kMaxRows || matrix_.columns > kMaxRows)
      return fmt::format("{} rows and {} columns: at most {} of either are supported", matrix_.rows, matrix_.columns,
                         kMaxRows);
    if (matrix_.symmetric && matrix_.rows != matrix_.columns)
      return fmt::format("a symmetric matrix with {} rows and {} columns", matrix_.rows, matrix_.columns);
    sized_ = true;
    sink_.begin(matrix_);
    return {};
  }

  std::string entry(std::string_view text) {
    const std::string_view whole = text;
    if (seen_ == matrix_.entries) return fmt::format("an entry more than the {} promised", matrix_.entries);
    const auto row = number<std::uint64_t>(next_word(text)), column = number<std::uint64_t>(next_word(text));
    if (!row || !column) return fmt::format("want a row and a column, not {}", in_quotes(whole));
    if (*row < 1 || *row > matrix_.rows || *column < 1 || *column > matrix_.columns)
      return fmt::format("entry ({}, {}) of a matrix of {} x {}; both count from 1", *row, *column, matrix_.rows,
                         matrix_.columns);
    if (matrix_.symmetric && *column > *row)
      return fmt::format("entry ({}, {}) lies above the diagonal: the file of a symmetric matrix holds what is below",
                         *row, *column);
    double value = 1;
    if (matrix_.field != Field::kPattern) {
      if (std::string wrong = read_value(next_word(text), value); !wrong.empty()) return wrong;
    }
    if (!next_word(text).empty()) return fmt::format("more than an entry: {}", in_quotes(whole));
    ++seen_;
    sink_.entry(static_cast<std::uint32_t>(*row - 1), static_cast<std::uint32_t>(*column - 1), value);
    return {};
  }

  [[nodiscard]] std::string read_value(std::string_view word, double& value) const {
    if (matrix_.field == Field::kInteger) {
      const auto parsed = number<std::int64_t>(word);
      if (!parsed) return fmt::format("want an integer, not {}", in_quotes(word));
      if (*parsed > kMaxExactInteger || *parsed < -kMaxExactInteger)
        return fmt::format("{} is beyond 2^53, up to which integers are kept exactly", *parsed);
      value = static_cast<double>(*parsed);
      return {};
    }
    const auto parsed = number<double>(word);
    if (!parsed || !std::isfinite(*parsed)) return fmt::format("want a finite number, not {}", in_quotes(word));
    value = *parsed;
    return {};
  }

  const MatrixMarketSink& sink_;
  MatrixMarket matrix_;
  std::uint64_t lines_ = 0, seen_ = 0;
  bool sized_ = false;
};

}  // namespace

Status read_matrix_market(std::istream& in, std::string_view name, const MatrixMarketSink& sink) {
  Reader reader(sink);
  std::string line(kMaxLineBytes + 1, '\0');
  for (std::uint64_t count = 1; in.good(); ++count) {
    in.getline(line.data(), static_cast<std::streamsize>(line.size()));
    if (in.bad() || (in.eof() && in.gcount() == 0)) break;
    const auto bytes = static_cast<std::size_t>(in.gcount() - (in.good() ? 1 : 0));  // without the newline
    const bool cut = in.fail() && !in.bad();
    const std::string wrong = cut ? fmt::format("a line of more than {} bytes", kMaxLineBytes)
                                  : reader.line(std::string_view(line).substr(0, bytes));
    if (!wrong.empty()) return {StatusCode::kInvalidArgument, fmt::format("{}:{}: {}", name, count, wrong)};
  }
  if (in.bad()) return {StatusCode::kUnavailable, fmt::format("cannot read {}: {}", name, std::strerror(errno))};
  const std::string wrong = reader.end();
  if (!wrong.empty()) return {StatusCode::kInvalidArgument, fmt::format("{}: {}", name, wrong)};
  return {};
}

Status read_matrix_market(const std::string& path, const MatrixMarketSink& sink) {
  // Each rank reads the file from its beginning. A device may never end, and a pipe can be read by one rank only.
  struct stat info{};
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return {StatusCode::kInvalidArgument,
            fmt::format("cannot read {}: want a regular file, not a directory, pipe or device", path)};
  }
  std::ifstream file(path);
  if (!file) return {StatusCode::kNotFound, fmt::format("cannot open {}: {}", path, std::strerror(errno))};
  return read_matrix_market(file, path, sink);
}

}  // namespace wherry::apps
