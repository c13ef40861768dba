// SPDX-License-Identifier: Apache-2.0
// wherryd's settings: the agent's own and those of the services that it hosts, from defaults, TOML, environment and
// flags, as one table (base/settings.hpp).
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

/// Four a core, for a rank on each and readers beside them; 64 at least.
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

  /// Settings of services, by key: "move.window". What is missing here keeps its default.
  std::map<std::string, std::string> services;
};

/// The agent's own.
Settings settings(AgentConfig& config);
/// Those and the services': the whole table. Refers to both.
Settings settings(AgentConfig& config, const Services& services);

/// Gives the services what config.services says. kInvalidArgument: none of them has such a setting, or not this value.
Status configure(const AgentConfig& config, const Services& services);
/// Whether values are allowed, whoever set them, and go together.
Status check(const AgentConfig& config);
Status check(const Services& services);

// Each names the setting, the value and what is allowed in its error.
Status load_toml(const std::string& path, const Settings& table);
Status load_toml_text(const std::string& text, const std::string& origin, const Settings& table);
/// Applies WHERRY_* variables; an unknown one is an error (those of the client library are known).
Status load_environment(char** environment, const Settings& table);
/// Gives settings what the path profile says: before TOML, environment and flags, which win. What it did, and why it
/// did not do what it could not, in lines for the log. `where`: a file, whose errors are errors; empty: the default
/// place, where no file is no error and a bad one is a line; "off".
struct FromProfile {
  std::string file, date;                           ///< empty: no profile was used
  std::map<std::string, Profile::Advice> settings;  ///< those of the table that it set
  std::vector<std::string> warnings;
};
Result<FromProfile> use_profile(const std::string& where, const Settings& table);
/// For each setting that a profile knows: whether it has that value. Comments of TOML.
std::string profile_comments(const FromProfile& profile, const Settings& table);

/// The settings as TOML that load_toml reads back to the same.
std::string dump_toml(const Settings& table);

}  // namespace wherry
