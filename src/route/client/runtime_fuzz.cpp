// SPDX-License-Identifier: Apache-2.0
// Fuzz target: a rank receives buffers of arbitrary bytes: messages, fragments, packs, replies, notices.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "route/client/runtime_access.hpp"

using namespace wherry;
using namespace wherry::route;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr RingShape kShape{2, 1024};
  // A job of two ranks, of which only the first runs.
  auto wirings = wire_threads({0, 0}, kShape);
  Runtime runtime = route::detail::make_runtime(Options{}, std::move(wirings[0]));
  std::uint64_t sum = 0;
  runtime.on<std::uint64_t>([&](const std::uint64_t& value) { sum += value; },
                            [&](const std::uint64_t& value) { sum ^= value; });
  runtime.on<ByteView>([&](ByteView bytes) {
    for (const std::byte byte : bytes) sum += static_cast<std::uint8_t>(byte);
  });
  runtime.serve<std::uint32_t, std::uint32_t>([](const std::uint32_t& value) { return value + 1; });
  while (size >= 8 && runtime.status()) {
    const std::size_t bytes = std::min<std::size_t>(size / 8 * 8, kShape.buffer_bytes);
    const auto space = runtime.try_buffer(0, bytes);
    if (space.empty()) break;
    std::memcpy(space.data(), data, bytes);
    runtime.post_buffer(0, bytes, 0);
    runtime.flush();
    if (data[0] % 2 == 0) {
      runtime.poll();
    } else {
      runtime.poll_buffers([&](ByteView taken) { sum += taken.size(); });
    }
    data += bytes;
    size -= bytes;
  }
  return sum == 0x5eed ? 1 : 0;
}
