// SPDX-License-Identifier: Apache-2.0
// Traffic through the Verilated core while PCIe reorders and fails. In all cases, each incoming frame leaves or is
// counted exactly once, and the core remains usable. A seed determines each run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace wherry::sim {

/// The kind of fault in the traffic of one seed.
enum class Trouble : std::uint8_t {
  kNone,                 ///< reordering, splitting and replays only, as in all others
  kReadsVanish,          ///< reads of the NIC: it times out and repeats
  kCompletionsVanish,    ///< what the core answered: the same
  kCompletionsPoisoned,  ///< the NIC drops what it read
  kReadsRefused,         ///< unsupported request
  kReadsAborted,         ///< completer abort
  kCompletionsLate,
  kWritesVanish,  ///< payload or write-backs on their way to the card
  kWritesPoisoned,
  kWritesRefused,  ///< unsupported request at the card
  kTailsVanish,
  kNicRemoved,
  kNicReset,  ///< function level
  kNicMasterOff,
  kCardMasterOff,
  kCardRemoved,
  kHotReset,  ///< of the card's link
  kLinkDown,  ///< Ethernet
  kHostile,   ///< ghost write-backs, lengths beyond the slot, reads outside
  kCount,
};
[[nodiscard]] std::string_view name_of(Trouble trouble) noexcept;

struct SoakOptions {
  std::uint64_t seed = 1;
  std::uint64_t frames = 300;
  Trouble trouble = Trouble::kNone;
};
struct SoakResult {
  std::uint64_t in = 0, out = 0;  ///< frames of the wire, before and after
  std::uint64_t counted = 0;      ///< dropped, by somebody
  std::uint64_t struck = 0;       ///< TLPs that a fault struck, or acts of a hostile NIC
  std::uint64_t retries = 0;      ///< reads that the NIC repeated
  std::uint64_t refused = 0;      ///< write-backs out of turn, stray payload, accesses outside: what the core counted
  std::uint64_t cycles = 0;
  std::vector<std::string> wrong;  ///< sentences; empty: all is well
};
[[nodiscard]] SoakResult soak(const SoakOptions& options);

}  // namespace wherry::sim
