// SPDX-License-Identifier: Apache-2.0
#include "sssp/sssp.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>

#include "common/together.hpp"

namespace wherry::apps {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();
constexpr std::uint64_t kNoBucket = ~std::uint64_t{0};

/// A message: a path of this length to `vertex` exists.
struct Relax {
  std::uint32_t vertex;  ///< its owner's local number
  double distance;
};

/// A rank's vertices.
class Vertices {
 public:
  Vertices(std::uint64_t count, double delta) : vertices_(count), delta_(delta) {}

  void relax(const Relax& by) {
    Vertex& vertex = vertices_[by.vertex];
    if (by.distance >= vertex.distance) return;
    vertex.distance = by.distance;
    const std::uint64_t bucket = bucket_of(by.distance);
    (bucket <= current_ ? now_ : later_[bucket]).push_back(by.vertex);
  }
  void prefetch(const Relax& by) const { __builtin_prefetch(&vertices_[by.vertex], 1); }

  /// The first bucket that is not empty, or kNoBucket.
  [[nodiscard]] std::uint64_t first_bucket() const { return later_.empty() ? kNoBucket : later_.begin()->first; }
  void open(std::uint64_t bucket) {
    current_ = bucket;
    if (first_bucket() == bucket) now_ = std::move(later_.extract(later_.begin()).mapped());
  }
  /// Takes a vertex of the open bucket, to follow its edges. Returns false if there is none now.
  bool next(std::uint32_t& number) {
    while (!now_.empty()) {
      number = now_.back();
      now_.pop_back();
      Vertex& vertex = vertices_[number];
      if (vertex.followed <= vertex.distance) continue;  // from an earlier bucket, or twice in this one
      vertex.followed = vertex.distance;
      return true;
    }
    return false;
  }
  [[nodiscard]] double distance(std::uint64_t number) const { return vertices_[number].distance; }

 private:
  struct Vertex {
    double distance = kFar;
    double followed = kFar;  ///< the distance at which its edges were followed last
  };
  [[nodiscard]] std::uint64_t bucket_of(double distance) const {
    constexpr double kMaxBucket = 0x1p63;  // all farther vertices share it
    return static_cast<std::uint64_t>(std::min(distance / delta_, kMaxBucket));
  }

  std::vector<Vertex> vertices_;
  double delta_;
  std::uint64_t current_ = 0;
  std::vector<std::uint32_t> now_;                             ///< the open bucket
  std::map<std::uint64_t, std::vector<std::uint32_t>> later_;  ///< farther ones
};

/// Checks on all ranks that no weight is negative. Returns the default delta.
Result<double> examine(Runtime& runtime, const RowMatrix& edges) {
  Status status;
  double largest = 0;
  for (std::uint64_t i = 0; i < edges.local_rows(); ++i) {
    for (std::uint64_t at = edges.offsets[i]; at < edges.offsets[i + 1]; ++at) {
      largest = std::max(largest, edges.values[at]);
      if (edges.values[at] < 0)
        status = {StatusCode::kInvalidArgument,
                  fmt::format("the edge from {} to {} has the weight {}: want weights of zero or more",
                              edges.row(i) + 1, std::uint64_t{edges.indices[at]} + 1, edges.values[at])};
    }
  }
  if (Status fine = together(runtime, std::move(status)); !fine) return fine;
  const auto all = runtime.reduce(largest, Runtime::Combine::kMax);
  if (!all) return all.status();
  const auto count = runtime.reduce(std::uint64_t{edges.indices.size()});
  if (!count) return count.status();
  const double degree = static_cast<double>(*count) / static_cast<double>(edges.rows());
  return *all > 0 ? *all / std::max(1.0, degree) : 1.0;
}

}  // namespace

Result<Paths> shortest_paths(Runtime& runtime, const RowMatrix& edges, std::uint64_t source, double delta) {
  const auto fallback = examine(runtime, edges);
  if (!fallback) return fallback.status();
  Paths paths;
  paths.delta = delta > 0 ? delta : *fallback;
  Vertices vertices(edges.local_rows(), paths.delta);
  const auto relax =
      runtime.on<Relax>([&](const Relax& by) { vertices.relax(by); }, [&](const Relax& by) { vertices.prefetch(by); });
  const auto home_of = [&](std::uint64_t vertex) { return edges.row_distribution.home(vertex); };

  const auto follow_some = [&] {
    std::uint32_t vertex = 0;
    if (!vertices.next(vertex)) return false;
    const double distance = vertices.distance(vertex);
    const auto ends = edges.columns_of(vertex);
    const auto weights = edges.values_of(vertex);
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const auto [owner, end] = home_of(ends[i]);
      if (!deliver(runtime, owner, relax, Relax{end, distance + weights[i]})) return false;
    }
    return true;
  };

  if (Status ready = barrier(runtime); !ready) return ready;
  const Stopwatch watch;
  if (home_of(source).rank == runtime.rank()) vertices.relax({home_of(source).local, 0});
  for (std::uint64_t bucket = 0;;) {
    if (Status emptied = until_all_idle(runtime, follow_some); !emptied) return emptied;
    ++paths.buckets;
    const auto next = runtime.reduce(vertices.first_bucket(), Runtime::Combine::kMin);
    if (!next) return next.status();
    if (*next == kNoBucket) break;
    bucket = *next;
    vertices.open(bucket);
  }
  paths.seconds = watch.seconds();
  paths.distance.reserve(edges.local_rows());
  for (std::uint64_t i = 0; i < edges.local_rows(); ++i) paths.distance.push_back(vertices.distance(i));
  return paths;
}

}  // namespace wherry::apps
