// SPDX-License-Identifier: Apache-2.0
// For tests: a kernel with VFIO, over a SysfsTree. The model keeps the rules of Documentation/driver-api/vfio.rst,
// include/uapi/linux/vfio.h and Documentation/ABI/testing/sysfs-bus-pci: the order of calls, the state of a group, the
// memory that may be mapped. A call that breaks a rule fails as in Linux. Written from those texts, not from vfio.cpp.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "pci/kernel.hpp"
#include "pci/tree_testing.hpp"

namespace wherry::pci::testing_support {

/// A model of the memory behind a BAR.
struct BarModel {
  std::uint64_t bytes = 0;
  std::function<std::uint32_t(std::uint64_t)> read;
  std::function<void(std::uint64_t, std::uint32_t)> write;
  bool maps = true;  ///< whether this process can map it; otherwise its accesses are calls
};

struct DeviceModel {
  std::string name;  ///< "0000:03:00.0"
  int group = 0;
  std::string kernel_driver;  ///< that takes it when it is probed; empty: none
  std::array<BarModel, 6> bars{};
  bool can_reset = true;
  std::string config = std::string(256, '\0');
  std::function<void()> on_reset = [] {};
  std::uint32_t most_vectors = 0;  ///< of MSI-X
  std::vector<int> vectors{};      ///< eventfds that were set
  // The device's state.
  bool memory_enabled = false, bus_master = false;
};

class FakeKernel final : public Kernel {
 public:
  explicit FakeKernel(const SysfsTree& sysfs) : sysfs_(sysfs) {}
  /// Adds a device. Its files must be in the tree.
  DeviceModel& add(DeviceModel device);
  [[nodiscard]] DeviceModel& device(const std::string& name) { return devices_.at(name); }
  /// The drivers that are loaded; vfio-pci may be missing.
  std::set<std::string> modules{"vfio-pci"};
  bool has_type1 = true;
  bool is_root = true;
  /// Called for each mapping of the process's memory, with its IOVA and the memory.
  std::function<void(std::uint64_t, std::span<std::byte>)> on_map = [](std::uint64_t, std::span<std::byte>) {};
  /// Whether BARs of devices can be mapped.
  bool maps_bars = true;
  /// Ranges that may be mapped. Empty: the kernel does not report them.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges{{0, 0xFEDF'FFFF}, {0xFEF0'0000, 0xFFFF'FFFF'FFFF}};
  /// The call with this number, from 0, fails with -EIO. Calls that undo something never fail.
  int fail_at = -1;
  int calls = 0;
  /// IOMMU groups that another process holds.
  std::set<int> held;

  struct Mapping {
    std::uint64_t bytes = 0;
    std::byte* memory = nullptr;
    std::string device;  ///< empty: memory of the process
    unsigned bar = 0;
  };
  /// All mappings, by IOVA.
  [[nodiscard]] const std::map<std::uint64_t, Mapping>& mappings() const noexcept { return mappings_; }
  [[nodiscard]] std::size_t open_files() const noexcept { return files_.size(); }
  [[nodiscard]] std::size_t mapped_regions() const noexcept { return regions_.size(); }
  /// The memory of a BAR that this process has mapped; empty if it has not.
  [[nodiscard]] std::span<std::byte> region_of(const std::string& device, unsigned bar) const {
    for (const auto& [start, region] : regions_)
      if (region.device == device && region.bar == bar) return {region.memory.get(), region.bytes};
    return {};
  }
  /// All actions of this process as text, for comparison: "bind 0000:03:00.0 vfio-pci", "master 0000:03:00.0
  /// off".
  std::vector<std::string> log;

  [[nodiscard]] int open(const std::string& path, int flags) noexcept override;
  int close(int fd) noexcept override;
  [[nodiscard]] int ioctl(int fd, unsigned long request, void* argument) noexcept override;
  [[nodiscard]] ssize_t read_at(int fd, void* into, std::size_t bytes, std::uint64_t offset) noexcept override;
  [[nodiscard]] ssize_t write_at(int fd, const void* from, std::size_t bytes, std::uint64_t offset) noexcept override;
  [[nodiscard]] int map(int fd, std::size_t bytes, std::uint64_t offset, void*& at) noexcept override;
  [[nodiscard]] int map_memory(std::size_t bytes, void*& at) noexcept override;
  int unmap(void* at, std::size_t bytes) noexcept override;
  [[nodiscard]] std::string link_name(const std::string& path) noexcept override;

 private:
  enum class Kind { container, group, device, sysfs };
  struct File {
    Kind kind = Kind::container;
    int group = 0;
    std::string name;  ///< of a device; the path of a sysfs file
  };
  struct Region {
    std::unique_ptr<std::byte, void (*)(void*)> memory{nullptr, std::free};
    std::size_t bytes = 0;
    std::string device;
    unsigned bar = 0;
  };
  bool injected();
  int container_ioctl(unsigned long request, void* argument);
  int group_ioctl(int fd, unsigned long request, void* argument);
  int device_ioctl(DeviceModel& device, unsigned long request, void* argument);
  int map_dma(void* argument);
  int unmap_dma(void* argument);
  int info(void* argument) const;
  int write_sysfs(const std::string& path, const std::string& text);
  [[nodiscard]] std::string driver_of(const std::string& name);
  [[nodiscard]] bool viable(int group);
  int new_file(File file);
  void* new_region(std::size_t bytes, const std::string& device, unsigned bar);

  const SysfsTree& sysfs_;
  std::map<std::string, DeviceModel> devices_;
  std::map<std::string, std::string> overrides_;
  std::map<int, File> files_;
  std::set<int> attached_;  ///< groups in the container
  bool iommu_set_ = false;
  std::map<std::uint64_t, Mapping> mappings_;
  std::map<void*, Region> regions_;
  int next_fd_ = 100;
};

}  // namespace wherry::pci::testing_support
