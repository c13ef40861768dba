// SPDX-License-Identifier: Apache-2.0
#include "sim/nic/traffic.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace wherry::sim::nic {
namespace {

constexpr std::array<std::uint8_t, kFrameHeader> kHeader{
    0x02, 0, 0,    0,    0, 0x01, 0x02, 0, 0,  0,  0, 0x02, 0x08, 0x00,                     // Ethernet
    0x45, 0, 0,    0,    0, 0,    0x40, 0, 64, 17, 0, 0,    10,   0,    0, 1, 10, 0, 0, 2,  // IPv4 without checksum
    0,    0, 0x12, 0x34, 0, 0,    0,    0};                                                 // UDP
constexpr std::size_t kSizeAt = 16, kPortAt = 34, kLengthAt = 38;

void put16(std::span<std::byte> out, std::size_t at, std::size_t value) {
  out[at] = static_cast<std::byte>(value >> 8 & 0xFF);
  out[at + 1] = static_cast<std::byte>(value & 0xFF);
}
std::size_t get16(std::span<const std::byte> in, std::size_t at) {
  return std::to_integer<std::size_t>(in[at]) << 8 | std::to_integer<std::size_t>(in[at + 1]);
}
/// The bytes after the frame's number.
void fill(std::span<std::byte> out, std::uint64_t number) {
  std::uint64_t word = (number + 1) * 0x9E3779B97F4A7C15ULL;
  for (std::size_t i = 0; i < out.size(); i += 8, word += 0x0101010101010101ULL) {
    std::memcpy(out.data() + i, &word, std::min<std::size_t>(8, out.size() - i));
  }
}

}  // namespace

void make_frame(std::span<std::byte> out, std::uint64_t number, std::uint32_t flow) {
  std::memcpy(out.data(), kHeader.data(), kHeader.size());
  put16(out, kSizeAt, out.size() - 14);
  put16(out, kPortAt, flow);
  put16(out, kLengthAt, out.size() - 34);
  std::memcpy(out.data() + kNumberAt, &number, 8);
  fill(out.subspan(kShortestNumbered), number);
}

std::uint64_t number_of(std::span<const std::byte> frame) noexcept {
  std::uint64_t number = 0;
  if (frame.size() >= kShortestNumbered) std::memcpy(&number, frame.data() + kNumberAt, 8);
  return number;
}

bool frame_is_right(std::span<const std::byte> frame) {
  if (frame.size() < kShortestNumbered) return false;
  const std::size_t bytes = get16(frame, kSizeAt) + 14;
  if (bytes > frame.size() || bytes < kShortestNumbered) return false;
  static thread_local std::vector<std::byte> expected;
  expected.assign(frame.size(), std::byte{0});
  make_frame(std::span(expected).first(bytes), number_of(frame), static_cast<std::uint32_t>(get16(frame, kPortAt)));
  return std::memcmp(expected.data(), frame.data(), frame.size()) == 0;
}

Source::Source(pcie::EventQueue& queue, WireEnd& end, const SourceOptions& options)
    : queue_(queue), end_(end), options_(options), next_(options.start) {
  if (options_.frames != 0) schedule();
}

void Source::schedule() {
  const std::uint32_t bytes = options_.sizes[sent_ % options_.sizes.size()];
  queue_.schedule(next_ + frame_time(bytes, options_.mbits), *this);
  next_ += slot_time(bytes, options_.mbits) * 1000 / Time{options_.load_per_mille};
}

void Source::on_event(std::uint64_t argument) {
  static_cast<void>(argument);
  frame_.resize(options_.sizes[sent_ % options_.sizes.size()]);
  make_frame(frame_, sent_ / options_.flows, static_cast<std::uint32_t>(sent_ % options_.flows));
  ++sent_;
  last_ = queue_.now();
  const bool good = options_.bad_fcs_one_in == 0 || sent_ % options_.bad_fcs_one_in != 0;
  if (sent_ != options_.frames) schedule();
  end_.on_frame(frame_, good);
}

void Checker::on_frame(std::span<const std::byte> frame, bool fcs_good) {
  ++frames;
  bytes += frame.size();
  if (!fcs_good || !frame_is_right(frame)) {
    ++wrong;
    return;
  }
  std::uint64_t& next = next_[get16(frame, kPortAt) % flows_];
  const std::uint64_t number = number_of(frame);
  if (number < next) {
    ++reordered;
    return;
  }
  missing += number - next;
  next = number + 1;
}

}  // namespace wherry::sim::nic
