// SPDX-License-Identifier: Apache-2.0
// Parses arbitrary bytes as a frame. If a frame is ours, it is built again with the same meaning, and must parse again.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "kv/net/datagram.hpp"
#include "kv/net/frame_io.hpp"

using namespace wherry::kv;

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

void rebuild(const Received& first, const Endpoint& self, UdpChecksum checksum) {
  std::vector<std::byte> again(kHeaderBytes + first.message.value.size());
  check(build(again, first.from, self, first.message, checksum) == again.size());
  Received second;
  check(parse(again, self, &second) == Parsed::kOurs);
  check(second.from == first.from && second.message.header == first.message.header);
  check(std::ranges::equal(second.message.value, first.message.value));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A separate allocation, so that AddressSanitizer detects an access beyond its last byte.
  const auto copy = std::make_unique<std::byte[]>(size);
  std::copy_n(reinterpret_cast<const std::byte*>(data), size, copy.get());
  const wherry::ByteView frame(copy.get(), size);
  if (size < kHeaderBytes) {
    Received received;
    check(parse(frame, {}, &received) != Parsed::kOurs);
    return 0;
  }
  // Whatever its destination is, the parser takes it as its own address.
  const Endpoint self = destination_of(frame);
  Received received;
  if (parse(frame, self, &received) == Parsed::kOurs) {
    rebuild(received, self, UdpChecksum::kRight);
    rebuild(received, self, UdpChecksum::kNone);
  }
  const auto message = unpack_datagram(frame.subspan(kKvOffset));
  check(message.has_value());
  std::vector<std::byte> again(size - kKvOffset);
  check(pack_datagram(*message, again) == again.size());
  check(std::ranges::equal(again, frame.subspan(kKvOffset)));
  rebuild({.from = self, .message = *message}, self, UdpChecksum::kRight);
  return 0;
}
