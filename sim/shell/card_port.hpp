// SPDX-License-Identifier: Apache-2.0
// The path from an AXI master to a port of the card's memory (sim/hbm.hpp): AXI3 bursts, one beat of 32 bytes a
// cycle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "sim/hbm.hpp"
#include "sim/pcie/event_queue.hpp"
#include "sim/shell/trace.hpp"

namespace wherry::sim::shell {

/// Use it on one thread only, the thread of the queue. Addresses and lengths are multiples of 32 bytes.
class CardPort final : pcie::EventHandler {
 public:
  using Data = std::function<void(std::uint32_t offset, std::span<const std::byte> data)>;
  using Done = std::function<void()>;

  /// Routes, in cycles: the time that a master's reads and writes take beyond the memory's own.
  CardPort(pcie::EventQueue& queue, Trace& trace, kv::rtl::HbmContent& content, const kv::rtl::HbmTiming& timing,
           std::uint32_t read_route, std::uint32_t write_route);

  /// Offers a read now. `data`: called for each beat, when it is taken.
  void read(std::uint64_t address, std::uint32_t bytes, Data data);
  /// Offers a write as write_data() brings its beats. `done`: called when the last burst's answer is taken.
  void write(std::uint64_t address, std::uint32_t bytes, Done done);
  void write_data(std::span<const std::byte> data);

  /// The first violated rule of AXI3; empty: none.
  [[nodiscard]] const std::string& violation() const noexcept { return port_.violation(); }

 private:
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
    std::size_t span;  ///< of Trace::card_reads
    Data data;
  };

  void on_event(std::uint64_t argument) override;
  void wake();
  void take(const kv::rtl::AxiAnswer& answer);
  [[nodiscard]] kv::rtl::AxiRequest offer(Time begin, const kv::rtl::AxiAnswer& answer);
  [[nodiscard]] bool idle() const noexcept;

  pcie::EventQueue& queue_;
  Trace& trace_;
  kv::rtl::HbmPort port_;
  Time read_route_, write_route_;
  std::deque<Burst> asks_, addresses_;  ///< reads to be asked; writes whose data are not all taken
  std::deque<Word> words_;
  std::deque<Reading> readings_;
  std::deque<std::size_t> asked_;  ///< spans whose address is to be marked, one for each read
  std::deque<Done> writings_;
  std::deque<bool> answers_;  ///< of bursts that are unanswered: is it the last of its transaction?
  std::uint32_t beats_ = 0;   ///< taken of the first of addresses_
  bool address_taken_ = false;
  bool ticking_ = false;
};

}  // namespace wherry::sim::shell
