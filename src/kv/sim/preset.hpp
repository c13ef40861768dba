// SPDX-License-Identifier: Apache-2.0
// Registers of a core whose table is given the state of many years directly before the core enters an epoch.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <utility>

#include "kv/generated/frame.hpp"
#include "kv/message.hpp"
#include "kv/sim/random.hpp"

namespace wherry::kv::sim {

/// The versions for Node::preset_versions, one per way.
using Versions = std::array<std::uint32_t, kWays>;

/// One version is about to pass a multiple of 2^30. One is nearly 2^31 older, so it would not compare any more after a
/// few writes. One lags when the first has passed. One belongs to a location that was never written.
[[nodiscard]] constexpr Versions old_versions(std::uint64_t seed) noexcept {
  constexpr std::array<std::uint64_t, 4> kTurns{1ULL << 31, 1ULL << 32, 1ULL << 32, 1ULL << 30};
  Random random(~seed);
  const auto turn = static_cast<std::uint32_t>(kTurns[seed % kTurns.size()]);
  const Versions versions{turn - 1 - random.below(40), turn - (1U << 31) + 16 + random.below(4),
                          turn - 3 * (1U << 29) + 1 + random.below(40), 0};
  Versions turned{};
  const std::uint32_t first = random.below(kWays);
  for (std::uint32_t i = 0; i < kWays; ++i) turned[(first + i) % kWays] = versions[i];
  return turned;
}

class PresetRegisters final : public RegisterIo {
 public:
  /// Calls `preset` before `epoch` is entered. `core` must outlive this object.
  PresetRegisters(RegisterIo& core, std::uint32_t epoch, std::function<void()> preset)
      : core_(core), epoch_(epoch), preset_(std::move(preset)) {}

  std::uint32_t read(std::uint32_t offset) override { return core_.read(offset); }
  void write(std::uint32_t offset, std::uint32_t value) override {
    if (offset == registers::kEpochOffset && value == epoch_) preset_();
    core_.write(offset, value);
  }

 private:
  RegisterIo& core_;
  std::uint32_t epoch_;
  std::function<void()> preset_;
};

}  // namespace wherry::kv::sim
