// SPDX-License-Identifier: Apache-2.0
// wherryd's settings: one table says each setting's TOML key, environment variable, flag, help and default; reading,
// dumping and checking follow from it.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "fabric/tls.hpp"
#include "wherry/session.hpp"
#include "wherry/status.hpp"

namespace wherry {

/// Four a core, for a rank on each and readers beside them; 64 at least.
std::uint64_t default_max_sessions(long cores = sysconf(_SC_NPROCESSORS_ONLN)) noexcept;

struct AgentConfig {
  // [agent]
  std::string listen = "off";  ///< TCP, for clients of other machines
  std::string session_file;    ///< empty: default_session_file()
  std::string group;           ///< its members may use the agent, too; empty: nobody but the agent's user
  std::uint64_t budget = std::uint64_t{1} << 30;
  std::uint64_t reader_budget = 0;  ///< 0: half of the budget
  int core = -1;                    ///< -1: not pinned
  Transport transport = Transport::kAuto;
  std::string log_level = "info";
  std::string log_file;  ///< empty: stderr
  std::uint64_t max_sessions = default_max_sessions();
  std::uint64_t max_tickets = 4096;
  std::uint64_t drain_ms = 5000;
  // [poll]
  std::uint64_t spin_us = 2000;  ///< after the last work: busy polling
  std::uint64_t nap_us = 100;    ///< after that: sleep this long between looks; 0: never sleep
  // [flight], [metrics]
  std::string flight = "127.0.0.1:0";
  std::string metrics = "127.0.0.1:0";
  bool metrics_public = false;  ///< without the token
  // [tls]
  fabric::TlsFiles tls;  ///< of the TCP listener, and of connections between agents
  // [sink]
  std::string sink_root;  ///< files of streams lie below it; empty: anywhere
  // [move]
  std::uint64_t transfer_unit = std::uint64_t{4} << 20;
  std::uint64_t window = std::uint64_t{16} << 20;
  std::uint64_t streaming_copy_from = std::uint64_t{8} << 20;
  // [route]
  std::uint64_t route_budget = std::uint64_t{256} << 20;
  std::uint64_t route_threads = 1;
  std::uint64_t route_peer_timeout_s = 5;
};

/// "64MiB", "1GiB", "4096", "10MB" to bytes.
Result<std::uint64_t> parse_bytes(const std::string& text);

struct Setting {
  const char* key;  ///< "agent.budget"; flag: --budget; environment: WHERRY_BUDGET
  const char* help;
  std::string (*get)(const AgentConfig&);
  Status (*set)(AgentConfig&, const std::string&);
  bool quoted;  ///< a string in TOML, else a number

  [[nodiscard]] std::string flag() const;         ///< "--transfer-unit"
  [[nodiscard]] std::string environment() const;  ///< "WHERRY_TRANSFER_UNIT"
};
const std::vector<Setting>& settings();

/// Each names the setting, the value and what is allowed in its error.
Status load_toml(const std::string& path, AgentConfig& config);
Status load_toml_text(const std::string& text, const std::string& origin, AgentConfig& config);
/// Applies WHERRY_* variables; an unknown one is an error (those of the client library are known).
Status load_environment(char** environment, AgentConfig& config);
/// The resolved settings as TOML that load_toml reads back to the same configuration.
std::string dump_toml(const AgentConfig& config);
Status check(const AgentConfig& config);

}  // namespace wherry
