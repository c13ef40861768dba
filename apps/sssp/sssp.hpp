// SPDX-License-Identifier: Apache-2.0
// Shortest paths from one vertex to all others, by delta-stepping (U. Meyer, P. Sanders, "Delta-stepping: a
// parallelizable shortest path algorithm", Journal of Algorithms 49, 2003): vertices wait in buckets of distances that
// are `delta` wide, and the ranks empty one bucket after the other, each its own part of it. To follow an edge is a
// message to the owner of its end.
//
// Buckets, because messages come in any order: relaxed at once, as they come, vertices would be reached over long paths
// first and their edges followed again for every shorter one. One quiesce for each bucket ends it. Messages that add to
// the same bucket are handled meanwhile, so there are no rounds within. Light and heavy edges are treated alike, which
// saves a second quiesce a bucket and costs the heavy edges of the few vertices that get nearer within their bucket.
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
