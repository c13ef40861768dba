// SPDX-License-Identifier: Apache-2.0
// One function accessed through VFIO, for a driver (device.hpp). Registers are accessed by calls on the descriptor
// (vfio.hpp); doorbells by stores into the mapped BAR, if it can be mapped.
#pragma once

#include <array>
#include <memory>

#include "pci/device.hpp"
#include "pci/vfio.hpp"

namespace wherry::pci {

class VfioFunction final : public Device {
 public:
  /// `group`: the function's IOMMU group. `doorbells`: the BAR for write_line(). Bus addresses of its memory begin at
  /// `iova_from`. Errors: as Vfio::open().
  static Result<std::unique_ptr<VfioFunction>> open(Kernel& kernel, BusAddress at, int group, unsigned doorbells,
                                                    std::uint64_t iova_from = std::uint64_t{4} << 30);

  [[nodiscard]] std::uint32_t read32(unsigned bar, std::uint64_t offset) override;
  void write32(unsigned bar, std::uint64_t offset, std::uint32_t value) override;
  void write_line(unsigned bar, std::uint64_t offset, std::span<const std::byte> data) override;
  Status set_bus_master(bool on) override;
  Status reset() override;
  Result<DmaMemory> allocate(std::size_t bytes) override;
  Status set_vectors(std::span<const int> eventfds) override;
  [[nodiscard]] std::chrono::nanoseconds now() const override;
  /// For less than 50 us it spins, because a sleep takes longer.
  void pause(std::chrono::nanoseconds most) override;
  [[nodiscard]] bool wait(int eventfd, std::chrono::nanoseconds most) override;

 private:
  VfioFunction(Vfio vfio, unsigned doorbells, std::uint64_t iova_from)
      : vfio_(std::move(vfio)), doorbells_(doorbells), iova_from_(iova_from) {}
  [[nodiscard]] VfioDevice& device() { return vfio_.device(0); }

  Vfio vfio_;
  unsigned doorbells_;
  std::uint64_t iova_from_;
  std::span<std::byte> mapped_;  ///< of the doorbells; empty: by calls
};

}  // namespace wherry::pci
