// SPDX-License-Identifier: Apache-2.0
// Plays the outside world while the guest's first process (tools/guest/init.sh) sets NIC and card up, stops and kills
// the program, and gives the NIC back. The guest leads. These lines of its console are for this program:
//
//     MARK name          a moment
//     RESULT name value  what it found
//     TURN name          what is to be done here meanwhile; it waits for the line "go"
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/qemu/exchange.hpp"
#include "sim/qemu/guest.hpp"
#include "wherry/status.hpp"

namespace wherry::sim {

struct GuestRunOptions {
  GuestOptions guest;
  std::uint64_t frames = 1000;  ///< in each turn in which the card echoes
  std::uint64_t seed = 1;
};

/// A turn: the frames into the cable, and the frames out of it.
struct GuestTurn {
  std::string name;
  ExchangeCounters frames;
  std::uint64_t uninvited = 0;  ///< frames that came out where none may
  std::uint64_t messages = 0;   ///< of NIC and guest to the card
  double seconds = 0;
};

struct GuestReport {
  std::map<std::string, std::string> results;
  std::map<std::string, double> marks;  ///< seconds since QEMU's start
  std::vector<GuestTurn> turns;
  std::uint64_t pings = 0;          ///< that were answered here: the kernel's driver sent them
  std::uint64_t tails = 0;          ///< that the card wrote
  std::uint64_t tails_refused = 0;  ///< while its bus mastering was off
  std::uint64_t tails_faulted = 0;  ///< that the guest's IOMMU tables do not let through
  /// Whether the card could still write the NIC's tails after the NIC was given back to its driver.
  bool mapped_after_down = false;
  std::uint64_t card_resets = 0;
  std::uint64_t boots_crashed = 0;  ///< QEMU crashed at boot, and was started again
  double seconds = 0;
};

/// Called for each line of the guest's console.
using LineObserver = std::function<void(const std::string&)>;

/// Runs until the guest says "RESULT end", and then kills QEMU. Errors: QEMU failed, the guest has fallen silent, or
/// frames do not return.
Result<GuestReport> run_guest(const GuestRunOptions& options, const LineObserver& observer);

}  // namespace wherry::sim
