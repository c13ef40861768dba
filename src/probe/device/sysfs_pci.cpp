// SPDX-License-Identifier: Apache-2.0
#include "probe/device/sysfs_pci.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/fd.hpp"
#include "base/text_file.hpp"

namespace wherry::probe {
namespace {

constexpr std::size_t kCommandRegister = 0x04;  // pci_regs.h

std::optional<PciDevice> read_device(const std::filesystem::path& folder) {
  const auto vendor = read_number(folder / "vendor"), device = read_number(folder / "device");
  if (!vendor || !device) return std::nullopt;
  return PciDevice{.address = folder.filename(),
                   .folder = folder,
                   .vendor = static_cast<std::uint16_t>(*vendor),
                   .device = static_cast<std::uint16_t>(*device)};
}

}  // namespace

std::optional<std::uint32_t> read_number(const std::string& path) {
  const auto text = read_text_file(path, "an attribute of a PCI function", 4096);
  if (!text) return std::nullopt;
  char* end = nullptr;
  const unsigned long value = std::strtoul(text->c_str(), &end, 0);
  if (end == text->c_str() || value > 0xFFFF'FFFFUL) return std::nullopt;
  return static_cast<std::uint32_t>(value);
}

std::vector<PciDevice> pci_devices(const std::string& sysfs) {
  std::vector<PciDevice> found;
  std::error_code error;
  for (std::filesystem::directory_iterator at(sysfs + "/bus/pci/devices", error), end; !error && at != end;
       at.increment(error))
    if (auto device = read_device(at->path())) found.push_back(*std::move(device));
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.address < b.address; });
  return found;
}

std::optional<PciDevice> pci_device(const std::string& sysfs, const std::string& address) {
  if (address.empty() || address.find('/') != std::string::npos) return std::nullopt;
  return read_device(std::filesystem::path(sysfs) / "bus/pci/devices" / address);
}

std::optional<PciDevice> pci_device(const std::string& sysfs, std::uint16_t vendor, std::uint16_t device) {
  for (PciDevice& one : pci_devices(sysfs))
    if (one.vendor == vendor && one.device == device) return std::move(one);
  return std::nullopt;
}

std::optional<std::uint16_t> command_of(const std::string& folder) {
  const Fd config(::open((folder + "/config").c_str(), O_RDONLY | O_CLOEXEC));
  std::uint16_t command = 0;
  if (!config || pread(config.get(), &command, sizeof command, kCommandRegister) != sizeof command) return std::nullopt;
  return command;
}

Bound link_bound(const std::string& folder) {
  const auto speed = read_text_file(folder + "/current_link_speed", "a PCI function's link speed", 4096);
  const auto lanes = read_number(folder + "/current_link_width");
  if (!speed || !lanes || *lanes == 0) return {};
  const double transfers = std::strtod(speed->c_str(), nullptr);  // "8.0 GT/s PCIe", of one lane
  if (transfers <= 0) return {};
  // PCI Express Base Specification: 8b/10b to 5 GT/s; 128b/130b to 32 GT/s; flits of 242 in 256 bytes at 64 GT/s.
  const double code = transfers < 8 ? 0.8 : transfers < 64 ? 128.0 / 130 : 242.0 / 256;
  return {.bytes_per_s = transfers * 1e9 * code * *lanes / 8,
          .transfers_per_s = 0,
          .why = fmt::format("PCIe link of {} GT/s x{}; packet heads are not subtracted", transfers, *lanes)};
}

}  // namespace wherry::probe
