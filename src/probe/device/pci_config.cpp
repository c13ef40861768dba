// SPDX-License-Identifier: Apache-2.0
#include "probe/device/pci_config.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/fd.hpp"
#include "pci/sysfs.hpp"
#include "probe/device/absent.hpp"
#include "probe/device/places.hpp"
#include "probe/pattern.hpp"

namespace wherry::probe {
namespace {

constexpr std::size_t kHeader = 64;         // every user may read it (drivers/pci/pci-sysfs.c)
constexpr std::size_t kStatusRegister = 6;  // errors set bits of it at any time (pci_regs.h, PCI_STATUS)
constexpr std::size_t kConfigGuard = 64;
constexpr std::size_t kConfigPlaces = kHeader / 4;

class PciConfigPath final : public Path {
 public:
  PciConfigPath(PathInfo info, pci::PciDevice device) : info_(std::move(info)), device_(std::move(device)) {}
  ~PciConfigPath() override { close(); }

  [[nodiscard]] const PathInfo& info() const override { return info_; }

  [[nodiscard]] Status accepts(const Shape& shape) const override {
    if (shape.flow != Flow::kC2H) return unsupported("it only reads (flow c2h)");
    if (shape.depth != 1 || shape.channels != 1) return unsupported("a processor has one read of it under way");
    if (shape.bytes != 4 && shape.bytes != 8 && shape.bytes != kHeader)
      return unsupported("sizes are 4, 8 and 64 bytes");
    if (shape.align % 4 != 0 || shape.align + shape.bytes > kHeader)
      return unsupported("whole dwords of the 64-byte header");
    if (shape.cache != CacheState::kWarm) return unsupported("registers are in no cache");
    if (shape.notice == Notice::kInterrupt) return unsupported("there is no interrupt: the read waits");
    return {};
  }

  [[nodiscard]] Result<Bound> open(const Shape& shape) override {
    if (Status good = accepts(shape); !good.ok()) return good;
    file_ = Fd(::open((device_.folder + "/config").c_str(), O_RDONLY | O_CLOEXEC));
    if (!file_)
      return Status(StatusCode::kPermissionDenied, fmt::format("{}/config: {}", device_.folder, std::strerror(errno)));
    shape_ = shape;
    places_ = 0;
    for (std::size_t at = shape.align; at + shape.bytes <= kHeader; at += shape.bytes) offsets_[places_++] = at;
    if (shape.pattern == Pattern::kStrided)  // every second one first
      std::stable_partition(offsets_.begin(), offsets_.begin() + places_,
                            [&](std::size_t at) { return (at - shape.align) / shape.bytes % 2 == 0; });
    if (shape.pattern == Pattern::kRandom) std::reverse(offsets_.begin(), offsets_.begin() + places_);
    Bound bound;
    bound.why = "no bound is known: the read goes through the kernel, and in a guest through its hypervisor";
    return bound;
  }

  void prepare(std::uint64_t seed) override {
    fill_poison(got_, seed, 0);
    written_.fill(false);
    next_ = 0;
    busy_ = done_ = false;
    known_ = read_all(reference_);
  }

  [[nodiscard]] bool try_post(unsigned slot) override {
    if (slot != 0 || busy_ || failed_ != 0) return false;
    place_ = next_;
    next_ = (next_ + 1) % places_;
    const std::size_t at = offsets_[place_];
    const ssize_t read = pread(file_.get(), got_.data() + kConfigGuard + at, shape_.bytes, static_cast<off_t>(at));
    if (read != static_cast<ssize_t>(shape_.bytes)) failed_ = read < 0 ? errno : EIO;
    busy_ = done_ = true;
    return true;
  }

  [[nodiscard]] Result<unsigned> poll(std::span<unsigned> done) override {
    if (failed_ != 0)
      return Status(StatusCode::kUnavailable, fmt::format("{}/config: {}", device_.folder, std::strerror(failed_)));
    if (!done_ || done.empty()) return 0U;
    written_[place_] = true;
    busy_ = done_ = false;
    done[0] = 0;
    return 1U;
  }

  [[nodiscard]] Status verify(std::uint64_t seed) override {
    if (!known_) return {StatusCode::kUnavailable, fmt::format("{}/config: the header cannot be read", device_.folder)};
    for (const Identity& one : kIdentity)
      if (const auto want = pci::read_number(device_.folder + "/" + one.file); want && *want != number(one))
        return {StatusCode::kInternal, fmt::format("wrong data: the header says {} {:#x}; the kernel has noted {:#x}",
                                                   one.file, number(one), *want)};
    std::array<bool, kHeader> covered{};
    for (std::size_t place = 0; place < places_; ++place)
      if (written_[place]) std::fill_n(covered.begin() + offsets_[place], shape_.bytes, true);
    std::array<std::byte, kConfigGuard + kHeader + kConfigGuard> want;
    fill_poison(want, seed, 0);
    for (std::size_t i = 0; i < kHeader; ++i) {
      if (!covered[i]) continue;
      const bool may_change = i == kStatusRegister || i == kStatusRegister + 1;
      want[kConfigGuard + i] = may_change ? got_[kConfigGuard + i] : reference_[i];
    }
    const auto [is, was] = std::mismatch(got_.begin(), got_.end(), want.begin());
    if (is == got_.end()) return {};
    return {StatusCode::kInternal, fmt::format("wrong data: byte {} of the header is {:#04x} instead of {:#04x}",
                                               is - got_.begin() - static_cast<std::ptrdiff_t>(kConfigGuard),
                                               std::to_integer<unsigned>(*is), std::to_integer<unsigned>(*was))};
  }

  [[nodiscard]] bool spoil(std::uint64_t at) override {
    const auto written = std::find(written_.begin(), written_.end(), true);
    if (written == written_.end()) return false;
    std::size_t offset = offsets_[static_cast<std::size_t>(written - written_.begin())] + at % shape_.bytes;
    if (offset == kStatusRegister || offset == kStatusRegister + 1) offset -= 2;  // which may change
    got_[kConfigGuard + offset] ^= std::byte{0x40};
    return true;
  }

  void close() noexcept override {
    file_.reset();
    failed_ = 0;
  }

 private:
  struct Identity {
    const char* file;
    std::size_t offset, bytes;
  };
  /// Fields of the header that sysfs also shows in separate files (pci_regs.h).
  static constexpr std::array<Identity, 4> kIdentity{
      {{"vendor", 0, 2}, {"device", 2, 2}, {"revision", 8, 1}, {"class", 9, 3}}};

  [[nodiscard]] std::uint32_t number(const Identity& one) const {
    std::uint32_t value = 0;
    std::memcpy(&value, reference_.data() + one.offset, one.bytes);
    return value;
  }
  [[nodiscard]] bool read_all(std::array<std::byte, kHeader>& into) const {
    for (std::size_t at = 0; at < kHeader; at += 4)
      if (pread(file_.get(), into.data() + at, 4, static_cast<off_t>(at)) != 4) return false;
    return true;
  }
  [[nodiscard]] static Status unsupported(const char* why) {
    return {StatusCode::kUnsupported, fmt::format("pci.config: {}", why)};
  }

  PathInfo info_;
  pci::PciDevice device_;
  Fd file_;
  Shape shape_;
  std::array<std::size_t, kConfigPlaces> offsets_{};
  std::array<bool, kConfigPlaces> written_{};
  std::array<std::byte, kConfigGuard + kHeader + kConfigGuard> got_{};
  std::array<std::byte, kHeader> reference_{};
  std::size_t places_ = 0, next_ = 0, place_ = 0;
  bool busy_ = false, done_ = false, known_ = false;
  int failed_ = 0;  ///< errno
};

}  // namespace

std::unique_ptr<Path> pci_config_path(const DeviceSettings& settings) {
  PathInfo info{.id = "pci.config", .group = "pci", .from = "PCI configuration space", .to = "processor", .absent = {}};
  std::optional<pci::PciDevice> device;
  if (settings.pci.empty()) {
    auto all = pci::pci_devices(settings.sysfs);
    if (all.empty())
      return absent(std::move(info),
                    fmt::format("{}/bus/pci/devices has no function: the machine shows no PCI bus", settings.sysfs));
    device = std::move(all.front());
  } else {
    device = pci::pci_device(settings.sysfs, settings.pci);
    if (!device)
      return absent(std::move(info), fmt::format("WHERRY_PROBE_PCI: there is no PCI function {}", settings.pci));
  }
  info.from = fmt::format("configuration space of {} ({:04x}:{:04x})", device->address, device->vendor, device->device);
  return std::make_unique<PciConfigPath>(std::move(info), *std::move(device));
}

}  // namespace wherry::probe
