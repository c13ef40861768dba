// SPDX-License-Identifier: Apache-2.0
// For the fuzz target and for tests. Sends correct and incorrect control messages in any order to a running agent, as a
// client with the token can. The packed keys and worker addresses are real or empty, because UCX trusts them when it
// parses them (docs/guide/security.md).
#pragma once

#include <unistd.h>

#include <cstring>
#include <optional>
#include <string>

#include "agent/agent.hpp"
#include "base/cpu.hpp"
#include "base/frame_channel.hpp"
#include "base/testing.hpp"
#include "base/unix_socket.hpp"
#include "fabric/fabric.hpp"
#include "fabric/mailbox.hpp"
#include "fabric/stream_auth.hpp"
#include "move/message.hpp"
#include "session/control.hpp"

namespace wherry::testing_support {

/// Draws choices from the input bytes, then zeros when these are used up.
class Choices {
 public:
  explicit Choices(ByteView bytes) : bytes_(bytes) {}
  [[nodiscard]] bool empty() const { return at_ >= bytes_.size(); }
  std::uint8_t byte() { return empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(bytes_[at_++]); }
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | byte();
    return value;
  }
  ByteView some() {
    const std::size_t wanted = byte() * std::size_t{8};
    at_ = std::min(at_, bytes_.size());
    const ByteView taken = bytes_.subspan(at_, std::min(wanted, bytes_.size() - at_));
    at_ += taken.size();
    return taken;
  }

 private:
  ByteView bytes_;
  std::size_t at_ = 0;
};

class SequencePlayer {
 public:
  SequencePlayer(const Agent& agent)  // NOLINT(google-explicit-constructor)
      : socket_(agent.control_socket()), token_(agent.token()) {
    context_ = *fabric::Context::create(Transport::kShm);
    worker_ = *fabric::Worker::create(context_);
    memory_ = *context_->allocate(kMemory);
    (void)memory_.pack_key(key_);
  }

  /// Opens one connection after the other, until the bytes are used up.
  void play(ByteView bytes) {
    Choices choices(bytes);
    for (int steps = 0; !choices.empty() && steps < 64; ++steps) step(choices);
    endpoint_ = fabric::Endpoint();
    channel_ = FrameChannel();
    greeting_.reset();
  }

 private:
  static constexpr std::size_t kMemory = std::size_t{64} << 10;

  void step(Choices& choices) {
    if (channel_.fd() < 0) {
      auto socket = connect_unix(socket_, Deadline(kPatience));
      if (!socket) return;
      auto stream = plain_stream(*std::move(socket));
      if (!fabric::prove(*stream, fabric::Purpose::kControl, 0, token_, Deadline(kPatience))) return;
      channel_ = FrameChannel(std::move(stream));
    }
    switch (choices.byte() % 10) {
      case 0:
        return hello(choices);
      case 1:
        return attach(choices);
      case 2:
        return send(session::ControlType::kAsleep, {});
      case 3:
        return request(choices);
      case 4: {
        const std::uint8_t type = choices.byte();
        return send(static_cast<session::ControlType>(type), choices.some());
      }
      case 5:
        return ping();
      case 6:
        return write_mailbox(choices);
      case 7:
        endpoint_ = fabric::Endpoint();
        channel_ = FrameChannel();
        greeting_.reset();
        return;
      default:
        return receive();
    }
  }

  void hello(Choices& choices) {
    session::Hello m;
    const std::uint8_t wrong = choices.byte();
    m.host = wrong == 2 ? "elsewhere" : host_identity();
    m.name = wrong == 3 ? std::string(5000, '\xff') : "player";
    m.pid = wrong == 4 ? 1 : static_cast<std::uint32_t>(getpid());
    m.version += wrong == 5 ? 1 : 0;
    m.transport = wrong == 6 ? Transport::kRdma : Transport::kShm;
    send(session::ControlType::kHello, encode(m));
    receive();
  }

  fabric::RemoteKey region(Choices& choices, std::size_t at, std::size_t size) {
    const auto base = reinterpret_cast<std::uint64_t>(memory_.data());
    fabric::RemoteKey key{base + at, size, key_};
    const std::uint8_t wrong = choices.byte();
    if (wrong == 1) key.key.clear();
    if (wrong == 2) key.base = choices.number();
    if (wrong == 3) key.size = choices.number();
    if (wrong == 4) key.base += choices.byte();
    if (wrong == 5) key.size <<= choices.byte() % 64;
    return key;
  }

  void attach(Choices& choices) {
    constexpr std::size_t kProbe = session::kProbeWords * sizeof(std::uint64_t);
    const auto fill = [&](std::size_t at) {
      for (std::uint64_t i = 0; greeting_ && i < session::kProbeWords; ++i) {
        const std::uint64_t word = session::probe_word(greeting_->session, i);
        std::memcpy(memory_.data() + at + i * sizeof word, &word, sizeof word);
      }
    };
    fill(4096);
    fill(4096 + kProbe);
    std::memset(memory_.data() + kMailbox, 0, fabric::Mailbox::bytes_for(4096));
    session::Attach m;
    if (choices.byte() != 1) m.worker_address = worker_->address();
    m.completions = region(choices, 0, 16 * sizeof(session::CompletionRecord));
    m.heap_probe = region(choices, 4096, kProbe);
    m.alloc_probe = region(choices, 4096 + kProbe, kProbe);
    m.mailbox = region(choices, kMailbox, fabric::Mailbox::bytes_for(4096));
    if (choices.byte() == 1) m.mailbox = {};
    send(session::ControlType::kAttach, encode(m));
  }
  static constexpr std::size_t kMailbox = 16384;

  void ping() {
    if (!greeting_) return;
    if (!endpoint_) {
      auto endpoint = fabric::Endpoint::connect(*worker_, greeting_->worker_address);
      if (!endpoint) return;
      endpoint_ = *std::move(endpoint);
    }
    fabric::Completion done;
    (void)endpoint_.send(session::kPingMessage, std::as_bytes(std::span(&greeting_->session, 1)), done);
    for (int i = 0; i < 1000 && done.pending() != 0; ++i) worker_->progress();
    receive();
    if (done.pending() != 0) endpoint_ = fabric::Endpoint();
  }

  void request(Choices& choices) {
    session::Request m;
    m.id = choices.byte();
    const std::uint8_t what = choices.byte();
    m.service = what % 4 == 3 ? "route" : "move";
    switch (what / 4 % 4) {
      case 0: {
        move::OpenRequest open;
        open.options.name = std::string(1, static_cast<char>('a' + choices.byte() % 3));
        open.options.strategy = static_cast<Strategy>(choices.byte() % 6);
        open.again = choices.byte() % 2 != 0;
        if (open.options.strategy != Strategy::kRaw) open.schema = {field<double>("x")};
        m.method = "open";
        m.payload = encode(open);
        break;
      }
      case 1: {
        Writer out;
        out.put(std::uint32_t{choices.byte()});
        out.put(choices.byte() == 0 ? std::uint64_t{0} : choices.number());
        m.method = "close";
        m.payload = std::move(out).take();
        break;
      }
      case 2:
        m.method = m.service == "route" ? "hello" : "status";
        break;
      default: {
        const ByteView bytes = choices.some();
        m.method = m.service == "route" ? "join" : "open";
        m.payload.assign(bytes.begin(), bytes.end());
      }
    }
    send(session::ControlType::kRequest, encode(m));
  }

  /// Writes arbitrary words into the mailbox from which the agent reads offloads.
  void write_mailbox(Choices& choices) {
    const ByteView bytes = choices.some();
    const std::uint64_t word = std::uint64_t{move::kOffloadMessage} << 32 | bytes.size();
    std::byte* const ring = memory_.data() + kMailbox + 64;
    if (!bytes.empty()) std::memcpy(ring + 8, bytes.data(), bytes.size());
    if (greeting_ && bytes.size() >= 8) std::memcpy(ring + 8, &greeting_->session, 8);
    std::memcpy(ring, &word, sizeof word);
  }

  void send(session::ControlType type, ByteView payload) {
    if (!channel_.send(static_cast<std::uint16_t>(type), payload, Deadline(std::chrono::seconds(1))))
      channel_ = FrameChannel();
  }

  /// Receives messages for a few milliseconds, and lets UCX make progress meanwhile.
  void receive() {
    for (const Deadline deadline(std::chrono::milliseconds(5)); !deadline.passed();) {
      worker_->progress();
      auto frame = channel_.try_receive();
      if (!frame) {
        channel_ = FrameChannel();
        greeting_.reset();
        return;
      }
      if (!frame->has_value()) {
        usleep(50);
        continue;
      }
      if ((*frame)->type == static_cast<std::uint16_t>(session::ControlType::kGreeting)) {
        if (auto greeting = session::decode_greeting((*frame)->payload)) greeting_ = *std::move(greeting);
      }
      return;
    }
  }

  const std::string socket_, token_;
  std::shared_ptr<fabric::Context> context_;
  std::unique_ptr<fabric::Worker> worker_;
  fabric::Region memory_;
  Bytes key_;
  FrameChannel channel_;
  std::optional<session::Greeting> greeting_;
  fabric::Endpoint endpoint_;
};

}  // namespace wherry::testing_support
