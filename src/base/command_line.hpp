// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <cstdlib>

namespace wherry {

inline constexpr int kWrongCommandLine = 2;

/// Parses, or ends the process: with 0 after --help and --version, with kWrongCommandLine after what is wrong, which
/// standard error says. CLI11's own exit statuses lie between 100 and 120.
inline void parse_command_line(CLI::App& app, int count, const char* const* values) {
  try {
    app.parse(count, values);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? 0 : kWrongCommandLine);
  }
}

}  // namespace wherry
