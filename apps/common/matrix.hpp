// SPDX-License-Identifier: Apache-2.0
// Sparse matrices by rows, each rank with its own rows: read from a file, or generated.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/distribution.hpp"
#include "wherry/status.hpp"

namespace wherry::apps {

/// A rank's rows of a matrix, compressed: local row i has the columns indices[offsets[i]] up to, but not including,
/// indices[offsets[i + 1]], in ascending order. As a graph: row i holds the edges that leave vertex i.
struct RowMatrix {
  Distribution row_distribution{Distribution::Kind::kCyclic, 0, 1};
  Rank rank = 0;
  std::uint64_t columns = 0;           ///< of the whole matrix
  std::vector<std::uint64_t> offsets;  ///< one more than local rows
  std::vector<std::uint32_t> indices;  ///< columns
  std::vector<double> values;          ///< one for each of `indices`; empty if only the pattern matters

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
  std::uint64_t degree = 16;  ///< entries of a generated row, including those drawn twice
  bool real = false;          ///< generated values are in (0, 1], else integers from 1 to 100
  Distribution::Kind distribution = Distribution::Kind::kCyclic;
  std::string save;  ///< prefix of files for the matrix itself
  std::uint64_t seed = 1;
};

enum class Shape : std::uint8_t {
  kWhole,          ///< as in the file, with the upper half of a symmetric matrix; entries that occur twice add up.
                   ///< generated: a row's entries may be in any column
  kLowerTriangle,  ///< the graph without directions, loops and values: each edge once, at its larger end. Generated:
                   ///< each vertex is joined to some vertices before it, more often to early ones
};

/// This rank's rows. Each rank reads the whole file and keeps its rows, or generates its rows.
Result<RowMatrix> load(const InputOptions& options, Shape shape, Rank rank, Rank ranks);

/// Writes "PREFIX.<rank>.mtx": a matrix of the full size with this rank's rows. Summed over the ranks, it is the whole.
Status save(const RowMatrix& matrix, const std::string& prefix);

/// The sum over the ranks is the same for any number of ranks.
std::uint64_t checksum(const RowMatrix& matrix) noexcept;

}  // namespace wherry::apps
