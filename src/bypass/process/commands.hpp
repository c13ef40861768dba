// SPDX-License-Identifier: Apache-2.0
// The commands of wherry-bypass. Each returns the exit status: 0, 1 failed, 2 wrong command line, or a Cause.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bypass/process/bring_up.hpp"

namespace wherry::bypass {

/// The options of a function, as the user wrote them.
struct FunctionWords {
  std::string name, ip, to;
  std::vector<std::string> rules;
  std::uint16_t udp_port = FunctionSetup{}.udp_port;
  std::uint32_t bytes = GeneratorSetup{}.bytes, interval = GeneratorSetup{}.interval, count = 0;
};
/// Returns no value if no function is named. kInvalidArgument: an option is wrong or missing.
Result<std::optional<FunctionSetup>> function_of(const FunctionWords& words, bool in_place);

struct CommandOptions {
  std::string nic, card;  ///< addresses; empty: the only one
  std::string directory = "/run/wherry-bypass";
  bool json = false;
  bool move = false;  ///< of probe
  std::string sysfs = "/sys";
  UpOptions up{};
  FunctionWords function{};
};

int run_probe(const CommandOptions& options, const std::atomic<bool>& stop);
int run_up(const CommandOptions& options, const std::atomic<bool>& stop);
int run_status(const CommandOptions& options);
int run_down(const CommandOptions& options);

}  // namespace wherry::bypass
