// SPDX-License-Identifier: Apache-2.0
// How the host of a simulated kv card reads the card's memory. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "sim/core.hpp"

namespace wherry::kv::rtl {

class CardMemory {
 public:
  /// Address and size are multiples of 64. The core runs meanwhile. An error ends the process with a message.
  virtual void read(std::uint64_t address, std::span<std::byte> to) = 0;

 protected:
  CardMemory() = default;
  CardMemory(const CardMemory&) = default;
  CardMemory& operator=(const CardMemory&) = default;
  ~CardMemory() = default;
};

/// Reads at the pins of kv_host_path, without a DMA engine.
class PinMemory final : public CardMemory {
 public:
  explicit PinMemory(Core& core) : core_(core) {}
  void read(std::uint64_t address, std::span<std::byte> to) override { core_.read_memory(address, to); }

 private:
  Core& core_;
};

}  // namespace wherry::kv::rtl
