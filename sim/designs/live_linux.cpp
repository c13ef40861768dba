// SPDX-License-Identifier: Apache-2.0
#include "sim/designs/live_linux.hpp"

#include "sim/designs/neighbours.hpp"

namespace wherry::sim::designs {

LiveLinux::LiveLinux(memory::Content& content, const LinuxImage& image) : core_(kCoreBase) {
  // Offsets in the DRAM, as in sim/softcore/linux/sbi.S.
  constexpr std::uint64_t kKernel = 0x40'0000, kDeviceTree = 0x1f0'0000;
  content.load(kCoreBase, image.sbi);
  content.load(kCoreBase + kKernel, image.kernel);
  content.load(kCoreBase + kDeviceTree, image.device_tree);
}

MakeNeighbour live_linux(const LinuxImage& image, LiveLinux*& made) {
  return [&image, &made](memory::Content& content) {
    auto live = std::make_unique<LiveLinux>(content, image);
    made = live.get();
    return live;
  };
}

}  // namespace wherry::sim::designs
