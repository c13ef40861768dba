// SPDX-License-Identifier: Apache-2.0
#include "kv/keeper/etcd.hpp"

#include <fmt/core.h>
#include <httplib.h>

#include <charconv>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/log.hpp"
#include "base/try.hpp"
#include "kv/control/control.hpp"

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

/// The gateway writes 64-bit numbers as texts, and omits those that are 0.
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

namespace {

/// Sends the requests of one thread to the first endpoint that answers.
class EtcdChannel {
 public:
  explicit EtcdChannel(const EtcdOptions& options) : options_(options) { make_client(); }

  Result<Json> post(const char* path, const Json& request) {
    std::string why;
    for (std::size_t tries = 0; tries < options_.urls.size(); ++tries) {
      const auto response = client_->Post(path, request.dump(), "application/json");
      if (response) {
        Json json = Json::parse(response->body, nullptr, /*allow_exceptions=*/false);
        if (response->status == 200 && json.is_object()) return json;
        why = fmt::format("answers {} with status {}", path, response->status);
      } else {
        why = "does not answer: " + httplib::to_string(response.error());
      }
      why = fmt::format("etcd at {} {}", url(), why);
      next();  // also after an answer: a member without a leader gives one
    }
    return wherry::Status(StatusCode::kUnavailable, why);
  }
  /// Calls `line` for each JSON object that arrives, until it returns false or nothing arrives for `silence`.
  wherry::Status stream(const char* path, const Json& request, std::chrono::milliseconds silence,
                        const std::function<bool(const Json&)>& line) {
    client_->set_read_timeout(silence);
    httplib::Request http;
    http.method = "POST";
    http.path = path;
    http.headers = {{"Content-Type", "application/json"}};
    http.body = request.dump();
    std::string arrived;
    http.content_receiver = [&](const char* data, std::size_t bytes, std::uint64_t, std::uint64_t) {
      constexpr std::size_t kMost = 1 << 20;
      arrived.append(data, bytes);
      for (std::size_t end = 0; (end = arrived.find('\n')) != std::string::npos; arrived.erase(0, end + 1)) {
        const Json json = Json::parse(arrived.begin(), arrived.begin() + static_cast<std::ptrdiff_t>(end), nullptr,
                                      /*allow_exceptions=*/false);
        if (json.is_object() && !line(json)) return false;
      }
      return arrived.size() < kMost;
    };
    const auto result = client_->send(http);
    make_client();  // its connection is in the middle of a stream
    if (result && result->status != 200)
      return {StatusCode::kUnavailable,
              fmt::format("etcd at {} answers {} with status {}", url(), path, result->status)};
    return {};
  }
  [[nodiscard]] const std::string& url() const { return options_.urls[at_]; }
  void next() {
    at_ = (at_ + 1) % options_.urls.size();
    make_client();
  }

 private:
  void make_client() {
    client_ = std::make_unique<httplib::Client>(url(), options_.cert, options_.key);
    client_->set_connection_timeout(options_.timeout);
    client_->set_read_timeout(options_.timeout);
    client_->set_write_timeout(options_.timeout);
    client_->set_keep_alive(true);
    if (!url().starts_with("https://")) return;
    if (!options_.ca.empty()) client_->set_ca_cert_path(options_.ca);
    client_->enable_server_certificate_verification(true);
  }
  const EtcdOptions& options_;
  std::size_t at_ = 0;
  std::unique_ptr<httplib::Client> client_;
};

}  // namespace

struct EtcdElection::Impl {
  explicit Impl(EtcdOptions o) : options(std::move(o)), channel(options) {}

  [[nodiscard]] std::string key(const char* name) const { return to_base64(options.prefix + name); }

  struct Value {
    std::int64_t revision = 0;  ///< of its last change; 0: there is none
    std::int64_t store = 0;     ///< the whole store's revision then
    std::string text;
  };
  Result<Value> get(EtcdChannel& on, const char* name) {
    WHERRY_ASSIGN(const auto json, on.post("/v3/kv/range", {{"key", key(name)}}));
    Value value;
    if (const auto header = json.find("header"); header != json.end() && header->is_object())
      value.store = number(*header, "revision");
    const auto kvs = json.find("kvs");
    if (kvs == json.end()) return value;
    if (!kvs->is_array() || kvs->size() != 1 || !(*kvs)[0].is_object()) return odd("/v3/kv/range");
    value.revision = number((*kvs)[0], "mod_revision");
    const auto text = (*kvs)[0].find("value");
    if (value.revision <= 0 || (text != (*kvs)[0].end() && !text->is_string())) return odd("/v3/kv/range");
    if (text != (*kvs)[0].end() && !from_base64(text->get<std::string>(), value.text)) return odd("/v3/kv/range");
    return value;
  }
  /// Returns whether the conditions held. `revision` counts changes of the whole store; the new value has it, too.
  static Result<bool> transact(EtcdChannel& on, const Json& compare, const Json& put, std::int64_t* revision) {
    WHERRY_ASSIGN(const auto json,
                  on.post("/v3/kv/txn", {{"compare", compare}, {"success", Json::array({{{"request_put", put}}})}}));
    const auto header = json.find("header");
    if (header == json.end() || !header->is_object()) return odd("/v3/kv/txn");
    if (revision != nullptr) *revision = number(*header, "revision");
    const auto held = json.find("succeeded");
    return held != json.end() && held->is_boolean() && held->get<bool>();
  }
  [[nodiscard]] static std::uint64_t lasting(std::uint64_t asked, std::int64_t seconds) {
    // Counted from before the request, minus the possible difference of the clocks.
    const auto ns = static_cast<std::uint64_t>(seconds) * 1'000'000'000;
    return asked + ns - ns / kLeaseMargin;
  }
  void over() noexcept {
    created = 0;
    mandate = 0;
  }

  EtcdOptions options;
  EtcdChannel channel;
  std::int64_t lease = 0;
  std::atomic<std::int64_t> created{0};  ///< revision at which it was elected; 0: it is not
  std::atomic<std::uint64_t> mandate{0};
  std::atomic<bool> unwanted{false};  ///< step_down()
};

namespace {

class EtcdStore final : public ConfigurationStore {
 public:
  explicit EtcdStore(EtcdElection::Impl& etcd) : etcd_(etcd), channel_(etcd.options) {}

  Result<std::optional<Configuration>> load() override {
    WHERRY_ASSIGN(const auto value, etcd_.get(channel_, "/configuration"));
    revision_ = value.revision;
    if (revision_ == 0) return std::optional<Configuration>();
    WHERRY_ASSIGN(auto configuration, decode_configuration(value.text));
    return std::optional<Configuration>(std::move(configuration));
  }

  wherry::Status store(const Configuration& configuration) override {
    const std::string text = encode(configuration);
    const std::int64_t created = etcd_.created;
    const Json compare = Json::array({{{"key", etcd_.key("/keeper")},
                                       {"target", "CREATE"},
                                       {"result", "EQUAL"},
                                       {"create_revision", std::to_string(created)}},
                                      {{"key", etcd_.key("/configuration")},
                                       {"target", "MOD"},
                                       {"result", "EQUAL"},
                                       {"mod_revision", std::to_string(revision_)}}});
    if (created == 0) return lost();
    std::int64_t revision = 0;
    WHERRY_ASSIGN(const auto held,
                  etcd_.transact(channel_, compare, {{"key", etcd_.key("/configuration")}, {"value", to_base64(text)}},
                                 &revision));
    if (held) {
      revision_ = revision;
      return wherry::ok_status();
    }
    // An earlier try may have arrived although its answer was lost.
    WHERRY_ASSIGN(const auto value, etcd_.get(channel_, "/configuration"));
    if (value.text != text) return lost();
    revision_ = value.revision;
    return wherry::ok_status();
  }

 private:
  static wherry::Status lost() {
    return {StatusCode::kFailedPrecondition, "the configuration in etcd is another keeper's by now"};
  }
  EtcdElection::Impl& etcd_;
  EtcdChannel channel_;
  std::int64_t revision_ = 0;
};

}  // namespace

EtcdElection::EtcdElection(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
EtcdElection::~EtcdElection() = default;

Result<std::unique_ptr<EtcdElection>> EtcdElection::open(EtcdOptions options) {
  if (options.urls.empty()) return wherry::Status(StatusCode::kInvalidArgument, "etcd: want http://host:port");
  for (const std::string& url : options.urls)
    if (!url.starts_with("http://") && !url.starts_with("https://"))
      return wherry::Status(StatusCode::kInvalidArgument,
                            fmt::format("'{}': want http://host:port or https://host:port", url));
  return std::unique_ptr<EtcdElection>(new EtcdElection(std::make_unique<Impl>(std::move(options))));
}

wherry::Status EtcdElection::campaign() {
  Impl& h = *impl_;
  const std::uint64_t asked = boot_ns();
  WHERRY_ASSIGN(const auto granted,
                h.channel.post("/v3/lease/grant", {{"TTL", std::to_string(h.options.lease.count())}}));
  const std::int64_t lease = number(granted, "ID");
  const std::int64_t ttl = number(granted, "TTL");
  if (lease == 0 || ttl <= 0) return odd("/v3/lease/grant");
  const Json compare =
      Json::array({{{"key", h.key("/keeper")}, {"target", "CREATE"}, {"result", "EQUAL"}, {"create_revision", "0"}}});
  std::int64_t revision = 0;
  const auto held = EtcdElection::Impl::transact(
      h.channel, compare,
      {{"key", h.key("/keeper")}, {"value", to_base64(h.options.self)}, {"lease", std::to_string(lease)}}, &revision);
  if (!held || !*held) {
    (void)h.channel.post("/v3/lease/revoke", {{"ID", std::to_string(lease)}});
    return held ? wherry::Status::would_block() : held.status();
  }
  h.lease = lease;
  h.mandate = h.lasting(asked, ttl);
  h.created = revision;
  return wherry::ok_status();
}

wherry::Status EtcdElection::keep_alive() {
  Impl& h = *impl_;
  wherry::Status over{StatusCode::kFailedPrecondition, "this keeper's lease in etcd is over"};
  if (h.created == 0) return over;
  const std::uint64_t asked = boot_ns();
  WHERRY_ASSIGN(const auto json, h.channel.post("/v3/lease/keepalive", {{"ID", std::to_string(h.lease)}}));
  const auto result = json.find("result");
  if (result == json.end() || !result->is_object()) return odd("/v3/lease/keepalive");
  const std::int64_t ttl = number(*result, "TTL");
  if (ttl <= 0) {
    h.over();
    return over;
  }
  h.mandate = h.lasting(asked, ttl);
  return wherry::ok_status();
}

wherry::Status EtcdElection::resign() {
  Impl& h = *impl_;
  if (h.created == 0) return wherry::ok_status();
  h.over();
  const auto json = h.channel.post("/v3/lease/revoke", {{"ID", std::to_string(h.lease)}});
  return json ? wherry::ok_status() : json.status();
}

std::uint64_t EtcdElection::mandate_ns() const noexcept { return impl_->mandate; }

Result<std::string> EtcdElection::leader() {
  WHERRY_ASSIGN(const auto value, impl_->get(impl_->channel, "/keeper"));
  return value.text;
}

std::int64_t EtcdElection::elected() const noexcept { return impl_->created; }
void EtcdElection::step_down() noexcept { impl_->unwanted = true; }

wherry::Status EtcdElection::watch(std::chrono::milliseconds time, const std::atomic<bool>& stop) {
  Impl& h = *impl_;
  WHERRY_ASSIGN(const auto now, h.get(h.channel, "/keeper"));
  if (now.revision == 0) return {};  // nobody
  const Json wish{{"create_request", {{"key", h.key("/keeper")}, {"start_revision", std::to_string(now.store + 1)}}}};
  return h.channel.stream("/v3/watch", wish, time, [&](const Json& json) {
    const auto result = json.find("result");
    if (result == json.end() || !result->is_object()) return false;  // an error: asked anew
    const auto events = result->find("events");
    return events == result->end() && !stop.load(std::memory_order_relaxed);  // whatever it is, something changed
  });
}

void EtcdElection::run(const std::atomic<bool>& stop) {
  using std::chrono::milliseconds;
  constexpr milliseconds kPause(300);  // after an error
  constexpr milliseconds kLook(1000);  // then a watch is made anew: also the longest that `stop` has to wait
  const auto sleep = [&](milliseconds time) {
    for (const Deadline end(time); !end.passed() && !stop.load(std::memory_order_relaxed) && !impl_->unwanted;)
      std::this_thread::sleep_for(milliseconds(10));
  };
  const auto warn = [said = std::string()](const wherry::Status& status) mutable {
    if (status.message() != said) spdlog::warn("kv keeper: {}", status.message());
    said = status.message();
  };
  auto say = warn;
  while (!stop.load(std::memory_order_relaxed)) {
    wherry::Status status;
    if (impl_->unwanted.exchange(false)) {
      status = resign();
    } else if (elected() != 0) {
      status = keep_alive();
      if (status.code() == StatusCode::kFailedPrecondition) continue;
      sleep(status ? std::chrono::duration_cast<milliseconds>(impl_->options.lease) / 5 : kPause);
    } else {
      status = watch(kLook, stop);  // returns when nobody is elected, or after a while
      if (status && !stop) {
        const auto who = leader();
        status = who.status();
        if (who && who->empty()) status = campaign();
        if (status.is_would_block()) continue;
      }
      if (!status) sleep(kPause);
    }
    if (!status) say(status);
  }
  (void)resign();
}

std::unique_ptr<ConfigurationStore> EtcdElection::store() { return std::make_unique<EtcdStore>(*impl_); }

}  // namespace wherry::kv
