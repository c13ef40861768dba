// SPDX-License-Identifier: Apache-2.0
// The test that moves data: frames go from one place in the card's memory to another, through the NIC in loopback. The
// test needs only the card's memory: its slots while their queue pair is stopped. The rings are also in this memory,
// and the host reads them.
//
// Reads and writes are reported separately. Some root complexes pass writes and drop reads without an error, and one
// answers reads with other bytes.
#pragma once

#include <cstdint>
#include <string>

#include "bypass/card.hpp"
#include "bypass/cause.hpp"
#include "bypass/nic/nic.hpp"

namespace wherry::bypass {

struct PreflightOptions {
  std::uint64_t window = 0;               ///< bus address of the card's window
  std::uint64_t seed = 0;                 ///< of what the frames hold
  std::uint32_t rounds = 4;               ///< each: a long frame from A to B, a short one from B to A
  std::chrono::milliseconds limit{1000};  ///< for one frame
};

struct PreflightReport {
  Finding finding;          ///< kNone: what was sent arrived, bit by bit
  std::uint32_t there = 0;  ///< frames from A to B that arrived
  std::uint32_t back = 0;   ///< and from B to A
  std::uint64_t bytes = 0;  ///< of both
};

/// The NIC must have been reset, and is reset again afterwards. `nic` must have a loopback.
PreflightReport run_preflight(Nic& nic, CardAccess& card, const PreflightOptions& options);

}  // namespace wherry::bypass
