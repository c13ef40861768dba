// SPDX-License-Identifier: Apache-2.0
#include "pci/kernel_testing.hpp"

#include <linux/vfio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace wherry::pci::testing_support {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr unsigned kRegionShift = 40;
constexpr std::size_t kCommand = 4;

/// A VFIO request begins with its size, which must cover the request's fields.
template <typename T>
bool fits(const void* argument) {
  std::uint32_t size = 0;
  std::memcpy(&size, argument, sizeof size);
  return size >= sizeof(T);
}

}  // namespace

DeviceModel& FakeKernel::add(DeviceModel device) {
  const std::string name = device.name;
  return devices_[name] = std::move(device);
}

bool FakeKernel::injected() { return calls++ == fail_at; }

std::string FakeKernel::driver_of(const std::string& name) {
  return link_name(sysfs_.text() + "/bus/pci/devices/" + name + "/driver");
}

bool FakeKernel::viable(int group) {
  return std::ranges::all_of(devices_, [&](const auto& one) {
    if (one.second.group != group) return true;
    const std::string driver = driver_of(one.first);
    return driver.empty() || driver == "vfio-pci";
  });
}

int FakeKernel::new_file(File file) {
  files_[next_fd_] = std::move(file);
  return next_fd_++;
}

int FakeKernel::open(const std::string& path, int /*flags*/) noexcept {
  if (injected()) return -EIO;
  if (path == "/dev/vfio/vfio") {
    if (!modules.contains("vfio-pci")) return -ENOENT;
    return new_file({.kind = Kind::container});
  }
  if (path.starts_with("/dev/vfio/")) {
    const int group = std::stoi(path.substr(10));
    const bool any = std::ranges::any_of(
        devices_, [&](const auto& one) { return one.second.group == group && driver_of(one.first) == "vfio-pci"; });
    if (!any) return -ENOENT;
    if (!is_root) return -EACCES;
    if (held.contains(group)) return -EBUSY;
    for (const auto& [fd, file] : files_)
      if (file.kind == Kind::group && file.group == group) return -EBUSY;
    return new_file({.kind = Kind::group, .group = group});
  }
  if (!path.starts_with(sysfs_.text())) return -ENOENT;
  if (!std::filesystem::exists(path)) return -ENOENT;
  if (!is_root) return -EACCES;
  return new_file({.kind = Kind::sysfs, .name = path});
}

int FakeKernel::close(int fd) noexcept {
  const auto place = files_.find(fd);
  if (place == files_.end()) return -EBADF;
  const File file = place->second;
  files_.erase(place);
  if (file.kind == Kind::device) {  // vfio_pci_core_disable(): bus mastering off, then a reset
    DeviceModel& closed = devices_.at(file.name);
    closed.bus_master = false;
    log.push_back("close " + file.name);
  }
  if (file.kind == Kind::group) attached_.erase(file.group);
  const bool used = std::ranges::any_of(
      files_, [](const auto& one) { return one.second.kind == Kind::container || one.second.kind == Kind::group; });
  if (!used) {  // the last reference to the container
    mappings_.clear();
    iommu_set_ = false;
    attached_.clear();
  }
  return 0;
}

int FakeKernel::ioctl(int fd, unsigned long request, void* argument) noexcept {
  // Undoing happens after a failure, so it must not fail.
  const bool undo = request == VFIO_IOMMU_UNMAP_DMA || request == VFIO_GROUP_UNSET_CONTAINER;
  if (!undo && injected()) return -EIO;
  const auto place = files_.find(fd);
  if (place == files_.end()) return -EBADF;
  switch (place->second.kind) {
    case Kind::container:
      return container_ioctl(request, argument);
    case Kind::group:
      return group_ioctl(fd, request, argument);
    case Kind::device:
      return device_ioctl(devices_.at(place->second.name), request, argument);
    case Kind::sysfs:
      break;
  }
  return -ENOTTY;
}

int FakeKernel::container_ioctl(unsigned long request, void* argument) {
  switch (request) {
    case VFIO_GET_API_VERSION:
      return VFIO_API_VERSION;
    case VFIO_CHECK_EXTENSION: {
      const auto which = reinterpret_cast<std::uintptr_t>(argument);
      return has_type1 && (which == VFIO_TYPE1_IOMMU || which == VFIO_TYPE1v2_IOMMU) ? 1 : 0;
    }
    case VFIO_SET_IOMMU:
      // "the container must have a group, and no IOMMU yet"
      if (attached_.empty() || iommu_set_) return -EINVAL;
      if (reinterpret_cast<std::uintptr_t>(argument) != VFIO_TYPE1v2_IOMMU || !has_type1) return -ENODEV;
      iommu_set_ = true;
      return 0;
    case VFIO_IOMMU_GET_INFO:
      return iommu_set_ ? info(argument) : -EINVAL;
    case VFIO_IOMMU_MAP_DMA:
      return iommu_set_ ? map_dma(argument) : -EINVAL;
    case VFIO_IOMMU_UNMAP_DMA:
      return iommu_set_ ? unmap_dma(argument) : -EINVAL;
    default:
      return -ENOTTY;
  }
}

int FakeKernel::info(void* argument) const {
  constexpr std::size_t kHead = offsetof(vfio_iommu_type1_info, iova_pgsizes);
  vfio_iommu_type1_info head{};
  std::uint32_t room = 0;
  std::memcpy(&room, argument, sizeof room);
  if (room < kHead) return -EINVAL;
  head.flags = VFIO_IOMMU_INFO_PGSIZES;
  head.iova_pgsizes = kPage;
  head.argsz = sizeof head;
  if (!ranges.empty()) {
    const std::size_t bytes = sizeof(vfio_iommu_type1_info_cap_iova_range) + ranges.size() * sizeof(vfio_iova_range);
    head.flags |= VFIO_IOMMU_INFO_CAPS;
    head.argsz = static_cast<std::uint32_t>(sizeof head + bytes);
    if (room >= head.argsz) {
      head.cap_offset = sizeof head;
      auto* out = static_cast<std::byte*>(argument) + sizeof head;
      vfio_iommu_type1_info_cap_iova_range list{};
      list.header.id = VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE;
      list.header.version = 1;
      list.nr_iovas = static_cast<std::uint32_t>(ranges.size());
      std::memcpy(out, &list, sizeof list);
      for (std::size_t i = 0; i < ranges.size(); ++i) {
        const vfio_iova_range range{ranges[i].first, ranges[i].second};
        std::memcpy(out + sizeof list + i * sizeof range, &range, sizeof range);
      }
    }
  }
  std::memcpy(argument, &head, std::min<std::size_t>(room, sizeof head));
  return 0;
}

int FakeKernel::map_dma(void* argument) {
  if (!fits<vfio_iommu_type1_dma_map>(argument)) return -EINVAL;
  vfio_iommu_type1_dma_map wanted{};
  std::memcpy(&wanted, argument, sizeof wanted);
  if (wanted.size == 0 || (wanted.iova | wanted.size | wanted.vaddr) % kPage != 0 || wanted.flags == 0) return -EINVAL;
  if (wanted.iova + wanted.size - 1 < wanted.iova) return -EINVAL;
  const std::uint64_t last = wanted.iova + wanted.size - 1;
  for (const auto& [iova, mapping] : mappings_)
    if (wanted.iova <= iova + mapping.bytes - 1 && last >= iova) return -EEXIST;
  const auto within = [&](const auto& range) { return wanted.iova >= range.first && last <= range.second; };
  if (!ranges.empty() && std::ranges::none_of(ranges, within)) return -EINVAL;
  for (auto& [start, region] : regions_) {
    const auto first = reinterpret_cast<std::uintptr_t>(start);
    if (wanted.vaddr < first || wanted.vaddr + wanted.size > first + region.bytes) continue;
    if (!region.device.empty() && !devices_.at(region.device).memory_enabled)
      return -EFAULT;  // the fault handler refuses
    mappings_[wanted.iova] = {
        .bytes = wanted.size, .memory = region.memory.get(), .device = region.device, .bar = region.bar};
    if (region.device.empty())
      on_map(wanted.iova, {region.memory.get() + (wanted.vaddr - first), static_cast<std::size_t>(wanted.size)});
    return 0;
  }
  return -EFAULT;
}

int FakeKernel::unmap_dma(void* argument) {
  if (!fits<vfio_iommu_type1_dma_unmap>(argument)) return -EINVAL;
  vfio_iommu_type1_dma_unmap wanted{};
  std::memcpy(&wanted, argument, sizeof wanted);
  const auto place = mappings_.find(wanted.iova);
  if (place == mappings_.end() || place->second.bytes != wanted.size) return -EINVAL;  // v2: whole mappings only
  mappings_.erase(place);
  log.emplace_back("unmap");
  return 0;
}

int FakeKernel::group_ioctl(int fd, unsigned long request, void* argument) {
  const int group = files_.at(fd).group;
  const bool has_devices_open = std::ranges::any_of(files_, [&](const auto& one) {
    return one.second.kind == Kind::device && devices_.at(one.second.name).group == group;
  });
  switch (request) {
    case VFIO_GROUP_GET_STATUS: {
      if (!fits<vfio_group_status>(argument)) return -EINVAL;
      vfio_group_status status{};
      status.argsz = sizeof status;
      if (viable(group)) status.flags |= VFIO_GROUP_FLAGS_VIABLE;
      if (attached_.contains(group)) status.flags |= VFIO_GROUP_FLAGS_CONTAINER_SET;
      std::memcpy(argument, &status, sizeof status);
      return 0;
    }
    case VFIO_GROUP_SET_CONTAINER: {
      int container = -1;
      std::memcpy(&container, argument, sizeof container);
      const auto place = files_.find(container);
      if (place == files_.end() || place->second.kind != Kind::container || attached_.contains(group)) return -EINVAL;
      if (!viable(group)) return -EPERM;
      attached_.insert(group);
      return 0;
    }
    case VFIO_GROUP_UNSET_CONTAINER:
      if (!attached_.contains(group)) return -EINVAL;
      if (has_devices_open) return -EBUSY;
      attached_.erase(group);
      if (attached_.empty()) {
        iommu_set_ = false;
        mappings_.clear();
      }
      return 0;
    case VFIO_GROUP_GET_DEVICE_FD: {
      if (!attached_.contains(group) || !iommu_set_) return -EINVAL;
      const std::string name = static_cast<const char*>(argument);
      const auto place = devices_.find(name);
      if (place == devices_.end() || place->second.group != group || driver_of(name) != "vfio-pci") return -ENODEV;
      return new_file({.kind = Kind::device, .group = group, .name = name});
    }
    default:
      return -ENOTTY;
  }
}

int FakeKernel::device_ioctl(DeviceModel& device, unsigned long request, void* argument) {
  switch (request) {
    case VFIO_DEVICE_GET_INFO: {
      if (!fits<vfio_device_info>(argument) && *static_cast<std::uint32_t*>(argument) < 16) return -EINVAL;
      auto* info = static_cast<vfio_device_info*>(argument);
      info->flags = VFIO_DEVICE_FLAGS_PCI | (device.can_reset ? VFIO_DEVICE_FLAGS_RESET : 0U);
      info->num_regions = VFIO_PCI_NUM_REGIONS;
      info->num_irqs = VFIO_PCI_NUM_IRQS;
      return 0;
    }
    case VFIO_DEVICE_GET_REGION_INFO: {
      if (!fits<vfio_region_info>(argument)) return -EINVAL;
      auto* info = static_cast<vfio_region_info*>(argument);
      if (info->index >= VFIO_PCI_NUM_REGIONS) return -EINVAL;
      info->offset = std::uint64_t{info->index} << kRegionShift;
      info->size = 0;
      info->flags = 0;
      if (info->index < 6) info->size = device.bars[info->index].bytes;
      if (info->index == VFIO_PCI_CONFIG_REGION_INDEX) info->size = device.config.size();
      if (info->size != 0) info->flags = VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE;
      if (maps_bars && info->index < 6 && device.bars[info->index].maps && info->size >= kPage)
        info->flags |= VFIO_REGION_INFO_FLAG_MMAP;
      return 0;
    }
    case VFIO_DEVICE_SET_IRQS: {
      // drivers/vfio/vfio_main.c, vfio_set_irqs_validate_and_prepare, and pci/vfio_pci_intrs.c
      if (!fits<vfio_irq_set>(argument)) return -EINVAL;
      vfio_irq_set set{};
      std::memcpy(&set, argument, sizeof set);
      if (set.index != VFIO_PCI_MSIX_IRQ_INDEX || set.start + set.count > device.most_vectors) return -EINVAL;
      if ((set.flags & VFIO_IRQ_SET_ACTION_TYPE_MASK) != VFIO_IRQ_SET_ACTION_TRIGGER) return -EINVAL;
      const bool fds = (set.flags & VFIO_IRQ_SET_DATA_TYPE_MASK) == VFIO_IRQ_SET_DATA_EVENTFD;
      if (!fds && (set.flags & VFIO_IRQ_SET_DATA_TYPE_MASK) != VFIO_IRQ_SET_DATA_NONE) return -EINVAL;
      if (fds && (set.count == 0 || set.argsz < sizeof set + set.count * sizeof(int))) return -EINVAL;
      device.vectors.resize(fds ? set.count : 0);
      if (fds)
        std::memcpy(device.vectors.data(), static_cast<std::byte*>(argument) + sizeof set, set.count * sizeof(int));
      return 0;
    }
    case VFIO_DEVICE_RESET:
      if (!device.can_reset) return -EINVAL;
      device.on_reset();
      log.push_back("reset " + device.name);
      return 0;
    default:
      return -ENOTTY;
  }
}

ssize_t FakeKernel::read_at(int fd, void* into, std::size_t bytes, std::uint64_t offset) noexcept {
  const auto place = files_.find(fd);
  if (place == files_.end() || place->second.kind != Kind::device) return -EBADF;
  const DeviceModel& device = devices_.at(place->second.name);
  const auto index = static_cast<unsigned>(offset >> kRegionShift);
  const std::uint64_t at = offset & ((std::uint64_t{1} << kRegionShift) - 1);
  if (index == VFIO_PCI_CONFIG_REGION_INDEX) {
    if (injected()) return -EIO;
    if (at + bytes > device.config.size()) return -EINVAL;
    std::memcpy(into, device.config.data() + at, bytes);
    return static_cast<ssize_t>(bytes);
  }
  if (index >= 6 || at + bytes > device.bars[index].bytes || bytes % 4 != 0) return -EINVAL;
  if (!device.memory_enabled) return -EIO;
  for (std::size_t i = 0; i < bytes; i += 4) {
    const std::uint32_t word = device.bars[index].read ? device.bars[index].read(at + i) : 0;
    std::memcpy(static_cast<std::byte*>(into) + i, &word, 4);
  }
  return static_cast<ssize_t>(bytes);
}

ssize_t FakeKernel::write_at(int fd, const void* from, std::size_t bytes, std::uint64_t offset) noexcept {
  const auto place = files_.find(fd);
  if (place == files_.end()) return -EBADF;
  if (place->second.kind == Kind::sysfs) {
    const int done = write_sysfs(place->second.name, std::string(static_cast<const char*>(from), bytes));
    return done < 0 ? done : static_cast<ssize_t>(bytes);
  }
  if (place->second.kind != Kind::device) return -EINVAL;
  DeviceModel& device = devices_.at(place->second.name);
  const auto index = static_cast<unsigned>(offset >> kRegionShift);
  const std::uint64_t at = offset & ((std::uint64_t{1} << kRegionShift) - 1);
  if (index == VFIO_PCI_CONFIG_REGION_INDEX) {
    if (at + bytes > device.config.size()) return -EINVAL;
    std::memcpy(device.config.data() + at, from, bytes);
    const auto command = static_cast<unsigned char>(device.config[kCommand]);
    device.memory_enabled = (command & 2) != 0;
    if (device.bus_master != ((command & 4) != 0))
      log.push_back("master " + device.name + ((command & 4) != 0 ? " on" : " off"));
    device.bus_master = (command & 4) != 0;
    return static_cast<ssize_t>(bytes);
  }
  if (index >= 6 || at + bytes > device.bars[index].bytes || bytes % 4 != 0) return -EINVAL;
  if (!device.memory_enabled) return -EIO;
  for (std::size_t i = 0; i < bytes; i += 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, static_cast<const std::byte*>(from) + i, 4);
    if (device.bars[index].write) device.bars[index].write(at + i, word);
  }
  return static_cast<ssize_t>(bytes);
}

void* FakeKernel::new_region(std::size_t bytes, const std::string& device, unsigned bar) {
  // Zeroed pages: the untouched part of a 16 MiB window uses no memory.
  auto* const memory = static_cast<std::byte*>(std::aligned_alloc(kPage, bytes));
  regions_[memory] = {.memory = {memory, std::free}, .bytes = bytes, .device = device, .bar = bar};
  if (device.empty()) std::memset(memory, 0, bytes);
  void* const at = memory;
  return at;
}

int FakeKernel::map(int fd, std::size_t bytes, std::uint64_t offset, void*& at) noexcept {
  if (injected()) return -EIO;
  const auto place = files_.find(fd);
  if (place == files_.end() || place->second.kind != Kind::device) return -EBADF;
  const auto index = static_cast<unsigned>(offset >> kRegionShift);
  if (index >= 6 || bytes != devices_.at(place->second.name).bars[index].bytes || bytes % kPage != 0) return -EINVAL;
  at = new_region(bytes, place->second.name, index);
  return 0;
}

int FakeKernel::map_memory(std::size_t bytes, void*& at) noexcept {
  if (injected()) return -ENOMEM;
  at = new_region(bytes, {}, 0);
  return 0;
}

int FakeKernel::unmap(void* at, std::size_t bytes) noexcept {
  const auto place = regions_.find(at);
  if (place == regions_.end() || place->second.bytes != bytes) return -EINVAL;
  // If a page that is mapped for DMA is unmapped here, a device may reach other memory. Our code must never do
  // this.
  for (const auto& [iova, mapping] : mappings_)
    if (mapping.memory == at) log.emplace_back("ERROR: memory goes while a device can reach it");
  regions_.erase(place);
  return 0;
}

std::string FakeKernel::link_name(const std::string& path) noexcept {
  std::error_code error;
  const auto target = std::filesystem::read_symlink(path, error);
  return error ? std::string() : target.filename().string();
}

int FakeKernel::write_sysfs(const std::string& path, const std::string& text) {
  std::string word = text;
  while (!word.empty() && word.back() == '\n') word.pop_back();
  const std::filesystem::path file(path);
  const std::string what = file.filename().string();
  if (what == "driver_override") {
    const std::string name = file.parent_path().filename().string();
    overrides_[name] = word;
    return 0;
  }
  const auto place = devices_.find(word);
  if (place == devices_.end()) return -ENODEV;
  if (what == "unbind") {
    if (driver_of(word).empty()) return -ENODEV;
    for (const auto& [fd, open_file] : files_)
      if (open_file.kind == Kind::device && open_file.name == word) return -EBUSY;  // Linux waits for its user for ever
    log.push_back("unbind " + word + " " + driver_of(word));
    sysfs_.unbind(word);
    return 0;
  }
  if (what != "drivers_probe") return -EINVAL;
  if (!driver_of(word).empty()) return 0;
  const std::string wanted = overrides_[word].empty() ? place->second.kernel_driver : overrides_[word];
  if (wanted.empty() || (wanted == "vfio-pci" && !modules.contains(wanted))) return 0;
  sysfs_.bind(word, wanted);
  log.push_back("bind " + word + " " + wanted);
  return 0;
}

}  // namespace wherry::pci::testing_support
