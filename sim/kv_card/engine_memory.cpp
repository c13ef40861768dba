// SPDX-License-Identifier: Apache-2.0
#include "sim/kv_card/engine_memory.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace wherry::kv::rtl {
namespace {

/// In simulated time, for a transfer of kBuffer: 64 times what the core's half of the channel needs.
constexpr std::chrono::milliseconds kPatience{2};

[[noreturn]] void fail(std::string_view what, std::string_view why) {
  fmt::print(stderr, "the DMA engine of the kv card: {}: {}\n", what, why);
  std::abort();
}

}  // namespace

EngineMemory::EngineMemory(Core& core)
    : port_(core), rig_({.card = {.memory_bytes = kHbmBytes, .bus = &port_}, .with_switch = false}) {
  auto engine = dma::Engine::open(rig_.device, {.channels = 1, .interrupts = false});
  if (!engine) fail("open", engine.status().to_string());
  engine_ = *std::move(engine);
  auto memory = rig_.device.allocate(kBuffer);
  if (!memory) fail("memory for transfers", memory.status().to_string());
  memory_ = *memory;
}

dma::Done EngineMemory::move(dma::Direction direction, std::uint64_t address, std::uint32_t bytes) {
  dma::Ring& ring = engine_->ring(direction, 0);
  if (auto s = ring.post({.host = memory_.iova, .card = address, .bytes = bytes, .cookie = ++cookie_}); !s)
    fail("post", s.to_string());
  ring.ring_bell(dma::Bell::kDescriptor);
  std::array<dma::Done, 1> done;
  if (!ring.wait(kPatience) || ring.poll(done) != 1) fail("a transfer", "it does not end");
  if (done[0].cookie != cookie_) fail("a transfer", "another one ended");
  return done[0];
}

void EngineMemory::read(std::uint64_t address, std::span<std::byte> to) {
  while (!to.empty()) {
    const std::size_t bytes = std::min(to.size(), kBuffer);
    const dma::Done done = move(dma::Direction::kToHost, address, static_cast<std::uint32_t>(bytes));
    if (done.error != dma::Error::kNone) fail("a read of the card's memory", dma::to_string(done.error));
    std::memcpy(to.data(), memory_.bytes.data(), bytes);
    address += bytes;
    to = to.subspan(bytes);
  }
}

void EngineMemory::write(std::uint64_t address, std::span<const std::byte> from) {
  while (!from.empty()) {
    const std::size_t bytes = std::min(from.size(), kBuffer);
    std::memcpy(memory_.bytes.data(), from.data(), bytes);
    const dma::Done done = move(dma::Direction::kToCard, address, static_cast<std::uint32_t>(bytes));
    if (done.error != dma::Error::kNone) fail("a write of the card's memory", dma::to_string(done.error));
    address += bytes;
    from = from.subspan(bytes);
  }
}

}  // namespace wherry::kv::rtl
