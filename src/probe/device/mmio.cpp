// SPDX-License-Identifier: Apache-2.0
#include "probe/device/mmio.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/fd.hpp"
#include "base/try.hpp"
#include "pci/sysfs.hpp"
#include "probe/device/absent.hpp"
#include "probe/device/host_memory.hpp"
#include "probe/device/link_bound.hpp"
#include "probe/device/mapped_bar.hpp"
#include "probe/device/places.hpp"

namespace wherry::probe {
namespace {

constexpr std::size_t kMmioGuard = 64;  // BARs are small: a page of guard would not fit into many
constexpr std::size_t kMmioRoom = std::size_t{4} << 20;
constexpr std::size_t kMmioSpread = std::size_t{64} << 10;

/// Copies with accesses of one width, which the compiler must neither merge nor omit.
template <typename Word>
void load(std::byte* to, const volatile std::byte* from, std::size_t bytes) noexcept {
  for (std::size_t i = 0; i < bytes; i += sizeof(Word)) {
    const Word value = *reinterpret_cast<const volatile Word*>(from + i);
    std::memcpy(to + i, &value, sizeof value);
  }
}
template <typename Word>
void store(volatile std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  for (std::size_t i = 0; i < bytes; i += sizeof(Word)) {
    Word value;
    std::memcpy(&value, from + i, sizeof value);
    *reinterpret_cast<volatile Word*>(to + i) = value;
  }
}
void read_device(std::byte* to, const volatile std::byte* from, std::size_t bytes) noexcept {
  if (bytes == 4)
    load<std::uint32_t>(to, from, bytes);
  else
    load<std::uint64_t>(to, from, bytes);
}
void write_device(volatile std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  if (bytes == 4)
    store<std::uint32_t>(to, from, bytes);
  else
    store<std::uint64_t>(to, from, bytes);
}
/// Empties write-combining buffers, and keeps later accesses after the stores. std::atomic_thread_fence
/// is not enough: it orders memory shared by threads, and ThreadSanitizer does not support it.
void drain_stores() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_mfence();
#elif defined(__aarch64__)
  asm volatile("dsb sy" ::: "memory");
#else
#error "which instruction orders stores to a device before loads from it?"
#endif
}

class MmioPath final : public Path {
 public:
  MmioPath(PathInfo info, BarFile file, bool writes)
      : info_(std::move(info)), file_(std::move(file)), writes_(writes) {}
  ~MmioPath() override { close(); }

  [[nodiscard]] const PathInfo& info() const override { return info_; }

  [[nodiscard]] Status accepts(const Shape& shape) const override {
    const auto unsupported = [&](const char* why) {
      return Status(StatusCode::kUnsupported, fmt::format("{}: {}", info_.id, why));
    };
    if (shape.flow != (writes_ ? Flow::kH2C : Flow::kC2H))
      return unsupported(writes_ ? "it writes (flow h2c)" : "it reads (flow c2h)");
    if (shape.bytes != 4 && shape.bytes != 8 && (shape.bytes == 0 || shape.bytes % 64 != 0))
      return unsupported("sizes are 4, 8 and multiples of 64 bytes");
    if (shape.align % (shape.bytes == 4 ? 4 : 8) != 0) return unsupported("accesses are aligned to their width");
    if (shape.depth > kMostDepth) return unsupported("depth is at most 1024");
    if (shape.channels != 1) return unsupported("one thread has one channel");
    if (!writes_ && shape.depth != 1) return unsupported("a thread waits for each read: depth is 1");
    if (shape.notice != Notice::kPolled) return unsupported("loads and stores are polled; nothing interrupts");
    return Places::plan(shape, rules(shape)).status();
  }

  [[nodiscard]] Result<Bound> open(const Shape& shape) override {
    WHERRY_TRY(accepts(shape));
    WHERRY_ASSIGN(places_, Places::plan(shape, rules(shape)));
    WHERRY_ASSIGN(bar_, MappedBar::map(file_));
    WHERRY_ASSIGN(host_, HostMemory::make(places_.region_bytes()));
    WHERRY_ASSIGN(image_, HostMemory::make(places_.region_bytes()));
    depth_ = shape.depth;
    posted_ = 0;
    return link_bound(file_.folder);
  }

  void prepare(std::uint64_t seed) override {
    posted_ = 0;
    if (writes_) {
      places_.fill_source(host_.span(), seed);
      places_.fill_destination(image_.span(), seed);
    } else {
      places_.fill_destination(host_.span(), seed);
      places_.fill_source(image_.span(), seed);
    }
    store<std::uint32_t>(bar_.at(), image_.data(), places_.region_bytes());
    drain_stores();
    (void)*reinterpret_cast<const volatile std::uint32_t*>(bar_.at());
  }

  [[nodiscard]] bool try_post(unsigned slot) override {
    if (posted_ == depth_) return false;
    const std::size_t offset = places_.take(slot);
    if (writes_)
      write_device(bar_.at() + offset, host_.data() + offset, places_.bytes());
    else
      read_device(host_.data() + offset, bar_.at() + offset, places_.bytes());
    slots_[posted_++] = slot;
    return true;
  }

  [[nodiscard]] Result<unsigned> poll(std::span<unsigned> done) override {
    if (posted_ == 0) return 0U;
    if (writes_) {
      drain_stores();
      const std::size_t last = places_.offset(slots_[posted_ - 1]) + places_.bytes() - 4;
      (void)*reinterpret_cast<const volatile std::uint32_t*>(bar_.at() + last);
    }
    for (unsigned i = 0; i < posted_; ++i) {
      places_.ended(slots_[i]);
      done[i] = slots_[i];
    }
    return std::exchange(posted_, 0U);
  }

  [[nodiscard]] Status verify(std::uint64_t seed) override {
    load<std::uint32_t>(image_.data(), bar_.at(), places_.region_bytes());
    const auto bar = image_.span(), host = host_.span();
    WHERRY_TRY(places_.check(writes_ ? bar : host, seed));
    return places_.check_source(writes_ ? host : bar, seed);
  }

  [[nodiscard]] std::span<std::byte> landing() override { return writes_ ? std::span<std::byte>() : host_.span(); }
  [[nodiscard]] bool spoil(std::uint64_t at) override {
    if (!writes_) return Path::spoil(at);
    auto* const word = reinterpret_cast<volatile std::uint32_t*>(bar_.at() + at % places_.region_bytes() / 4 * 4);
    const std::uint32_t value = *word ^ std::uint32_t{0x40};
    *word = value;
    return true;
  }

  void close() noexcept override {
    bar_ = {};
    host_ = {};
    image_ = {};
  }

 private:
  static constexpr unsigned kMostDepth = 1024;
  [[nodiscard]] PlaceRules rules(const Shape& shape) const {
    return {.room = std::min<std::size_t>(file_.range.bytes, kMmioRoom),
            .guard = kMmioGuard,
            .unit = shape.bytes == 4 ? std::size_t{4} : std::size_t{8},
            .spread = kMmioSpread};
  }

  PathInfo info_;
  BarFile file_;
  bool writes_;
  Places places_;
  MappedBar bar_;
  HostMemory host_, image_;
  unsigned depth_ = 0, posted_ = 0;
  std::array<unsigned, kMostDepth> slots_{};
};

constexpr const char* kHowBar =
    "name memory of a card that may be overwritten: WHERRY_PROBE_BAR=FUNCTION/BAR:BASE+BYTES, for example "
    "0000:04:00.0/2:0+64KiB";

struct MmioKind {
  const char* id;
  bool writes, combined, shared;
};
constexpr MmioKind kMmioKinds[] = {{"mmio.bar.read", false, false, false},
                                   {"mmio.bar.write", true, false, false},
                                   {"mmio.bar.wc", true, true, false},
                                   {"mmio.ivshmem.read", false, false, true},
                                   {"mmio.ivshmem.write", true, false, true}};

}  // namespace

std::vector<std::unique_ptr<Path>> mmio_paths(const DeviceSettings& settings) {
  std::vector<std::unique_ptr<Path>> paths;
  for (const MmioKind& kind : kMmioKinds) {
    const std::optional<Target>& target = kind.shared ? settings.ivshmem : settings.bar;
    PathInfo info{.id = kind.id, .group = "pci", .absent = {}};
    const std::string processor = "processor",
                      memory = kind.shared ? "memory shared with QEMU's host (ivshmem)" : "memory of a card";
    info.from = kind.writes ? processor : memory;
    info.to = kind.writes ? memory : processor;
    if (!target) {
      std::string why = kHowBar;
      if (kind.shared) {
        const auto device = pci::pci_device(settings.sysfs, kIvshmemVendor, kIvshmemDevice);
        why = device ? fmt::format("{} is here; name what of it may be overwritten: WHERRY_PROBE_IVSHMEM={}/2:0+1MiB",
                                   device->address, device->address)
                     : "no ivshmem device: it exists in QEMU guests (-device ivshmem-plain) only";
      }
      why = settings.refusal(kind.shared ? "WHERRY_PROBE_IVSHMEM" : "WHERRY_PROBE_BAR", std::move(why));
      paths.push_back(absent(std::move(info), std::move(why)));
      continue;
    }
    auto file = find_bar(settings.sysfs, *target, kind.combined);
    if (!file) {
      paths.push_back(absent(std::move(info), file.status().message()));
      continue;
    }
    (kind.writes ? info.to : info.from) = fmt::format("BAR {}", target->name);
    paths.push_back(std::make_unique<MmioPath>(std::move(info), *std::move(file), kind.writes));
  }
  return paths;
}

}  // namespace wherry::probe
