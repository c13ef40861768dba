// SPDX-License-Identifier: Apache-2.0
// SmartConnect between two AXI masters and one port of the card's memory. It is like CardPort (card_port.hpp), but for
// several masters: round-robin arbiters choose among the offered reads and among the offered writes, a burst at a time
// (PG247, Transaction Arbitration). Write data follow the order of their addresses.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>

#include "sim/hbm.hpp"
#include "sim/pcie/event_queue.hpp"
#include "sim/shell/clock.hpp"
#include "sim/shell/parameters.hpp"

namespace wherry::sim::shell::load {

enum class Master : std::uint8_t { kMover, kQdma, kCount };

/// Use it on one thread only, the thread of the queue. Addresses and lengths are multiples of 32 bytes.
class CardSwitch final : pcie::EventHandler {
 public:
  using Data = std::function<void(std::uint32_t offset, std::span<const std::byte> data)>;
  using Done = std::function<void()>;

  CardSwitch(pcie::EventQueue& queue, kv::rtl::HbmContent& content, const Parameters& p);

  void read(Master master, std::uint64_t address, std::uint32_t bytes, Data data);
  /// `done`: called when the last burst's answer is taken.
  void write(Master master, std::uint64_t address, std::uint32_t bytes, Done done);
  void write_data(Master master, std::span<const std::byte> data);
  /// Called when the memory has taken 32 bytes of the master's writes.
  std::array<std::function<void()>, static_cast<std::size_t>(Master::kCount)> on_taken;

  [[nodiscard]] const std::string& violation() const noexcept { return port_.violation(); }
  [[nodiscard]] const kv::rtl::HbmCounts& counts() const noexcept { return port_.counts(); }

 private:
  static constexpr std::size_t kMasters = static_cast<std::size_t>(Master::kCount);
  struct Burst {
    std::uint64_t address;
    std::uint32_t beats;
    Time at;    ///< from when it may be offered to the memory
    bool last;  ///< of its transaction
  };
  struct Word {
    kv::rtl::HbmBeat beat;
    Time at;
  };
  struct Reading {
    std::uint32_t bytes, done;
    Data data;
  };
  struct Line {
    Time read_route, write_route;
    std::deque<Burst> asks, addresses;
    std::deque<Word> words;
    std::deque<Reading> readings;
    std::deque<Done> writings;
  };
  struct Owed {
    std::size_t master;
    bool last;
    std::uint32_t beats;
  };

  void on_event(std::uint64_t argument) override;
  void wake();
  [[nodiscard]] bool idle() const noexcept;
  [[nodiscard]] kv::rtl::AxiRequest offer(Time begin, const kv::rtl::AxiAnswer& answer);
  void offer_write(Time begin, const kv::rtl::AxiAnswer& answer, kv::rtl::AxiRequest& request);
  void take(const kv::rtl::AxiAnswer& answer);
  Line& line(Master master) { return lines_[static_cast<std::size_t>(master)]; }

  pcie::EventQueue& queue_;
  kv::rtl::HbmPort port_;
  std::array<Line, kMasters> lines_;
  std::size_t reader_ = 0, writer_ = 0;     ///< who has the channel, or had it last
  bool reading_ = false, writing_ = false;  ///< the burst is offered and not over
  std::uint32_t beats_ = 0;                 ///< taken of the write that is offered
  bool address_taken_ = false;
  std::deque<Owed> data_, answers_;  ///< whose data, and whose answers come next
  bool ticking_ = false;
};

}  // namespace wherry::sim::shell::load
