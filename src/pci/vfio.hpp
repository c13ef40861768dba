// SPDX-License-Identifier: Apache-2.0
// PCI functions (for example NIC and card, or a single one) in one VFIO type-1 container. Each function can access
// everything that was mapped for any of them. Sources: Documentation/driver-api/vfio.rst and include/uapi/linux/vfio.h
// of Linux.
//
// One thread. The destructor of a Vfio gives everything back in reverse order. If the process is killed, the kernel
// closes its descriptors, and that has the same effect on DMA mappings, bus mastering and the devices' state.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pci/bus_address.hpp"
#include "pci/kernel.hpp"
#include "pci/undo.hpp"
#include "wherry/status.hpp"

namespace wherry::pci {

/// Both ends are included.
struct IovaRange {
  std::uint64_t first = 0, last = 0;
};

/// A device of the container. Registers are accessed by read and write calls on its descriptor. If the device has been
/// removed, these calls fail or return all ones; an access to mapped memory would kill the process.
class VfioDevice {
 public:
  [[nodiscard]] BusAddress at() const noexcept { return at_; }
  /// Accesses a register of a BAR (0 to 5), aligned, 4 bytes. A device that does not answer reads as all ones.
  [[nodiscard]] std::uint32_t read32(unsigned bar, std::uint64_t offset) const noexcept;
  void write32(unsigned bar, std::uint64_t offset, std::uint32_t value) const noexcept;
  /// Copies bytes. Offset and size are multiples of 4. kUnavailable: the device does not answer.
  Status read(unsigned bar, std::uint64_t offset, std::span<std::byte> into) const;
  Status write(unsigned bar, std::uint64_t offset, std::span<const std::byte> from) const;
  [[nodiscard]] std::uint64_t bytes(unsigned bar) const noexcept { return bar < 6 ? regions_[bar].bytes : 0; }

  /// Accesses 2 bytes of configuration space. VFIO hides parts that could harm others.
  Result<std::uint16_t> read_config16(std::uint16_t offset) const;
  Status write_config16(std::uint16_t offset, std::uint16_t value) const;
  Status set_bus_master(bool on) const;
  /// Forbids the device to reorder writes (PCI Express Device Control, Enable Relaxed Ordering). Otherwise a done
  /// descriptor might become visible before its data. Has no effect if the device lacks this register.
  Status forbid_relaxed_ordering() const;
  /// kUnsupported: the device has no reset of its own.
  Status reset() const;
  /// Sets the MSI-X vectors from 0 on. Each increments the eventfd at its index. An empty list switches MSI-X off.
  /// kUnsupported: the device has fewer vectors.
  Status set_vectors(std::span<const int> eventfds) const;

 private:
  friend class Vfio;
  struct Region {
    std::uint64_t bytes = 0, offset = 0;
    bool mappable = false;
  };
  Kernel* kernel_ = nullptr;
  BusAddress at_{};
  int fd_ = -1;
  bool can_reset_ = false;
  Region regions_[8]{};
};

class Vfio {
 public:
  /// Opens the container, joins the groups of all devices, opens the devices and enables their memory. Bus mastering
  /// stays off. `groups`: the IOMMU group number of each device; numbers may be equal. Errors: kNotFound: the kernel
  /// has no VFIO, or a device is not bound to vfio-pci; kPermissionDenied; kFailedPrecondition: another process holds
  /// the group; kUnsupported: no IOMMU that type 1 can use.
  static Result<Vfio> open(Kernel& kernel, std::span<const BusAddress> devices, std::span<const int> groups);

  [[nodiscard]] VfioDevice& device(std::size_t index) { return devices_.at(index); }
  /// The IOVA ranges that may be mapped. Empty: the kernel does not report them (before 5.4).
  [[nodiscard]] const std::vector<IovaRange>& iova_ranges() const noexcept { return ranges_; }

  /// Lets all devices reach a BAR at `iova`, its bus address. kFailedPrecondition: the address is in use or outside the
  /// ranges that may be mapped; kUnsupported: the BAR cannot be mapped.
  Status map_bar(std::size_t index, unsigned bar, std::uint64_t iova);
  /// Maps a BAR into this process, for its own accesses, as long as the Vfio lives. kUnsupported: the BAR cannot be
  /// mapped.
  Result<std::span<std::byte>> map_here(std::size_t index, unsigned bar);
  /// Allocates zeroed whole pages of this process's memory, for all devices. They live as long as the Vfio.
  Result<std::span<std::byte>> map_memory(std::size_t bytes, std::uint64_t iova);
  /// The first address, from `from` on, at which `bytes` can be mapped. kResourceExhausted: no such address.
  Result<std::uint64_t> free_iova(std::size_t bytes, std::uint64_t from) const;

 private:
  explicit Vfio(Kernel& kernel) : kernel_(&kernel) {}
  Status open_container();
  Status join(int group, BusAddress device);
  Status set_type1();
  Status open_device(int group_fd, BusAddress at);
  Status read_ranges();
  Status map(std::uint64_t iova, void* at, std::uint64_t bytes, const std::string& what);

  Kernel* kernel_;
  int container_ = -1;
  bool type1_ = false;
  std::vector<std::pair<int, int>> groups_;  ///< number and descriptor
  std::vector<VfioDevice> devices_;
  std::vector<IovaRange> ranges_;
  std::vector<IovaRange> mapped_;
  Undo undo_;
};

}  // namespace wherry::pci
