// SPDX-License-Identifier: Apache-2.0
#include "probe/device/character.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <thread>

#include "base/fd.hpp"
#include "base/text_file.hpp"
#include "base/try.hpp"
#include "probe/device/absent.hpp"
#include "probe/device/host_memory.hpp"
#include "probe/device/link_bound.hpp"
#include "probe/device/places.hpp"
#include "probe/device/workers.hpp"

namespace wherry::probe {
namespace {

constexpr unsigned kMostCalls = 64;

int linux_control(int fd, unsigned long request, void* argument) { return ioctl(fd, request, argument); }

Result<Fd> open_device(const std::string& path, int flags) {
  Fd fd(::open(path.c_str(), flags | O_CLOEXEC));
  if (!fd)
    return Status(errno == EACCES || errno == EPERM ? StatusCode::kPermissionDenied : StatusCode::kNotFound,
                  fmt::format("{}: {}", path, std::strerror(errno)));
  return fd;
}

/// Moves all bytes, in any number of calls. Returns 0 or errno; EIO: a call has moved no bytes.
template <typename Call>
int move_all(std::size_t bytes, std::size_t one_call, Call call) noexcept {
  for (std::size_t at = 0; at < bytes;) {
    const std::size_t left = bytes - at;
    const ssize_t moved = call(at, one_call == 0 ? left : std::min(left, one_call));
    if (moved > 0)
      at += std::min(left, static_cast<std::size_t>(moved));
    else if (moved == 0)
      return EIO;
    else if (errno != EINTR)
      return errno;
  }
  return 0;
}

class CharacterPath final : public Path {
 public:
  CharacterPath(PathInfo info, CharacterDevice device) : info_(std::move(info)), device_(std::move(device)) {}
  ~CharacterPath() override { close(); }

  [[nodiscard]] const PathInfo& info() const override { return info_; }

  [[nodiscard]] Status accepts(const Shape& shape) const override {
    const auto unsupported = [&](const std::string& why) {
      return Status(StatusCode::kUnsupported, fmt::format("{}: {}", info_.id, why));
    };
    if (shape.flow != (device_.to_card ? Flow::kH2C : Flow::kC2H))
      return unsupported("the other direction is a path of its own");
    if (shape.depth > kMostCalls)
      return unsupported(fmt::format("depth is at most {}: each transfer under way has a thread", kMostCalls));
    if (shape.channels > device_.moves.size())
      return unsupported(fmt::format("there are {} channels from this one on", device_.moves.size()));
    if (shape.channels > shape.depth)
      return unsupported("a channel needs a transfer under way: depth is at least the channels");
    if (shape.bytes % device_.unit != 0 || shape.align % device_.unit != 0)
      return unsupported(fmt::format("sizes and alignments are multiples of {}", device_.unit));
    if (shape.notice == Notice::kInterrupt && device_.notice != "interrupts")
      return unsupported("its driver does not use interrupts, or does not say so");
    return Places::plan(shape, rules()).status();
  }

  [[nodiscard]] Result<Bound> open(const Shape& shape) override {
    WHERRY_TRY(accepts(shape));
    shape_ = shape;
    WHERRY_ASSIGN(places_, Places::plan(shape, rules()));
    WHERRY_ASSIGN(host_, HostMemory::make(places_.region_bytes()));
    WHERRY_ASSIGN(image_, HostMemory::make(places_.region_bytes()));
    WHERRY_ASSIGN(writes_, open_device(device_.writes, O_WRONLY));
    WHERRY_ASSIGN(reads_, open_device(device_.reads, O_RDONLY));
    channels_.clear();
    for (unsigned i = 0; i < shape.channels; ++i) {
      WHERRY_ASSIGN(Fd channel, open_device(device_.moves[i], device_.to_card ? O_WRONLY : O_RDONLY));
      channels_.push_back(std::move(channel));
    }
    Bound bound = link_bound(device_.function);
    if (bound.why.empty()) bound.why = "no bound is known: sysfs does not name the card's link";
    if (device_.counters) bound.why += "; " + counters();
    workers_.start(shape.depth, [this](unsigned slot) { return move(slot); });
    return bound;
  }

  void prepare(std::uint64_t seed) override {
    auto host = host_.span(), image = image_.span();
    if (device_.to_card) {
      places_.fill_source(host, seed);
      places_.fill_destination(image, seed);
    } else {
      places_.fill_destination(host, seed);
      places_.fill_source(image, seed);
    }
    filled_ = move_all(image.size(), device_.one_call, [&](std::size_t at, std::size_t bytes) {
      return pwrite(writes_.get(), image.data() + at, bytes, card(at));
    });
  }

  [[nodiscard]] bool try_post(unsigned slot) override {
    if (busy(slot)) return false;
    places_.take(slot);
    busy_ |= bit(slot);
    return workers_.post(slot);
  }

  [[nodiscard]] Result<unsigned> poll(std::span<unsigned> done) override {
    int error = 0;
    const unsigned found = workers_.poll(done, shape_.notice != Notice::kPolled, error);
    for (const unsigned slot : done.first(found)) {
      busy_ &= ~bit(slot);
      if (error == 0) places_.ended(slot);
    }
    if (error != 0)
      return Status(StatusCode::kUnavailable, fmt::format("{}: {}", device_.moves.front(), std::strerror(error)));
    return found;
  }

  [[nodiscard]] Status verify(std::uint64_t seed) override {
    if (filled_ != 0) return {StatusCode::kUnavailable, fmt::format("{}: {}", device_.writes, std::strerror(filled_))};
    auto host = host_.span(), image = image_.span();
    std::fill(image.begin(), image.end(), std::byte{0});
    const int error = move_all(image.size(), device_.one_call, [&](std::size_t at, std::size_t bytes) {
      return pread(reads_.get(), image.data() + at, bytes, card(at));
    });
    if (error != 0) return {StatusCode::kUnavailable, fmt::format("{}: {}", device_.reads, std::strerror(error))};
    WHERRY_TRY(places_.check(device_.to_card ? image : host, seed));
    return places_.check_source(device_.to_card ? host : image, seed);
  }

  [[nodiscard]] CpuTime other_side() override { return workers_.cpu_time(); }

  [[nodiscard]] std::span<std::byte> landing() override {
    return device_.to_card ? std::span<std::byte>() : host_.span();
  }
  [[nodiscard]] bool spoil(std::uint64_t at) override {
    if (!device_.to_card) return Path::spoil(at);
    const std::size_t offset = at % places_.region_bytes() / device_.unit * device_.unit;
    std::byte* const unit = image_.data();
    const auto read = [&](std::size_t from, std::size_t bytes) {
      return pread(reads_.get(), unit + from, bytes, card(offset + from));
    };
    const auto write = [&](std::size_t from, std::size_t bytes) {
      return pwrite(writes_.get(), unit + from, bytes, card(offset + from));
    };
    if (move_all(device_.unit, device_.one_call, read) != 0) return false;
    unit[0] ^= std::byte{0x40};
    return move_all(device_.unit, device_.one_call, write) == 0;
  }

  void close() noexcept override {
    workers_.stop();
    channels_.clear();
    writes_.reset();
    reads_.reset();
    host_ = {};
    image_ = {};
    busy_ = 0;
  }

 private:
  [[nodiscard]] PlaceRules rules() const {
    return {.room = std::min<std::size_t>(device_.range.bytes, std::size_t{256} << 20),
            .guard = std::max<std::size_t>(64, device_.unit),
            .unit = device_.unit,
            .spread = std::size_t{4} << 20};
  }
  [[nodiscard]] off_t card(std::size_t at) const { return static_cast<off_t>(device_.range.base + at); }
  static std::uint64_t bit(unsigned slot) { return std::uint64_t{1} << slot; }
  [[nodiscard]] bool busy(unsigned slot) const { return (busy_ & bit(slot)) != 0; }

  /// Runs in the slot's thread, and reads only this slot's place.
  int move(unsigned slot) noexcept {
    const int fd = channels_[slot % channels_.size()].get();
    const std::size_t offset = places_.offset(slot);
    std::byte* const host = host_.data() + offset;
    return move_all(places_.bytes(), device_.one_call, [&](std::size_t at, std::size_t bytes) {
      return device_.to_card ? pwrite(fd, host + at, bytes, card(offset + at))
                             : pread(fd, host + at, bytes, card(offset + at));
    });
  }

  /// Runs the driver's own test, and returns the engine's counters as text.
  std::string counters() {
    if (device_.to_card && (device_.range.base != 0 || device_.range.bytes < kXdmaPerformanceBytes))
      return "the engine's counters were not asked: their test overwrites the card's first 4 MiB, and the range is "
             "another";
    const auto control = device_.control != nullptr ? device_.control : linux_control;
    XdmaPerformance counted{};
    counted.version = kXdmaPerformanceVersion;
    counted.transfer_size = static_cast<std::uint32_t>(std::clamp<std::size_t>(shape_.bytes, 64, std::size_t{1} << 20));
    const int fd = channels_.front().get();
    if (control(fd, kXdmaPerformanceStart, &counted) < 0)
      return fmt::format("the driver has no counters ({})", std::strerror(errno));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (control(fd, kXdmaPerformanceStop, &counted) < 0)
      return fmt::format("the engine's counters cannot be read ({})", std::strerror(errno));
    if (counted.clock_cycles == 0 || counted.data_cycles > counted.clock_cycles)
      return "the engine's counters make no sense";
    return fmt::format(
        "hardware beside software: data in {} of {} cycles of the engine ({:.1f} %), in transfers of {} bytes without "
        "the driver's calls",
        counted.data_cycles, counted.clock_cycles,
        100.0 * static_cast<double>(counted.data_cycles) / static_cast<double>(counted.clock_cycles),
        counted.transfer_size);
  }

  PathInfo info_;
  CharacterDevice device_;
  Shape shape_;
  Places places_;
  HostMemory host_, image_;
  Fd writes_, reads_;
  std::vector<Fd> channels_;
  Workers workers_;
  std::uint64_t busy_ = 0;  ///< a bit for each slot
  int filled_ = 0;          ///< errno of prepare()
};

constexpr unsigned kMostEngines = 4;  // PG195: up to four each way

bool exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

PathInfo moved(std::string id, bool to_card, const std::string& memory) {
  PathInfo info{.id = std::move(id), .group = "xdma", .initiator = Initiator::kDevice, .absent = {}};
  info.from = to_card ? "host memory" : memory;
  info.to = to_card ? memory : "host memory";
  return info;
}

/// The reason for not using a device that is present.
std::string unnamed(const std::string& variable, const std::string& device) {
  return fmt::format("{} is here; name the range of the card's memory that may be overwritten: {}={}:0+64MiB", device,
                     variable, std::filesystem::path(device).filename().string());
}

std::unique_ptr<Path> xdma(const DeviceSettings& settings, bool to_card, unsigned channel) {
  const char* const way = to_card ? "h2c" : "c2h";
  PathInfo info = moved(fmt::format("xdma.{}{}", way, channel), to_card, "memory of a card (XDMA)");
  const std::string card = settings.xdma ? settings.xdma->name : "xdma0";
  const auto node = [&](const char* direction, unsigned k) {
    return fmt::format("{}/{}_{}_{}", settings.dev, card, direction, k);
  };
  const std::string mine = node(way, channel);
  if (!exists(mine))
    return absent(std::move(info),
                  channel == 0 || !settings.xdma
                      ? fmt::format("{} does not exist: needs a card with AMD's XDMA and the driver xdma", mine)
                      : fmt::format("{} does not exist: the card has fewer channels", mine));
  if (!settings.xdma)
    return absent(std::move(info),
                  settings.refusal("WHERRY_PROBE_XDMA", unnamed("WHERRY_PROBE_XDMA", settings.dev + "/" + card)));
  CharacterDevice device{
      .writes = node("h2c", 0), .reads = node("c2h", 0), .range = *settings.xdma, .to_card = to_card};
  for (unsigned k = channel; k < kMostEngines && exists(node(way, k)); ++k) device.moves.push_back(node(way, k));
  device.counters = true;
  device.function = fmt::format("{}/class/xdma/{}_{}_{}/device", settings.sysfs, card, way, channel);
  const auto polls = read_text_file(settings.sysfs + "/module/xdma/parameters/poll_mode", "the driver's parameter", 64);
  device.notice = !polls ? "unknown" : polls->starts_with('0') || polls->starts_with('N') ? "interrupts" : "polling";
  return character_path(std::move(info), std::move(device));
}

/// The AXI-Lite window with the card's registers. The driver moves 4 bytes a call, at any requested size (cdev_ctrl.c).
std::unique_ptr<Path> xdma_user(const DeviceSettings& settings, bool to_card) {
  PathInfo info = moved(to_card ? "xdma.user.write" : "xdma.user.read", to_card, "AXI-Lite window of a card (XDMA)");
  info.initiator = Initiator::kHost;
  const std::string node =
      fmt::format("{}/{}_user", settings.dev, settings.xdma_user ? settings.xdma_user->name : "xdma0");
  if (!exists(node))
    return absent(std::move(info),
                  node + " does not exist: needs a card with AMD's XDMA, its AXI-Lite master, and the driver xdma");
  if (!settings.xdma_user)
    return absent(
        std::move(info),
        settings.refusal(
            "WHERRY_PROBE_XDMA_USER",
            node + " is here; name memory behind it that may be overwritten: WHERRY_PROBE_XDMA_USER=xdma0:0+4KiB"));
  return character_path(std::move(info), {.moves = {node},
                                          .writes = node,
                                          .reads = node,
                                          .range = *settings.xdma_user,
                                          .to_card = to_card,
                                          .one_call = 4,
                                          .unit = 4,
                                          .notice = "none"});
}

/// A memory-mapped queue of QDMA, both directions in one file (dma-ctl qdma01000 q add idx 0 mode mm dir bi, q start).
std::unique_ptr<Path> qdma(const DeviceSettings& settings, bool to_card) {
  PathInfo info = moved(to_card ? "qdma.mm.h2c" : "qdma.mm.c2h", to_card, "memory of a card (QDMA)");
  if (!settings.qdma)
    return absent(
        std::move(info),
        settings.refusal(
            "WHERRY_PROBE_QDMA",
            "needs a card with AMD's QDMA, the driver qdma-pf, a memory-mapped queue that dma-ctl has started, and "
            "WHERRY_PROBE_QDMA=qdma01000-MM-0:0+64MiB"));
  const std::string node = fmt::format("{}/{}", settings.dev, settings.qdma->name);
  if (!exists(node)) return absent(std::move(info), node + " does not exist: the queue is made and started by dma-ctl");
  return character_path(std::move(info), {.moves = {node},
                                          .writes = node,
                                          .reads = node,
                                          .range = *settings.qdma,
                                          .to_card = to_card,
                                          .notice = "unknown"});
}

}  // namespace

std::unique_ptr<Path> character_path(PathInfo info, CharacterDevice device) {
  return std::make_unique<CharacterPath>(std::move(info), std::move(device));
}

std::vector<std::unique_ptr<Path>> character_paths(const DeviceSettings& settings) {
  std::vector<std::unique_ptr<Path>> paths;
  for (const bool to_card : {true, false})
    for (unsigned channel = 0; channel < kMostEngines; ++channel) paths.push_back(xdma(settings, to_card, channel));
  for (const bool to_card : {true, false}) paths.push_back(xdma_user(settings, to_card));
  for (const bool to_card : {true, false}) paths.push_back(qdma(settings, to_card));
  return paths;
}

}  // namespace wherry::probe
