// SPDX-License-Identifier: Apache-2.0
#include "sim/bypass/pack_buffer.hpp"

#include <algorithm>
#include <numeric>

namespace wherry::sim {

std::optional<std::uint32_t> PackBuffer::try_put(std::span<const std::byte> frame) {
  const auto all = static_cast<std::uint32_t>(used_.size());
  const auto lines = static_cast<std::uint32_t>((frame.size() + kLineBytes - 1) / kLineBytes);
  if (lines > all) return std::nullopt;
  for (std::uint32_t i = 0; i < lines; ++i)
    if (used_[(next_ + i) % all] != 0) return std::nullopt;
  const std::uint32_t at = next_ * kLineBytes;
  const std::size_t before_end = std::min(frame.size(), memory_.size() - at);
  std::copy_n(frame.begin(), before_end, memory_.begin() + at);
  std::copy(frame.begin() + static_cast<std::ptrdiff_t>(before_end), frame.end(), memory_.begin());
  for (std::uint32_t i = 0; i < lines; ++i) used_[(next_ + i) % all] = 1;
  next_ = (next_ + lines) % all;
  return at;
}

void PackBuffer::read(std::uint32_t at, std::span<std::byte> out) const {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = memory_[(at + i) % memory_.size()];
}

std::uint32_t PackBuffer::used_lines() const noexcept {
  return std::accumulate(used_.begin(), used_.end(), std::uint32_t{0});
}

}  // namespace wherry::sim
