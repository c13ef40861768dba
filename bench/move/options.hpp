// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace wherry::bench {

struct Options {
  std::string json;               ///< where the results go
  bool quick = false;             ///< fewer sizes and repetitions: under a minute, for a look
  std::vector<std::string> only;  ///< experiments; empty: all but `profile`
  std::vector<std::string> set;   ///< "move.window=4MiB": settings of the other agent of experiment `profile`
  int app_core = 0;
  int agent_core = 1;

  [[nodiscard]] bool wants(const std::string& experiment) const;
};

/// Exits with CLI11's status after --help or a wrong command line (which it explains on stderr).
Options parse_command_line(int argc, char** argv);

}  // namespace wherry::bench
