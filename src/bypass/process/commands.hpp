// SPDX-License-Identifier: Apache-2.0
// The commands of wherry-bypass. Each returns the exit status: 0, 1 failed, 2 wrong command line, or a Cause.
#pragma once

#include <atomic>
#include <string>

#include "bypass/process/bring_up.hpp"

namespace wherry::bypass {

struct CommandOptions {
  std::string nic, card;  ///< addresses; empty: the only one
  std::string directory = "/run/wherry-bypass";
  bool json = false;
  bool move = false;  ///< of probe
  std::string sysfs = "/sys";
  UpOptions up{};
};

int run_probe(const CommandOptions& options, const std::atomic<bool>& stop);
int run_up(const CommandOptions& options, const std::atomic<bool>& stop);
int run_status(const CommandOptions& options);
int run_down(const CommandOptions& options);

}  // namespace wherry::bypass
