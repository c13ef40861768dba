// SPDX-License-Identifier: Apache-2.0
// The transpose of a sparse matrix whose rows are spread over the ranks: every entry is a message to the rank that owns
// its column.
#pragma once

#include "common/matrix.hpp"
#include "wherry/route.hpp"

namespace wherry::apps {

struct Transpose {
  RowMatrix matrix;          ///< the rows of the transpose that are this rank's
  double count_seconds = 0;  ///< first phase: how many entries each of them has
  double entry_seconds = 0;  ///< second phase: the entries, to their places
  double sort_seconds = 0;   ///< they came in any order
};

/// Rows of the result are distributed as `kind` says.
Result<Transpose> transpose(route::Runtime& runtime, const RowMatrix& matrix, Distribution::Kind kind);

}  // namespace wherry::apps
