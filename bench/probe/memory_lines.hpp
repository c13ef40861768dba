// SPDX-License-Identifier: Apache-2.0
// Access to a buffer's lines: a receiver reads them; a stand-in for a device without direct cache access flushes them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wherry::bench {

/// Writes back and drops the lines of a buffer, in all caches. False: a program cannot do that on this processor.
bool flush_lines(const std::byte* at, std::size_t bytes) noexcept;
/// The sum of all little-endian 64-bit words; `bytes` is a multiple of 64.
std::uint64_t sum_words(const std::byte* at, std::size_t bytes) noexcept;

}  // namespace wherry::bench
