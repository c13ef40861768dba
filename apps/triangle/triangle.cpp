// SPDX-License-Identifier: Apache-2.0
#include "triangle/triangle.hpp"

#include <algorithm>

#include "common/together.hpp"

namespace wherry::apps {
namespace {

/// Asks whether `neighbour` is a smaller neighbour of `vertex` (its owner's local number).
struct Question {
  std::uint32_t vertex;
  std::uint32_t neighbour;
};

}  // namespace

Result<Triangles> count_triangles(Runtime& runtime, const RowMatrix& lower) {
  Triangles triangles;
  triangles.at_vertex.resize(lower.local_rows());
  const auto ask = runtime.on<Question>(
      [&](const Question& question) {
        triangles.at_vertex[question.vertex] +=
            std::ranges::binary_search(lower.columns_of(question.vertex), question.neighbour) ? 1 : 0;
      },
      [&](const Question& question) { __builtin_prefetch(&lower.offsets[question.vertex]); });

  if (Status ready = barrier(runtime); !ready) return ready;
  const Stopwatch watch;
  for (std::uint64_t i = 0; i < lower.local_rows(); ++i) {
    const auto neighbours = lower.columns_of(i);
    for (std::size_t j = 1; j < neighbours.size(); ++j) {
      const auto [owner, vertex] = lower.row_distribution.home(neighbours[j]);
      for (std::size_t k = 0; k < j; ++k) {
        if (!deliver(runtime, owner, ask, Question{vertex, neighbours[k]})) return runtime.status();
      }
    }
  }
  if (Status answered = runtime.quiesce(); !answered) return answered;
  triangles.seconds = watch.seconds();

  std::uint64_t mine = 0;
  for (const std::uint64_t count : triangles.at_vertex) mine += count;
  const auto total = runtime.reduce(mine);
  if (!total) return total.status();
  triangles.total = *total;
  return triangles;
}

}  // namespace wherry::apps
