// SPDX-License-Identifier: Apache-2.0
// Converts between whole frames and datagrams, so that processes of both kinds can share one simulated network. This
// header also contains both kinds of process.
#pragma once

#include <array>

#include "kv/sim/network.hpp"

namespace wherry::kv::sim {

using FrameBuffer = std::array<std::byte, kMaxFrame>;

/// Builds the frame for a datagram, with a right IPv4 checksum and no UDP checksum. The frame lies in `buffer`; it is
/// empty if the payload is not a message or is too long.
ByteView frame_of(const Endpoint& from, const Endpoint& to, ByteView datagram, FrameBuffer& buffer) noexcept;

/// How the network calls a software node or a client core.
class MessageSink {
 public:
  virtual void on_message(Cycles now, const Endpoint& from, const Message& message) = 0;
  virtual void on_wake(Cycles now, std::uint64_t tag) = 0;

 protected:
  MessageSink() = default;
  MessageSink(const MessageSink&) = default;
  MessageSink& operator=(const MessageSink&) = default;
  ~MessageSink() = default;
};

/// A process with a UDP socket.
class MessagePort final : public Output, public Receiver {
 public:
  MessagePort(Network& network, const Endpoint& at, MessageSink& sink)
      : network_(network), port_(network.attach(at, *this)), sink_(sink) {}
  MessagePort(const MessagePort&) = delete;  // the network has its address
  MessagePort& operator=(const MessagePort&) = delete;
  ~MessagePort() = default;

  [[nodiscard]] Port port() const noexcept { return port_; }
  void send(const Endpoint& to, const Message& message) override;
  void wake_at(Cycles when, std::uint64_t tag = 0) { network_.wake_at(when, port_, tag); }

  void receive(Cycles now, const Packet& packet) override;
  void wake(Cycles now, std::uint64_t tag) override { sink_.on_wake(now, tag); }

 private:
  Network& network_;
  Port port_;
  MessageSink& sink_;
};

/// How the network calls a node in hardware.
class FrameSink {
 public:
  virtual void on_frame(Cycles now, ByteView frame) = 0;
  virtual void on_wake(Cycles now, std::uint64_t tag) = 0;

 protected:
  FrameSink() = default;
  FrameSink(const FrameSink&) = default;
  FrameSink& operator=(const FrameSink&) = default;
  ~FrameSink() = default;
};

/// A process with an Ethernet port. Its endpoint needs a MAC address.
class FramePort final : public Receiver {
 public:
  FramePort(Network& network, const Endpoint& at, FrameSink& sink)
      : network_(network), port_(network.attach(at, *this)), sink_(sink) {}
  FramePort(const FramePort&) = delete;
  FramePort& operator=(const FramePort&) = delete;
  ~FramePort() = default;

  [[nodiscard]] Port port() const noexcept { return port_; }
  void send(ByteView frame) { network_.send_frame(port_, frame); }
  void wake_at(Cycles when, std::uint64_t tag = 0) { network_.wake_at(when, port_, tag); }

  void receive(Cycles now, const Packet& packet) override;
  void wake(Cycles now, std::uint64_t tag) override { sink_.on_wake(now, tag); }

 private:
  Network& network_;
  Port port_;
  FrameSink& sink_;
};

}  // namespace wherry::kv::sim
