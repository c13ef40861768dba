// SPDX-License-Identifier: Apache-2.0
// Makes frames wrong.
#include "sim/traffic.hpp"

#include <algorithm>

namespace wherry::kv::rtl {
namespace {

std::uint16_t word(const Frame& frame, std::size_t at) {
  return static_cast<std::uint16_t>(std::to_integer<unsigned>(frame[at]) << 8 |
                                    std::to_integer<unsigned>(frame[at + 1]));
}

}  // namespace

std::string_view name_of(Spoil spoil) {
  constexpr std::array<std::string_view, kSpoils> kNames{
      "flip",           "cut",       "pad",        "ip_checksum", "udp_checksum",  "fragment",     "vlan",
      "ip_options",     "ip_length", "udp_length", "other_port",  "other_address", "other_source", "other_mac",
      "other_protocol", "too_long",  "field",      "random",      "random_for_us"};
  return kNames[static_cast<std::size_t>(spoil)];
}

void Traffic::spoil(Frame& frame, Spoil how, bool of_client) {
  const auto any_word = [&] { return static_cast<std::uint16_t>(random_.next()); };
  const auto other = [&](std::uint16_t than) { return static_cast<std::uint16_t>(than ^ (1 + random_.below(0xffff))); };
  const auto bytes = static_cast<std::uint32_t>(frame.size());
  switch (how) {
    case Spoil::kFlip:
      // One flip in a leader's frame, which its checksum finds: otherwise it would say what no leader says.
      for (std::uint32_t i = of_client ? 1 + random_.below(3) : 1; i > 0; --i)
        frame[random_.below(bytes)] ^= static_cast<std::byte>(1U << random_.below(8));
      return;
    case Spoil::kCut:
      frame.resize(kShortest + random_.below(bytes - kShortest));
      return;
    case Spoil::kPad:
      for (std::uint32_t i = 1 + random_.below(200); i > 0; --i)
        frame.push_back(static_cast<std::byte>(random_.next()));
      return;
    case Spoil::kIpChecksum:
      patch(frame, kIpv4Offset + 10, other(word(frame, kIpv4Offset + 10)), false, false);
      return;
    case Spoil::kUdpChecksum: {
      const std::uint16_t sum = other(word(frame, kUdpOffset + 6));
      if (sum != 0) patch(frame, kUdpOffset + 6, sum, false, false);
      return;
    }
    case Spoil::kFragment:
      patch(frame, kIpv4Offset + 6,
            static_cast<std::uint16_t>(random_.below(2) == 0 ? 0x2000 : 1 + random_.below(0x1fff)), true, false);
      return;
    case Spoil::kVlan: {
      const std::array<std::byte, 4> tag{std::byte{0x81}, std::byte{0}, static_cast<std::byte>(random_.next()),
                                         std::byte{7}};
      frame.insert(frame.begin() + 12, tag.begin(), tag.end());
      return;
    }
    case Spoil::kIpOptions: {
      const std::array<std::byte, 4> nothing{std::byte{1}, std::byte{1}, std::byte{1}, std::byte{1}};
      frame.insert(frame.begin() + kUdpOffset, nothing.begin(), nothing.end());
      patch(frame, kIpv4Offset, 0x4600, true, false);
      patch(frame, kIpv4Offset + 2, static_cast<std::uint16_t>(word(frame, kIpv4Offset + 2) + 4), true, false);
      return;
    }
    case Spoil::kIpLength:
      patch(frame, kIpv4Offset + 2, random_.below(2) == 0 ? any_word() : static_cast<std::uint16_t>(random_.below(80)),
            true, false);
      return;
    case Spoil::kUdpLength:  // with the IPv4 length, or alone
      patch(frame, kUdpOffset + 4, random_.below(2) == 0 ? any_word() : static_cast<std::uint16_t>(random_.below(40)),
            false, true);
      if (random_.below(2) == 0)
        patch(frame, kIpv4Offset + 2, static_cast<std::uint16_t>(word(frame, kUdpOffset + 4) + 20), true, false);
      return;
    case Spoil::kOtherPort:
      patch(frame, kUdpOffset + 2, other(kUdpPort), false, true);
      return;
    case Spoil::kOtherAddress:
      patch(frame, kIpv4Offset + 18, other(word(frame, kIpv4Offset + 18)), true, true);
      return;
    case Spoil::kOtherSource:
      patch(frame, kIpv4Offset + 14, other(word(frame, kIpv4Offset + 14)), true, true);
      return;
    case Spoil::kOtherMac:
      patch(frame, 2 * random_.below(3), random_.below(2) == 0 ? 0xffff : 0x0100, false, false);
      return;
    case Spoil::kOtherProtocol:
      patch(frame, kIpv4Offset + 8, static_cast<std::uint16_t>(kIpTtl << 8 | random_.below(kIpProtocolUdp)), true,
            true);
      return;
    case Spoil::kTooLong: {
      const Kv h{.kind = static_cast<std::uint8_t>(random_.below(3) == 0 ? Kind::replicate : Kind::write),
                 .node = static_cast<std::uint8_t>(random_.below(2)),
                 .epoch = Pair::kEpoch,
                 .request = static_cast<std::uint32_t>(random_.next()),
                 .version = static_cast<std::uint32_t>(random_.below(5)),
                 .key = key()};
      const bool node = h.node != 0 && nodes_ > 1;
      Frame content(kMaxValueBytes + 1 + random_.below(random_.below(4) == 0 ? 8000 : 400));
      for (std::byte& byte : content) byte = static_cast<std::byte>(random_.next());
      frame = frame_of(node ? Pair::node(1) : client(), h, content, random_.below(2) == 0);
      return;
    }
    case Spoil::kField: {
      Kv h = Kv::unpack(ByteView(frame).subspan<kKvOffset, Kv::kBytes>());
      switch (random_.below(6)) {
        case 0:
          h.kind = static_cast<std::uint8_t>(random_.below(32));
          break;
        case 1:
          h.node = static_cast<std::uint8_t>(random_.below(8));
          break;
        case 2:
          h.detail = static_cast<std::uint8_t>(random_.next());
          break;
        case 3:
          h.epoch = any_word();
          break;
        case 4:
          h.client = any_word();  // of which the lower 13 bits are sent
          h.candidate = static_cast<std::uint8_t>(random_.below(8));
          break;
        default:
          h.version = static_cast<std::uint32_t>(random_.next());
      }
      const Frame content(frame.begin() + kHeaderBytes, frame.end());
      frame = frame_of(client(), h, content, random_.below(2) == 0);
      return;
    }
    case Spoil::kRandom:
    case Spoil::kRandomForUs: {
      const std::uint32_t size = kShortest + random_.below(random_.below(8) == 0 ? 9000 : 200);
      Frame noise(size);
      for (std::byte& byte : noise) byte = static_cast<std::byte>(random_.next());
      if (how == Spoil::kRandomForUs) std::copy_n(frame.begin(), kKvOffset, noise.begin());
      if (how == Spoil::kRandomForUs && random_.below(2) == 0) {  // as long as it says, with no checksum
        patch(noise, kIpv4Offset + 2, static_cast<std::uint16_t>(size - kIpv4Offset), true, false);
        patch(noise, kUdpOffset + 4, static_cast<std::uint16_t>(size - kUdpOffset), false, false);
        patch(noise, kUdpOffset + 6, 0, false, false);
      }
      frame = noise;
      return;
    }
  }
}

Frame Traffic::example(Spoil how) {
  const Kv h{.kind = static_cast<std::uint8_t>(Kind::write),
             .epoch = Pair::kEpoch,
             .client = 1,
             .request = 1,
             .key = keys_.front()};
  Frame frame = frame_of(client(), h, ByteView(Frame(100, std::byte{7})), true);
  spoil(frame, how, true);
  return frame;
}

}  // namespace wherry::kv::rtl
