// SPDX-License-Identifier: Apache-2.0
// The character devices of AMD's DMA drivers (github.com/Xilinx/dma_ip_drivers). pwrite and pread move bytes
// between this process and the card's memory; the file offset is the card address. A call pins the pages,
// posts descriptors, sleeps until the engine is done (or polls, by a parameter of the driver), and returns.
#pragma once

#include <sys/ioctl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "probe/device/settings.hpp"
#include "probe/path.hpp"

namespace wherry::probe {

/// struct xdma_performance_ioctl of the driver (XDMA/linux-kernel/xdma/cdev_sgdma.h): the engine's counters.
struct XdmaPerformance {
  std::uint32_t version;  ///< kXdmaPerformanceVersion
  std::uint32_t transfer_size;
  std::uint32_t stopped;
  std::uint32_t iterations;
  std::uint64_t clock_cycles;  ///< of the card's clock, while it ran
  std::uint64_t data_cycles;   ///< of those, with data
  std::uint64_t pending;
};
inline constexpr std::uint32_t kXdmaPerformanceVersion = 1;  // IOCTL_XDMA_PERF_V1
// These numbers contain the size of a pointer, as the header has _IOW('q', 1, struct xdma_performance_ioctl *).
inline constexpr unsigned long kXdmaPerformanceStart = _IOW('q', 1, XdmaPerformance*);
inline constexpr unsigned long kXdmaPerformanceStop = _IOW('q', 2, XdmaPerformance*);
/// The driver's test moves up to 4 MiB to or from the card's address 0 (libxdma.c, xdma_performance_submit).
inline constexpr std::uint64_t kXdmaPerformanceBytes = std::uint64_t{4} << 20;

struct CharacterDevice {
  std::vector<std::string> moves;  ///< a file for each channel that the path may use
  std::string writes, reads;       ///< with which the card's memory is filled and looked at
  Target range;                    ///< of the card's memory, which is overwritten
  bool to_card = true;
  std::size_t one_call = 0;                             ///< bytes that a call moves at most; 0: any number
  std::size_t unit = 1;                                 ///< offsets and sizes are multiples of it
  bool counters = false;                                ///< asks the engine's, too
  std::string function;                                 ///< folder of the PCI function; empty: not known
  std::string notice;                                   ///< how the driver learns that a transfer has ended
  int (*control)(int, unsigned long, void*) = nullptr;  ///< ioctl; null: Linux'
};

std::unique_ptr<Path> character_path(PathInfo info, CharacterDevice device);

/// `xdma.h2c{k}`, `xdma.c2h{k}` for k = 0 to 3, `xdma.user.write`, `xdma.user.read`, `qdma.mm.h2c`, `qdma.mm.c2h`.
std::vector<std::unique_ptr<Path>> character_paths(const DeviceSettings& settings);

}  // namespace wherry::probe
