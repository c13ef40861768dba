// SPDX-License-Identifier: Apache-2.0
#include "sim/qemu/wire.hpp"

#include <fmt/core.h>

#include <array>

#include "base/try.hpp"

namespace wherry::sim {
namespace {

constexpr std::uint32_t kLongest = 0x1'1000;  ///< NET_BUFSIZE of QEMU's net/net.h
constexpr std::size_t kLengthBytes = 4;

}  // namespace

void Wire::send(std::span<const std::byte> frame) {
  const auto size = static_cast<std::uint32_t>(frame.size());
  const std::array length{static_cast<std::byte>(size >> 24), static_cast<std::byte>(size >> 16),
                          static_cast<std::byte>(size >> 8), static_cast<std::byte>(size)};
  channel_.put(length);
  channel_.put(frame);
}

Result<std::optional<std::vector<std::byte>>> Wire::take() {
  const auto bytes = channel_.bytes();
  if (bytes.size() < kLengthBytes) return std::optional<std::vector<std::byte>>();
  std::uint32_t size = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) size = size << 8 | std::to_integer<std::uint32_t>(bytes[i]);
  if (size == 0 || size > kLongest)
    return Status(StatusCode::kProtocol, fmt::format("a frame of {} bytes from QEMU's NIC", size));
  if (bytes.size() - kLengthBytes < size) return std::optional<std::vector<std::byte>>();
  const auto body = bytes.subspan(kLengthBytes, size);
  std::vector<std::byte> frame(body.begin(), body.end());
  channel_.consume(kLengthBytes + size);
  return std::optional(std::move(frame));
}

Status Wire::turn() {
  WHERRY_TRY(channel_.flush());
  WHERRY_ASSIGN([[maybe_unused]] const bool some, channel_.fill());
  return {};
}

}  // namespace wherry::sim
