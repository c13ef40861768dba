// SPDX-License-Identifier: Apache-2.0
// The whole run: traffic in place and by the stream, and then a NIC's possible events in the middle of it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/bypass/card.hpp"
#include "sim/bypass/echo.hpp"
#include "sim/qemu/exchange.hpp"
#include "sim/qemu/machine.hpp"
#include "wherry/status.hpp"

namespace wherry::sim {

struct RunOptions {
  MachineOptions machine;
  std::uint64_t frames = 10'000;  ///< half of them in place, half by the stream
  std::uint64_t seed = 1;
  bool events = true;
};

/// One part of the run.
struct Phase {
  std::string name;
  bool may_lose = false;       ///< frames were on their way when something happened to the NIC
  ExchangeCounters frames;     ///< of this part alone
  std::uint64_t messages = 0;  ///< between QEMU and the card
  double seconds = 0;
  std::uint64_t refused = 0;  ///< frames that the function in place dropped
  bool balanced = false;      ///< the card's counters account for every frame
  [[nodiscard]] bool good() const noexcept { return frames.wrong == 0 && balanced && (may_lose || frames.lost == 0); }
};

struct RunReport {
  std::string qemu;  ///< its version
  std::vector<Phase> phases;
  CardCounters card;
  [[nodiscard]] bool good() const noexcept;
};

/// Called after each phase.
using PhaseObserver = std::function<void(const Phase&)>;

/// `card` must be stopped; `function` is its function in place. An error: the run was not possible at all.
Result<RunReport> run_bypass(const RunOptions& options, Card& card, InPlaceEcho& function,
                             const PhaseObserver& observer);

}  // namespace wherry::sim
