// SPDX-License-Identifier: Apache-2.0
// A host's buffer, the engine and a card, which run in step.
#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

#include "sim/designs/card.hpp"
#include "sim/designs/engine.hpp"

namespace wherry::sim::designs {

/// One thread.
class Rig {
 public:
  /// `neighbour`: as Card's.
  Rig(const CardOptions& options, const EnginePreset& preset, Flow flow, std::uint32_t channels, std::size_t host_bytes,
      const MakeNeighbour& neighbour, std::uint64_t seed)
      : host_(host_bytes), card_(options, neighbour), engine_(preset, flow, channels, host_, seed) {}

  /// 4 ns.
  void tick() {
    const memory::AxiAnswer answer = card_.answer();
    card_.step(engine_.request());
    engine_.step(answer);
  }
  [[nodiscard]] std::span<std::byte> host() noexcept { return host_; }
  [[nodiscard]] Card& card() noexcept { return card_; }
  [[nodiscard]] Engine& engine() noexcept { return engine_; }

  /// Bytes of the transfer that differ between its two ends.
  [[nodiscard]] std::uint64_t differing(const Transfer& transfer) const {
    std::vector<std::uint8_t> there(transfer.bytes);
    card_.content().dump(transfer.card, there);
    if (std::memcmp(&host_[transfer.host], there.data(), there.size()) == 0) return 0;
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < there.size(); ++i)
      wrong += host_[transfer.host + i] != static_cast<std::byte>(there[i]) ? 1 : 0;
    return wrong;
  }

 private:
  std::vector<std::byte> host_;
  Card card_;
  Engine engine_;
};

}  // namespace wherry::sim::designs
