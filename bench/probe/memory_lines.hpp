// SPDX-License-Identifier: Apache-2.0
// The access to a buffer's lines by a receiver, and by a stand-in for a device without direct cache access.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wherry::bench {

/// Writes back and drops the lines of a buffer, in all caches. False: this processor lets no program do that.
bool flush_lines(const std::byte* at, std::size_t bytes) noexcept;
/// The sum of all bytes as little-endian words of 64 bits; `bytes` a multiple of 64.
std::uint64_t sum_words(const std::byte* at, std::size_t bytes) noexcept;

}  // namespace wherry::bench
