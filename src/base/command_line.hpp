// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/error_line.hpp"

namespace wherry {

inline constexpr int kWrongCommandLine = 2;

/// Parses the command line. Ends the process with 0 after --help or --version, and with kWrongCommandLine and a message
/// on standard error if the command line is wrong. CLI11's own exit statuses lie between 100 and 120.
inline void parse_command_line(CLI::App& app, int count, const char* const* values) {
  try {
    app.parse(count, values);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? 0 : kWrongCommandLine);
  }
}

/// Checks that each word of the user is the beginning of one of `names`. Otherwise it prints the names and ends the
/// process with kWrongCommandLine. `option`: for the message, such as "--only".
inline void refuse_unknown(const CLI::App& app, const std::string& option, const std::vector<std::string>& words,
                           const std::vector<std::string>& names) {
  for (const std::string& word : words) {
    if (std::ranges::any_of(names, [&](const std::string& name) { return name.starts_with(word); })) continue;
    std::string known;
    for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
    error_line(app.get_name() + ": " + option + " " + word + ": unknown. Known are, by their beginnings: " + known);
    std::exit(kWrongCommandLine);
  }
}

}  // namespace wherry
