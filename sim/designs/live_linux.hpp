// SPDX-License-Identifier: Apache-2.0
// Linux on VexRiscv beside the engine, as it boots. It is slow; linux_trace() is a recording of it.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/designs/card.hpp"
#include "sim/softcore/vex_core.hpp"

namespace wherry::sim::designs {

/// The content of the board's DRAM at the start (sim/softcore/linux/sbi.S).
struct LinuxImage {
  std::vector<std::uint8_t> sbi, device_tree, kernel;
};

class LiveLinux final : public Neighbour {
 public:
  LiveLinux(memory::Content& content, const LinuxImage& image);
  [[nodiscard]] const memory::AxiRequest& request() const override { return core_.request(); }
  void step(const memory::AxiAnswer& in) override { core_.step(in); }
  [[nodiscard]] softcore::VexCore& core() noexcept { return core_; }

 private:
  softcore::VexCore core_;
};

/// `made`: gets a pointer to the LiveLinux. The image and `made` must outlive the call of that function.
[[nodiscard]] MakeNeighbour live_linux(const LinuxImage& image, LiveLinux*& made);

}  // namespace wherry::sim::designs
