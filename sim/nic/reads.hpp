// SPDX-License-Identifier: Apache-2.0
// A NIC's reads in flight: their owners, and the handling of failed ones.
//
// A read that timed out is issued again (kReadRetries times), if the NIC repeats reads. A read that ended because bus
// mastering is off waits for resume(). Then it is issued again, or has failed. After a reset, every read in flight ends
// with kAborted. Only then may its buffer be used again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/nic/options.hpp"
#include "sim/pcie/function.hpp"

namespace wherry::sim::nic {

class ReadOwner {
 public:
  /// kAborted: a reset cancelled the read. The buffer is free again, and the read has no further effect.
  virtual void on_read(std::uint64_t argument, pcie::CompletionStatus status) = 0;

 protected:
  ~ReadOwner() = default;
};

class Reads {
 public:
  Reads(NicCounters& counters, bool repeats) : counters_(counters), repeats_(repeats) {}
  void attach(pcie::Port& port) noexcept { port_ = &port; }

  /// `into` holds `bytes`, and must stay untouched until on_read(). False: no room; on_room() follows.
  [[nodiscard]] bool try_read(std::uint64_t address, std::uint32_t bytes, std::byte* into, ReadOwner& owner,
                              std::uint64_t argument);
  /// Call it from Function::on_read_done().
  void done(pcie::Token token, pcie::CompletionStatus status);
  /// Call it when bus mastering is on again.
  void resume();
  /// Cancels all reads in flight.
  void reset();
  [[nodiscard]] std::size_t pending() const noexcept { return slots_.size() - free_.size(); }

 private:
  struct Slot {
    std::uint64_t address = 0;
    std::byte* into = nullptr;
    ReadOwner* owner = nullptr;
    std::uint64_t argument = 0;
    std::uint32_t bytes = 0;
    std::uint32_t retries = 0;
    bool stale = false;
    bool parked = false;
  };
  void finish(std::uint32_t index, pcie::CompletionStatus status);

  NicCounters& counters_;
  bool repeats_;
  pcie::Port* port_ = nullptr;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> parked_;
};

}  // namespace wherry::sim::nic
