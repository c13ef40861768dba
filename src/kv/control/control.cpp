// SPDX-License-Identifier: Apache-2.0
#include "kv/control/control.hpp"

#include <array>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/try.hpp"

namespace wherry::kv {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, 7> kOps{"status", "remove", "admit", "move", "stop", "resume", "start_over"};
constexpr std::string_view kDigits = "01234567";

/// Reads the fields of one object. After the first error, status() gives the field and the reason.
class Fields {
 public:
  explicit Fields(const Json& json) : json_(json) {}

  template <typename T>
  void number(const char* key, T& value, std::uint64_t max = std::numeric_limits<T>::max()) {
    const auto it = json_.find(key);
    if (it == json_.end() || !it->is_number_unsigned() || it->template get<std::uint64_t>() > max)
      fail(key, "must be a whole number in its range");
    else
      value = static_cast<T>(it->template get<std::uint64_t>());
  }
  /// As number(). If the key is absent, `value` does not change.
  void optional_number(const char* key, std::uint64_t& value, std::uint64_t max) {
    if (json_.contains(key)) number(key, value, max);
  }
  void flag(const char* key, bool& value) {
    const auto it = json_.find(key);
    if (it == json_.end() || !it->is_boolean())
      fail(key, "must be true or false");
    else
      value = it->get<bool>();
  }
  void text(const char* key, std::string& value, std::size_t max) {
    const auto it = json_.find(key);
    if (it == json_.end() || !it->is_string() || it->get_ref<const std::string&>().size() > max)
      fail(key, "must be a string of limited length");
    else
      value = it->get<std::string>();
  }
  /// Returns nullptr, and notes an error, if this key has no array of at most `max` items.
  const Json* array(const char* key, std::size_t size) {
    const auto it = json_.find(key);
    if (it != json_.end() && it->is_array() && it->size() == size) return &*it;
    fail(key, "must be an array of the right length");
    return nullptr;
  }
  void fail(const char* key, const char* what) {
    if (status_.ok()) status_ = {StatusCode::kProtocol, std::string("control message: \"") + key + "\" " + what};
  }
  void merge(const wherry::Status& status) {
    if (status_.ok()) status_ = status;
  }
  [[nodiscard]] const wherry::Status& status() const noexcept { return status_; }

 private:
  const Json& json_;
  wherry::Status status_;
};

using Endpoints = std::array<Endpoint, kMaxNodes>;

Json to_json(const Endpoints& endpoints) {
  Json list = Json::array();
  for (const Endpoint& at : endpoints) list.push_back({{"mac", at.mac}, {"ip", at.ip}, {"port", at.port}});
  return list;
}

void read_endpoints(Fields& fields, const char* key, Endpoints& endpoints) {
  const Json* const list = fields.array(key, kMaxNodes);
  if (list == nullptr) return;
  for (std::size_t i = 0; i < kMaxNodes; ++i) {
    const Json& entry = (*list)[i];
    if (!entry.is_object()) {
      fields.fail(key, "must hold objects");
      continue;
    }
    Fields one(entry);
    one.number("mac", endpoints[i].mac, (std::uint64_t{1} << 48) - 1);
    one.number("ip", endpoints[i].ip);
    one.number("port", endpoints[i].port);
    fields.merge(one.status());
  }
}

Json to_json(const Configuration& c) {
  std::string leaders;
  for (const std::uint8_t leader : c.leaders) leaders += kDigits[leader % kMaxNodes];
  return {{"epoch", c.epoch},   {"members", c.members},      {"serving", c.serving}, {"bucket_bits", c.bucket_bits},
          {"leaders", leaders}, {"peers", to_json(c.peers)}, {"boots", c.boots}};
}

Result<Configuration> from_json(const Json& json) {
  if (!json.is_object())
    return wherry::Status(StatusCode::kProtocol, "control message: a configuration must be an object");
  Configuration c;
  Fields fields(json);
  fields.number("epoch", c.epoch);
  fields.number("members", c.members);
  fields.number("serving", c.serving);
  fields.number("bucket_bits", c.bucket_bits);
  std::string leaders;
  fields.text("leaders", leaders, kSlots);
  if (leaders.size() != kSlots || leaders.find_first_not_of(kDigits) != std::string::npos)
    fields.fail("leaders", "must be 256 digits from 0 to 7");
  else
    for (std::size_t slot = 0; slot < kSlots; ++slot) c.leaders[slot] = static_cast<std::uint8_t>(leaders[slot] - '0');
  read_endpoints(fields, "peers", c.peers);
  if (const Json* boots = fields.array("boots", kMaxNodes); boots != nullptr) {
    for (std::size_t i = 0; i < kMaxNodes; ++i) {
      if (!(*boots)[i].is_number_unsigned())
        fields.fail("boots", "must hold whole numbers");
      else
        c.boots[i] = (*boots)[i].get<std::uint64_t>();
    }
  }
  WHERRY_TRY(fields.status());
  if (wherry::Status s = check(c); !s) return wherry::Status(StatusCode::kProtocol, "control message: " + s.message());
  return c;
}

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

struct Encoder {
  Json operator()(const Hello& m) const {
    Json json{{"type", "hello"},  {"version", kControlVersion},   {"cluster", m.cluster},      {"node", m.node},
              {"boot", m.boot},   {"ended_boot", m.ended_boot},   {"ready", m.ready},          {"complete", m.complete},
              {"lanes", m.lanes}, {"bucket_bits", m.bucket_bits}, {"nodes", to_json(m.nodes)}, {"accept", m.accept}};
    if (m.entered) json["entered"] = to_json(*m.entered);
    return json;
  }
  Json operator()(const Report& m) const {
    return {{"type", "report"},
            {"ping", m.ping},
            {"boot", m.boot},
            {"epoch", m.epoch},
            {"ready", m.ready},
            {"fault", m.fault},
            {"complete", m.complete},
            {"state", m.state},
            {"buckets_left", m.buckets_left},
            {"lanes_left", m.lanes_left},
            {"silent", m.silent},
            {"frames", m.counters.frames},
            {"dropped", m.counters.dropped},
            {"retries", m.counters.retries}};
  }
  Json operator()(const AskLease& m) const {
    return {{"type", "ask_lease"}, {"id", m.id}, {"boot", m.boot}, {"epoch", m.epoch}};
  }
  Json operator()(const Entered& m) const { return {{"type", "entered"}, {"boot", m.boot}, {"epoch", m.epoch}}; }
  Json operator()(const Stopped& m) const { return {{"type", "stopped"}, {"boot", m.boot}, {"id", m.id}}; }
  Json operator()(const Command& m) const {
    return {{"type", "command"},
            {"op", kOps[static_cast<std::size_t>(m.op)]},
            {"node", m.node},
            {"first_slot", m.first_slot},
            {"last_slot", m.last_slot}};
  }
  Json operator()(const OpenLanes& m) const {
    return {{"type", "open_lanes"}, {"version", kControlVersion}, {"cluster", m.cluster}, {"lanes", m.lanes},
            {"session", m.session}, {"resume", m.resume},         {"first", m.first},     {"grant", m.grant}};
  }
  Json operator()(const CloseLanes&) const { return {{"type", "close_lanes"}}; }
  Json operator()(const GrantedLanes& m) const {
    return {{"type", "lanes"}, {"session", m.session},      {"first", m.first}, {"lanes", m.lanes},
            {"ttl", m.ttl},    {"nodes", to_json(m.nodes)}, {"grant", m.grant}};
  }
  Json operator()(const Ping& m) const { return {{"type", "ping"}, {"ping", m.ping}}; }
  Json operator()(const Configure& m) const {
    return {{"type", "configure"}, {"configuration", to_json(m.configuration)}};
  }
  Json operator()(const Grant& m) const { return {{"type", "grant"}, {"id", m.id}, {"lease", m.lease}}; }
  Json operator()(const Stop& m) const { return {{"type", "stop"}, {"id", m.id}}; }
  Json operator()(const Resume&) const { return {{"type", "resume"}}; }
  Json operator()(const Settled& m) const { return {{"type", "settled"}, {"epoch", m.epoch}}; }
  Json operator()(const Answer& m) const {
    return {{"type", "answer"}, {"ok", m.ok}, {"text", m.text}, {"exhausted", m.exhausted}, {"lasting", m.lasting}};
  }
};

wherry::Status protocol(std::string what) { return {StatusCode::kProtocol, "control message: " + std::move(what)}; }

/// Parses the object and returns its type, which is empty if the line is not an object.
Result<std::string> parse(std::string_view line, Json& json) {
  if (line.size() > kMaxControlLine) return protocol("longer than 64 KiB");
  json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return protocol("a line must be one JSON object");
  Fields fields(json);
  std::string type;
  fields.text("type", type, 32);
  WHERRY_TRY(fields.status());
  return type;
}

wherry::Status check_version(Fields& fields) {
  std::uint64_t version = 0;
  fields.number("version", version);
  if (!fields.status() || version == kControlVersion) return fields.status();
  return {StatusCode::kVersionMismatch,
          "control message: version " + std::to_string(version) + " instead of " + std::to_string(kControlVersion)};
}

Result<ToKeeper> decode_open_lanes(Fields& fields) {
  OpenLanes m;
  WHERRY_TRY(check_version(fields));
  fields.text("cluster", m.cluster, 256);
  fields.number("lanes", m.lanes, kMaxLanes);
  fields.number("session", m.session);
  fields.flag("resume", m.resume);
  fields.number("first", m.first, kMaxLanes - 1);
  fields.optional_number("grant", m.grant, kMaxGrantNumber);
  if (m.lanes == 0) fields.fail("lanes", "must not be 0");
  if (m.session == 0) fields.fail("session", "must not be 0");
  WHERRY_TRY(fields.status());
  return ToKeeper(std::move(m));
}

Result<ToKeeper> decode_hello(const Json& json, Fields& fields) {
  Hello m;
  WHERRY_TRY(check_version(fields));
  fields.text("cluster", m.cluster, 256);
  fields.number("node", m.node, kMaxNodes - 1);
  fields.number("boot", m.boot);
  fields.number("ended_boot", m.ended_boot);
  fields.flag("ready", m.ready);
  fields.flag("complete", m.complete);
  fields.number("lanes", m.lanes, kMaxLanes);
  fields.number("bucket_bits", m.bucket_bits);
  read_endpoints(fields, "nodes", m.nodes);
  fields.flag("accept", m.accept);
  if (m.boot == 0) fields.fail("boot", "must not be 0");
  if (const auto it = json.find("entered"); it != json.end()) {
    auto entered = from_json(*it);
    if (!entered)
      fields.merge(entered.status());
    else
      m.entered = *std::move(entered);
  }
  WHERRY_TRY(fields.status());
  return ToKeeper(std::move(m));
}

Result<ToKeeper> decode_command(Fields& fields) {
  Command m;
  std::string op;
  fields.text("op", op, 32);
  fields.number("node", m.node, kMaxNodes - 1);
  fields.number("first_slot", m.first_slot, kSlots - 1);
  fields.number("last_slot", m.last_slot, kSlots - 1);
  std::size_t i = 0;
  while (i < kOps.size() && kOps[i] != op) ++i;
  if (i == kOps.size())
    fields.fail("op", "must be status, remove, admit, move, stop, resume or start_over");
  else
    m.op = static_cast<Op>(i);
  if (m.last_slot < m.first_slot) fields.fail("last_slot", "must not be below first_slot");
  WHERRY_TRY(fields.status());
  return ToKeeper(m);
}

}  // namespace

std::string encode(const ToKeeper& message) { return dump(std::visit(Encoder{}, message)); }
std::string encode(const FromKeeper& message) { return dump(std::visit(Encoder{}, message)); }
std::string encode(const Configuration& configuration) { return dump(to_json(configuration)); }

Result<Configuration> decode_configuration(std::string_view text) {
  if (text.size() > kMaxControlLine) return protocol("longer than 64 KiB");
  return from_json(Json::parse(text, nullptr, /*allow_exceptions=*/false));
}

Result<ToKeeper> decode_to_keeper(std::string_view line) {
  Json json;
  WHERRY_ASSIGN(const auto type, parse(line, json));
  Fields fields(json);
  ToKeeper message;
  if (type == "hello") return decode_hello(json, fields);
  if (type == "command") return decode_command(fields);
  if (type == "open_lanes") return decode_open_lanes(fields);
  if (type == "close_lanes") return ToKeeper(CloseLanes{});
  if (type == "report") {
    Report m;
    fields.number("ping", m.ping);
    fields.number("boot", m.boot);
    fields.number("epoch", m.epoch);
    fields.flag("ready", m.ready);
    fields.flag("fault", m.fault);
    fields.flag("complete", m.complete);
    fields.number("state", m.state);
    fields.number("buckets_left", m.buckets_left);
    fields.number("lanes_left", m.lanes_left);
    fields.number("silent", m.silent);
    fields.number("frames", m.counters.frames);
    fields.number("dropped", m.counters.dropped);
    fields.number("retries", m.counters.retries);
    message = m;
  } else if (type == "ask_lease") {
    AskLease m;
    fields.number("id", m.id);
    fields.number("boot", m.boot);
    fields.number("epoch", m.epoch);
    message = m;
  } else if (type == "entered") {
    Entered m;
    fields.number("boot", m.boot);
    fields.number("epoch", m.epoch);
    message = m;
  } else if (type == "stopped") {
    Stopped m;
    fields.number("boot", m.boot);
    fields.number("id", m.id);
    message = m;
  } else {
    return protocol("unknown type for the keeper");
  }
  WHERRY_TRY(fields.status());
  return message;
}

Result<FromKeeper> decode_from_keeper(std::string_view line) {
  Json json;
  WHERRY_ASSIGN(const auto type, parse(line, json));
  Fields fields(json);
  FromKeeper message;
  if (type == "ping") {
    Ping m;
    fields.number("ping", m.ping);
    message = m;
  } else if (type == "configure") {
    const auto it = json.find("configuration");
    if (it == json.end()) return protocol("\"configuration\" is missing");
    WHERRY_ASSIGN(auto configuration, from_json(*it));
    message = Configure{std::move(configuration)};
  } else if (type == "grant") {
    Grant m;
    fields.number("id", m.id);
    fields.number("lease", m.lease, std::uint64_t{1} << 62);
    message = m;
  } else if (type == "stop") {
    Stop m;
    fields.number("id", m.id);
    message = m;
  } else if (type == "resume") {
    message = Resume{};
  } else if (type == "settled") {
    Settled m;
    fields.number("epoch", m.epoch);
    message = m;
  } else if (type == "lanes") {
    GrantedLanes m;
    fields.number("session", m.session);
    fields.number("first", m.first, kMaxLanes - 1);
    fields.number("lanes", m.lanes, kMaxLanes);
    fields.number("ttl", m.ttl, std::uint64_t{1} << 62);
    read_endpoints(fields, "nodes", m.nodes);
    if (m.first + std::uint64_t{m.lanes} > kMaxLanes) fields.fail("lanes", "must end at 8191");
    fields.optional_number("grant", m.grant, kMaxGrantNumber);
    message = m;
  } else if (type == "answer") {
    Answer m;
    fields.flag("ok", m.ok);
    fields.text("text", m.text, kMaxControlLine);
    if (json.contains("exhausted")) fields.flag("exhausted", m.exhausted);
    if (json.contains("lasting")) fields.flag("lasting", m.lasting);
    message = m;
  } else {
    return protocol("unknown type from the keeper");
  }
  WHERRY_TRY(fields.status());
  return message;
}

}  // namespace wherry::kv
