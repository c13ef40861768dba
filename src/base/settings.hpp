// SPDX-License-Identifier: Apache-2.0
// Settings: one row has a setting's TOML key, environment variable, flag, help, default and range. Reading, dumping and
// checking use these rows. The agent and each of its services have a table of rows.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "wherry/status.hpp"

namespace wherry {

/// Sets a field by reference. The field must outlive the Setting.
struct Setting {
  std::string key;   ///< section and name in TOML: "move.window"
  std::string name;  ///< of the flag and the variable: "window" is --window and WHERRY_WINDOW
  std::string help;
  std::function<std::string()> get;
  /// An error names the setting, the value and the allowed values, and leaves the field unchanged.
  std::function<Status(const std::string&)> set;
  bool quoted = true;  ///< a string in TOML, else a number, true or false

  [[nodiscard]] std::string flag() const;         ///< "--transfer-unit"
  [[nodiscard]] std::string environment() const;  ///< "WHERRY_TRANSFER_UNIT"
};
using Settings = std::vector<Setting>;

/// "agent.core = 'x': want a core number or -1".
Status bad_setting(const std::string& key, const std::string& value, const std::string& allowed);

Setting bytes_setting(std::string key, std::string name, std::uint64_t& field, std::string help);
Setting number_setting(std::string key, std::string name, std::uint64_t& field, std::uint64_t min, std::uint64_t max,
                       std::string help);
Setting text_setting(std::string key, std::string name, std::string& field, std::string help);
/// host:port, or "off".
Setting address_setting(std::string key, std::string name, std::string& field, std::string help);
Setting switch_setting(std::string key, std::string name, bool& field, std::string help);

/// "64MiB", "1GiB", "4096", "10MB" to bytes.
Result<std::uint64_t> parse_bytes(const std::string& text);
/// kInvalidArgument: it is not a whole number from min to max.
Result<std::uint64_t> parse_number(const std::string& text, std::uint64_t min, std::uint64_t max);

}  // namespace wherry
