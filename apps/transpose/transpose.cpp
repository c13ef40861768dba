// SPDX-License-Identifier: Apache-2.0
#include "transpose/transpose.hpp"

#include <algorithm>

#include "common/huge_vector.hpp"
#include "common/together.hpp"

namespace wherry::apps {
namespace {

/// An entry as a message: `row` is the result's row, by its owner's local number.
struct Entry {
  std::uint32_t row;
  std::uint32_t column;
  double value;
};

/// A stored entry. Index and value lie side by side, so storing an entry costs one cache miss.
struct Element {
  std::uint32_t column;
  double value;
};

void sort_rows(const HugeVector<Element>& elements, RowMatrix& matrix) {
  matrix.indices.reserve(elements.size());
  matrix.values.reserve(elements.size());
  std::vector<Element> row;
  for (std::uint64_t local = 0; local < matrix.local_rows(); ++local) {
    row.assign(elements.begin() + static_cast<std::ptrdiff_t>(matrix.offsets[local]),
               elements.begin() + static_cast<std::ptrdiff_t>(matrix.offsets[local + 1]));
    std::ranges::sort(row, {}, &Element::column);
    for (const Element& element : row) {
      matrix.indices.push_back(element.column);
      matrix.values.push_back(element.value);
    }
  }
}

}  // namespace

Result<Transpose> transpose(Runtime& runtime, const RowMatrix& matrix, Distribution::Kind kind) {
  const Distribution rows(kind, matrix.columns, runtime.ranks());
  Transpose result;
  result.matrix = {.row_distribution = rows, .rank = runtime.rank(), .columns = matrix.rows()};
  // First the number of entries of each row, then the place of its next entry.
  HugeVector<std::uint64_t> next(rows.count(runtime.rank()));
  HugeVector<Element> elements;

  const auto count = runtime.on<std::uint32_t>([&](const std::uint32_t& row) { ++next[row]; },
                                               [&](const std::uint32_t& row) { __builtin_prefetch(&next[row], 1); });
  const auto place =
      runtime.on<Entry>([&](const Entry& entry) { elements[next[entry.row]++] = {entry.column, entry.value}; },
                        [&](const Entry& entry) { __builtin_prefetch(&next[entry.row], 1); });

  if (Status ready = barrier(runtime); !ready) return ready;
  const Stopwatch counting;
  for (const std::uint32_t column : matrix.indices) {
    const auto [owner, local] = rows.home(column);
    if (!deliver(runtime, owner, count, local)) return runtime.status();
  }
  if (Status counted = runtime.quiesce(); !counted) return counted;

  std::uint64_t sum = 0;
  result.matrix.offsets.reserve(next.size() + 1);
  result.matrix.offsets.push_back(0);
  for (std::uint64_t& entries : next) {
    result.matrix.offsets.push_back(sum + entries);
    entries = std::exchange(sum, sum + entries);
  }
  elements.resize(sum);
  // No rank sends entries before every rank has room for them.
  if (Status ready = barrier(runtime); !ready) return ready;
  result.count_seconds = counting.seconds();

  const Stopwatch placing;
  for (std::uint64_t i = 0; i < matrix.local_rows(); ++i) {
    const auto row = static_cast<std::uint32_t>(matrix.row(i));
    for (std::uint64_t at = matrix.offsets[i]; at < matrix.offsets[i + 1]; ++at) {
      const auto [owner, local] = rows.home(matrix.indices[at]);
      if (!deliver(runtime, owner, place, Entry{local, row, matrix.values[at]})) return runtime.status();
    }
  }
  if (Status placed = runtime.quiesce(); !placed) return placed;
  result.entry_seconds = placing.seconds();

  const Stopwatch sorting;
  sort_rows(elements, result.matrix);
  result.sort_seconds = sorting.seconds();
  return result;
}

}  // namespace wherry::apps
