// SPDX-License-Identifier: Apache-2.0
#include "dma/engine.hpp"

#include <fmt/core.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>

#include "base/try.hpp"
#include "dma/generated/registers.hpp"

namespace wherry::dma {
namespace {

namespace reg = registers;
constexpr unsigned kLeastBits = 4, kMostBits = 16;                // ring_control.ring_bits
constexpr std::uint32_t kReserveParts = 512, kMostReserve = 255;  // read_reserve
/// The engine's maximum rate, 64 bytes per cycle of 4 ns. It replaces the link's rate, which is not known.
constexpr std::uint32_t kBytesPerNs = 16;
/// Added to the limit for reads that are requested although less space is free: two reads of 512 bytes, and a page that
/// waits for older ones.
constexpr std::uint32_t kReadSlack = 2048;
/// Time of a 4 KiB transfer to the card without its two reads: doorbell, data, memory, status word.
constexpr std::chrono::nanoseconds kBesideReads{800};
/// Longer reads are treated like this one, because the engine's buffer does not hold more.
constexpr std::chrono::nanoseconds kLongest{100'000};

std::size_t pages(std::size_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }

}  // namespace

Result<std::unique_ptr<Engine>> Engine::open(pci::Device& device, const EngineOptions& options) {
  if (options.ring_bits < kLeastBits || options.ring_bits > kMostBits)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("a ring has 2^4 to 2^16 descriptors, not 2^{}", options.ring_bits));
  std::unique_ptr<Engine> engine(new Engine(device, options));
  WHERRY_TRY(engine->identify());
  WHERRY_TRY(device.set_bus_master(false));
  const Status reset = device.reset();
  if (!reset && reset.code() != StatusCode::kUnsupported) return reset;
  if (!reset) {
    // Rings of a process that was killed still run. The reset of a ring waits until its last writes have left.
    WHERRY_TRY(device.set_bus_master(true));
    WHERRY_TRY(engine->clear_rings());
  }
  WHERRY_TRY(engine->make_rings());
  WHERRY_TRY(engine->set_up());
  return engine;
}

Engine::~Engine() {
  static_cast<void>(device_.set_bus_master(false));
  static_cast<void>(device_.set_vectors({}));
}

bool Engine::alive() { return device_.read32(kRegisterBar, reg::kIdOffset) == reg::kIdReset; }

Status Engine::identify() {
  if (const std::uint32_t id = device_.read32(kRegisterBar, reg::kIdOffset); id != reg::kIdReset)
    return {StatusCode::kNotFound,
            fmt::format("no DMA engine answers: its identity reads as {:#010x}, want {:#010x}", id, reg::kIdReset)};
  const std::uint32_t version = device_.read32(kRegisterBar, reg::kEngineVersionOffset);
  if (reg::kEngineVersionMajor.get(version) != reg::kEngineVersionMajor.get(reg::kEngineVersionReset))
    return {StatusCode::kVersionMismatch,
            fmt::format("the DMA engine has version {}, this driver knows {}", reg::kEngineVersionMajor.get(version),
                        reg::kEngineVersionMajor.get(reg::kEngineVersionReset))};
  const unsigned has = reg::kCapabilityChannels.get(device_.read32(kRegisterBar, reg::kCapabilityOffset));
  if (has < 1 || has > kMostChannels)
    return {StatusCode::kNotFound, fmt::format("the DMA engine claims to have {} channels", has)};
  if (options_.channels > has)
    return {StatusCode::kInvalidArgument,
            fmt::format("the DMA engine has {} channels in each direction, not {}", has, options_.channels)};
  has_ = has;
  channels_ = options_.channels != 0 ? options_.channels : has;
  return {};
}

Status Engine::clear_rings() {
  for (const Direction direction : {Direction::kToCard, Direction::kToHost})
    for (unsigned channel = 0; channel < has_; ++channel)
      WHERRY_TRY(Ring(device_, ring_number(direction, channel), {}).clear());
  return {};
}

Status Engine::stop() { return clear_rings(); }

Status Engine::make_rings() {
  WHERRY_ASSIGN(status_, device_.allocate(kPageBytes));
  if (options_.interrupts) {
    for (unsigned i = 0; i < kRings; ++i) {
      eventfds_.emplace_back(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
      if (!eventfds_.back()) return {StatusCode::kResourceExhausted, "no eventfd is to be had"};
    }
  }
  const std::size_t descriptors = std::size_t{1} << options_.ring_bits;
  for (const Direction direction : {Direction::kToCard, Direction::kToHost}) {
    for (unsigned channel = 0; channel < channels_; ++channel) {
      const unsigned number = ring_number(direction, channel);
      Ring::Places places{
          .descriptors = {}, .packets = {}, .status = {}, .bits = options_.ring_bits, .plenty = options_.plenty};
      WHERRY_ASSIGN(places.descriptors, device_.allocate(pages(descriptors * kDescriptorBytes)));
      if (direction == Direction::kToHost) {
        WHERRY_ASSIGN(places.packets, device_.allocate(pages(descriptors * kStatusWordBytes)));
      }
      places.status = {.bytes = status_.bytes.subspan(number * kStatusStride, kStatusWordBytes),
                       .iova = status_.iova + number * kStatusStride};
      if (options_.interrupts) places.eventfd = eventfds_[number].get();
      rings_.push_back(std::make_unique<Ring>(device_, number, places));
    }
  }
  return {};
}

void Engine::limit_reads(std::uint32_t bytes) {
  options_.reads_ahead = std::clamp(bytes, kMostAhead / 2, kMostAhead);
  const std::uint32_t reserve = (kMostAhead - options_.reads_ahead) / (kMostAhead / kReserveParts);
  device_.write32(kRegisterBar, reg::kReadReserveOffset, std::min(reserve, kMostReserve));
}

Result<std::chrono::nanoseconds> Engine::measure_read() {
  // The engine refuses a descriptor of no bytes, and reports this. If the doorbell contains the descriptor, this takes
  // one read less.
  constexpr std::size_t kTries = 9;
  Ring& ring = this->ring(Direction::kToCard, 0);
  std::array<std::chrono::nanoseconds, kTries> found;
  for (std::chrono::nanoseconds& one : found) {
    WHERRY_ASSIGN(const auto with, ring.time_refusal(Bell::kTail));
    WHERRY_ASSIGN(const auto without, ring.time_refusal(Bell::kDescriptor));
    one = with - without;
  }
  std::ranges::nth_element(found, found.begin() + kTries / 2);
  return std::max(found[kTries / 2], std::chrono::nanoseconds(0));
}

Status Engine::tune() {
  WHERRY_ASSIGN(const auto read, measure_read());
  const auto bytes_in = [](std::chrono::nanoseconds time) {
    return static_cast<std::uint32_t>(std::min(time, kLongest).count()) * kBytesPerNs;
  };
  limit_reads(bytes_in(read + read / 4) + kReadSlack);
  options_.plenty = bytes_in(2 * read + kBesideReads);
  for (const auto& ring : rings_) ring->places_.plenty = options_.plenty;
  return {};
}

Status Engine::set_up() {
  device_.write32(kRegisterBar, reg::kStatusLowOffset, static_cast<std::uint32_t>(status_.iova));
  device_.write32(kRegisterBar, reg::kStatusHighOffset, static_cast<std::uint32_t>(status_.iova >> 32));
  device_.write32(kRegisterBar, reg::kStatusPaceOffset, options_.status_pace);
  limit_reads(options_.reads_ahead);
  std::vector<int> vectors;
  for (const Fd& fd : eventfds_) vectors.push_back(fd.get());
  if (!vectors.empty()) WHERRY_TRY(device_.set_vectors(vectors));
  WHERRY_TRY(device_.set_bus_master(true));
  for (const auto& ring : rings_) ring->set_up();
  return {};
}

Status Engine::reset() {
  WHERRY_TRY(device_.reset());
  WHERRY_TRY(device_.set_bus_master(false));
  WHERRY_TRY(identify());
  for (const auto& ring : rings_) ring->forget();
  return set_up();
}

}  // namespace wherry::dma
