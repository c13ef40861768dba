// SPDX-License-Identifier: Apache-2.0
#include "sim/bypass/echo.hpp"

#include <algorithm>
#include <utility>

namespace wherry::sim {
namespace {

// Offsets in a frame: Ethernet II, IPv4 without options (RFC 791), UDP (RFC 768) or ICMP (RFC 792).
constexpr std::size_t kMac = 6;
constexpr std::size_t kEtherType = 12;
constexpr std::size_t kIp = 14;
constexpr std::size_t kProtocol = kIp + 9;
constexpr std::size_t kSource = kIp + 12;
constexpr std::size_t kDestination = kIp + 16;
constexpr std::size_t kPayload = kIp + 20;

constexpr unsigned kIpv4WithoutOptions = 0x45;
constexpr unsigned kIcmp = 1;
constexpr unsigned kUdp = 17;
constexpr unsigned kEchoRequest = 8;

unsigned byte(std::span<const std::byte> data, std::size_t at) { return std::to_integer<unsigned>(data[at]); }

void swap_fields(std::span<std::byte> data, std::size_t a, std::size_t b, std::size_t bytes) {
  std::swap_ranges(data.begin() + static_cast<std::ptrdiff_t>(a), data.begin() + static_cast<std::ptrdiff_t>(a + bytes),
                   data.begin() + static_cast<std::ptrdiff_t>(b));
}

/// RFC 1624, equation 3, for a word that decreases by `less`: HC' = HC + less, in one's complement.
void correct_checksum(std::span<std::byte> data, std::size_t at, unsigned less) {
  unsigned sum = (byte(data, at) << 8 | byte(data, at + 1)) + less;
  sum = (sum & 0xFFFFU) + (sum >> 16);
  data[at] = static_cast<std::byte>(sum >> 8);
  data[at + 1] = static_cast<std::byte>(sum);
}

}  // namespace

void echo(std::span<std::byte> head) noexcept {
  if (head.size() < 2 * kMac) return;
  swap_fields(head, 0, kMac, kMac);
  const bool ipv4 = head.size() >= kPayload + 8 && byte(head, kEtherType) == 0x08 && byte(head, kEtherType + 1) == 0x00;
  if (!ipv4 || byte(head, kIp) != kIpv4WithoutOptions) return;
  swap_fields(head, kSource, kDestination, 4);
  if (byte(head, kProtocol) == kUdp) swap_fields(head, kPayload, kPayload + 2, 2);
  if (byte(head, kProtocol) == kIcmp && byte(head, kPayload) == kEchoRequest) {
    head[kPayload] = std::byte{0};
    correct_checksum(head, kPayload + 2, kEchoRequest << 8);
  }
}

bool InPlaceEcho::forward(std::span<std::byte> head, std::uint32_t frame_bytes) {
  if (frame_bytes > longest_) return false;
  echo(head);
  return true;
}

void StreamEcho::cut(const Frame& frame) {
  const std::size_t most = longest_ - kPieceHeader;
  for (std::size_t number = 0; number * most < frame.bytes.size(); ++number) {
    const std::size_t count = std::min(most, frame.bytes.size() - number * most);
    Frame piece{.queue = frame.queue, .bytes = {frame.bytes.begin(), frame.bytes.begin() + kEtherType}};
    for (const std::size_t word : {std::size_t{kPieceType}, number, count}) {
      piece.bytes.push_back(static_cast<std::byte>(word >> 8));
      piece.bytes.push_back(static_cast<std::byte>(word));
    }
    const auto from = frame.bytes.begin() + static_cast<std::ptrdiff_t>(number * most);
    piece.bytes.insert(piece.bytes.end(), from, from + static_cast<std::ptrdiff_t>(count));
    piece.bytes.resize(std::max(piece.bytes.size(), kShortestFrame));
    waiting_.push_back(std::move(piece));
  }
}

void StreamEcho::turn() {
  for (;;) {
    if (waiting_.empty()) {
      auto frame = port_.take();
      if (!frame) return;
      echo(std::span(frame->bytes).first(std::min<std::size_t>(frame->bytes.size(), kLineBytes)));
      if (frame->bytes.size() > longest_)
        cut(*frame);
      else
        waiting_.push_back(std::move(*frame));
    }
    if (!port_.try_put(waiting_.front())) return;
    waiting_.pop_front();
  }
}

std::size_t StreamEcho::clear() {
  const std::size_t had = waiting_.size();
  waiting_.clear();
  return had;
}

}  // namespace wherry::sim
