// SPDX-License-Identifier: Apache-2.0
// The C ABI of kv: thin functions on Client, which check conditions that C cannot express.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/c_abi.hpp"
#include "base/try.hpp"
#include "kv/generated/frame.hpp"
#include "wherry/kv.h"
#include "wherry/kv.hpp"

using std::chrono::nanoseconds;
using wherry::StatusCode;
using wherry::c_abi::give_defaults;
using wherry::c_abi::guarded;
using wherry::c_abi::invalid;
using wherry::c_abi::is_null;
using wherry::kv::Client;
using wherry::kv::ClientOptions;
using wherry::kv::Completion;
using wherry::kv::Outcome;
using wherry::kv::Reply;

struct wherry_kv {
  Client client;
  std::vector<Completion> polled;
};

namespace {

constexpr std::size_t kOptionsFirst = 88;  // as in the first version: when a field is appended, this stays
static_assert(sizeof(wherry_kv_options) == 112);
static_assert(WHERRY_KV_LEADER == static_cast<int>(wherry::kv::ReadFrom::kLeader));

wherry_kv_options defaults() noexcept {
  wherry_kv_options o{};
  try {
    const ClientOptions d;
    o.deadline_ns = d.deadline.count();
    o.first_timeout_ns = d.first_timeout.count();
    o.timeout_cap_ns = d.timeout_cap.count();
    o.connect_timeout_ns = d.connect_timeout.count();
    o.first_lane = WHERRY_KV_GRANTED;
    o.lanes = d.lanes;
    o.operations = d.operations;
  } catch (...) {  // an empty vector does not throw
  }
  return o;
}

wherry::Result<ClientOptions> options_from(const wherry_kv_options* given) {
  wherry_kv_options o = defaults();
  WHERRY_TRY(wherry::c_abi::take_options(given, kOptionsFirst, "wherry_kv_options", o));
  if (o.nodes == nullptr && o.node_count != 0) return is_null("nodes");
  if (o.reads < WHERRY_KV_NEAREST || o.reads > WHERRY_KV_LEADER)
    return invalid(fmt::format("reads is {}: want one of wherry_kv_read_from", o.reads));
  if (o.reserved != 0) return invalid("options->reserved is not 0: was wherry_kv_options_init called?");
  if (o.first_lane >= wherry::kv::kMaxLanes && o.first_lane != WHERRY_KV_GRANTED)
    return invalid(
        fmt::format("first_lane is {}: at most {}, or WHERRY_KV_GRANTED", o.first_lane, wherry::kv::kMaxLanes - 1));
  if (o.keepers == nullptr && o.keeper_count != 0) return is_null("keepers");
  ClientOptions options;
  for (std::size_t n = 0; n < std::min<std::size_t>(o.node_count, 9); ++n) {  // nine are refused with the rest
    if (o.nodes[n] == nullptr) return is_null("a node's name");
    options.nodes.emplace_back(o.nodes[n]);
  }
  for (std::size_t n = 0; n < o.keeper_count; ++n) {
    if (o.keepers[n] == nullptr) return is_null("a keeper's name");
    options.keepers.emplace_back(o.keepers[n]);
  }
  if (o.cluster != nullptr) options.cluster = o.cluster;
  if (o.first_lane != WHERRY_KV_GRANTED) options.first_lane = static_cast<std::uint16_t>(o.first_lane);
  options.lanes = o.lanes;
  options.operations = o.operations;
  options.deadline = nanoseconds(o.deadline_ns);
  options.first_timeout = nanoseconds(o.first_timeout_ns);
  options.timeout_cap = nanoseconds(o.timeout_cap_ns);
  options.connect_timeout = nanoseconds(o.connect_timeout_ns);
  options.reads = static_cast<wherry::kv::ReadFrom>(o.reads);
  options.waiting = o.spin != 0 ? wherry::kv::Waiting::kSpin : wherry::kv::Waiting::kBlock;
  options.seed = o.seed;
  return options;
}

wherry::Status check_value(const void* value, std::size_t bytes) {
  if (value == nullptr && bytes != 0) return is_null("value");
  if (bytes > WHERRY_KV_MAX_VALUE)
    return invalid(fmt::format("a value of {} bytes: at most {}", bytes, static_cast<int>(WHERRY_KV_MAX_VALUE)));
  return {};
}

std::span<const std::byte> view(const void* value, std::size_t bytes) {
  return {static_cast<const std::byte*>(value), bytes};
}

/// Runs `run(client)`, a blocking call, and converts its reply.
template <typename Run>
int answered(wherry_kv* kv, uint32_t* version, wherry_error* error, Run&& run) noexcept {
  return guarded(error, [&]() -> wherry::Status {
    if (kv == nullptr) return is_null("kv");
    const Reply answer = run(kv->client);
    const bool found = answer.outcome == Outcome::kOk || answer.outcome == Outcome::kVersionMismatch;
    if (version != nullptr && found) *version = answer.version;
    return answer.status();
  });
}

/// As answered(), but checks a value first.
template <typename Run>
int written(wherry_kv* kv, const void* value, std::size_t bytes, uint32_t* version, wherry_error* error,
            Run&& run) noexcept {
  const bool fits = bytes <= WHERRY_KV_MAX_VALUE && (value != nullptr || bytes == 0);
  if (!fits) return guarded(error, [&] { return check_value(value, bytes); });
  return answered(kv, version, error, [&](Client& client) { return run(client, view(value, bytes)); });
}

template <typename Post>
int posted(wherry_kv* kv, const void* value, std::size_t bytes, wherry_error* error, Post&& post) noexcept {
  return guarded(error, [&]() -> wherry::Status {
    if (kv == nullptr) return is_null("kv");
    WHERRY_TRY(check_value(value, bytes));
    if (kv->client.forked()) return Reply{.outcome = Outcome::kForked}.status();
    return {post(kv->client, view(value, bytes)), {}};
  });
}

}  // namespace

int wherry_kv_options_init(wherry_kv_options* options, size_t size) {
  return give_defaults(options, size, kOptionsFirst, defaults());
}

int wherry_kv_connect(const wherry_kv_options* options, wherry_kv** kv, wherry_error* error) {
  return guarded(error, [&]() -> wherry::Status {
    if (kv == nullptr) return is_null("kv");
    WHERRY_ASSIGN(auto full, options_from(options));
    WHERRY_ASSIGN(auto client, Client::connect(full));
    *kv = new wherry_kv{std::move(client), std::vector<Completion>(full.operations)};
    return {};
  });
}

int wherry_kv_close(wherry_kv* kv, wherry_error* error) {
  return guarded(error, [&] {
    delete kv;
    return wherry::Status();
  });
}

int wherry_kv_get(wherry_kv* kv, uint64_t key, void* value, size_t capacity, int64_t deadline_ns, size_t* bytes,
                  uint32_t* version, wherry_error* error) {
  return guarded(error, [&]() -> wherry::Status {
    if (kv == nullptr) return is_null("kv");
    if (value == nullptr && capacity != 0) return is_null("value");
    const Reply answer = kv->client.get(key, nanoseconds(deadline_ns));
    if (answer.outcome != Outcome::kOk) return answer.status();
    if (version != nullptr) *version = answer.version;
    if (bytes != nullptr) *bytes = answer.value.size();
    if (answer.value.size() > capacity)
      return invalid(fmt::format("the value has {} bytes, there is room for {}", answer.value.size(), capacity));
    if (value != nullptr && !answer.value.empty()) std::memcpy(value, answer.value.data(), answer.value.size());
    return {};
  });
}

int wherry_kv_put(wherry_kv* kv, uint64_t key, const void* value, size_t bytes, int64_t deadline_ns, uint32_t* version,
                  wherry_error* error) {
  return written(kv, value, bytes, version, error,
                 [&](Client& c, auto data) { return c.put(key, data, nanoseconds(deadline_ns)); });
}

int wherry_kv_put_if(wherry_kv* kv, uint64_t key, uint32_t expected, const void* value, size_t bytes,
                     int64_t deadline_ns, uint32_t* version, wherry_error* error) {
  return written(kv, value, bytes, version, error,
                 [&](Client& c, auto data) { return c.put_if(key, expected, data, nanoseconds(deadline_ns)); });
}

int wherry_kv_remove(wherry_kv* kv, uint64_t key, int64_t deadline_ns, uint32_t* version, wherry_error* error) {
  return answered(kv, version, error, [&](Client& c) { return c.remove(key, nanoseconds(deadline_ns)); });
}

int wherry_kv_remove_if(wherry_kv* kv, uint64_t key, uint32_t expected, int64_t deadline_ns, uint32_t* version,
                        wherry_error* error) {
  return answered(kv, version, error, [&](Client& c) { return c.remove_if(key, expected, nanoseconds(deadline_ns)); });
}

int wherry_kv_post_get(wherry_kv* kv, uint64_t key, uint64_t tag, int64_t deadline_ns, wherry_error* error) {
  return posted(kv, nullptr, 0, error, [&](Client& c, auto) { return c.post_get(key, tag, nanoseconds(deadline_ns)); });
}

int wherry_kv_post_put(wherry_kv* kv, uint64_t key, const void* value, size_t bytes, uint64_t tag, int64_t deadline_ns,
                       wherry_error* error) {
  return posted(kv, value, bytes, error,
                [&](Client& c, auto data) { return c.post_put(key, data, tag, nanoseconds(deadline_ns)); });
}

int wherry_kv_post_put_if(wherry_kv* kv, uint64_t key, uint32_t expected, const void* value, size_t bytes, uint64_t tag,
                          int64_t deadline_ns, wherry_error* error) {
  return posted(kv, value, bytes, error, [&](Client& c, auto data) {
    return c.post_put_if(key, expected, data, tag, nanoseconds(deadline_ns));
  });
}

int wherry_kv_post_remove(wherry_kv* kv, uint64_t key, uint64_t tag, int64_t deadline_ns, wherry_error* error) {
  return posted(kv, nullptr, 0, error,
                [&](Client& c, auto) { return c.post_remove(key, tag, nanoseconds(deadline_ns)); });
}

int wherry_kv_post_remove_if(wherry_kv* kv, uint64_t key, uint32_t expected, uint64_t tag, int64_t deadline_ns,
                             wherry_error* error) {
  return posted(kv, nullptr, 0, error,
                [&](Client& c, auto) { return c.post_remove_if(key, expected, tag, nanoseconds(deadline_ns)); });
}

int wherry_kv_poll(wherry_kv* kv, wherry_kv_completion* completions, size_t capacity, size_t* count,
                   wherry_error* error) {
  return guarded(error, [&]() -> wherry::Status {
    if (kv == nullptr) return is_null("kv");
    if (count == nullptr) return is_null("count");
    if (completions == nullptr && capacity != 0) return is_null("completions");
    const std::size_t n = kv->client.poll(std::span(kv->polled).first(std::min(capacity, kv->polled.size())));
    for (std::size_t i = 0; i < n; ++i) {
      const Completion& c = kv->polled[i];
      completions[i] = {c.tag, c.value.data(), c.value.size(), c.version,
                        static_cast<std::int32_t>(wherry::kv::status_code(c.outcome))};
    }
    *count = n;
    return {};
  });
}

int wherry_kv_wait(wherry_kv* kv, int64_t timeout_ns, wherry_error* error) {
  return guarded(error, [&]() -> wherry::Status {
    if (kv == nullptr) return is_null("kv");
    if (kv->client.forked()) return Reply{.outcome = Outcome::kForked}.status();
    const nanoseconds limit = timeout_ns == WHERRY_FOREVER ? nanoseconds::max() : nanoseconds(timeout_ns);
    if (kv->client.wait(limit)) return {};
    return {StatusCode::kDeadlineExceeded, "nothing has ended in this time"};
  });
}
