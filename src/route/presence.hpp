// SPDX-License-Identifier: Apache-2.0
// The state of a hop, which it publishes in its inbox for its writers: it takes part, it has left, or the job has
// failed and why. Processes that map the inbox can read it even if the hop no longer runs or no buffer has room.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "route/job_failure.hpp"

namespace wherry::route {

class Presence {
 public:
  static constexpr std::size_t kBytes = 1024;
  enum class State : std::uint8_t { kHere, kLeft, kFailed };
  struct Seen {
    State state = State::kHere;
    std::uint32_t rounds = 0;  ///< collective rounds that it has concluded
    JobFailure failure;        ///< kFailed
  };

  Presence() noexcept = default;
  /// `memory`: zeroed, shared, kBytes long, aligned to 64. Must outlive the Presence.
  explicit Presence(std::byte* memory) noexcept : memory_(memory) {}
  explicit operator bool() const noexcept { return memory_ != nullptr; }
  friend bool operator==(const Presence&, const Presence&) noexcept = default;

  // ---- for the owner of the inbox. The first call of leave() or fail() counts.

  void conclude(std::uint32_t rounds) const noexcept {
    const std::uint64_t was = word().load(std::memory_order_relaxed);
    word().store(std::uint64_t{rounds} << 32 | (was & 0xff), std::memory_order_release);
  }
  /// May be called from any thread, because it changes one word.
  void leave() const noexcept {
    std::uint64_t was = word().load(std::memory_order_relaxed);
    while ((was & 0xff) == 0 && !word().compare_exchange_weak(was, was | static_cast<std::uint64_t>(State::kLeft),
                                                              std::memory_order_release, std::memory_order_relaxed)) {
    }
  }
  void fail(const JobFailure& failure) const noexcept {
    const std::string& why = failure.why.message();
    const Record record{static_cast<std::uint32_t>(std::min(why.size(), kMaxTextBytes)),
                        static_cast<std::uint32_t>(failure.why.code()), failure.cause};
    std::memcpy(memory_ + kTextAt, why.data(), record.text_bytes);
    std::memcpy(memory_ + kRecordAt, &record, sizeof record);
    word().store(
        (word().load(std::memory_order_relaxed) & ~std::uint64_t{0xff}) | static_cast<std::uint64_t>(State::kFailed),
        std::memory_order_release);
  }

  // ---- for other processes. The memory belongs to its owner, so writers check everything that they read.

  [[nodiscard]] bool here() const noexcept { return (word().load(std::memory_order_relaxed) & 0xff) == 0; }
  [[nodiscard]] Seen look() const {
    const std::uint64_t now = word().load(std::memory_order_acquire);
    Seen seen{
        (now & 0xff) > 2 ? State::kFailed : static_cast<State>(now & 0xff), static_cast<std::uint32_t>(now >> 32), {}};
    if (seen.state != State::kFailed) return seen;
    Record record;
    std::memcpy(&record, memory_ + kRecordAt, sizeof record);
    const std::size_t bytes = std::min<std::size_t>(record.text_bytes, kMaxTextBytes);
    std::string why = printable({reinterpret_cast<const char*>(memory_ + kTextAt), bytes});
    seen.failure = {{error_code_of(record.code), std::move(why)}, record.cause};
    return seen;
  }

 private:
  // The word at the start: bits 0 to 7 the state, bits 32 to 63 the rounds. Then the record, then the text.
  struct Record {
    std::uint32_t text_bytes = 0;
    std::uint32_t code = 0;
    Rank cause = JobFailure::kNobody;
    std::uint32_t reserved = 0;
  };
  static constexpr std::size_t kRecordAt = 8, kTextAt = kRecordAt + sizeof(Record), kMaxTextBytes = kBytes - kTextAt;
  [[nodiscard]] std::atomic_ref<std::uint64_t> word() const noexcept {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(memory_));
  }
  std::byte* memory_ = nullptr;
};

}  // namespace wherry::route
