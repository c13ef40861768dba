// SPDX-License-Identifier: Apache-2.0
#include "kv/net/frame_io.hpp"

#include <algorithm>
#include <cstring>

#include "kv/net/datagram.hpp"

namespace wherry::kv {
namespace {

constexpr std::size_t kUdpEnd = kUdpOffset + Udp::kBytes;
constexpr std::size_t kIpHeaderBytes = Ipv4::kBytes;

/// One's complement sum in the machine's byte order: the sum of byte-swapped words is the byte-swapped sum (RFC 1071).
/// It adds 32-bit words, two at a time, and adds the carries at the end, because summing the value takes most of a
/// frame's time.
std::uint64_t add_words(std::uint64_t sum, ByteView bytes) noexcept {
  constexpr std::uint64_t kLow = 0xffffffff;
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  std::uint64_t low = 0, high = 0;
  for (; left >= 16; at += 16, left -= 16) {
    std::array<std::uint64_t, 2> words{};
    std::memcpy(words.data(), at, 16);
    low += (words[0] & kLow) + (words[1] & kLow);
    high += (words[0] >> 32) + (words[1] >> 32);
  }
  sum += low + high;
  for (; left >= 4; at += 4, left -= 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, at, 4);
    sum += word;
  }
  std::uint32_t rest = 0;
  if (left > 0) std::memcpy(&rest, at, left);
  return sum + rest;
}

/// Folds the sum to 16 bits, in the byte order of the wire.
std::uint16_t fold(std::uint64_t sum) noexcept {
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(sum << 8 | sum >> 8);
}

/// The sum over the pseudo header, the unchanged UDP header, and the data.
std::uint16_t udp_sum(ByteView ip_packet, std::size_t udp_length) noexcept {
  const std::array<std::byte, 4> pseudo{std::byte{0}, std::byte{kIpProtocolUdp},
                                        static_cast<std::byte>(udp_length >> 8), static_cast<std::byte>(udp_length)};
  std::uint64_t sum = add_words(0, ip_packet.subspan(12, 8));  // both addresses
  sum = add_words(sum, pseudo);
  return fold(add_words(sum, ip_packet.subspan(kIpHeaderBytes, udp_length)));
}

bool is_ours(const Ethernet& ethernet, const Ipv4& ip, const Udp& udp, const Endpoint& self) noexcept {
  return ethernet.destination == self.mac && ethernet.ethertype == kEthertypeIpv4 && ip.version_ihl == kIpVersionIhl &&
         ip.protocol == kIpProtocolUdp && (ip.flags_offset & kIpFragmentMask) == 0 && ip.destination == self.ip &&
         udp.destination_port == self.port;
}

}  // namespace

Endpoint destination_of(ByteView frame) noexcept {
  return {.mac = Ethernet::unpack(frame.subspan<kEthernetOffset, Ethernet::kBytes>()).destination,
          .ip = Ipv4::unpack(frame.subspan<kIpv4Offset, Ipv4::kBytes>()).destination,
          .port = Udp::unpack(frame.subspan<kUdpOffset, Udp::kBytes>()).destination_port};
}

Parsed parse(ByteView frame, const Endpoint& self, Received* out) noexcept {
  if (frame.size() < kUdpEnd) return Parsed::kForeign;  // no UDP header, so no port
  const auto ethernet = Ethernet::unpack(frame.subspan<kEthernetOffset, Ethernet::kBytes>());
  const auto ip = Ipv4::unpack(frame.subspan<kIpv4Offset, Ipv4::kBytes>());
  const auto udp = Udp::unpack(frame.subspan<kUdpOffset, Udp::kBytes>());
  if (!is_ours(ethernet, ip, udp, self)) return Parsed::kForeign;
  const ByteView packet = frame.subspan(kIpv4Offset);
  if (fold(add_words(0, packet.first(kIpHeaderBytes))) != 0xffff) return Parsed::kBadChecksum;
  if (udp.length < kMinUdpLength || ip.total_length != udp.length + kIpHeaderBytes || ip.total_length > packet.size())
    return Parsed::kBadLength;
  if (udp.checksum != 0 && udp_sum(packet, udp.length) != 0xffff) return Parsed::kBadChecksum;
  out->from = {.mac = ethernet.source, .ip = ip.source, .port = udp.source_port};
  out->message = *unpack_datagram(frame.subspan(kKvOffset, udp.length - Udp::kBytes));
  return Parsed::kOurs;
}

std::size_t build(std::span<std::byte> out, const Endpoint& from, const Endpoint& to, const Message& message,
                  UdpChecksum checksum) noexcept {
  const std::size_t length = message.value.size();
  if (length > kLongestValue || out.size() < kHeaderBytes + length) return 0;
  Ethernet{.destination = to.mac, .source = from.mac, .ethertype = kEthertypeIpv4}.pack(
      out.subspan<kEthernetOffset, Ethernet::kBytes>());
  Ipv4{.version_ihl = kIpVersionIhl,
       .total_length = static_cast<std::uint16_t>(kMinIpLength + length),
       .flags_offset = kIpDontFragment,
       .ttl = kIpTtl,
       .protocol = kIpProtocolUdp,
       .source = from.ip,
       .destination = to.ip}
      .pack(out.subspan<kIpv4Offset, Ipv4::kBytes>());
  const Udp udp{.source_port = from.port,
                .destination_port = to.port,
                .length = static_cast<std::uint16_t>(kMinUdpLength + length)};
  udp.pack(out.subspan<kUdpOffset, Udp::kBytes>());
  (void)pack_datagram(message, out.subspan(kKvOffset));

  const auto put = [&](std::size_t at, std::uint16_t value) {
    out[at] = static_cast<std::byte>(value >> 8);
    out[at + 1] = static_cast<std::byte>(value);
  };
  const std::span<std::byte> packet = out.subspan(kIpv4Offset);
  put(kIpv4Offset + 10, static_cast<std::uint16_t>(~fold(add_words(0, packet.first(kIpHeaderBytes)))));
  if (checksum == UdpChecksum::kRight) {
    const auto sum = static_cast<std::uint16_t>(~udp_sum(packet, udp.length));
    put(kUdpOffset + 6, sum == 0 ? 0xffff : sum);  // 0 would say that there is none
  }
  return kHeaderBytes + length;
}

}  // namespace wherry::kv
