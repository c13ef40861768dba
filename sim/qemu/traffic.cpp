// SPDX-License-Identifier: Apache-2.0
#include "sim/qemu/traffic.hpp"

#include <array>
#include <span>

#include "base/random.hpp"

namespace wherry::sim {
namespace {

enum class Kind : std::uint8_t { kUnknown, kUdp, kPing };

constexpr std::uint64_t kNicMac = 0x5254'0012'3456;
constexpr std::uint64_t kPeerMac = 0x0200'0000'0001;
constexpr std::uint16_t kLocalExperiments = 0x88B5;  ///< IEEE 802, EtherType for local use
constexpr std::uint16_t kIpv4 = 0x0800;
constexpr std::uint32_t kNicIp = 0x0A00'0002;
constexpr std::uint32_t kPeerIp = 0x0A00'0001;
constexpr std::uint16_t kNicPort = 7;
constexpr std::uint16_t kPeerPort = 40'000;
constexpr std::size_t kEthernet = 14;
constexpr std::size_t kIpHeader = 20;

/// Puts bytes in network order, one after the other.
class Builder {
 public:
  template <typename T>
  void put(T value, std::size_t bytes = sizeof(T)) {
    for (std::size_t i = bytes; i-- > 0;) out_.push_back(static_cast<std::byte>(std::uint64_t{value} >> (8 * i)));
  }
  /// Puts the RFC 1071 checksum, over all bytes from `from` on and `more`, into the two bytes at `at`.
  void checksum(std::size_t from, std::size_t at, std::uint32_t more = 0) {
    std::uint32_t sum = more;
    for (std::size_t i = from; i < out_.size(); ++i)
      sum += std::to_integer<std::uint32_t>(out_[i]) << ((i - from) % 2 == 0 ? 8 : 0);
    while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
    out_[at] = static_cast<std::byte>(~sum >> 8);
    out_[at + 1] = static_cast<std::byte>(~sum);
  }
  [[nodiscard]] std::size_t size() const { return out_.size(); }
  std::vector<std::byte> take() { return std::move(out_); }

 private:
  std::vector<std::byte> out_;
};

void put_ip(Builder& out, std::uint32_t from, std::uint32_t to, std::uint8_t protocol, std::uint32_t frame_bytes,
            std::uint64_t number) {
  out.put(std::uint16_t{0x4500});
  out.put(static_cast<std::uint16_t>(frame_bytes - kEthernet));
  out.put(static_cast<std::uint16_t>(number));
  out.put(std::uint16_t{0});
  out.put(std::uint8_t{64});
  out.put(protocol);
  out.put(std::uint16_t{0});
  out.put(from);
  out.put(to);
  out.checksum(kEthernet, kEthernet + 10);
}

}  // namespace

std::uint32_t Traffic::size(std::uint64_t number) const {
  const std::uint32_t size = any_size(number);
  return size <= longest_ ? size : kShortest + size % (longest_ - kShortest + 1);
}

std::uint32_t Traffic::any_size(std::uint64_t number) const {
  constexpr std::array<std::uint32_t, 10> kEdges{60, 61, 63, 64, 65, 1514, 2048, 2049, 4096, 9000};
  SplitMix64 random(splitmix64(seed_, 2 * number));
  const std::uint32_t sort = random.below(100);
  if (sort < 60) return kShortest + random.below(69);
  if (sort < 85) return 129 + random.below(472);
  if (sort < 94) return 601 + random.below(914);
  if (sort < 98) return kEdges[random.below(kEdges.size())];
  return 1515 + random.below(kLongest - 1514);
}

std::vector<std::byte> Traffic::build(std::uint64_t number, bool reply) const {
  SplitMix64 random(splitmix64(seed_, 2 * number + 1));
  const auto kind = static_cast<Kind>(random.below(3));
  const std::uint32_t bytes = size(number);
  Builder out;
  out.put(reply ? kPeerMac : kNicMac, 6);
  out.put(reply ? kNicMac : kPeerMac, 6);
  out.put(kind == Kind::kUnknown ? kLocalExperiments : kIpv4);
  const std::uint32_t from = reply ? kNicIp : kPeerIp, to = reply ? kPeerIp : kNicIp;
  const std::size_t transport = kEthernet + kIpHeader;
  const auto transport_bytes = static_cast<std::uint32_t>(bytes - transport);
  if (kind == Kind::kUdp) {
    put_ip(out, from, to, 17, bytes, number);
    out.put(reply ? kNicPort : kPeerPort);
    out.put(reply ? kPeerPort : kNicPort);
    out.put(static_cast<std::uint16_t>(transport_bytes));
    out.put(std::uint16_t{0});
  } else if (kind == Kind::kPing) {
    put_ip(out, from, to, 1, bytes, number);
    out.put(static_cast<std::uint16_t>(reply ? 0x0000 : 0x0800));
    out.put(std::uint16_t{0});
    out.put(static_cast<std::uint32_t>(number));
  }
  out.put(number);
  while (out.size() < bytes) out.put(random(), std::min<std::size_t>(8, bytes - out.size()));
  const std::uint32_t pseudo_header =
      (from >> 16) + (from & 0xFFFF) + (to >> 16) + (to & 0xFFFF) + 17 + transport_bytes;
  if (kind == Kind::kUdp) out.checksum(transport, transport + 6, pseudo_header);
  if (kind == Kind::kPing) out.checksum(transport, transport + 2);
  return out.take();
}

}  // namespace wherry::sim
