// SPDX-License-Identifier: Apache-2.0
// Numbers that wrap around: versions, requests, epochs.
#pragma once

#include <cstdint>

namespace wherry::kv {

[[nodiscard]] constexpr bool newer(std::uint32_t a, std::uint32_t b) noexcept {
  return static_cast<std::int32_t>(a - b) > 0;
}

/// Compares epochs as they are in frames. 0 is not an epoch; it is older than all epochs.
[[nodiscard]] constexpr bool epoch_newer(std::uint16_t a, std::uint16_t b) noexcept {
  return a != 0 && (b == 0 || static_cast<std::int16_t>(static_cast<std::uint16_t>(a - b)) > 0);
}

/// Version 0 means that the location was never written. Such a version is older than all others.
[[nodiscard]] constexpr bool version_newer(std::uint32_t a, std::uint32_t b) noexcept {
  return a != 0 && (b == 0 || newer(a, b));
}

[[nodiscard]] constexpr std::uint32_t version_after(std::uint32_t version) noexcept {
  return version + 1 == 0 ? 1 : version + 1;
}

/// A location's version lags behind a newer one in its bucket if the upper three bits differ by three. The lagging
/// version is then 2^30 to 2^31 older. Hardware and software compare only these bits, so both get the same result.
[[nodiscard]] constexpr bool version_lags(std::uint32_t older, std::uint32_t newest) noexcept {
  return older != 0 && newest != 0 && ((newest >> 29) - (older >> 29)) % 8 == 3;
}

}  // namespace wherry::kv
