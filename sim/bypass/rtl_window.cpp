// SPDX-License-Identifier: Apache-2.0
#include "sim/bypass/rtl_window.hpp"

#include <algorithm>
#include <bit>

namespace wherry::sim {
namespace {

constexpr unsigned kWordSize = 2;          ///< of 4
constexpr unsigned kNarrowestFull = 5;     ///< what is aligned and of at most 32 bytes goes as one beat of its own size
constexpr std::uint32_t kBoundary = 4096;  ///< no burst crosses it (AXI4, A3.4.1)

/// AxSIZE of an access that is one beat of its own size; otherwise 6. 6 if it is not.
unsigned narrow_size(std::uint32_t offset, std::size_t bytes) {
  if (!std::has_single_bit(bytes) || offset % bytes != 0) return kLineSize;
  const auto size = static_cast<unsigned>(std::countr_zero(bytes));
  return size <= kNarrowestFull ? size : kLineSize;
}

std::uint32_t to_boundary(std::uint32_t offset, std::size_t bytes) {
  return static_cast<std::uint32_t>(std::min<std::size_t>(bytes, kBoundary - offset % kBoundary));
}

}  // namespace

std::pair<std::uint32_t, std::uint32_t> AxiBurst::beat(std::uint32_t number) const noexcept {
  const std::uint32_t from = ((offset >> size) + number) << size;
  return {std::max(from, offset), std::min(from + (1U << size), offset + bytes)};
}

AxiBurst first_write(std::uint32_t offset, std::size_t bytes) noexcept {
  const std::uint32_t count = to_boundary(offset, bytes);
  return {.offset = offset, .bytes = count, .size = narrow_size(offset, count)};
}

AxiBurst first_read(std::uint32_t offset, std::size_t bytes) noexcept {
  std::uint32_t count = to_boundary(offset, bytes);
  unsigned size = narrow_size(offset, count);
  const std::uint32_t rest = (offset + count) % kLineBytes;
  if (size == kLineSize && rest != 0) {
    if (rest < count)
      count -= rest;
    else
      size = kWordSize;
  }
  return {.offset = offset, .bytes = count, .size = size};
}

void RtlWindow::post_write(const AxiBurst& burst, std::span<const std::byte> data) {
  Write& write = writes_.push_back();
  write.burst = burst;
  write.data.assign(data.begin(), data.end());
  write.beat = 0;
  ++posted_;
}

void RtlWindow::post_read(const AxiBurst& burst, std::uint64_t token) {
  Read& read = reads_.push_back();
  read.burst = burst;
  read.data.resize(burst.bytes);
  read.token = token;
  read.beat = 0;
  read.failed = false;
}

std::optional<RtlWindow::Answer> RtlWindow::answer() const {
  if (ended_ == 0) return std::nullopt;
  const Read& read = reads_.front();
  return Answer{.token = read.token, .failed = read.failed, .data = read.data};
}

void RtlWindow::pop_answer() {
  reads_.pop_front();
  --ended_;
  --ar_taken_;
  ++read_number_;
}

void RtlWindow::reset() { *this = {}; }

}  // namespace wherry::sim
