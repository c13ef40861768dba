// SPDX-License-Identifier: Apache-2.0
// Checks a trace of DDR4 commands against JEDEC's rules. It shares only the trace's format with the model. It states
// the intervals a second time, in the specification's units, each with its source.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "sim/memory/ddr4_device.hpp"

namespace wherry::sim::memory {

struct Ddr4Judgement {
  /// The name of each broken rule, and how often it was broken.
  std::map<std::string, std::uint64_t> broken;
  /// The first broken rule, as text.
  std::string first;
  /// How often each interval was met exactly. A rule that no command comes near to was not tested.
  std::map<std::string, std::uint64_t> tight;
};

/// `trace` may be in any order. Chips: 8 Gbit x8, DDR4-2400, speed bin 16-16-16, BL8, CWL 12, preambles of 1 tCK.
[[nodiscard]] Ddr4Judgement judge(std::span<const Ddr4Issued> trace);

}  // namespace wherry::sim::memory
