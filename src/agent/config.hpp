// SPDX-License-Identifier: Apache-2.0
// Settings of wherryd and of its services, in one table (base/settings.hpp). Values come from defaults, TOML,
// environment and flags.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "agent/services.hpp"
#include "base/profile.hpp"
#include "base/settings.hpp"
#include "fabric/tls.hpp"
#include "wherry/status.hpp"
#include "wherry/transport.hpp"

namespace wherry {

/// Four sessions for each core: one for a rank, three for readers. At least 64.
std::uint64_t default_max_sessions(long cores = sysconf(_SC_NPROCESSORS_ONLN)) noexcept;

struct AgentConfig {
  // [agent]
  std::string listen = "off";  ///< TCP, for clients of other machines
  std::string session_file;    ///< empty: default_session_file()
  std::string group;           ///< its members may use the agent, too; empty: nobody but the agent's user
  std::uint64_t budget = std::uint64_t{1} << 30;
  int core = -1;  ///< -1: not pinned
  Transport transport = Transport::kAuto;
  std::string log_level = "info";
  std::string log_file;  ///< empty: stderr
  std::uint64_t max_sessions = default_max_sessions();
  std::uint64_t max_tickets = 4096;
  std::uint64_t drain_ms = 5000;
  std::string profile;  ///< file of `wherry probe profile`; empty: the default place; "off"
  // [poll]
  std::uint64_t spin_us = 2000;  ///< after the last work: busy polling
  std::uint64_t nap_us = 100;    ///< after that: sleep this long between looks; 0: never sleep
  // [metrics]
  std::string metrics = "127.0.0.1:0";
  bool metrics_public = false;  ///< without the token
  // [tls]
  fabric::TlsFiles tls;  ///< of the TCP listener, and of connections between agents

  /// Settings of services, by key: "move.window". Missing settings keep their defaults.
  std::map<std::string, std::string> services;
};

/// The agent's own settings.
Settings settings(AgentConfig& config);
/// The whole table: settings of the agent and of its services. Refers to both arguments.
Settings settings(AgentConfig& config, const Services& services);

/// Gives the services the values in config.services. kInvalidArgument: no service has such a setting, or the value is
/// not allowed.
Status configure(const AgentConfig& config, const Services& services);
/// Checks that all values are allowed and do not contradict each other, whatever their source.
Status check(const AgentConfig& config);
Status check(const Services& services);

// Each error names the setting, the value and the allowed values.
Status load_toml(const std::string& path, const Settings& table);
Status load_toml_text(const std::string& text, const std::string& origin, const Settings& table);
/// Applies WHERRY_* variables. An unknown variable is an error; variables of the client library are known.
Status load_environment(char** environment, const Settings& table);
/// Applies the path profile to the settings. TOML, environment and flags are applied later and override it. Lines for
/// the log name what was applied, and why the rest was not. `where`: a file, or "off", or empty for the default file.
/// Errors in a named file are errors; a missing default file is ignored, and a bad one adds a warning line.
struct FromProfile {
  std::string file, date;                           ///< empty: no profile was used
  std::map<std::string, Profile::Advice> settings;  ///< those of the table that it set
  std::vector<std::string> warnings;
};
Result<FromProfile> use_profile(const std::string& where, const Settings& table);
/// TOML comments: for each setting in the profile, whether the setting has the profile's value.
std::string profile_comments(const FromProfile& profile, const Settings& table);

/// The settings as TOML. load_toml reads the same values back.
std::string dump_toml(const Settings& table);

}  // namespace wherry
