// SPDX-License-Identifier: Apache-2.0
#include "agent/config.hpp"

#include <fmt/core.h>

#include <toml++/toml.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <sstream>

#include "base/socket.hpp"
#include "base/text_file.hpp"
#include "base/try.hpp"
#include "route/request.hpp"

namespace wherry {
namespace {

Status bad(const char* key, const std::string& value, const std::string& allowed) {
  return {StatusCode::kInvalidArgument, fmt::format("{} = '{}': {}", key, value, allowed)};
}

Status set_bytes(const char* key, std::uint64_t& field, const std::string& text) {
  auto bytes = parse_bytes(text);
  if (!bytes) return bad(key, text, bytes.status().message());
  field = *bytes;
  return ok_status();
}

Status set_number(const char* key, std::uint64_t& field, const std::string& text, std::uint64_t min,
                  std::uint64_t max) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < min || value > max)
    return bad(key, text, fmt::format("want a whole number from {} to {}", min, max));
  field = value;
  return ok_status();
}

Status set_address(const char* key, std::string& field, const std::string& text, bool may_be_off) {
  if (!(may_be_off && text == "off")) {
    if (auto parsed = parse_host_port(text); !parsed) {
      return bad(key, text, std::string("want host:port (port 0: any free one)") + (may_be_off ? " or 'off'" : ""));
    }
  }
  field = text;
  return ok_status();
}

#define BYTES(KEY, FIELD, HELP)                                                                \
  Setting {                                                                                    \
    KEY, HELP, [](const AgentConfig& c) { return fmt::format("{}", c.FIELD); },                \
        [](AgentConfig& c, const std::string& v) { return set_bytes(KEY, c.FIELD, v); }, false \
  }
#define NUMBER(KEY, FIELD, MIN, MAX, HELP)                                                                \
  Setting {                                                                                               \
    KEY, HELP, [](const AgentConfig& c) { return fmt::format("{}", c.FIELD); },                           \
        [](AgentConfig& c, const std::string& v) { return set_number(KEY, c.FIELD, v, MIN, MAX); }, false \
  }
#define TEXT(KEY, FIELD, HELP)                                                              \
  Setting {                                                                                 \
    KEY, HELP, [](const AgentConfig& c) { return c.FIELD; },                                \
        [](AgentConfig& c, const std::string& v) { return c.FIELD = v, ok_status(); }, true \
  }
#define ADDRESS(KEY, FIELD, OFF, HELP)                                                               \
  Setting {                                                                                          \
    KEY, HELP, [](const AgentConfig& c) { return c.FIELD; },                                         \
        [](AgentConfig& c, const std::string& v) { return set_address(KEY, c.FIELD, v, OFF); }, true \
  }

constexpr std::uint64_t kHourMs = 3'600'000;

// Variables of the client library and its tools; not settings of the agent, but not mistakes either. A rank of a job
// may start an embedded agent, which then has those of the job.
constexpr std::array<std::string_view, 15> kForeignVariables{"WHERRY_AGENT",         "WHERRY_SESSION",
                                                             "WHERRY_WHERRYD",       "WHERRY_BOOTSTRAP",
                                                             "WHERRY_JOB_KEY",       "WHERRY_RANK",
                                                             "WHERRY_RANKS",         "WHERRY_NODE",
                                                             "WHERRY_PLACEMENT",     "WHERRY_RANKS_PER_NODE",
                                                             "WHERRY_MPI_PLUGIN",    "WHERRY_ROUTE_BETWEEN",
                                                             "WHERRY_ROUTE_BUFFERS", "WHERRY_ROUTE_BUFFER_BYTES",
                                                             "WHERRY_ROUTE_LISTEN"};

}  // namespace

std::uint64_t default_max_sessions(long cores) noexcept {
  return std::max<std::uint64_t>(64, 4 * static_cast<std::uint64_t>(std::max(1L, cores)));
}

Result<std::uint64_t> parse_bytes(const std::string& text) {
  struct Unit {
    std::string_view name;
    std::uint64_t factor;
  };
  static constexpr std::array<Unit, 10> kUnits{{{"", 1},
                                                {"B", 1},
                                                {"KiB", 1ULL << 10},
                                                {"MiB", 1ULL << 20},
                                                {"GiB", 1ULL << 30},
                                                {"TiB", 1ULL << 40},
                                                {"KB", 1000},
                                                {"MB", 1000'000},
                                                {"GB", 1000'000'000},
                                                {"TB", 1000'000'000'000}}};
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  for (const Unit& u : kUnits) {
    if (error == std::errc() && unit == u.name && value <= (std::uint64_t{1} << 60) / u.factor) return value * u.factor;
  }
  return Status(StatusCode::kInvalidArgument, "want bytes, as 1048576, 512MiB or 2GiB");
}

namespace {
/// "agent.budget" is "budget"; the addresses of the other sections go by the section: "flight.listen" is "flight";
/// "sink.root" and "metrics.public" keep it: "sink_root".
std::string short_name(std::string_view key) {
  const std::size_t dot = key.find('.');
  const std::string_view section = key.substr(0, dot);
  const std::string_view name = key.substr(dot + 1);
  if (section == "sink" || section == "tls" || key == "metrics.public") return fmt::format("{}_{}", section, name);
  return std::string(name == "listen" && section != "agent" ? section : name);
}
}  // namespace

std::string Setting::flag() const {
  std::string text = "--" + short_name(key);
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

std::string Setting::environment() const {
  std::string text = "WHERRY_" + short_name(key);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

const std::vector<Setting>& settings() {
  static const std::vector<Setting> table{
      ADDRESS(
          "agent.listen", listen, true,
          "where clients of other machines connect over TCP, host:port (port 0: any free one) or off; those of this "
          "machine use a Unix socket beside the session file"),
      TEXT("agent.session_file", session_file,
           "file that tells clients address and token (mode 0600); empty: the default place"),
      TEXT("agent.group", group,
           "group whose members may use the agent: the session file and the socket of local readers are theirs, too; "
           "empty: nobody's but the agent's user"),
      BYTES("agent.budget", budget, "memory for frames; the agent never grows past it"),
      BYTES("agent.reader_budget", reader_budget,
            "part of the budget that frames may take that readers hold; 0: half of it"),
      Setting{"agent.core", "core for the data thread; -1: not pinned",
              [](const AgentConfig& c) { return fmt::format("{}", c.core); },
              [](AgentConfig& c, const std::string& v) {
                if (v == "-1") return c.core = -1, ok_status();
                std::uint64_t core = 0;
                if (!set_number("agent.core", core, v, 0, 4096))
                  return bad("agent.core", v, "want a core number or -1");
                return c.core = static_cast<int>(core), ok_status();
              },
              false},
      Setting{"agent.transport", "auto, shm, tcp or rdma: what clients may use",
              [](const AgentConfig& c) { return std::string(to_string(c.transport)); },
              [](AgentConfig& c, const std::string& v) {
                auto t = parse_transport(v);
                if (!t) return bad("agent.transport", v, t.status().message());
                return c.transport = *t, ok_status();
              },
              true},
      TEXT("agent.log_level", log_level, "trace, debug, info, warn, error or off"),
      TEXT("agent.log_file", log_file, "empty: standard error"),
      NUMBER("agent.max_sessions", max_sessions, 1, 10'000, "clients at once"),
      NUMBER("agent.max_tickets", max_tickets, 1, 65'536, "offloads in flight that a client may ask for"),
      NUMBER("agent.drain_ms", drain_ms, 0, kHourMs,
             "on SIGTERM: how long accepted offloads and files may take to finish"),
      NUMBER("poll.spin_us", spin_us, 0, kHourMs * 1000, "busy polling for this long after the last work"),
      NUMBER("poll.nap_us", nap_us, 0, 1'000'000, "then sleep this long between looks; 0: never sleep"),
      ADDRESS("flight.listen", flight, true, "Arrow Flight, host:port or off"),
      ADDRESS("metrics.listen", metrics, true, "Prometheus metrics over HTTP, host:port or off"),
      Setting{"metrics.public", "true: whoever reaches metrics.listen may read them; false: the token is needed",
              [](const AgentConfig& c) { return std::string(c.metrics_public ? "true" : "false"); },
              [](AgentConfig& c, const std::string& v) {
                if (v != "true" && v != "false") return bad("metrics.public", v, "want true or false");
                return c.metrics_public = v == "true", ok_status();
              },
              false},
      TEXT("tls.certificate", tls.certificate,
           "PEM file with the certificate of agent.listen, for TLS; with tls.key; empty: no TLS"),
      TEXT("tls.key", tls.key, "PEM file with the certificate's private key"),
      TEXT("tls.ca", tls.ca,
           "PEM file of the authority that clients' certificates must come from; empty: clients need none"),
      TEXT("sink.root", sink_root,
           "directory below which streams are written to files; empty: wherever the agent's user may write"),
      BYTES("move.transfer_unit", transfer_unit, "bytes of one get; larger buffers are cut"),
      BYTES("move.window", window, "bytes of gets in flight per offload"),
      BYTES("move.streaming_copy_from", streaming_copy_from,
            "mapped offloads from this size on use the better of two copies, found by trying"),
      BYTES("route.buffer_budget", route_budget,
            "memory for the buffers that messages between ranks are routed through"),
      NUMBER("route.routing_threads", route_threads, 1, route::kMaxThreads,
             "threads that route the messages of a job; all its agents must agree"),
      NUMBER("route.peer_timeout_s", route_peer_timeout_s, 3, 3600,
             "seconds without a sign of life after which another agent of a job, or its machine, counts as lost"),
  };
  return table;
}

Status load_toml_text(const std::string& text, const std::string& origin, AgentConfig& config) {
  toml::table root;
  try {
    root = toml::parse(text, origin);
  } catch (const toml::parse_error& error) {
    return {StatusCode::kInvalidArgument,
            fmt::format("{}, line {}: {}", origin, static_cast<unsigned>(error.source().begin.line),
                        std::string(error.description()))};
  }
  for (const auto& [section, node] : root) {
    const toml::table* table = node.as_table();
    if (table == nullptr) {
      return {StatusCode::kInvalidArgument,
              fmt::format("{}: '{}' stands outside a section", origin, std::string(section.str()))};
    }
    for (const auto& [name, value] : *table) {
      const std::string key = fmt::format("{}.{}", std::string(section.str()), std::string(name.str()));
      const auto& all = settings();
      const auto it = std::find_if(all.begin(), all.end(), [&](const Setting& s) { return key == s.key; });
      if (it == all.end())
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
      if (Status s = it->set(config, as_text); !s) return {s.code(), origin + ": " + s.message()};
    }
  }
  return ok_status();
}

Status load_toml(const std::string& path, AgentConfig& config) {
  WHERRY_ASSIGN(auto text, read_text_file(path, "the configuration file"));
  return load_toml_text(text, path, config);
}

Status load_environment(char** environment, AgentConfig& config) {
  for (char** entry = environment; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (!text.starts_with("WHERRY_")) continue;
    const std::size_t equals = text.find('=');
    const std::string name(text.substr(0, equals));
    const std::string value(equals == std::string_view::npos ? "" : text.substr(equals + 1));
    if (std::find(kForeignVariables.begin(), kForeignVariables.end(), name) != kForeignVariables.end()) continue;
    const auto& all = settings();
    const auto it = std::find_if(all.begin(), all.end(), [&](const Setting& s) { return name == s.environment(); });
    if (it == all.end()) {
      return {StatusCode::kInvalidArgument,
              fmt::format("unknown environment variable '{}'; `wherryd --help` lists those that there are", name)};
    }
    if (Status s = it->set(config, value); !s) return {s.code(), name + ": " + s.message()};
  }
  return ok_status();
}

std::string dump_toml(const AgentConfig& config) {
  toml::table root;
  for (const Setting& s : settings()) {
    const std::string_view key = s.key;
    const std::size_t dot = key.find('.');
    const std::string section(key.substr(0, dot));
    if (!root.contains(section)) root.insert(section, toml::table{});
    const std::string value = s.get(config);
    toml::table& table = *root[section].as_table();
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    // TOML's whole numbers have 63 bits; what has more is out of range, and shown as it is.
    if (!s.quoted && (value == "true" || value == "false"))
      table.insert(key.substr(dot + 1), value == "true");
    else if (s.quoted || error != std::errc() || end != value.data() + value.size())
      table.insert(key.substr(dot + 1), value);
    else
      table.insert(key.substr(dot + 1), number);
  }
  std::ostringstream out;
  out << root << '\n';
  return out.str();
}

Status check(const AgentConfig& c) {
  if (c.budget < (1U << 20))
    return {StatusCode::kInvalidArgument, fmt::format("agent.budget = {}: want at least 1MiB", c.budget)};
  if (c.transfer_unit < 4096 || c.window < c.transfer_unit) {
    return {StatusCode::kInvalidArgument,
            fmt::format("move.window ({}) must hold one move.transfer_unit ({}), which must be at least 4096", c.window,
                        c.transfer_unit)};
  }
  AgentConfig again;
  for (const Setting& setting : settings()) {
    WHERRY_TRY(setting.set(again, setting.get(c)));
  }
  return ok_status();
}

}  // namespace wherry
