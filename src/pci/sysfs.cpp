// SPDX-License-Identifier: Apache-2.0
#include "pci/sysfs.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/fd.hpp"
#include "base/text_file.hpp"

namespace wherry::pci {
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

}  // namespace wherry::pci
