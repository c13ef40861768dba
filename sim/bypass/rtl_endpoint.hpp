// SPDX-License-Identifier: Apache-2.0
// The Verilated core as a PCI function: both of its BARs, for an external host, and its streams. This class does not
// set up the core.
#pragma once

#include <cstdint>
#include <memory>

#include "sim/bypass/card.hpp"
#include "sim/bypass/rtl_core.hpp"

namespace wherry::sim {

class RtlEndpoint final : public DmaTarget, public RegisterTarget, public StreamPort {
 public:
  /// `function` decides about frames in place, and must outlive this object.
  explicit RtlEndpoint(InPlaceFunction& function, const RtlOptions& options = {});

  /// The clock runs until the access is done.
  void write(std::uint32_t offset, std::span<const std::byte> data) override;
  void read(std::uint32_t offset, std::span<std::byte> data) override;
  std::optional<TailWrite> next_tail() override;
  /// Runs one cycle after an access. Otherwise runs until the core is idle, with a minimum so that its timers advance.
  void tick() override;

  std::uint32_t read_register(std::uint32_t offset) override;
  void write_register(std::uint32_t offset, std::uint32_t value) override;
  void reset() override;

  std::optional<Frame> take() override;
  /// The core drops and counts frames of a queue pair that does not run.
  bool try_put(const Frame& frame) override;

 private:
  InPlaceFunction& function_;
  RtlOptions options_;
  std::unique_ptr<RtlCore> core_;
  bool accessed_ = false;
};

}  // namespace wherry::sim
