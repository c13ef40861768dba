// SPDX-License-Identifier: Apache-2.0
// Fuzz target: a router reads an inbox of arbitrary bytes (the ring's words, its length table, its buffers).
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/aligned.hpp"
#include "route/router.hpp"

using namespace wherry::route;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr RingShape kShape{2, 1024};
  constexpr InboxShape kInbox{1, kShape};
  // Exactly as large as needed, so that AddressSanitizer detects an access to the first byte after it.
  const auto inbox = wherry::zeroed_bytes(kInbox.bytes(), 64), next = wherry::zeroed_bytes(kInbox.bytes(), 64);
  Router router(2, 1, kShape.buffer_bytes, 3);
  router.read_from(kInbox, inbox.get());
  // The second lane ends at rank 2, so that messages to it can be packed.
  const auto end = wherry::zeroed_bytes(kInbox.bytes(), 64);
  connect(router.lanes()[0], kInbox, next.get(), 0);
  connect(router.lanes()[1], kInbox, end.get(), 0);
  router.set_table({0, 0, 1, 0}, {false, true});
  RingReader readers[] = {RingReader(next.get() + kInbox.ring_at(0), kShape),
                          RingReader(end.get() + kInbox.ring_at(0), kShape)};

  // The writer may change its memory between rounds, so each round copies the next piece of the input over the ring.
  const std::size_t piece = kInbox.bytes() - kInbox.ring_at(0);
  for (int round = 0; round < 8 && size != 0; ++round) {
    const std::size_t bytes = std::min(size, piece);
    // Write all words except the one that belongs to the reader.
    for (std::size_t i = 0; i < bytes; ++i) {
      if (i < 64 || i >= 68) inbox.get()[kInbox.ring_at(0) + i] = static_cast<std::byte>(data[i]);
    }
    data += bytes;
    size -= bytes;
    Input& input = router.inputs()[0];
    for (int i = 0; i < 4; ++i) {
      const RingReader::Part part = input.ring.peek();
      if (part.malformed) return 0;
      const Router::Stop stop = router.forward(part.from, part.to);
      if (stop.at < part.from || stop.at > part.to) __builtin_trap();
      input.ring.advance(static_cast<std::size_t>(stop.at - part.from));
      if (stop.why == Router::Stop::Why::kMalformed) return 0;
      if (stop.why == Router::Stop::Why::kMine) {
        const std::size_t stride = Header::load(stop.at).stride();
        if (stride > static_cast<std::size_t>(part.to - stop.at)) __builtin_trap();
        input.ring.advance(stride);
      }
      router.flush(Flush::kExplicit);
      // Only whole messages may come out.
      for (RingReader& reader : readers) {
        const RingReader::Part out = reader.peek();
        if (out.malformed) __builtin_trap();
        for (const std::byte* at = out.from; at != out.to;) {
          const std::size_t stride = Header::load(at).stride();
          if (stride > static_cast<std::size_t>(out.to - at)) __builtin_trap();
          at += stride;
        }
        reader.advance(static_cast<std::size_t>(out.to - out.from));
      }
    }
  }
  return 0;
}
