// SPDX-License-Identifier: Apache-2.0
// AMD's AXI DataMover (PG022) between the network's streams and the card's memory, for one command at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/shell/card_port.hpp"
#include "sim/shell/stream.hpp"

namespace wherry::sim::shell {

class DataMover final : public Sink {
 public:
  DataMover(pcie::EventQueue& queue, const Parameters& parameters, CardPort& card, Sink* out)
      : queue_(queue), parameters_(parameters), card_(card), out_(out) {}

  /// The command for the next packet (S2MM).
  void write(std::uint64_t address, std::uint32_t bytes) noexcept {
    address_ = address;
    bytes_ = bytes;
  }
  void beat(const Beat& beat) override;
  /// MM2S.
  void read(std::uint64_t address, std::uint32_t bytes);

 private:
  pcie::EventQueue& queue_;
  const Parameters& parameters_;
  CardPort& card_;
  Sink* out_;
  std::uint64_t address_ = 0;
  std::uint32_t bytes_ = 0;
  std::vector<std::byte> packet_;
};

}  // namespace wherry::sim::shell
