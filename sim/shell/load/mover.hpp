// SPDX-License-Identifier: Apache-2.0
// The DataMover under load, with one command after another. Times without load are those of data_mover.cpp; the gap
// between packets is PG022's.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>

#include "sim/shell/load/adapter.hpp"
#include "sim/shell/load/card_switch.hpp"
#include "sim/shell/load/packet.hpp"

namespace wherry::sim::shell::load {

/// S2MM: packets from the network to the card's memory.
class MoverWrite final : public PartSink {
 public:
  MoverWrite(pcie::EventQueue& queue, const Parameters& p, const Limits& limits, CardSwitch& card);

  [[nodiscard]] std::uint32_t room() const override { return free_; }
  void reserve() override { --free_; }
  void part(const Part& part) override;
  [[nodiscard]] Time not_before() const override { return not_before_; }
  void gap() override;

 private:
  pcie::EventQueue& queue_;
  const Parameters& p_;
  const Limits& limits_;
  CardSwitch& card_;
  std::uint32_t free_;               ///< beats
  std::uint32_t half_ = 0;           ///< 32 bytes of a beat that the memory has taken
  std::deque<std::uint32_t> words_;  ///< of each beat on its way: 1 or 2 words of 32 bytes
  Time not_before_ = 0;
};

/// MM2S: from the card's memory towards the network.
class MoverRead {
 public:
  MoverRead(pcie::EventQueue& queue, const Parameters& p, const Limits& limits, CardSwitch& card, Feeder& feeder);

  /// A command. Commands that must wait do so in order.
  void command(Packet& packet);

 private:
  void issue();
  void beat(const Part& part);
  void store(const Part& part);

  pcie::EventQueue& queue_;
  const Parameters& p_;
  const Limits& limits_;
  CardSwitch& card_;
  Feeder& feeder_;
  std::deque<Packet*> waiting_;
  std::deque<Part> stored_;  ///< of the packet that the second store takes in
  std::uint32_t reads_ = 0;  ///< commands whose data have not all come
  std::uint32_t bytes_ = 0;  ///< of commands, until they are in the adapter
  Time out_ = 0;             ///< of the last beat out of the DataMover
};

}  // namespace wherry::sim::shell::load
