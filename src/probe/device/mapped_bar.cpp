// SPDX-License-Identifier: Apache-2.0
#include "probe/device/mapped_bar.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/fd.hpp"
#include "pci/sysfs.hpp"

namespace wherry::probe {
namespace {
constexpr std::uint64_t kBarPage = 4096;
}

Result<BarFile> find_bar(const std::string& sysfs, const Target& target, bool combined) {
  const std::size_t slash = target.name.rfind('/');
  const std::string number = slash == std::string::npos ? "" : target.name.substr(slash + 1);
  if (number.size() != 1 || number[0] < '0' || number[0] > '5')
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("'{}' is not FUNCTION/BAR, for example 0000:04:00.0/2", target.name));
  const std::string address = target.name.substr(0, slash);
  const auto device = pci::pci_device(sysfs, address);
  if (!device) return Status(StatusCode::kNotFound, fmt::format("there is no PCI function {}", address));
  BarFile file{.folder = device->folder,
               .path = fmt::format("{}/resource{}{}", device->folder, number, combined ? "_wc" : ""),
               .range = target};
  file.range.name = address;
  struct stat found{};
  if (stat(file.path.c_str(), &found) != 0) {
    const char* const why = combined ? "it is not prefetchable, or the kernel has no write-combined mapping"
                                     : "the function has no such register, or the kernel does not let it be mapped";
    return Status(StatusCode::kNotFound, fmt::format("{} does not exist: {}", file.path, why));
  }
  const auto size = static_cast<std::uint64_t>(found.st_size);
  if (target.base % 64 != 0 || target.base > size || target.bytes > size - target.base)
    return Status(
        StatusCode::kInvalidArgument,
        fmt::format("BAR {} has {} bytes: the range {:#x}+{} does not lie in it, or does not begin at a multiple of 64",
                    target.name, size, target.base, target.bytes));
  if (access(file.path.c_str(), R_OK | W_OK) != 0)
    return Status(StatusCode::kPermissionDenied,
                  fmt::format("{}: {}; root may map it", file.path, std::strerror(errno)));
  if (const auto command = pci::command_of(device->folder); command && (*command & pci::kCommandMemory) == 0)
    return Status(
        StatusCode::kFailedPrecondition,
        fmt::format("{} does not answer: its memory is switched off; load its driver, or write 1 to {}/enable", address,
                    device->folder));
  return file;
}

Result<MappedBar> MappedBar::map(const BarFile& file) {
  const Fd fd(::open(file.path.c_str(), O_RDWR | O_SYNC | O_CLOEXEC));
  if (!fd) return Status(StatusCode::kPermissionDenied, fmt::format("{}: {}", file.path, std::strerror(errno)));
  const std::uint64_t first = file.range.base / kBarPage * kBarPage;
  const std::uint64_t bytes = file.range.base - first + file.range.bytes;
  void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), static_cast<off_t>(first));
  if (mapped == MAP_FAILED)
    return Status(StatusCode::kUnavailable,
                  fmt::format("{} cannot be mapped: {}; a driver may hold it, or the kernel is locked down", file.path,
                              std::strerror(errno)));
  MappedBar bar;
  bar.mapped_ = mapped;
  bar.bytes_ = bytes;
  bar.at_ = static_cast<std::byte*>(mapped) + (file.range.base - first);
  return bar;
}

MappedBar::~MappedBar() {
  if (mapped_ != nullptr) munmap(mapped_, bytes_);
}

}  // namespace wherry::probe
