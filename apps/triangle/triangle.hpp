// SPDX-License-Identifier: Apache-2.0
// Triangles of a graph whose vertices are spread over the ranks. For a vertex i with smaller neighbours j and k < j,
// one message asks the rank that owns j whether k is a neighbour of j: each triangle is found once, at its middle
// vertex.
#pragma once

#include <vector>

#include "common/matrix.hpp"
#include "wherry/route.hpp"

namespace wherry::apps {

struct Triangles {
  std::vector<std::uint64_t> at_vertex;  ///< by local vertex: triangles in which it is the middle one
  std::uint64_t total = 0;               ///< over all ranks
  double seconds = 0;
};

/// `lower`: the graph's edges, each at its larger end (Shape::kLowerTriangle).
Result<Triangles> count_triangles(route::Runtime& runtime, const RowMatrix& lower);

}  // namespace wherry::apps
