// SPDX-License-Identifier: Apache-2.0
// Sparse matrices by rows, each rank with its own, and where they come from.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/distribution.hpp"
#include "wherry/status.hpp"

namespace wherry::apps {

/// A rank's rows of a matrix, compressed: the columns of local row i are those from offsets[i] to before offsets[i +
/// 1], ascending. As a graph: row i holds the edges that leave vertex i.
struct RowMatrix {
  Distribution row_distribution{Distribution::Kind::kCyclic, 0, 1};
  Rank rank = 0;
  std::uint64_t columns = 0;           ///< of the whole matrix
  std::vector<std::uint64_t> offsets;  ///< one more than local rows
  std::vector<std::uint32_t> indices;  ///< columns
  std::vector<double> values;          ///< one for each of `indices`, or none where only the pattern matters

  [[nodiscard]] std::uint64_t rows() const noexcept { return row_distribution.size(); }
  [[nodiscard]] std::uint64_t local_rows() const noexcept { return offsets.size() - 1; }
  [[nodiscard]] std::uint64_t row(std::uint64_t local) const noexcept { return row_distribution.element(rank, local); }
  [[nodiscard]] std::span<const std::uint32_t> columns_of(std::uint64_t local) const noexcept {
    return std::span(indices).subspan(offsets[local], offsets[local + 1] - offsets[local]);
  }
  [[nodiscard]] std::span<const double> values_of(std::uint64_t local) const noexcept {
    return std::span(values).subspan(offsets[local], offsets[local + 1] - offsets[local]);
  }
};

struct InputOptions {
  std::string file;  ///< Matrix Market; empty: generated
  std::uint64_t rows = std::uint64_t{1} << 16;
  std::uint64_t degree = 16;  ///< entries of a generated row, those drawn twice included
  bool real = false;          ///< generated values: in (0, 1], else integers from 1 to 100
  Distribution::Kind distribution = Distribution::Kind::kCyclic;
  std::string save;  ///< prefix of files for the matrix itself
  std::uint64_t seed = 1;
};

enum class Shape : std::uint8_t {
  kWhole,          ///< as it is in the file, the upper half of a symmetric one included; entries met twice add up.
                   ///< Generated: the entries of each row anywhere
  kLowerTriangle,  ///< the graph without directions, loops and values: each edge once, at its larger end. Generated:
                   ///< each vertex is joined to some before it, to early ones rather than to late ones
};

/// This rank's rows of the input. Each rank reads the whole file and keeps its part, or generates its part.
Result<RowMatrix> load(const InputOptions& options, Shape shape, Rank rank, Rank ranks);

/// "PREFIX.<rank>.mtx": a matrix of the full size that holds this rank's rows. Their sum, over the ranks, is the whole.
Status save(const RowMatrix& matrix, const std::string& prefix);

/// Sums to the same number over any number of ranks.
std::uint64_t checksum(const RowMatrix& matrix) noexcept;

}  // namespace wherry::apps
