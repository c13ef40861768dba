// SPDX-License-Identifier: Apache-2.0
#include "kv/keeper/etcd.hpp"

#include <fmt/core.h>
#include <httplib.h>

#include <charconv>
#include <nlohmann/json.hpp>

namespace wherry::kv {
namespace {

using Json = nlohmann::json;

wherry::Status odd(const char* path) {
  return {StatusCode::kProtocol, fmt::format("etcd's answer to {} is none that it gives", path)};
}

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string to_base64(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t j = 0; j < 3; ++j)
      bits = bits << 8 | (i + j < text.size() ? static_cast<unsigned char>(text[i + j]) : 0U);
    for (std::size_t j = 0; j < 4; ++j) out += i + j <= text.size() ? kAlphabet[bits >> (18 - 6 * j) & 63] : '=';
  }
  return out;
}

bool from_base64(const std::string& text, std::string& out) {
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    const std::size_t digit = kAlphabet.find(c);
    if (digit == std::string_view::npos) return false;
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count >= 8) {
      count -= 8;
      out += static_cast<char>(bits >> count & 0xff);
    }
  }
  return true;
}

/// The gateway writes numbers of 64 bits as texts, and leaves out those that are 0.
std::int64_t number(const Json& json, const char* key) {
  const auto it = json.find(key);
  if (it == json.end()) return 0;
  if (it->is_number_integer()) return it->get<std::int64_t>();
  std::int64_t value = 0;
  if (it->is_string()) {
    const auto& text = it->get_ref<const std::string&>();
    std::from_chars(text.data(), text.data() + text.size(), value);
  }
  return value;
}

}  // namespace

struct EtcdElection::Impl {
  explicit Impl(EtcdOptions o) : options(std::move(o)), client(options.url) {
    client.set_connection_timeout(options.timeout);
    client.set_read_timeout(options.timeout);
    client.set_write_timeout(options.timeout);
    client.set_keep_alive(true);
  }

  Result<Json> post(const char* path, const Json& request) {
    const auto response = client.Post(path, request.dump(), "application/json");
    if (!response) {
      return wherry::Status(StatusCode::kUnavailable,
                            fmt::format("no etcd at {}: {}", options.url, httplib::to_string(response.error())));
    }
    Json json = Json::parse(response->body, nullptr, /*allow_exceptions=*/false);
    if (response->status != 200 || !json.is_object()) {
      return wherry::Status(StatusCode::kUnavailable,
                            fmt::format("etcd at {} answers {} with status {}", options.url, path, response->status));
    }
    return json;
  }
  [[nodiscard]] std::string key(const char* name) const { return to_base64(options.prefix + name); }

  struct Value {
    std::int64_t revision = 0;  ///< of its last change; 0: there is none
    std::string text;
  };
  Result<Value> get(const char* name) {
    const auto json = post("/v3/kv/range", {{"key", key(name)}});
    if (!json) return json.status();
    Value value;
    const auto kvs = json->find("kvs");
    if (kvs == json->end()) return value;
    if (!kvs->is_array() || kvs->size() != 1 || !(*kvs)[0].is_object()) return odd("/v3/kv/range");
    value.revision = number((*kvs)[0], "mod_revision");
    const auto text = (*kvs)[0].find("value");
    if (value.revision <= 0 || (text != (*kvs)[0].end() && !text->is_string())) return odd("/v3/kv/range");
    if (text != (*kvs)[0].end() && !from_base64(text->get<std::string>(), value.text)) return odd("/v3/kv/range");
    return value;
  }
  /// Whether the conditions held. The revision is that of the whole store, and so of what was put.
  Result<bool> transact(const Json& compare, const Json& put, std::int64_t* revision) {
    const auto json = post("/v3/kv/txn", {{"compare", compare}, {"success", Json::array({{{"request_put", put}}})}});
    if (!json) return json.status();
    const auto header = json->find("header");
    if (header == json->end() || !header->is_object()) return odd("/v3/kv/txn");
    if (revision != nullptr) *revision = number(*header, "revision");
    const auto held = json->find("succeeded");
    return held != json->end() && held->is_boolean() && held->get<bool>();
  }
  [[nodiscard]] std::uint64_t lasting(std::uint64_t asked, std::int64_t seconds) const {
    // Counted from before it was asked, less what clocks may differ by.
    const auto ns = static_cast<std::uint64_t>(seconds) * 1'000'000'000;
    return asked + ns - ns / 1000;
  }

  EtcdOptions options;
  httplib::Client client;
  std::int64_t lease = 0;
  std::int64_t created = 0;  ///< revision at which it was elected; 0: it is not
  std::uint64_t mandate = 0;
};

namespace {

class EtcdStore final : public ConfigurationStore {
 public:
  explicit EtcdStore(EtcdElection::Impl& etcd) : etcd_(etcd) {}

  Result<std::optional<Configuration>> load() override {
    const auto value = etcd_.get("/configuration");
    if (!value) return value.status();
    revision_ = value->revision;
    if (revision_ == 0) return std::optional<Configuration>();
    auto configuration = decode_configuration(value->text);
    if (!configuration) return configuration.status();
    return std::optional<Configuration>(*std::move(configuration));
  }

  wherry::Status store(const Configuration& configuration) override {
    const std::string text = encode(configuration);
    const Json compare = Json::array({{{"key", etcd_.key("/keeper")},
                                       {"target", "CREATE"},
                                       {"result", "EQUAL"},
                                       {"create_revision", std::to_string(etcd_.created)}},
                                      {{"key", etcd_.key("/configuration")},
                                       {"target", "MOD"},
                                       {"result", "EQUAL"},
                                       {"mod_revision", std::to_string(revision_)}}});
    if (etcd_.created == 0) return lost();
    std::int64_t revision = 0;
    const auto held =
        etcd_.transact(compare, {{"key", etcd_.key("/configuration")}, {"value", to_base64(text)}}, &revision);
    if (!held) return held.status();
    if (*held) {
      revision_ = revision;
      return wherry::ok_status();
    }
    // An earlier try may have arrived whose answer did not.
    const auto value = etcd_.get("/configuration");
    if (!value) return value.status();
    if (value->text != text) return lost();
    revision_ = value->revision;
    return wherry::ok_status();
  }

 private:
  static wherry::Status lost() {
    return {StatusCode::kFailedPrecondition, "the configuration in etcd is another keeper's by now"};
  }
  EtcdElection::Impl& etcd_;
  std::int64_t revision_ = 0;
};

}  // namespace

EtcdElection::EtcdElection(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
EtcdElection::~EtcdElection() = default;

Result<std::unique_ptr<EtcdElection>> EtcdElection::open(EtcdOptions options) {
  if (!options.url.starts_with("http://"))
    return wherry::Status(StatusCode::kInvalidArgument, fmt::format("'{}': want http://host:port", options.url));
  return std::unique_ptr<EtcdElection>(new EtcdElection(std::make_unique<Impl>(std::move(options))));
}

wherry::Status EtcdElection::campaign() {
  Impl& h = *impl_;
  const std::uint64_t asked = boot_ns();
  const auto granted = h.post("/v3/lease/grant", {{"TTL", std::to_string(h.options.lease.count())}});
  if (!granted) return granted.status();
  const std::int64_t lease = number(*granted, "ID");
  const std::int64_t ttl = number(*granted, "TTL");
  if (lease == 0 || ttl <= 0) return odd("/v3/lease/grant");
  const Json compare =
      Json::array({{{"key", h.key("/keeper")}, {"target", "CREATE"}, {"result", "EQUAL"}, {"create_revision", "0"}}});
  std::int64_t revision = 0;
  const auto held = h.transact(
      compare, {{"key", h.key("/keeper")}, {"value", to_base64(h.options.self)}, {"lease", std::to_string(lease)}},
      &revision);
  if (!held || !*held) {
    (void)h.post("/v3/lease/revoke", {{"ID", std::to_string(lease)}});
    return held ? wherry::Status::would_block() : held.status();
  }
  h.lease = lease;
  h.created = revision;
  h.mandate = h.lasting(asked, ttl);
  return wherry::ok_status();
}

wherry::Status EtcdElection::keep_alive() {
  Impl& h = *impl_;
  wherry::Status over{StatusCode::kFailedPrecondition, "this keeper's lease in etcd is over"};
  if (h.created == 0) return over;
  const std::uint64_t asked = boot_ns();
  const auto json = h.post("/v3/lease/keepalive", {{"ID", std::to_string(h.lease)}});
  if (!json) return json.status();
  const auto result = json->find("result");
  if (result == json->end() || !result->is_object()) return odd("/v3/lease/keepalive");
  const std::int64_t ttl = number(*result, "TTL");
  if (ttl <= 0) {
    h.created = 0;
    h.mandate = 0;
    return over;
  }
  h.mandate = h.lasting(asked, ttl);
  return wherry::ok_status();
}

wherry::Status EtcdElection::resign() {
  Impl& h = *impl_;
  if (h.created == 0) return wherry::ok_status();
  h.created = 0;
  h.mandate = 0;
  const auto json = h.post("/v3/lease/revoke", {{"ID", std::to_string(h.lease)}});
  return json ? wherry::ok_status() : json.status();
}

std::uint64_t EtcdElection::mandate_ns() const noexcept { return impl_->mandate; }

Result<std::string> EtcdElection::leader() {
  const auto value = impl_->get("/keeper");
  if (!value) return value.status();
  return value->text;
}

std::unique_ptr<ConfigurationStore> EtcdElection::store() { return std::make_unique<EtcdStore>(*impl_); }

}  // namespace wherry::kv
