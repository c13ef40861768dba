// SPDX-License-Identifier: Apache-2.0
#include "base/secret.hpp"

#include <fmt/core.h>
#include <sys/random.h>

namespace wherry {

std::uint64_t random_u64() {
  std::uint64_t value = 0;
  while (getrandom(&value, sizeof value, 0) != sizeof value) {
  }
  return value;
}

Bytes random_bytes(std::size_t count) {
  Bytes bytes(count);
  while (getrandom(bytes.data(), count, 0) != static_cast<ssize_t>(count)) {
  }
  return bytes;
}

std::string make_token() { return fmt::format("{:016x}{:016x}", random_u64(), random_u64()); }

bool equal_secrets(std::string_view a, std::string_view b) noexcept {
  return equal_secrets(std::as_bytes(std::span(a)), std::as_bytes(std::span(b)));
}

bool equal_secrets(ByteView a, ByteView b) noexcept {
  if (a.size() != b.size()) return false;
  // `volatile` stops the compiler from ending the loop at the first difference.
  const volatile std::byte* const x = a.data();
  const volatile std::byte* const y = b.data();
  std::byte difference{0};
  for (std::size_t i = 0; i < a.size(); ++i) difference |= std::byte{x[i]} ^ std::byte{y[i]};
  return difference == std::byte{0};
}

}  // namespace wherry
