// SPDX-License-Identifier: Apache-2.0
#pragma once
// Secrets: made from the kernel's random numbers, and compared in constant time.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.hpp"

namespace wherry {

/// 64 bits from the kernel.
std::uint64_t random_u64();
/// `count` random bytes from the kernel.
Bytes random_bytes(std::size_t count);
/// 128 bits from the kernel, in hexadecimal.
std::string make_token();

/// Whether two secrets are the same. The time depends only on their lengths, not on where they differ.
bool equal_secrets(std::string_view a, std::string_view b) noexcept;
bool equal_secrets(ByteView a, ByteView b) noexcept;

}  // namespace wherry
