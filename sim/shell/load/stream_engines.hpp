// SPDX-License-Identifier: Apache-2.0
// QDMA's stream engines under load. Times without load are those of qdma.cpp.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "sim/shell/load/adapter.hpp"
#include "sim/shell/load/descriptors.hpp"
#include "sim/shell/load/host_writer.hpp"
#include "sim/shell/load/notices.hpp"
#include "sim/shell/load/packet.hpp"

namespace wherry::sim::shell::load {

/// Packets to the host, in their order of arrival (PG302, C2H Stream Engine). A packet without a descriptor blocks
/// those behind it.
class C2hStream final : public PartSink {
 public:
  C2hStream(pcie::EventQueue& queue, const Parameters& p, const Limits& limits, Requests& requests,
            Descriptors& descriptors, Notices& notices);

  [[nodiscard]] std::uint32_t room() const override { return free_; }
  void reserve() override { --free_; }
  void part(const Part& part) override;
  /// Called when a packet has its buffer in host memory: Packet::host.
  std::function<void(Packet&)> placed;

 private:
  void descriptor(std::uint32_t queue, std::span<const std::byte> bytes);

  pcie::EventQueue& queue_;
  const Parameters& p_;
  Descriptors& descriptors_;
  HostWriter writer_;
  std::uint32_t free_;         ///< beats of the payload FIFO
  std::uint64_t current_ = 0;  ///< the writer's number of the packet that comes
  struct Waiting {
    Packet* packet;
    std::uint64_t number;
  };
  std::map<std::uint32_t, std::deque<Waiting>> waiting_;  ///< for a descriptor, by queue
};

/// Packets from the host (PG302, H2C Stream Engine).
class H2cStream {
 public:
  H2cStream(pcie::EventQueue& queue, const Parameters& p, const Limits& limits, Requests& requests,
            Descriptors& descriptors, Notices& notices, Feeder& feeder);

  /// The host's packets of a queue leave in this order.
  void expect(Packet& packet) { expected_[packet.queue].push_back(&packet); }

 private:
  struct Job {
    Packet* packet;
    std::uint64_t address;
    std::uint32_t left;
  };
  struct Reading {
    Packet* packet;
    std::uint32_t offset, bytes;  ///< of the request in the packet
    std::uint32_t came = 0;
  };
  void issue();
  void data(std::uint64_t number, std::uint32_t offset, std::span<const std::byte> bytes);
  void pass();

  pcie::EventQueue& queue_;
  const Parameters& p_;
  const Limits& limits_;
  Requests& requests_;
  Descriptors& descriptors_;
  Feeder& feeder_;
  std::map<std::uint32_t, std::deque<Packet*>> expected_;
  std::deque<Job> jobs_;
  std::deque<Reading> readings_;  ///< in the order of their requests
  std::uint64_t first_ = 0;       ///< number of the first of them
  std::uint32_t buffered_ = 0;    ///< bytes asked for, or waiting for the network
  std::uint32_t passed_ = 0;      ///< bytes of the first packet of readings_ that have been passed on
};

}  // namespace wherry::sim::shell::load
