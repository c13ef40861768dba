// SPDX-License-Identifier: Apache-2.0
#include "probe/device/edu.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "base/try.hpp"
#include "pci/sysfs.hpp"
#include "probe/device/absent.hpp"
#include "probe/device/host_memory.hpp"
#include "probe/device/mapped_bar.hpp"
#include "probe/device/places.hpp"

namespace wherry::probe {
namespace {

// Constants of QEMU's docs/specs/edu.txt.
constexpr std::uint16_t kVendor = 0x1234, kDevice = 0x11E8;
constexpr std::size_t kLiveness = 0x04;  // reads as the complement of what was written
constexpr std::size_t kSource = 0x80, kDestination = 0x88, kTransferCount = 0x90, kCommand = 0x98;
constexpr std::uint64_t kStart = 1, kToMemory = 2;
constexpr std::uint64_t kBuffer = 0x40000;  // of 4096 bytes, which only DMA reaches
constexpr std::uint64_t kRegisters = 4096;  // bytes that are mapped
// QEMU 7.2 refuses transfers up to the buffer's last byte (edu_check_range), so the region ends before it.
constexpr std::size_t kEduRoom = 4088, kEduMost = 2048, kEduGuard = 64;
constexpr std::chrono::seconds kEduPatience{30};

class EduPath final : public Path {
 public:
  EduPath(PathInfo info, BarFile file, bool to_card, BusAddressOf bus)
      : info_(std::move(info)), file_(std::move(file)), to_card_(to_card), bus_(std::move(bus)) {}

  [[nodiscard]] const PathInfo& info() const override { return info_; }

  [[nodiscard]] Status accepts(const Shape& shape) const override {
    const auto unsupported = [&](const char* why) {
      return Status(StatusCode::kUnsupported, fmt::format("{}: {}", info_.id, why));
    };
    if (shape.flow != (to_card_ ? Flow::kH2C : Flow::kC2H))
      return unsupported("the other direction is a path of its own");
    if (shape.depth != 1 || shape.channels != 1) return unsupported("the device has one transfer under way");
    if (shape.bytes > kEduMost) return unsupported("a transfer has at most 2048 bytes");
    if (shape.notice != Notice::kPolled) return unsupported("it is polled here");
    return Places::plan(shape, kRules).status();
  }

  [[nodiscard]] Result<Bound> open(const Shape& shape) override {
    WHERRY_TRY(accepts(shape));
    WHERRY_ASSIGN(places_, Places::plan(shape, kRules));
    if (const auto command = pci::command_of(file_.folder); command && (*command & pci::kCommandMaster) == 0)
      return Status(
          StatusCode::kFailedPrecondition,
          "edu: the device may not master the bus: set bit 2 of its command register (setpci -d 1234:11e8 COMMAND=6)");
    WHERRY_ASSIGN(bar_, MappedBar::map(file_));
    WHERRY_ASSIGN(host_, HostMemory::make(kEduRoom));
    WHERRY_ASSIGN(image_, HostMemory::make(kEduRoom));
    const auto host = bus_(host_.data()), image = bus_(image_.data());
    if (!host || !image || !host_.locked())
      return Status(StatusCode::kPermissionDenied,
                    "edu: /proc/self/pagemap hides physical addresses, or the page cannot be locked: root can");
    host_bus_ = *host;
    image_bus_ = *image;
    word(kLiveness) = 0x12345678;
    for (const Deadline until(std::chrono::seconds(1)); word(kLiveness) != ~std::uint32_t{0x12345678};)
      if (until.passed()) return Status(StatusCode::kUnavailable, "edu: the liveness register does not answer");
    Bound bound;
    bound.why = "a device of QEMU: its times are those of a timer";
    return bound;
  }

  void prepare(std::uint64_t seed) override {
    const std::size_t bytes = places_.region_bytes();
    auto host = host_.span().first(bytes), image = image_.span().first(bytes);
    if (to_card_) {
      places_.fill_source(host, seed);
      places_.fill_destination(image, seed);
    } else {
      places_.fill_destination(host, seed);
      places_.fill_source(image, seed);
    }
    moved_ = move_all(true);
  }

  [[nodiscard]] bool try_post(unsigned slot) override {
    if (busy_) return false;
    const std::size_t offset = places_.take(slot);
    start(offset, host_bus_, places_.bytes(), to_card_);
    until_ = Deadline(kEduPatience);
    return busy_ = true;
  }

  [[nodiscard]] Result<unsigned> poll(std::span<unsigned> done) override {
    if (!busy_) return 0U;
    if ((wide(kCommand) & kStart) != 0) {
      if (!until_.passed()) return 0U;
      return Status(StatusCode::kDeadlineExceeded, "edu: the transfer does not end");
    }
    busy_ = false;
    places_.ended(0);
    done[0] = 0;
    return 1U;
  }

  [[nodiscard]] Status verify(std::uint64_t seed) override {
    WHERRY_TRY(std::move(moved_));
    const std::size_t bytes = places_.region_bytes();
    std::fill(image_.span().begin(), image_.span().end(), std::byte{0});
    WHERRY_TRY(move_all(false));
    const auto host = host_.span().first(bytes), image = image_.span().first(bytes);
    WHERRY_TRY(places_.check(to_card_ ? image : host, seed));
    return places_.check_source(to_card_ ? host : image, seed);
  }

  [[nodiscard]] bool spoil(std::uint64_t at) override {
    const std::size_t byte = at % places_.region_bytes();
    if (!to_card_) {
      host_.data()[byte] ^= std::byte{0x40};
      return true;
    }
    if (!move_all(false).ok()) return false;
    image_.data()[byte] ^= std::byte{0x40};
    return move_all(true).ok();
  }

  void close() noexcept override {
    const Deadline until(kEduPatience);
    while (busy_ && (wide(kCommand) & kStart) != 0 && !until.passed())
      usleep(1000);  // the device writes to memory until then
    busy_ = false;
    bar_ = {};
    host_ = {};
    image_ = {};
  }
  ~EduPath() override { close(); }

 private:
  static constexpr PlaceRules kRules{.room = kEduRoom, .guard = kEduGuard, .unit = 1, .spread = kEduRoom};

  [[nodiscard]] volatile std::uint32_t& word(std::size_t at) const {
    return *reinterpret_cast<volatile std::uint32_t*>(bar_.at() + at);
  }
  [[nodiscard]] volatile std::uint64_t& wide(std::size_t at) const {
    return *reinterpret_cast<volatile std::uint64_t*>(bar_.at() + at);
  }

  void start(std::size_t offset, std::uint64_t memory, std::size_t bytes, bool to_card) const {
    const std::uint64_t card = kBuffer + offset;
    wide(kSource) = to_card ? memory + offset : card;
    wide(kDestination) = to_card ? card : memory + offset;
    wide(kTransferCount) = bytes;
    wide(kCommand) = kStart | (to_card ? 0 : kToMemory);
  }
  /// Moves the whole region between `image_` and the device's buffer.
  Status move_all(bool to_card) const {
    for (std::size_t at = 0; at < places_.region_bytes(); at += kEduMost) {
      start(at, image_bus_, std::min(kEduMost, places_.region_bytes() - at), to_card);
      const Deadline until(kEduPatience);
      while ((wide(kCommand) & kStart) != 0) {
        if (until.passed()) return {StatusCode::kDeadlineExceeded, "edu: the transfer does not end"};
        usleep(1000);
      }
    }
    return {};
  }

  PathInfo info_;
  BarFile file_;
  bool to_card_;
  BusAddressOf bus_;
  Places places_;
  MappedBar bar_;
  HostMemory host_, image_;
  std::uint64_t host_bus_ = 0, image_bus_ = 0;
  bool busy_ = false;
  Status moved_;
  Deadline until_{std::chrono::seconds(0)};
};

}  // namespace

std::optional<std::uint64_t> physical_address(const std::byte* at) {
  // Documentation/admin-guide/mm/pagemap.rst: an entry of 8 bytes for each page.
  // Bits 0 to 54 are the frame number, and bit 63 is set if the page is present.
  constexpr std::uint64_t kPage = 4096, kFrame = (std::uint64_t{1} << 55) - 1, kPresent = std::uint64_t{1} << 63;
  const auto address = reinterpret_cast<std::uint64_t>(at);
  const Fd file(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  std::uint64_t entry = 0;
  if (!file || pread(file.get(), &entry, sizeof entry, static_cast<off_t>(address / kPage * 8)) != sizeof entry)
    return std::nullopt;
  if ((entry & kPresent) == 0 || (entry & kFrame) == 0) return std::nullopt;
  return (entry & kFrame) * kPage + address % kPage;
}

std::vector<std::unique_ptr<Path>> edu_paths(const DeviceSettings& settings, BusAddressOf bus) {
  std::vector<std::unique_ptr<Path>> paths;
  for (const bool to_card : {true, false}) {
    PathInfo info{.id = to_card ? "edu.h2c" : "edu.c2h", .group = "pci", .initiator = Initiator::kDevice, .absent = {}};
    info.from = to_card ? "host memory" : "buffer of QEMU's edu device";
    info.to = to_card ? "buffer of QEMU's edu device" : "host memory";
    const auto device = pci::pci_device(settings.sysfs, kVendor, kDevice);
    if (!device) {
      paths.push_back(
          absent(std::move(info), "no edu device (1234:11e8): it exists in QEMU guests (-device edu) only"));
      continue;
    }
    auto file = find_bar(settings.sysfs, {.name = device->address + "/0", .base = 0, .bytes = kRegisters}, false);
    if (!file) {
      paths.push_back(absent(std::move(info), file.status().message()));
      continue;
    }
    paths.push_back(std::make_unique<EduPath>(std::move(info), *std::move(file), to_card, bus));
  }
  return paths;
}

}  // namespace wherry::probe
