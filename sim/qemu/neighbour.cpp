// SPDX-License-Identifier: Apache-2.0
#include "sim/qemu/neighbour.hpp"

#include <algorithm>

#include "sim/bypass/echo.hpp"

namespace wherry::sim {
namespace {

// Offsets in a frame: Ethernet II, then ARP (RFC 826) or IPv4 without options (RFC 791).
constexpr std::size_t kType = 12, kOperation = 20, kSenderMac = 22, kSenderIp = 28, kTargetMac = 32, kTargetIp = 38,
                      kArpEnd = 42;
constexpr std::size_t kIpProtocol = 23, kIpDestination = 30, kIcmpType = 34, kIcmpEnd = 42;
constexpr std::size_t kMacBytes = 6;
constexpr std::uint8_t kIcmp = 1, kEchoRequest = 8, kReply = 2;
/// Hardware 1 (Ethernet), protocol IPv4, lengths 6 and 4, operation 1 (request).
constexpr std::array<std::uint8_t, 10> kArpRequest{0x08, 0x06, 0, 1, 0x08, 0x00, 6, 4, 0, 1};
constexpr std::array<std::uint8_t, 3> kIpv4{0x08, 0x00, 0x45};

template <std::size_t Size>
bool has(std::span<const std::byte> frame, std::size_t at, const std::array<std::uint8_t, Size>& bytes) {
  return frame.size() >= at + Size && std::equal(bytes.begin(), bytes.end(), frame.begin() + std::ptrdiff_t(at),
                                                 [](std::uint8_t a, std::byte b) { return std::byte{a} == b; });
}

template <std::size_t Size>
void put(std::vector<std::byte>& frame, std::size_t at, const std::array<std::uint8_t, Size>& bytes) {
  for (std::size_t i = 0; i < Size; ++i) frame[at + i] = std::byte{bytes[i]};
}

}  // namespace

std::optional<std::vector<std::byte>> Neighbour::answer(std::span<const std::byte> frame) const {
  std::vector<std::byte> reply(frame.begin(), frame.end());
  if (frame.size() >= kArpEnd && has(frame, kType, kArpRequest) && has(frame, kTargetIp, ip)) {
    std::copy_n(frame.begin() + kSenderMac, kMacBytes + 4, reply.begin() + kTargetMac);
    std::copy_n(frame.begin() + kMacBytes, kMacBytes, reply.begin());
    put(reply, kMacBytes, mac);
    reply[kOperation + 1] = std::byte{kReply};
    put(reply, kSenderMac, mac);
    put(reply, kSenderIp, ip);
    return reply;
  }
  const bool ping = frame.size() >= kIcmpEnd && has(frame, 0, mac) && has(frame, kType, kIpv4) &&
                    frame[kIpProtocol] == std::byte{kIcmp} && has(frame, kIpDestination, ip) &&
                    frame[kIcmpType] == std::byte{kEchoRequest};
  if (!ping) return std::nullopt;
  echo(reply);
  return reply;
}

}  // namespace wherry::sim
