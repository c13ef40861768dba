// SPDX-License-Identifier: Apache-2.0
#include "sim/demo/function.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "sim/bypass/echo.hpp"

namespace wherry::sim {
namespace {

using kv::rtl::Side;

constexpr kv::Cycles kAtOnce = 512;  ///< cycles between two looks at what has come
constexpr std::size_t kWaiting = 8;  ///< frames before the core; the NIC keeps the rest

// Offsets in a frame: Ethernet II, ARP of Ethernet and IPv4 (RFC 826), IPv4 (RFC 791), ICMP (RFC 792).
constexpr std::size_t kMac = 6, kEtherType = 12, kBody = 14;
constexpr std::size_t kArpOperation = 20, kArpSenderMac = 22, kArpSenderIp = 28, kArpTargetIp = 38, kArpEnd = 42;
constexpr std::size_t kIpFlags = 20, kIpProtocol = 23, kIpDestination = 30, kIcmp = 34;
constexpr std::array<unsigned, 8> kArpOfIpv4{0x08, 0x06, 0, 1, 0x08, 0x00, kMac, 4};  ///< from the type on
constexpr unsigned kArpRequest = 1, kArpReply = 2;
constexpr unsigned kIpv4WithoutOptions = 0x45, kProtocolIcmp = 1, kProtocolUdp = 17, kEchoRequest = 8;
constexpr unsigned kFragment = 0x3FFF;  ///< more fragments, and the offset

unsigned byte(std::span<const std::byte> data, std::size_t at) { return std::to_integer<unsigned>(data[at]); }

std::uint64_t number(std::span<const std::byte> data, std::size_t at, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value = value << 8 | byte(data, at + i);
  return value;
}

void set_number(std::span<std::byte> data, std::size_t at, std::size_t bytes, std::uint64_t value) {
  for (std::size_t i = bytes; i-- > 0; value >>= 8) data[at + i] = static_cast<std::byte>(value);
}

bool asks_who_has(std::span<const std::byte> frame, std::uint32_t ip) {
  if (frame.size() < kArpEnd) return false;
  for (std::size_t i = 0; i < kArpOfIpv4.size(); ++i)
    if (byte(frame, kEtherType + i) != kArpOfIpv4[i]) return false;
  return number(frame, kArpOperation, 2) == kArpRequest && number(frame, kArpTargetIp, 4) == ip;
}

std::vector<std::byte> is_at(std::span<const std::byte> frame, const kv::Endpoint& self) {
  std::vector<std::byte> reply(frame.begin(), frame.begin() + kArpEnd);
  std::copy_n(frame.begin() + kArpSenderMac, kMac, reply.begin());
  set_number(reply, kMac, kMac, self.mac);
  set_number(reply, kArpOperation, 2, kArpReply);
  std::copy_n(frame.begin() + kArpSenderMac, kMac + 4, reply.begin() + kArpSenderMac + kMac + 4);
  set_number(reply, kArpSenderMac, kMac, self.mac);
  set_number(reply, kArpSenderIp, 4, self.ip);
  reply.resize(kShortestFrame);
  return reply;
}

bool is_echo_request(std::span<const std::byte> frame, std::uint32_t ip) {
  return frame.size() >= kIcmp + 8 && number(frame, kEtherType, 2) == 0x0800 &&
         byte(frame, kBody) == kIpv4WithoutOptions && (number(frame, kIpFlags, 2) & kFragment) == 0 &&
         byte(frame, kIpProtocol) == kProtocolIcmp && number(frame, kIpDestination, 4) == ip &&
         byte(frame, kIcmp) == kEchoRequest;
}

}  // namespace

std::optional<std::vector<std::byte>> answer(std::span<const std::byte> frame, const kv::Endpoint& self) {
  if (asks_who_has(frame, self.ip)) return is_at(frame, self);
  if (!is_echo_request(frame, self.ip)) return std::nullopt;
  std::vector<std::byte> reply(frame.begin(), frame.end());
  echo(std::span(reply).first(std::min<std::size_t>(reply.size(), kLineBytes)));
  set_number(reply, kMac, kMac, self.mac);
  return reply;
}

bool KvFunction::turn(StreamPort& port) {
  while (kv_.waiting(Side::kNet) < kWaiting) {
    const auto frame = port.take();
    if (!frame) break;
    ++counters_.frames_in;
    kv_.put(Side::kNet, frame->bytes);
  }
  if (!kv_.idle()) kv_.run(kAtOnce);
  while (const auto frame = kv_.take(Side::kHost)) {
    auto reply = answer(frame->bytes, self_);
    if (!reply) {
      ++counters_.ignored;
      continue;
    }
    ++(number(*reply, kEtherType, 2) == 0x0806 ? counters_.arp : counters_.icmp);
    kv_.put(Side::kHost, *reply);
  }
  while (auto frame = kv_.take(Side::kNet)) {
    if (byte(frame->bytes, kIpProtocol) == kProtocolUdp) ++counters_.kv;  // the others are those from above
    out_.push_back({.queue = 0, .bytes = std::move(frame->bytes)});
  }
  while (!out_.empty() && port.try_put(out_.front())) {
    out_.pop_front();
    ++counters_.frames_out;
  }
  return !kv_.idle() || !out_.empty();
}

}  // namespace wherry::sim
