// SPDX-License-Identifier: Apache-2.0
// What a process says of itself in its inbox, in front of the rings, to everybody who writes there: that it takes part,
// has left, or has found the job broken, and why. Those that share memory learn it even when the process does not run
// any more, and though no buffer has room.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "route/breakdown.hpp"

namespace wherry::route {

class Presence {
 public:
  static constexpr std::size_t kBytes = 1024;
  enum class State : std::uint8_t { kHere, kLeft, kBroken };
  struct Seen {
    State state = State::kHere;
    std::uint32_t rounds = 0;  ///< collective rounds that it has concluded
    Breakdown breakdown;       ///< kBroken
  };

  Presence() noexcept = default;
  /// `memory`: zeroed, shared, kBytes long, aligned to 64; outlives this.
  explicit Presence(std::byte* memory) noexcept : memory_(memory) {}
  explicit operator bool() const noexcept { return memory_ != nullptr; }
  friend bool operator==(const Presence&, const Presence&) noexcept = default;

  // ---- the owner's; a process that has left or failed does not come back
  void conclude(std::uint32_t rounds) const noexcept {
    const std::uint64_t was = word().load(std::memory_order_relaxed);
    word().store(std::uint64_t{rounds} << 32 | (was & 0xff), std::memory_order_release);
  }
  /// Callable from any thread: it only changes one word.
  void leave() const noexcept {
    std::uint64_t was = word().load(std::memory_order_relaxed);
    while ((was & 0xff) == 0 && !word().compare_exchange_weak(was, was | static_cast<std::uint64_t>(State::kLeft),
                                                              std::memory_order_release, std::memory_order_relaxed)) {
    }
  }
  void fail(const Breakdown& breakdown) const noexcept {
    const std::string& why = breakdown.why.message();
    const Failure failure{static_cast<std::uint32_t>(std::min(why.size(), kMostText)),
                          static_cast<std::uint32_t>(breakdown.why.code()), breakdown.cause};
    std::memcpy(memory_ + kText, why.data(), failure.size);
    std::memcpy(memory_ + kFailure, &failure, sizeof failure);
    word().store(
        (word().load(std::memory_order_relaxed) & ~std::uint64_t{0xff}) | static_cast<std::uint64_t>(State::kBroken),
        std::memory_order_release);
  }

  // ---- others'. The memory is the owner's: nothing in it is believed
  [[nodiscard]] bool here() const noexcept { return (word().load(std::memory_order_relaxed) & 0xff) == 0; }
  [[nodiscard]] Seen look() const {
    const std::uint64_t now = word().load(std::memory_order_acquire);
    Seen seen{
        (now & 0xff) > 2 ? State::kBroken : static_cast<State>(now & 0xff), static_cast<std::uint32_t>(now >> 32), {}};
    if (seen.state != State::kBroken) return seen;
    Failure failure;
    std::memcpy(&failure, memory_ + kFailure, sizeof failure);
    std::string why(reinterpret_cast<const char*>(memory_ + kText), std::min<std::size_t>(failure.size, kMostText));
    std::ranges::replace_if(why, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
    seen.breakdown = {{error_code_of(failure.code), std::move(why)}, failure.cause};
    return seen;
  }

 private:
  struct Failure {
    std::uint32_t size = 0;  ///< of the text
    std::uint32_t code = 0;
    Rank cause = Breakdown::kNobody;
    std::uint32_t reserved = 0;
  };
  static constexpr std::size_t kFailure = 8, kText = kFailure + sizeof(Failure), kMostText = kBytes - kText;
  [[nodiscard]] std::atomic_ref<std::uint64_t> word() const noexcept {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(memory_));
  }
  std::byte* memory_ = nullptr;
};

}  // namespace wherry::route
