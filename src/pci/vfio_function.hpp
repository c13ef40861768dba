// SPDX-License-Identifier: Apache-2.0
// One function accessed through VFIO, for a driver (device.hpp). Registers are accessed by calls on the descriptor
// (vfio.hpp); doorbells by stores into the mapped BAR, if it can be mapped. The function is opened alone, or is one of
// a container that others use as well.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "pci/device.hpp"
#include "pci/vfio.hpp"

namespace wherry::pci {

class VfioFunction final : public Device {
 public:
  /// Where the bytes of a driver's BAR begin.
  struct Place {
    unsigned bar = 0;
    std::uint64_t offset = 0;
  };
  /// The place of each of the driver's BARs.
  using Places = std::array<Place, 6>;
  static constexpr Places kSame{{{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}}};

  /// `group`: the function's IOMMU group. `doorbells`: the BAR for write_line(). Bus addresses of its memory begin at
  /// `iova_from`. Errors: as Vfio::open().
  static Result<std::unique_ptr<VfioFunction>> open(Kernel& kernel, BusAddress at, int group, unsigned doorbells,
                                                    std::uint64_t iova_from = std::uint64_t{4} << 30);
  /// A device of `vfio`, which must outlive it. The function has other users, so reset() returns kUnsupported.
  /// `doorbells`: a BAR of the driver. Errors: as Vfio::map_here(), except kUnsupported.
  static Result<std::unique_ptr<VfioFunction>> share(Vfio& vfio, std::size_t index, unsigned doorbells,
                                                     const Places& places,
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
  VfioFunction(std::optional<Vfio> own, Vfio* shared, std::size_t index, unsigned doorbells, const Places& places,
               std::uint64_t iova_from)
      : own_(std::move(own)),
        vfio_(shared != nullptr ? *shared : *own_),
        index_(index),
        doorbells_(doorbells),
        places_(places),
        iova_from_(iova_from) {}
  [[nodiscard]] VfioDevice& device() { return vfio_.device(index_); }
  Status map_doorbells();

  std::optional<Vfio> own_;
  Vfio& vfio_;  ///< own_, or another owner's
  std::size_t index_;
  unsigned doorbells_;
  Places places_;
  std::uint64_t iova_from_;
  std::span<std::byte> mapped_;  ///< of the doorbells; empty: by calls
};

}  // namespace wherry::pci
