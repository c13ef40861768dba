// SPDX-License-Identifier: Apache-2.0
// Shortest paths from one vertex to all others, by delta-stepping (U. Meyer, P. Sanders, "Delta-stepping: a
// parallelizable shortest path algorithm", Journal of Algorithms 49, 2003): vertices wait in buckets of distances that
// are `delta` wide, and the ranks empty one bucket after the other, each its own part of it. Each followed edge is a
// message to the owner of the vertex at its end.
//
// Why buckets: messages come in any order. If each were relaxed at once, long paths would reach a vertex first, and its
// edges would be followed again for every shorter path. One quiesce ends each bucket. Messages that add to the open
// bucket are handled before it, so a bucket has no inner rounds. Light and heavy edges are treated alike: this saves a
// second quiesce a bucket, and follows some heavy edges twice.
#pragma once

#include <vector>

#include "common/matrix.hpp"
#include "wherry/route.hpp"

namespace wherry::apps {

struct Paths {
  std::vector<double> distance;  ///< by local vertex; infinity: not to be reached
  double delta = 0;
  std::uint64_t buckets = 0;  ///< that were emptied
  double seconds = 0;
};

/// `edges`: from row to column, with weights of zero or more. `delta` of zero: the largest weight over the edges per
/// vertex, with which a bucket's vertices are few enough to be final mostly and enough to be worth a quiesce.
Result<Paths> shortest_paths(route::Runtime& runtime, const RowMatrix& edges, std::uint64_t source, double delta = 0);

}  // namespace wherry::apps
