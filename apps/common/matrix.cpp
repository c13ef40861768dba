// SPDX-License-Identifier: Apache-2.0
#include "common/matrix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <utility>

#include "common/matrix_market.hpp"
#include "common/npy.hpp"
#include "common/random.hpp"

namespace wherry::apps {
namespace {

struct Entry {
  std::uint32_t local, column;
  double value;
};

/// What happens to a second entry in the same row and column.
enum class Twice : std::uint8_t { kAdd, kDrop };

RowMatrix compress(Distribution rows, Rank rank, std::uint64_t columns, std::vector<Entry> entries, Twice twice,
                   bool with_values) {
  std::ranges::stable_sort(entries, [](const Entry& a, const Entry& b) {
    return std::pair(a.local, a.column) < std::pair(b.local, b.column);
  });
  RowMatrix matrix{.row_distribution = rows, .rank = rank, .columns = columns};
  matrix.offsets.resize(rows.count(rank) + 1);
  matrix.indices.reserve(entries.size());
  if (with_values) matrix.values.reserve(entries.size());
  const Entry* last = nullptr;
  for (const Entry& entry : entries) {
    if (last != nullptr && last->local == entry.local && last->column == entry.column) {
      if (twice == Twice::kAdd && with_values) matrix.values.back() += entry.value;
      continue;
    }
    last = &entry;
    matrix.indices.push_back(entry.column);
    if (with_values) matrix.values.push_back(entry.value);
    ++matrix.offsets[entry.local + 1];
  }
  for (std::size_t i = 1; i < matrix.offsets.size(); ++i) matrix.offsets[i] += matrix.offsets[i - 1];
  return matrix;
}

Result<RowMatrix> load_file(const InputOptions& options, Shape shape, Rank rank, Rank ranks) {
  MatrixMarket found;
  std::optional<Distribution> rows;
  std::vector<Entry> entries;
  const auto keep = [&](std::uint32_t row, std::uint32_t column, double value) {
    const auto [owner, local] = rows->home(row);
    if (owner == rank) entries.push_back({local, column, value});
  };
  const auto begin = [&](const MatrixMarket& matrix) {
    found = matrix;
    rows.emplace(options.distribution, matrix.rows, ranks);
  };
  const auto entry = [&](std::uint32_t row, std::uint32_t column, double value) {
    if (shape == Shape::kWhole) {
      keep(row, column, value);
      if (found.symmetric && row != column) keep(column, row, value);
    } else if (row != column && found.rows == found.columns) {
      keep(std::max(row, column), std::min(row, column), value);
    }
  };
  if (Status read = read_matrix_market(options.file, {begin, entry}); !read) return read;
  if (shape == Shape::kLowerTriangle && found.rows != found.columns)
    return Status(StatusCode::kInvalidArgument, fmt::format("{}: a matrix of {} x {} is not a graph: want a square one",
                                                            options.file, found.rows, found.columns));
  const bool whole = shape == Shape::kWhole;
  return compress(*rows, rank, found.columns, std::move(entries), whole ? Twice::kAdd : Twice::kDrop, whole);
}

/// A row depends only on the seed and its number.
void generate_row(const InputOptions& options, Shape shape, std::uint64_t row, std::uint32_t local,
                  std::vector<Entry>& entries) {
  const std::uint64_t stream = splitmix(options.seed, row);
  const std::uint64_t degree = shape == Shape::kWhole ? options.degree : std::min(options.degree, row);
  for (std::uint64_t i = 0; i < degree; ++i) {
    const std::uint64_t where = splitmix(stream, 2 * i), what = splitmix(stream, 2 * i + 1);
    std::uint64_t column = below(where, options.rows);
    if (shape == Shape::kLowerTriangle)
      column = static_cast<std::uint64_t>(static_cast<double>(row) * unit(where) * unit(where));
    const double value = options.real ? 1 - unit(what) : static_cast<double>(1 + below(what, 100));
    entries.push_back({local, static_cast<std::uint32_t>(column), value});
  }
}

RowMatrix generate(const InputOptions& options, Shape shape, Rank rank, Rank ranks) {
  const Distribution rows(options.distribution, options.rows, ranks);
  const std::uint64_t count = rows.count(rank);
  std::vector<Entry> entries;
  entries.reserve(count * options.degree);
  for (std::uint64_t local = 0; local < count; ++local)
    generate_row(options, shape, rows.element(rank, local), static_cast<std::uint32_t>(local), entries);
  return compress(rows, rank, options.rows, std::move(entries), Twice::kDrop, shape == Shape::kWhole);
}

}  // namespace

Result<RowMatrix> load(const InputOptions& options, Shape shape, Rank rank, Rank ranks) {
  auto matrix = options.file.empty() ? generate(options, shape, rank, ranks) : load_file(options, shape, rank, ranks);
  if (!matrix || options.save.empty()) return matrix;
  Status saved = save(*matrix, options.save);
  if (!saved) return saved;
  return matrix;
}

Status save(const RowMatrix& matrix, const std::string& prefix) {
  const std::string path = part_name(prefix, matrix.rank, ".mtx");
  make_parent(path);
  std::ofstream file(path, std::ios::binary);
  fmt::memory_buffer text;
  const bool values = !matrix.values.empty();
  fmt::format_to(std::back_inserter(text), "%%MatrixMarket matrix coordinate {} general\n{} {} {}\n",
                 values ? "real" : "pattern", matrix.rows(), matrix.columns, matrix.indices.size());
  for (std::uint64_t local = 0; local < matrix.local_rows(); ++local) {
    for (std::uint64_t i = matrix.offsets[local]; i < matrix.offsets[local + 1]; ++i) {
      fmt::format_to(std::back_inserter(text), "{} {}", matrix.row(local) + 1, std::uint64_t{matrix.indices[i]} + 1);
      if (values) fmt::format_to(std::back_inserter(text), " {}", matrix.values[i]);
      text.push_back('\n');
    }
    if (text.size() > std::size_t{1} << 20) {
      file.write(text.data(), static_cast<std::streamsize>(text.size()));
      text.clear();
    }
  }
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (file) return {};
  return {StatusCode::kUnavailable, fmt::format("cannot write {}: {}", path, std::strerror(errno))};
}

std::uint64_t checksum(const RowMatrix& matrix) noexcept {
  std::uint64_t sum = 0;
  for (std::uint64_t local = 0; local < matrix.local_rows(); ++local) {
    for (std::uint64_t i = matrix.offsets[local]; i < matrix.offsets[local + 1]; ++i)
      sum += fingerprint(fingerprint(matrix.row(local), std::uint64_t{matrix.indices[i]}),
                         matrix.values.empty() ? 1 : matrix.values[i]);
  }
  return sum;
}

}  // namespace wherry::apps
