// SPDX-License-Identifier: Apache-2.0
// For tests: runs a round of transfers as probe's runner does.
#pragma once

#include <functional>
#include <vector>

#include "base/testing.hpp"
#include "base/try.hpp"
#include "probe/path.hpp"

namespace wherry::probe::testing_support {

struct Round {
  unsigned transfers = 8;
  std::uint64_t seed = 1;
  std::function<void()> prepared = [] {};  ///< called between prepare() and the first transfer
  std::function<void()> moved = [] {};     ///< called between the last transfer and verify()
};

/// Prepares, moves and verifies on an open path. Returns the result of verify(), or the first error.
inline Status drive_round(Path& path, const Shape& shape, const Round& round) {
  path.prepare(round.seed);
  round.prepared();
  std::vector<unsigned> free, done(shape.depth);
  for (unsigned slot = shape.depth; slot-- > 0;) free.push_back(slot);
  unsigned posted = 0, ended = 0;
  const Deadline deadline(wherry::testing_support::kPatience);
  while (ended < round.transfers) {
    if (deadline.passed()) return {StatusCode::kDeadlineExceeded, "transfers do not end"};
    while (posted < round.transfers && !free.empty() && path.try_post(free.back())) {
      free.pop_back();
      ++posted;
    }
    WHERRY_ASSIGN(const unsigned found, path.poll(done));
    for (unsigned i = 0; i < found; ++i) free.push_back(done[i]);
    ended += found;
  }
  round.moved();
  return path.verify(round.seed);
}

/// Whether verify() detects one changed byte at the destination: the first, the last, and some between.
inline bool notices_spoiling(Path& path, const Shape& shape) {
  if (!path.open(shape)) return false;
  bool all = true;
  for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{1} << 20, std::uint64_t{12345}, ~std::uint64_t{0}}) {
    const Status status = drive_round(path, shape, {.moved = [&] { all = path.spoil(at) && all; }});
    all = status.code() == StatusCode::kInternal && all;
  }
  path.close();
  return all;
}

/// Opens the path, runs one round, and closes it.
inline Status drive(Path& path, const Shape& shape, const Round& round = {}) {
  WHERRY_TRY(path.open(shape));
  Status status = drive_round(path, shape, round);
  path.close();
  return status;
}

}  // namespace wherry::probe::testing_support
