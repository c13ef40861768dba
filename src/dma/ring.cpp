// SPDX-License-Identifier: Apache-2.0
#include "dma/ring.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "base/try.hpp"
#include "dma/generated/registers.hpp"

namespace wherry::dma {
namespace {

namespace reg = registers;
using namespace std::chrono_literals;

/// A reset waits for transactions in flight: at most for a time-out, until a tag is free, and for their own. A time-out
/// is at most 67 ms (dma_axi). The rest is a margin.
constexpr auto kSettleTime = 400ms;
constexpr auto kPollStep = 100ns;
constexpr auto kLookStep = 10ns;  // where a time is measured
/// Bytes per beat of the stream. A descriptor inside a packet has whole beats (docs/design/dma.md, "Turns and shares").
constexpr std::uint32_t kStreamBeat = 64;
/// The most descriptors that may wait for one doorbell: the engine reads so many at once (dma_control_pkg::FetchMost).
constexpr std::uint32_t kMostLater = 16;
/// A doorbell is omitted while the engine knows of more than this multiple of the transfers that it would announce.
constexpr std::uint32_t kKnownShare = 3;
constexpr std::uint32_t kMostOutstanding = (1U << 16) - 1;

std::uint64_t load64(const std::byte* from) noexcept {
  // The engine writes the status as one word, so it must be read as one.
  auto* const word = reinterpret_cast<std::uint64_t*>(const_cast<std::byte*>(from));
  return std::atomic_ref(*word).load(std::memory_order_acquire);
}

}  // namespace

std::string_view to_string(Error error) noexcept {
  static constexpr std::array<std::string_view, 8> kNames{"none",
                                                          "unsupported request",
                                                          "completer abort",
                                                          "poisoned data",
                                                          "no completion in time",
                                                          "malformed",
                                                          "card memory",
                                                          "reset"};
  return kNames[static_cast<std::size_t>(error) % kNames.size()];
}

Ring::Ring(pci::Device& device, unsigned number, const Places& places)
    : device_(device),
      number_(number),
      places_(places),
      capacity_(std::min<std::size_t>(std::size_t{1} << places.bits, kMostOutstanding)),
      moderation_(reg::kModerationReset) {}

Status Ring::post(const Transfer& transfer) {
  if (failed_)
    return {StatusCode::kFailedPrecondition, fmt::format("ring {} was stopped by an error: call recover()", number_)};
  if (transfer.bytes == 0 || transfer.bytes > kMostBytes)
    return {StatusCode::kInvalidArgument,
            fmt::format("a transfer has 1 to {} bytes, not {}", kMostBytes, transfer.bytes)};
  if (transfer.stream && to_host() && transfer.host % kPageBytes + transfer.bytes > kPageBytes)
    return {StatusCode::kInvalidArgument, "a buffer for a packet lies in one page of 4 KiB"};
  if (transfer.stream && !to_host() && !transfer.end_of_packet && transfer.bytes % kStreamBeat != 0)
    return {StatusCode::kInvalidArgument, "a piece of a packet that does not end it has a multiple of 64 bytes"};
  if (transfers_.size() == capacity_) return Status::would_block();
  Descriptor descriptor{
      .host = transfer.host, .card = transfer.card, .bytes = transfer.bytes, .flags = 0, .cookie = transfer.cookie};
  if (transfer.stream) descriptor.flags |= kFlagStream;
  if (transfer.interrupt) descriptor.flags |= kFlagInterrupt;
  if (transfer.stream && !to_host() && transfer.end_of_packet) descriptor.flags |= kFlagEndOfPacket;
  const std::size_t place = posted_ & ((1U << places_.bits) - 1);
  std::memcpy(places_.descriptors.bytes.data() + place * kDescriptorBytes, &descriptor, kDescriptorBytes);
  transfers_.push_back({transfer.cookie, transfer.bytes, transfer.stream});
  later_bytes_ += transfer.bytes;
  ++posted_;
  return {};
}

void Ring::ring_bell(Bell bell) {
  if (rung_ == posted_ || failed_) return;
  rung_ = posted_;
  known_bytes_ += later_bytes_;
  later_bytes_ = 0;
  later_ = false;
  std::array<std::byte, kBellStride> line{};
  const std::uint32_t tail = posted_ & 0xFFFF;
  std::memcpy(line.data() + kTailOffset, &tail, sizeof tail);
  const std::uint64_t at = kBellStride * number_;
  if (bell == Bell::kTail) {
    device_.write_line(kBellBar, at + kTailOffset, std::span(line).subspan(kTailOffset, sizeof tail));
    return;
  }
  const std::size_t last = (posted_ - 1) & ((1U << places_.bits) - 1);
  std::memcpy(line.data(), places_.descriptors.bytes.data() + last * kDescriptorBytes, kDescriptorBytes);
  device_.write_line(kBellBar, at, line);
}

bool Ring::bell_is_due() const noexcept {
  const std::uint32_t later = posted_ - rung_, known = rung_ - told_;
  return known_bytes_ < places_.plenty || later >= kMostLater || later * kKnownShare >= known;
}

void Ring::ring_bell_in_time() {
  later_ = rung_ != posted_ && !failed_;
  if (later_ && bell_is_due()) ring_bell();
}

std::uint64_t Ring::status_now() const noexcept { return load64(places_.status.bytes.data()); }

bool Ring::has_news() const noexcept {
  if (!void_.empty()) return true;
  const std::uint64_t now = status_now();
  return static_cast<std::uint32_t>(now) != told_ || (!failed_ && (now >> 32 & 7) != 0);
}

StatusWord Ring::entry(std::uint32_t count) const noexcept {
  const std::byte* const at = places_.packets.bytes.data() + (count & ((1U << places_.bits) - 1)) * kStatusWordBytes;
  StatusWord found;
  const std::uint64_t low = load64(at);
  found.count = static_cast<std::uint32_t>(low);
  found.flags = static_cast<std::uint32_t>(low >> 32);
  std::memcpy(&found.bytes, at + offsetof(StatusWord, bytes), sizeof found.bytes);
  return found;
}

std::size_t Ring::poll(std::span<Done> into) {
  std::size_t count = 0;
  for (; count < into.size() && !void_.empty(); ++count, void_.pop_front())
    into[count] = {.cookie = void_.front(), .error = Error::kReset};
  const std::uint64_t now = status_now();
  const auto done = static_cast<std::uint32_t>(now);
  for (; count < into.size() && told_ != done && !transfers_.empty(); ++told_, ++count, transfers_.pop_front()) {
    const Kept& kept = transfers_.front();
    known_bytes_ -= kept.bytes;
    into[count] = {.cookie = kept.cookie, .error = Error::kNone, .bytes = kept.bytes, .end_of_packet = false};
    if (!kept.stream || !to_host()) continue;
    const StatusWord packet = entry(told_);
    into[count].bytes = packet.bytes;
    into[count].end_of_packet = packet.end_of_packet();
    // The engine writes the entry before the status word, so an entry from an earlier lap of the ring is an error.
    if (packet.count != told_ + 1) into[count].error = Error::kMalformed;
  }
  if (later_) ring_bell_in_time();
  const auto error = static_cast<Error>(now >> 32 & 7);
  if (error == Error::kNone || failed_ || told_ != done || transfers_.empty() || count == into.size()) return count;
  // A stopped ring writes no more status words, so the second half belongs to the first.
  std::uint32_t moved = 0;
  std::memcpy(&moved, places_.status.bytes.data() + offsetof(StatusWord, bytes), sizeof moved);
  into[count++] = {.cookie = transfers_.front().cookie, .error = error, .bytes = moved, .end_of_packet = false};
  transfers_.pop_front();
  failed_ = true;
  return count;
}

bool Ring::wait(std::chrono::nanoseconds most, bool by_interrupt) {
  // The awaited transfer may be one that was not announced by a doorbell.
  if (later_) ring_bell();
  const auto end = device_.now() + most;
  while (!has_news()) {
    const auto now = device_.now();
    if (now >= end) return false;
    if (!by_interrupt || places_.eventfd < 0) {
      device_.pause(std::min<std::chrono::nanoseconds>(kPollStep, end - now));
      continue;
    }
    if (!device_.wait(places_.eventfd, end - now)) return has_news();
    std::uint64_t signals = 0;
    static_cast<void>(
        ::read(places_.eventfd, &signals, sizeof signals));  // it begins at 0 again; what came is found by has_news()
  }
  return true;
}

void Ring::control(bool run, bool reset) {
  const std::uint32_t word = reg::kRingControlRun.set(0, run ? 1 : 0) | reg::kRingControlReset.set(0, reset ? 1 : 0) |
                             reg::kRingControlRingBits.set(0, places_.bits);
  device_.write32(kRegisterBar, reg::ring_control_offset(number_), word);
}

Status Ring::settle(std::uint32_t mask, std::uint32_t wanted, const char* what) {
  const auto end = device_.now() + kSettleTime;
  for (;;) {
    const std::uint32_t state = device_.read32(kRegisterBar, reg::ring_state_offset(number_));
    if (state == ~std::uint32_t{0})
      return {StatusCode::kUnavailable, "the DMA card does not answer: it was removed, or its link is down"};
    if ((state & mask) == wanted) return {};
    if (device_.now() >= end)
      return {StatusCode::kDeadlineExceeded,
              fmt::format("ring {} does not {}: its state is {:#x}; reset the function", number_, what, state)};
    device_.pause(kPollStep);
  }
}

Status Ring::stop() {
  control(false, false);
  return settle(reg::kRingStateIdle.mask(), reg::kRingStateIdle.mask(), "come to rest");
}

void Ring::start() { control(true, false); }

Status Ring::clear() {
  control(false, true);
  return settle(reg::kRingStateResetting.mask(), 0, "end its reset");
}

Status Ring::recover() {
  WHERRY_TRY(clear());
  forget();
  start();
  return {};
}

Result<std::chrono::nanoseconds> Ring::time_refusal(Bell bell) {
  if (outstanding() != 0 || failed_)
    return Status(StatusCode::kFailedPrecondition, fmt::format("ring {} has transfers outstanding", number_));
  const Descriptor nothing{};
  const std::size_t place = posted_ & ((1U << places_.bits) - 1);
  std::memcpy(places_.descriptors.bytes.data() + place * kDescriptorBytes, &nothing, kDescriptorBytes);
  ++posted_;
  const auto begin = device_.now();
  ring_bell(bell);
  while (!has_news()) {
    if (device_.now() - begin >= kSettleTime)
      return Status(StatusCode::kDeadlineExceeded, fmt::format("ring {} does not refuse an empty descriptor", number_));
    device_.pause(kLookStep);
  }
  const auto took = device_.now() - begin;
  WHERRY_TRY(recover());
  return took;
}

void Ring::forget() {
  for (const Kept& kept : transfers_) void_.push_back(kept.cookie);
  transfers_.clear();
  posted_ = told_ = rung_ = 0;
  known_bytes_ = later_bytes_ = 0;
  failed_ = later_ = false;
  std::memset(places_.status.bytes.data(), 0, places_.status.bytes.size());
  std::memset(places_.packets.bytes.data(), 0, places_.packets.bytes.size());
}

void Ring::moderate(unsigned threshold, unsigned timer) {
  moderation_ = reg::kModerationThreshold.set(0, threshold) | reg::kModerationTimer.set(0, timer);
  device_.write32(kRegisterBar, reg::moderation_offset(number_), moderation_);
}

void Ring::set_up() {
  const auto address = [&](std::uint32_t low, std::uint32_t high, std::uint64_t value) {
    device_.write32(kRegisterBar, low, static_cast<std::uint32_t>(value));
    device_.write32(kRegisterBar, high, static_cast<std::uint32_t>(value >> 32));
  };
  address(reg::ring_low_offset(number_), reg::ring_high_offset(number_), places_.descriptors.iova);
  if (to_host()) address(reg::packets_low_offset(number_), reg::packets_high_offset(number_), places_.packets.iova);
  device_.write32(kRegisterBar, reg::moderation_offset(number_), moderation_);
  start();
}

}  // namespace wherry::dma
