// SPDX-License-Identifier: Apache-2.0
// QDMA's memory-mapped engines under load. Times without load are those of qdma.cpp.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <map>

#include "sim/shell/load/card_switch.hpp"
#include "sim/shell/load/descriptors.hpp"
#include "sim/shell/load/host_writer.hpp"
#include "sim/shell/load/notices.hpp"
#include "sim/shell/load/packet.hpp"

namespace wherry::sim::shell::load {

/// Host memory to the card's memory (PG302, H2C MM Engine): one card write per read request, when its data are there.
class H2cMemory {
 public:
  H2cMemory(pcie::EventQueue& queue, const Parameters& p, const Limits& limits, Requests& requests,
            Descriptors& descriptors, Notices& notices, CardSwitch& card);

  void expect(Packet& packet) { expected_[packet.queue].push_back(&packet); }

 private:
  struct Job {
    Packet* packet;
    std::uint64_t source, destination;
    std::uint32_t left;
  };
  void issue();
  void pass(Packet& packet, std::uint64_t to, std::vector<std::byte> data);

  pcie::EventQueue& queue_;
  const Parameters& p_;
  const Limits& limits_;
  Requests& requests_;
  Descriptors& descriptors_;
  Notices& notices_;
  CardSwitch& card_;
  std::map<std::uint32_t, std::deque<Packet*>> expected_;
  std::deque<Job> jobs_;
  std::uint32_t buffered_ = 0;  ///< bytes asked for, and not taken by the card's memory
};

/// The card's memory to the host's memory (PG302, C2H MM Engine): descriptors are cut at pages of both.
class C2hMemory {
 public:
  C2hMemory(pcie::EventQueue& queue, const Parameters& p, const Limits& limits, Requests& requests,
            Descriptors& descriptors, Notices& notices, CardSwitch& card);

  void expect(Packet& packet) { expected_[packet.queue].push_back(&packet); }
  /// More bytes of the packet have arrived at the host.
  void host_has(Packet& packet);

 private:
  struct Transfer {
    Packet* packet;
    std::uint64_t source, destination;
    std::uint32_t left;
    std::uint32_t until = 0;  ///< bytes that the host has when the present transaction is over
  };
  void issue();
  void transaction(Transfer& transfer);

  const Limits& limits_;
  Descriptors& descriptors_;
  CardSwitch& card_;
  HostWriter writer_;
  std::map<std::uint32_t, std::deque<Packet*>> expected_;
  std::deque<Transfer> waiting_;
  std::list<Transfer> active_;
  std::uint32_t buffered_ = 0;  ///< bytes asked for, and not on RQ
};

}  // namespace wherry::sim::shell::load
