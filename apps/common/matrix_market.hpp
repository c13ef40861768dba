// SPDX-License-Identifier: Apache-2.0
// Matrix Market files (https://math.nist.gov/MatrixMarket/formats.html): the coordinate format with real, integer or
// pattern entries, general or symmetric.
#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <string>
#include <string_view>

#include "wherry/status.hpp"

namespace wherry::apps {

struct MatrixMarket {
  enum class Field : std::uint8_t { kReal, kInteger, kPattern };
  std::uint64_t rows = 0, columns = 0;
  std::uint64_t entries = 0;  ///< in the file: a symmetric one holds the lower triangle
  Field field = Field::kReal;
  bool symmetric = false;
};

/// Receives the header and the entries, in the order of the file.
struct MatrixMarketSink {
  std::function<void(const MatrixMarket&)> begin;
  /// Rows and columns count from zero. Entries of a pattern matrix have the value 1.
  std::function<void(std::uint32_t row, std::uint32_t column, double value)> entry;
};

/// Reads a file to its end. Errors name the line: "NAME:12: ...". Checks that every entry lies within the matrix, that
/// every value is finite, and that the number of entries is the announced one.
Status read_matrix_market(std::istream& in, std::string_view name, const MatrixMarketSink& sink);
Status read_matrix_market(const std::string& path, const MatrixMarketSink& sink);

}  // namespace wherry::apps
