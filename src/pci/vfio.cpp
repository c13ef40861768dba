// SPDX-License-Identifier: Apache-2.0
#include "pci/vfio.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/vfio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/try.hpp"
#include "pci/config_space.hpp"

namespace wherry::pci {
namespace {

constexpr std::uint16_t kCommand = 0x04;  // include/uapi/linux/pci_regs.h, as its bits
constexpr std::uint16_t kMemoryEnable = 1U << 1, kBusMaster = 1U << 2;
constexpr std::uint64_t kPage = 4096;

std::string reason(int code) { return std::generic_category().message(-code); }

void* as_argument(unsigned long number) {
  return reinterpret_cast<void*>(number);  // NOLINT(performance-no-int-to-ptr): ioctl takes either
}

/// The remedy depends on what can make the open fail.
Status open_failed(const std::string& path, int code) {
  if (code == -ENOENT)
    return {StatusCode::kNotFound, fmt::format("{} is not there: load VFIO with `modprobe vfio-pci`", path)};
  if (code == -EACCES || code == -EPERM)
    return {StatusCode::kPermissionDenied,
            fmt::format("{}: {}: run as root, or give this user the file", path, reason(code))};
  if (code == -EBUSY)
    return {StatusCode::kFailedPrecondition, fmt::format("{} is held by another process, a virtual machine say", path)};
  return {StatusCode::kUnavailable, fmt::format("{}: {}", path, reason(code))};
}

}  // namespace

std::uint32_t VfioDevice::read32(unsigned bar, std::uint64_t offset) const noexcept {
  std::uint32_t value = ~std::uint32_t{0};
  if (bar >= 6 || offset + 4 > regions_[bar].bytes) return value;
  if (kernel_->read_at(fd_, &value, sizeof value, regions_[bar].offset + offset) != sizeof value)
    return ~std::uint32_t{0};
  return value;
}

void VfioDevice::write32(unsigned bar, std::uint64_t offset, std::uint32_t value) const noexcept {
  if (bar >= 6 || offset + 4 > regions_[bar].bytes) return;
  // A removed device ignores the write, as on the bus. The next read reports the removal.
  (void)kernel_->write_at(fd_, &value, sizeof value, regions_[bar].offset + offset);
}

Status VfioDevice::read(unsigned bar, std::uint64_t offset, std::span<std::byte> into) const {
  if (bar >= 6 || offset + into.size() > regions_[bar].bytes || offset % 4 != 0 || into.size() % 4 != 0)
    return {StatusCode::kInvalidArgument,
            fmt::format("BAR {} of {} has no bytes {:#x} + {}", bar, at_.text(), offset, into.size())};
  const auto done = kernel_->read_at(fd_, into.data(), into.size(), regions_[bar].offset + offset);
  if (done != static_cast<ssize_t>(into.size()))
    return {StatusCode::kUnavailable,
            fmt::format("{} does not answer: it was removed, or its link is down", at_.text())};
  return {};
}

Status VfioDevice::write(unsigned bar, std::uint64_t offset, std::span<const std::byte> from) const {
  if (bar >= 6 || offset + from.size() > regions_[bar].bytes || offset % 4 != 0 || from.size() % 4 != 0)
    return {StatusCode::kInvalidArgument,
            fmt::format("BAR {} of {} has no bytes {:#x} + {}", bar, at_.text(), offset, from.size())};
  const auto done = kernel_->write_at(fd_, from.data(), from.size(), regions_[bar].offset + offset);
  if (done != static_cast<ssize_t>(from.size()))
    return {StatusCode::kUnavailable,
            fmt::format("{} does not answer: it was removed, or its link is down", at_.text())};
  return {};
}

Result<std::uint16_t> VfioDevice::read_config16(std::uint16_t offset) const {
  std::uint16_t value = 0;
  const Region& config = regions_[VFIO_PCI_CONFIG_REGION_INDEX];
  if (kernel_->read_at(fd_, &value, sizeof value, config.offset + offset) != sizeof value)
    return Status(StatusCode::kUnavailable, fmt::format("the configuration space of {} cannot be read", at_.text()));
  return value;
}

Status VfioDevice::write_config16(std::uint16_t offset, std::uint16_t value) const {
  const Region& config = regions_[VFIO_PCI_CONFIG_REGION_INDEX];
  if (kernel_->write_at(fd_, &value, sizeof value, config.offset + offset) != sizeof value)
    return {StatusCode::kUnavailable, fmt::format("the configuration space of {} cannot be written", at_.text())};
  return {};
}

Status VfioDevice::set_bus_master(bool on) const {
  WHERRY_ASSIGN(const std::uint16_t command, read_config16(kCommand));
  const auto wanted = static_cast<std::uint16_t>(on ? command | kBusMaster : command & ~kBusMaster);
  WHERRY_TRY(write_config16(kCommand, wanted));
  WHERRY_ASSIGN(const std::uint16_t now, read_config16(kCommand));
  if (now != wanted)
    return {StatusCode::kUnavailable,
            fmt::format("{} does not take a command word: wrote {:#06x}, reads {:#06x}", at_.text(), wanted, now)};
  return {};
}

Status VfioDevice::forbid_relaxed_ordering() const {
  std::vector<std::byte> bytes(kConfigClassic);
  const Region& config = regions_[VFIO_PCI_CONFIG_REGION_INDEX];
  if (kernel_->read_at(fd_, bytes.data(), bytes.size(), config.offset) != static_cast<ssize_t>(bytes.size()))
    return {StatusCode::kUnavailable, fmt::format("the configuration space of {} cannot be read", at_.text())};
  const auto express = ConfigSpace(std::move(bytes)).express();
  if (!express || (express->device_control & kRelaxedOrdering) == 0) return {};
  return write_config16(static_cast<std::uint16_t>(express->offset + kExpressDeviceControl),
                        static_cast<std::uint16_t>(express->device_control & ~kRelaxedOrdering));
}

Status VfioDevice::reset() const {
  if (!can_reset_) return {StatusCode::kUnsupported, fmt::format("{} has no reset of its own", at_.text())};
  const int done = kernel_->ioctl(fd_, VFIO_DEVICE_RESET, nullptr);
  if (done < 0) return {StatusCode::kUnavailable, fmt::format("{} could not be reset: {}", at_.text(), reason(done))};
  return {};
}

Status VfioDevice::set_vectors(std::span<const int> eventfds) const {
  std::vector<std::byte> bytes(sizeof(vfio_irq_set) + eventfds.size_bytes());
  vfio_irq_set request{};
  request.argsz = static_cast<std::uint32_t>(bytes.size());
  request.flags = VFIO_IRQ_SET_ACTION_TRIGGER | (eventfds.empty() ? VFIO_IRQ_SET_DATA_NONE : VFIO_IRQ_SET_DATA_EVENTFD);
  request.index = VFIO_PCI_MSIX_IRQ_INDEX;
  request.count = static_cast<std::uint32_t>(eventfds.size());
  std::memcpy(bytes.data(), &request, sizeof request);
  if (!eventfds.empty()) std::memcpy(bytes.data() + sizeof request, eventfds.data(), eventfds.size_bytes());
  if (const int done = kernel_->ioctl(fd_, VFIO_DEVICE_SET_IRQS, bytes.data()); done < 0)
    return {done == -EINVAL ? StatusCode::kUnsupported : StatusCode::kUnavailable,
            fmt::format("{} vectors of MSI-X of {} cannot be set: {}", eventfds.size(), at_.text(), reason(done))};
  return {};
}

Result<Vfio> Vfio::open(Kernel& kernel, std::span<const BusAddress> devices, std::span<const int> groups) {
  Vfio vfio(kernel);
  WHERRY_TRY(vfio.open_container());
  for (std::size_t i = 0; i < devices.size(); ++i) WHERRY_TRY(vfio.join(groups[i], devices[i]));
  WHERRY_TRY(vfio.read_ranges());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto group = std::ranges::find(vfio.groups_, groups[i], &std::pair<int, int>::first);
    WHERRY_TRY(vfio.open_device(group->second, devices[i]));
  }
  return vfio;
}

Status Vfio::open_container() {
  static const std::string path = "/dev/vfio/vfio";
  container_ = kernel_->open(path, O_RDWR);
  if (container_ < 0) return open_failed(path, container_);
  undo_.push([kernel = kernel_, fd = container_] { kernel->close(fd); });
  if (const int version = kernel_->ioctl(container_, VFIO_GET_API_VERSION, nullptr); version != VFIO_API_VERSION)
    return {StatusCode::kUnsupported,
            fmt::format("VFIO of this kernel has version {}, want {}", version, VFIO_API_VERSION)};
  if (kernel_->ioctl(container_, VFIO_CHECK_EXTENSION, as_argument(VFIO_TYPE1v2_IOMMU)) != 1)
    return {StatusCode::kUnsupported, "VFIO has no type-1 IOMMU: load it with `modprobe vfio_iommu_type1`"};
  return {};
}

Status Vfio::join(int group, BusAddress device) {
  if (std::ranges::find(groups_, group, &std::pair<int, int>::first) != groups_.end()) return {};
  const std::string path = fmt::format("/dev/vfio/{}", group);
  const int fd = kernel_->open(path, O_RDWR);
  if (fd < 0) return open_failed(path, fd);
  undo_.push([kernel = kernel_, fd] { kernel->close(fd); });
  vfio_group_status status{};
  status.argsz = sizeof status;
  if (const int done = kernel_->ioctl(fd, VFIO_GROUP_GET_STATUS, &status); done < 0)
    return {StatusCode::kUnavailable, fmt::format("{}: {}", path, reason(done))};
  if ((status.flags & VFIO_GROUP_FLAGS_VIABLE) == 0)
    return {StatusCode::kFailedPrecondition,
            fmt::format("IOMMU group {} of {} also holds devices of other drivers: `wherry bypass probe` names them",
                        group, device.text())};
  if (const int done = kernel_->ioctl(fd, VFIO_GROUP_SET_CONTAINER, &container_); done < 0)
    return {done == -EBUSY ? StatusCode::kFailedPrecondition : StatusCode::kUnsupported,
            fmt::format("group {} of {} cannot join the container: {}", group, device.text(), reason(done))};
  undo_.push([kernel = kernel_, fd] { (void)kernel->ioctl(fd, VFIO_GROUP_UNSET_CONTAINER, nullptr); });
  groups_.emplace_back(group, fd);
  return set_type1();
}

Status Vfio::set_type1() {
  if (type1_) return {};
  // A container knows its IOMMU only if it contains a group.
  if (const int done = kernel_->ioctl(container_, VFIO_SET_IOMMU, as_argument(VFIO_TYPE1v2_IOMMU)); done < 0)
    return {StatusCode::kUnsupported, fmt::format("VFIO cannot use the IOMMU of this machine: {}", reason(done))};
  type1_ = true;
  return {};
}

Status Vfio::read_ranges() {
  vfio_iommu_type1_info head{};
  head.argsz = sizeof head;
  if (const int done = kernel_->ioctl(container_, VFIO_IOMMU_GET_INFO, &head); done < 0)
    return {StatusCode::kUnavailable, fmt::format("VFIO does not describe the IOMMU: {}", reason(done))};
  if ((head.flags & VFIO_IOMMU_INFO_CAPS) == 0 || head.argsz <= sizeof head || head.argsz > 1U << 20) return {};
  std::vector<std::byte> bytes(head.argsz);
  std::memcpy(bytes.data(), &head, sizeof head);
  if (const int done = kernel_->ioctl(container_, VFIO_IOMMU_GET_INFO, bytes.data()); done < 0)
    return {StatusCode::kUnavailable, fmt::format("VFIO does not describe the IOMMU: {}", reason(done))};
  std::memcpy(&head, bytes.data(), sizeof head);
  std::size_t at = head.cap_offset;
  for (int count = 0; count < 64 && at != 0; ++count) {
    vfio_info_cap_header capability{};
    if (at + sizeof capability > bytes.size()) break;
    std::memcpy(&capability, bytes.data() + at, sizeof capability);
    if (capability.id == VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE) {
      vfio_iommu_type1_info_cap_iova_range list{};
      if (at + sizeof list > bytes.size()) break;
      std::memcpy(&list, bytes.data() + at, sizeof list);
      for (std::size_t i = 0; i < list.nr_iovas; ++i) {
        vfio_iova_range range{};
        if (at + sizeof list + (i + 1) * sizeof range > bytes.size()) break;
        std::memcpy(&range, bytes.data() + at + sizeof list + i * sizeof range, sizeof range);
        ranges_.push_back({range.start, range.end});
      }
      break;
    }
    at = capability.next;
  }
  return {};
}

Status Vfio::open_device(int group_fd, BusAddress at) {
  std::string name = at.text();
  const int fd = kernel_->ioctl(group_fd, VFIO_GROUP_GET_DEVICE_FD, name.data());
  if (fd < 0)
    return {fd == -ENODEV ? StatusCode::kNotFound : StatusCode::kUnavailable,
            fmt::format("VFIO does not open {}: {}: it must be bound to vfio-pci", name, reason(fd))};
  undo_.push([kernel = kernel_, fd] { kernel->close(fd); });
  VfioDevice device;
  device.kernel_ = kernel_;
  device.at_ = at;
  device.fd_ = fd;
  vfio_device_info info{};
  info.argsz = sizeof info;
  if (const int done = kernel_->ioctl(fd, VFIO_DEVICE_GET_INFO, &info);
      done < 0 || info.num_regions <= VFIO_PCI_CONFIG_REGION_INDEX)
    return {StatusCode::kUnavailable, fmt::format("VFIO does not describe {}", name)};
  device.can_reset_ = (info.flags & VFIO_DEVICE_FLAGS_RESET) != 0;
  for (std::uint32_t index = 0; index <= VFIO_PCI_CONFIG_REGION_INDEX; ++index) {
    vfio_region_info region{};
    region.argsz = sizeof region;
    region.index = index;
    if (kernel_->ioctl(fd, VFIO_DEVICE_GET_REGION_INFO, &region) < 0) continue;
    device.regions_[index] = {
        .bytes = region.size, .offset = region.offset, .mappable = (region.flags & VFIO_REGION_INFO_FLAG_MMAP) != 0};
  }
  // Memory on: otherwise the BARs cannot be mapped. Bus mastering off: stop DMA of an earlier user.
  WHERRY_ASSIGN(const std::uint16_t command, device.read_config16(kCommand));
  WHERRY_TRY(device.write_config16(kCommand, static_cast<std::uint16_t>((command | kMemoryEnable) & ~kBusMaster)));
  undo_.push([device] { (void)device.set_bus_master(false); });
  devices_.push_back(device);
  return {};
}

Status Vfio::map(std::uint64_t iova, void* at, std::uint64_t bytes, const std::string& what) {
  const std::uint64_t last = iova + bytes - 1;
  const auto holds = [&](const IovaRange& range) { return iova >= range.first && last <= range.last; };
  if (!ranges_.empty() && std::ranges::none_of(ranges_, holds))
    return {StatusCode::kFailedPrecondition,
            fmt::format("{} would be at {:#x} to {:#x}, where the IOMMU has reserved addresses: switch on \"Above 4G "
                        "decoding\" in the firmware's set-up",
                        what, iova, last)};
  vfio_iommu_type1_dma_map request{};
  request.argsz = sizeof request;
  request.flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE;
  request.vaddr = reinterpret_cast<std::uintptr_t>(at);
  request.iova = iova;
  request.size = bytes;
  if (const int done = kernel_->ioctl(container_, VFIO_IOMMU_MAP_DMA, &request); done < 0) {
    if (done == -EEXIST)
      return {StatusCode::kFailedPrecondition, fmt::format("{} would lie on another mapping at {:#x}", what, iova)};
    if (done == -ENOMEM)
      return {StatusCode::kResourceExhausted,
              fmt::format("{} exceeds the memory that may be locked: raise `ulimit -l`", what)};
    return {StatusCode::kUnavailable, fmt::format("{} cannot be mapped at {:#x}: {}", what, iova, reason(done))};
  }
  undo_.push([kernel = kernel_, container = container_, iova, bytes] {
    vfio_iommu_type1_dma_unmap unmap{};
    unmap.argsz = sizeof unmap;
    unmap.iova = iova;
    unmap.size = bytes;
    (void)kernel->ioctl(container, VFIO_IOMMU_UNMAP_DMA, &unmap);
  });
  mapped_.push_back({iova, last});
  return {};
}

Result<std::span<std::byte>> Vfio::map_here(std::size_t index, unsigned bar) {
  const VfioDevice& device = devices_.at(index);
  const std::string what = fmt::format("BAR {} of {}", bar, device.at_.text());
  if (bar >= 6 || !device.regions_[bar].mappable || device.regions_[bar].bytes % kPage != 0)
    return Status(StatusCode::kUnsupported,
                  fmt::format("{} cannot be mapped: it is not memory, or smaller than a page", what));
  void* mapped = nullptr;
  const std::uint64_t bytes = device.regions_[bar].bytes;
  if (const int done = kernel_->map(device.fd_, bytes, device.regions_[bar].offset, mapped); done < 0)
    return Status(StatusCode::kUnavailable, fmt::format("{} cannot be mapped: {}", what, reason(done)));
  undo_.push([kernel = kernel_, mapped, bytes] { kernel->unmap(mapped, bytes); });
  return std::span(static_cast<std::byte*>(mapped), bytes);
}

Status Vfio::map_bar(std::size_t index, unsigned bar, std::uint64_t iova) {
  WHERRY_ASSIGN(const std::span<std::byte> mapped, map_here(index, bar));
  return map(iova, mapped.data(), mapped.size(), fmt::format("BAR {} of {}", bar, devices_.at(index).at_.text()));
}

Result<std::span<std::byte>> Vfio::map_memory(std::size_t bytes, std::uint64_t iova) {
  void* memory = nullptr;
  if (const int done = kernel_->map_memory(bytes, memory); done < 0)
    return Status(StatusCode::kResourceExhausted, fmt::format("no memory: {}", reason(done)));
  undo_.push([kernel = kernel_, memory, bytes] { kernel->unmap(memory, bytes); });
  WHERRY_TRY(map(iova, memory, bytes, "this process's memory"));
  return std::span(static_cast<std::byte*>(memory), bytes);
}

Result<std::uint64_t> Vfio::free_iova(std::size_t bytes, std::uint64_t from) const {
  const auto align = [](std::uint64_t at) { return (at + kPage - 1) & ~(kPage - 1); };
  std::vector<IovaRange> ranges = ranges_;
  if (ranges.empty()) ranges.push_back({kPage, 0xFDFF'FFFF});  // below x86's interrupts at 0xFEE00000
  for (const IovaRange& range : ranges) {
    std::uint64_t at = align(std::max(range.first, from));
    for (bool moved = true; moved;) {
      moved = false;
      for (const IovaRange& taken : mapped_)
        if (at <= taken.last && at + bytes - 1 >= taken.first) {
          at = align(taken.last + 1);
          moved = true;
        }
    }
    if (at >= range.first && at <= range.last && bytes - 1 <= range.last - at) return at;
  }
  return Status(StatusCode::kResourceExhausted, fmt::format("no {} bytes of IOVA are free", bytes));
}

}  // namespace wherry::pci
