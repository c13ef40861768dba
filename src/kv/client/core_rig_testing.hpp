// SPDX-License-Identifier: Apache-2.0
// For tests of ClientCore: nodes whose answers are all defined by the test.
#pragma once

#include <algorithm>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kv/client/core.hpp"

namespace wherry::kv::testing {

struct Sent {
  std::uint8_t node;
  Kv header;
  std::vector<std::byte> value;
  [[nodiscard]] Kind kind() const { return static_cast<Kind>(header.kind); }
};
struct Ended {
  std::uint64_t tag;
  Outcome outcome;
  std::uint32_t version;
  std::vector<std::byte> value;
};

inline std::vector<std::byte> bytes(const std::string& text) {
  const auto view = std::as_bytes(std::span(text));
  return {view.begin(), view.end()};
}

/// Three nodes that send only what the test makes them send.
struct Rig final : Output, Completions {
  explicit Rig(ClientCore::Options o = {}, std::uint8_t nodes = 3) : options(o) {
    for (std::uint8_t n = 0; n < nodes; ++n) options.nodes[n] = {.ip = 0x0a000001U + n, .port = 19286};
    core.emplace(options, *this, *this);
  }
  void send(const Endpoint& to, const Message& message) override {
    for (std::uint8_t n = 0; n < kMaxNodes; ++n) {
      if (!(options.nodes[n] == to)) continue;
      if (static_cast<Kind>(message.header.kind) == Kind::ping) return pings.push_back({n, message.header, {}});
      if (started && static_cast<Kind>(message.header.kind) == Kind::lane)
        return questions.push_back({n, message.header, {}});
      sent.push_back({n, message.header, {message.value.begin(), message.value.end()}});
    }
  }
  void on_complete(const Completion& c) override {
    ended.push_back({c.tag, c.outcome, c.version, {c.value.begin(), c.value.end()}});
  }

  void reply(const Sent& to, std::uint8_t from, Status status, std::uint16_t epoch, std::uint8_t leader,
             std::uint32_t version = 0, const std::string& value = {}) {
    Kv header = to.header;
    header.kind = static_cast<std::uint8_t>(header.kind + kReplyBit);
    header.detail = static_cast<std::uint8_t>(status);
    header.epoch = epoch;
    header.node = leader;
    header.version = version;
    const auto data = bytes(value);
    core->on_message(options.nodes[from], {header, data}, now);
  }
  void record(const Sent& to, std::uint32_t request, std::uint16_t epoch = 1, Status status = Status::ok) {
    Kv header = to.header;
    header.kind = static_cast<std::uint8_t>(Kind::lane_record);
    header.detail = static_cast<std::uint8_t>(status);
    header.epoch = epoch;
    header.key = request;
    core->on_message(options.nodes[to.node], {header, {}}, now);
  }
  /// Starts all lanes: every node answers with this record.
  void start(std::uint32_t request = 0, std::uint16_t epoch = 1) {
    core->start(now);
    while (!sent.empty()) record(take(), request, epoch);
    started = true;
  }
  Sent take() {
    EXPECT_FALSE(sent.empty());
    if (sent.empty()) return {};
    const Sent first = sent.front();
    sent.pop_front();
    return first;
  }
  Ended take_end() {
    EXPECT_FALSE(ended.empty());
    if (ended.empty()) return {};
    const Ended first = ended.front();
    ended.pop_front();
    return first;
  }
  /// Lets time pass until something is sent or has ended, at most `time`.
  void pass(Cycles time = 100000 * kMillisecond) {
    const Cycles end = now + time;
    while (sent.empty() && ended.empty() && now < end) {
      now = std::max(now + 1, std::min(end, core->next_wake()));
      core->tick(now);
    }
  }
  bool put(std::uint64_t key, const std::string& value, std::uint64_t tag = 0, Cycles deadline = 0) {
    const auto data = bytes(value);
    return core->submit({.kind = Kind::write, .key = key, .value = data, .tag = tag, .deadline = deadline}, now);
  }
  bool get(std::uint64_t key, std::uint64_t tag = 0, Cycles deadline = 0) {
    return core->submit({.key = key, .tag = tag, .deadline = deadline}, now);
  }

  ClientCore::Options options;
  Cycles now = 1000;
  bool started = false;  ///< by start(): further questions for records are kept apart
  std::deque<Sent> sent, pings, questions;
  std::deque<Ended> ended;
  std::optional<ClientCore> core;
};

inline ClientCore::Options lanes(std::uint32_t count) {
  ClientCore::Options o;
  o.lanes = count;
  o.lane_spread = 0;  // so that numbers can be foretold
  return o;
}

}  // namespace wherry::kv::testing
