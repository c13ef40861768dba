// SPDX-License-Identifier: Apache-2.0
// Access to NIC and card through VFIO, for their drivers.
#pragma once

#include <thread>

#include "bypass/card.hpp"
#include "bypass/nic/registers.hpp"
#include "pci/vfio.hpp"

namespace wherry::bypass {

/// The device must outlive objects of both classes below.
class VfioRegisters final : public Registers {
 public:
  explicit VfioRegisters(const pci::VfioDevice& device, unsigned bar = 0) : device_(device), bar_(bar) {}
  [[nodiscard]] std::uint32_t read(std::uint32_t offset) override { return device_.read32(bar_, offset); }
  void write(std::uint32_t offset, std::uint32_t value) override { device_.write32(bar_, offset, value); }
  void pause(std::chrono::microseconds time) override { std::this_thread::sleep_for(time); }

 private:
  const pci::VfioDevice& device_;
  unsigned bar_;
};

class VfioCard final : public CardAccess {
 public:
  explicit VfioCard(const pci::VfioDevice& device) : device_(device) {}
  [[nodiscard]] std::uint32_t read(std::uint32_t offset) override { return device_.read32(kRegisterBar, offset); }
  void write(std::uint32_t offset, std::uint32_t value) override { device_.write32(kRegisterBar, offset, value); }
  Status read_window(std::uint32_t offset, std::span<std::byte> into) override {
    return device_.read(kWindowBar, offset, into);
  }
  Status write_window(std::uint32_t offset, std::span<const std::byte> from) override {
    return device_.write(kWindowBar, offset, from);
  }
  void pause(std::chrono::microseconds time) override { std::this_thread::sleep_for(time); }

 private:
  const pci::VfioDevice& device_;
};

}  // namespace wherry::bypass
