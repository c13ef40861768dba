// SPDX-License-Identifier: Apache-2.0
#include "kv/sim/wire.hpp"

#include <algorithm>

namespace wherry::kv::sim {
namespace {

constexpr std::size_t kUdpHeader = Udp::kBytes;

/// The one's complement sum of 16-bit words, folded; of a header with a right checksum it is 0xffff.
std::uint32_t sum_of(std::span<const std::byte, Ipv4::kBytes> header) noexcept {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < header.size(); i += 2)
    sum += std::to_integer<std::uint32_t>(header[i]) << 8 | std::to_integer<std::uint32_t>(header[i + 1]);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

}  // namespace

ByteView frame_of(const Endpoint& from, const Endpoint& to, ByteView datagram, FrameBuffer& buffer) noexcept {
  if (kKvOffset + datagram.size() > buffer.size()) return {};
  const auto udp_length = static_cast<std::uint16_t>(kUdpHeader + datagram.size());
  const std::span<std::byte> out(buffer);
  Ethernet{.destination = to.mac, .source = from.mac, .ethertype = kEthertypeIpv4}.pack(
      out.subspan<kEthernetOffset, Ethernet::kBytes>());
  Ipv4 ipv4{.version_ihl = kIpVersionIhl,
            .total_length = static_cast<std::uint16_t>(Ipv4::kBytes + udp_length),
            .flags_offset = kIpDontFragment,
            .ttl = kIpTtl,
            .protocol = kIpProtocolUdp,
            .source = from.ip,
            .destination = to.ip};
  const auto header = out.subspan<kIpv4Offset, Ipv4::kBytes>();
  ipv4.pack(header);
  ipv4.checksum = static_cast<std::uint16_t>(~sum_of(header));
  ipv4.pack(header);
  Udp{.source_port = from.port, .destination_port = to.port, .length = udp_length}.pack(
      out.subspan<kUdpOffset, Udp::kBytes>());
  std::copy(datagram.begin(), datagram.end(), buffer.begin() + kKvOffset);
  return out.first(kKvOffset + datagram.size());
}

std::optional<Packet> datagram_of(ByteView frame, const Endpoint& self) noexcept {
  if (frame.size() < kKvOffset) return std::nullopt;
  const Ethernet ethernet = Ethernet::unpack(frame.subspan<kEthernetOffset, Ethernet::kBytes>());
  const auto header = frame.subspan<kIpv4Offset, Ipv4::kBytes>();
  const Ipv4 ipv4 = Ipv4::unpack(header);
  const Udp udp = Udp::unpack(frame.subspan<kUdpOffset, Udp::kBytes>());
  const Endpoint from{.mac = ethernet.source, .ip = ipv4.source, .port = udp.source_port};
  const Endpoint to{.mac = ethernet.destination, .ip = ipv4.destination, .port = udp.destination_port};
  if (ethernet.ethertype != kEthertypeIpv4 || ipv4.version_ihl != kIpVersionIhl || sum_of(header) != 0xffff ||
      (ipv4.flags_offset & kIpFragmentMask) != 0 || ipv4.protocol != kIpProtocolUdp || !(to == self))
    return std::nullopt;
  if (udp.length < kUdpHeader || udp.length + Ipv4::kBytes != ipv4.total_length ||
      kUdpOffset + udp.length > frame.size())
    return std::nullopt;
  return Packet{.from = from, .to = to, .bytes = frame.subspan(kKvOffset, udp.length - kUdpHeader)};
}

void MessagePort::send(const Endpoint& to, const Message& message) {
  std::array<std::byte, Kv::kBytes + kMaxValueBytes> datagram;
  if (message.value.size() > kMaxValueBytes) return;  // nobody has so long a frame
  message.header.pack(std::span(datagram).first<Kv::kBytes>());
  std::copy(message.value.begin(), message.value.end(), datagram.begin() + Kv::kBytes);
  network_.send(port_, to, ByteView(datagram).first(Kv::kBytes + message.value.size()));
}

void MessagePort::receive(Cycles now, const Packet& packet) {
  const std::optional<Packet> arrived =
      packet.form == Form::kDatagram ? packet : datagram_of(packet.bytes, network_.endpoint(port_));
  if (!arrived || arrived->bytes.size() < Kv::kBytes) return;
  sink_.on_message(now, arrived->from,
                   {Kv::unpack(arrived->bytes.first<Kv::kBytes>()), arrived->bytes.subspan(Kv::kBytes)});
}

void FramePort::receive(Cycles now, const Packet& packet) {
  if (packet.form == Form::kFrame) return sink_.on_frame(now, packet.bytes);
  FrameBuffer buffer;
  sink_.on_frame(now, frame_of(packet.from, packet.to, packet.bytes, buffer));
}

}  // namespace wherry::kv::sim
