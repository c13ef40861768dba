// SPDX-License-Identifier: Apache-2.0
#include "agent/config.hpp"

#include <fmt/core.h>

#include <toml++/toml.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <utility>

#include "base/text_file.hpp"
#include "base/try.hpp"

namespace wherry {
namespace {

constexpr std::uint64_t kHourMs = 3'600'000;
constexpr std::uint64_t kLeastBudget = std::uint64_t{1} << 20, kMostBudget = std::uint64_t{1} << 46;  // as Arena's

// Variables of the client library and its tools. The agent accepts and ignores them: a rank of a job may start an
// embedded agent, which inherits the job's variables.
constexpr std::array<std::string_view, 16> kForeignVariables{"WHERRY_AGENT",         "WHERRY_SESSION",
                                                             "WHERRY_WHERRYD",       "WHERRY_BOOTSTRAP",
                                                             "WHERRY_JOB_KEY",       "WHERRY_RANK",
                                                             "WHERRY_RANKS",         "WHERRY_NODE",
                                                             "WHERRY_PLACEMENT",     "WHERRY_RANKS_PER_NODE",
                                                             "WHERRY_MPI_PLUGIN",    "WHERRY_ROUTE_BETWEEN",
                                                             "WHERRY_ROUTE_BUFFERS", "WHERRY_ROUTE_BUFFER_BYTES",
                                                             "WHERRY_ROUTE_LISTEN",  "WHERRY_PMIX_LIBRARY"};

}  // namespace

std::uint64_t default_max_sessions(long cores) noexcept {
  return std::max<std::uint64_t>(64, 4 * static_cast<std::uint64_t>(std::max(1L, cores)));
}

Settings settings(AgentConfig& c) {
  auto set_core = [&c](const std::string& text) -> Status {
    if (text == "-1") return c.core = -1, ok_status();
    const auto core = parse_number(text, 0, 4096);
    if (!core) return bad_setting("agent.core", text, "want a core number or -1");
    return c.core = static_cast<int>(*core), ok_status();
  };
  auto set_transport = [&c](const std::string& text) -> Status {
    const auto transport = parse_transport(text);
    if (!transport) return bad_setting("agent.transport", text, transport.status().message());
    return c.transport = *transport, ok_status();
  };
  return {
      address_setting(
          "agent.listen", "listen", c.listen,
          "where clients of other machines connect over TCP, host:port (port 0: any free one) or off; those of this "
          "machine use a Unix socket beside the session file"),
      text_setting("agent.session_file", "session_file", c.session_file,
                   "file that tells clients address and token (mode 0600); empty: the default place"),
      text_setting("agent.group", "group", c.group,
                   "group whose members may use the agent: the session file and the socket of local readers are "
                   "theirs as well; empty: the agent's user only"),
      bytes_setting("agent.budget", "budget", c.budget, "memory for frames; the agent never grows past it"),
      {"agent.core", "core", "core for the data thread; -1: not pinned", [&c] { return fmt::format("{}", c.core); },
       std::move(set_core), false},
      {"agent.transport", "transport", "auto, shm, tcp or rdma: what clients may use",
       [&c] { return std::string(to_string(c.transport)); }, std::move(set_transport), true},
      text_setting("agent.log_level", "log_level", c.log_level, "trace, debug, info, warn, error or off"),
      text_setting("agent.log_file", "log_file", c.log_file, "empty: standard error"),
      number_setting("agent.max_sessions", "max_sessions", c.max_sessions, 1, 10'000, "clients at once"),
      number_setting("agent.max_tickets", "max_tickets", c.max_tickets, 1, 65'536,
                     "offloads in flight that a client may ask for"),
      number_setting("agent.drain_ms", "drain_ms", c.drain_ms, 0, kHourMs,
                     "on SIGTERM: how long accepted offloads and files may take to finish"),
      text_setting("agent.profile", "profile", c.profile,
                   "file of `wherry probe profile`, whose settings hold unless other settings are given; empty: the "
                   "default place; "
                   "off"),
      number_setting("poll.spin_us", "spin_us", c.spin_us, 0, kHourMs * 1000,
                     "busy polling for this long after the last work"),
      number_setting("poll.nap_us", "nap_us", c.nap_us, 0, 1'000'000,
                     "then sleep this long between looks; 0: never sleep"),
      address_setting("metrics.listen", "metrics", c.metrics, "Prometheus metrics over HTTP, host:port or off"),
      switch_setting("metrics.public", "metrics_public", c.metrics_public,
                     "true: every process that reaches metrics.listen may read them; false: the token is needed"),
      text_setting("tls.certificate", "tls_certificate", c.tls.certificate,
                   "PEM file with the certificate of agent.listen, for TLS; with tls.key; empty: no TLS"),
      text_setting("tls.key", "tls_key", c.tls.key, "PEM file with the certificate's private key"),
      text_setting("tls.ca", "tls_ca", c.tls.ca,
                   "PEM file of the authority that clients' certificates must come from; empty: clients need none"),
  };
}

Settings settings(AgentConfig& config, const Services& services) {
  Settings table = settings(config);
  for (const auto& service : services) std::ranges::move(service->settings(), std::back_inserter(table));
  return table;
}

Status load_toml_text(const std::string& text, const std::string& origin, const Settings& table) {
  toml::table root;
  try {
    root = toml::parse(text, origin);
  } catch (const toml::parse_error& error) {
    return {StatusCode::kInvalidArgument,
            fmt::format("{}, line {}: {}", origin, static_cast<unsigned>(error.source().begin.line),
                        std::string(error.description()))};
  }
  for (const auto& [section, node] : root) {
    const toml::table* of_section = node.as_table();
    if (of_section == nullptr) {
      return {StatusCode::kInvalidArgument,
              fmt::format("{}: '{}' stands outside a section", origin, std::string(section.str()))};
    }
    for (const auto& [name, value] : *of_section) {
      const std::string key = fmt::format("{}.{}", std::string(section.str()), std::string(name.str()));
      const auto it = std::ranges::find(table, key, &Setting::key);
      if (it == table.end())
        return {StatusCode::kInvalidArgument,
                fmt::format("{}: unknown setting '{}'; `wherryd --dump-config` lists all", origin, key)};
      std::string as_text;
      if (const auto* s = value.as_string())
        as_text = s->get();
      else if (const auto* i = value.as_integer())
        as_text = fmt::format("{}", i->get());
      else if (const auto* b = value.as_boolean())
        as_text = b->get() ? "true" : "false";
      else
        return {StatusCode::kInvalidArgument,
                fmt::format("{}: '{}' wants a string, a whole number, true or false", origin, key)};
      if (Status s = it->set(as_text); !s) return {s.code(), origin + ": " + s.message()};
    }
  }
  return ok_status();
}

Status load_toml(const std::string& path, const Settings& table) {
  WHERRY_ASSIGN(auto text, read_text_file(path, "the configuration file"));
  return load_toml_text(text, path, table);
}

Status load_environment(char** environment, const Settings& table) {
  for (char** entry = environment; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (!text.starts_with("WHERRY_")) continue;
    const std::size_t equals = text.find('=');
    const std::string name(text.substr(0, equals));
    const std::string value(equals == std::string_view::npos ? "" : text.substr(equals + 1));
    if (std::find(kForeignVariables.begin(), kForeignVariables.end(), name) != kForeignVariables.end()) continue;
    const auto it = std::ranges::find(table, name, &Setting::environment);
    if (it == table.end()) {
      return {StatusCode::kInvalidArgument,
              fmt::format("unknown environment variable '{}'; `wherryd --help` lists those that there are", name)};
    }
    if (Status s = it->set(value); !s) return {s.code(), name + ": " + s.message()};
  }
  return ok_status();
}

Result<FromProfile> use_profile(const std::string& where, const Settings& table) {
  FromProfile used;
  if (where == "off") return used;
  const std::string file = where.empty() ? default_profile_file() : where;
  if (file.empty()) return used;
  const auto profile = load_profile(file);
  if (!profile) {
    if (!where.empty()) return Status(profile.status().code(), "agent.profile: " + profile.status().message());
    if (profile.status().code() != StatusCode::kNotFound)
      used.warnings.push_back(fmt::format("no profile is used: {}", profile.status().message()));
    return used;
  }
  used.file = file;
  used.date = profile->date;
  for (const Setting& setting : table) {
    const auto advice = profile->settings.find(setting.key);
    if (advice == profile->settings.end()) continue;
    if (const Status s = setting.set(advice->second.value); !s)
      used.warnings.push_back(fmt::format("'{}' cannot be used: {}", file, s.message()));
    else
      used.settings[setting.key] = {setting.get(), advice->second.rule, advice->second.why};
  }
  return used;
}

std::string profile_comments(const FromProfile& profile, const Settings& table) {
  if (profile.file.empty()) return "# no profile: defaults hold unless other settings are given\n";
  std::string out = fmt::format("# profile: {} of {}\n", profile.file, profile.date);
  for (const Setting& setting : table) {
    const auto advice = profile.settings.find(setting.key);
    if (advice == profile.settings.end()) continue;
    if (setting.get() == advice->second.value)
      out += fmt::format("# {}: from profile, by rule {}: {}\n", setting.key, advice->second.rule, advice->second.why);
    else
      out += fmt::format("# {}: set by a person; the profile says {}\n", setting.key, advice->second.value);
  }
  return out;
}

std::string dump_toml(const Settings& table) {
  toml::table root;
  for (const Setting& s : table) {
    const std::string_view key = s.key;
    const std::size_t dot = key.find('.');
    const std::string section(key.substr(0, dot));
    if (!root.contains(section)) root.insert(section, toml::table{});
    const std::string value = s.get();
    toml::table& of_section = *root[section].as_table();
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    // TOML's integers have 63 bits. A larger number is written as text, so the range error shows it unchanged.
    if (!s.quoted && (value == "true" || value == "false"))
      of_section.insert(key.substr(dot + 1), value == "true");
    else if (s.quoted || error != std::errc() || end != value.data() + value.size())
      of_section.insert(key.substr(dot + 1), value);
    else
      of_section.insert(key.substr(dot + 1), number);
  }
  std::ostringstream out;
  out << root << '\n';
  return out.str();
}

Status configure(const AgentConfig& config, const Services& services) {
  Settings table;
  for (const auto& service : services) std::ranges::move(service->settings(), std::back_inserter(table));
  for (const auto& [key, value] : config.services) {
    const auto it = std::ranges::find(table, key, &Setting::key);
    if (it == table.end())
      return {StatusCode::kInvalidArgument, fmt::format("no service of this agent has a setting '{}'", key)};
    WHERRY_TRY(it->set(value));
  }
  return ok_status();
}

Status check(const AgentConfig& c) {
  if (c.budget < kLeastBudget || c.budget > kMostBudget)
    return {StatusCode::kInvalidArgument, fmt::format("agent.budget = {}: want 1MiB to 64TiB", c.budget)};
  AgentConfig again = c;
  for (const Setting& setting : settings(again)) WHERRY_TRY(setting.set(setting.get()));
  return ok_status();
}

Status check(const Services& services) {
  for (const auto& service : services) WHERRY_TRY(service->check_settings());
  return ok_status();
}

}  // namespace wherry
