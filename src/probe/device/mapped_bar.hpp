// SPDX-License-Identifier: Apache-2.0
// Maps a range of a base address register through sysfs' files
// resourceN and resourceN_wc (Documentation/PCI/sysfs-pci.rst).
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "probe/device/settings.hpp"
#include "wherry/status.hpp"

namespace wherry::probe {

/// QEMU's docs/specs/ivshmem-spec.txt: "Vendor ID: 1af4, Device ID: 1110"; BAR 2 is the shared memory.
inline constexpr std::uint16_t kIvshmemVendor = 0x1AF4, kIvshmemDevice = 0x1110;

struct BarFile {
  std::string folder;  ///< of the function
  std::string path;    ///< of the file to map
  Target range;        ///< within the register; name: the function's address
};

/// `target.name` is FUNCTION/BAR. `combined`: the write-combined
/// file is required. An error names the missing part and the remedy.
Result<BarFile> find_bar(const std::string& sysfs, const Target& target, bool combined);

/// Move-only.
class MappedBar {
 public:
  MappedBar() noexcept = default;
  static Result<MappedBar> map(const BarFile& file);
  MappedBar(MappedBar&& other) noexcept { *this = std::move(other); }
  MappedBar& operator=(MappedBar&& other) noexcept {
    std::swap(mapped_, other.mapped_);
    std::swap(bytes_, other.bytes_);
    std::swap(at_, other.at_);
    return *this;
  }
  MappedBar(const MappedBar&) = delete;
  MappedBar& operator=(const MappedBar&) = delete;
  ~MappedBar();
  /// The range's first byte.
  [[nodiscard]] volatile std::byte* at() const noexcept { return at_; }

 private:
  void* mapped_ = nullptr;
  std::size_t bytes_ = 0;
  volatile std::byte* at_ = nullptr;
};

}  // namespace wherry::probe
