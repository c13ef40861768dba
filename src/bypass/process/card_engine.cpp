// SPDX-License-Identifier: Apache-2.0
#include "bypass/process/card_engine.hpp"

#include <fmt/core.h>

#include <atomic>
#include <cstring>

#include "base/try.hpp"

namespace wherry::bypass {

Result<std::unique_ptr<CardEngine>> VfioCardEngine::open(pci::Vfio& vfio, std::size_t card, std::uint64_t mirror) {
  if (const std::uint64_t has = vfio.device(card).bytes(kBar); has < kBarBytes)
    return Status(
        StatusCode::kNotFound,
        fmt::format("the card has no DMA engine beside its core: its BAR 4 has {} bytes, want {}", has, kBarBytes));
  pci::VfioFunction::Places places = pci::VfioFunction::kSame;
  places[dma::kRegisterBar] = {.bar = kBar, .offset = kRegisters};
  places[dma::kBellBar] = {.bar = kBar, .offset = kBells};
  WHERRY_ASSIGN(auto function, pci::VfioFunction::share(vfio, card, dma::kBellBar, places, mirror + kWindowBytes));
  WHERRY_ASSIGN(auto engine, dma::Engine::open(*function, {.channels = 1, .interrupts = false}));
  WHERRY_ASSIGN(const std::span<std::byte> window, vfio.map_here(card, kWindowBar));
  return std::unique_ptr<CardEngine>(new VfioCardEngine(std::move(function), std::move(engine), mirror, window));
}

void VfioCardEngine::write_line(std::uint32_t offset, std::span<const std::byte> bytes) {
  if (offset + bytes.size() > window_.size()) return;
  // What the bytes report is in the window before them: the engine has said so. Aligned stores of 8 bytes to uncached
  // memory stay whole and in order (Intel SDM volume 3, "Guaranteed Atomic Operations" and "Memory Ordering").
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (std::size_t i = 0; i < bytes.size(); i += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, sizeof word);
    *reinterpret_cast<volatile std::uint64_t*>(window_.data() + offset + i) = word;
  }
}

}  // namespace wherry::bypass
