// SPDX-License-Identifier: Apache-2.0
// For tests: the registers of a core without the core, in virtual time. All accesses are recorded.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "kv/control/configuration.hpp"
#include "kv/generated/registers.hpp"

namespace wherry::kv {

/// A clock that runs at its own speed. Converts true time to local time and back.
struct DriftingClock {
  double rate = 1;
  Cycles origin = 0;
  [[nodiscard]] Cycles local(Cycles truth) const {
    return origin + static_cast<Cycles>(static_cast<double>(truth) * rate);
  }
  /// The first true time at which the clock shows `local_time`.
  [[nodiscard]] Cycles truth(Cycles local_time) const {
    if (local_time <= origin) return 0;
    if (local_time - origin > Cycles{1} << 50) return ~Cycles{0};
    auto guess = static_cast<Cycles>(static_cast<double>(local_time - origin) / rate);
    while (guess > 0 && local(guess - 1) >= local_time) --guess;
    while (local(guess) < local_time) ++guess;
    return guess;
  }
};

class FakeCore final : public RegisterIo {
 public:
  struct Entry {
    std::uint32_t epoch = 0;
    NodeMask members = 0;
    NodeMask serving = 0;
    Leaders leaders{};
  };

  FakeCore(const Cycles& truth, DriftingClock clock, std::uint32_t slowness)
      : truth_(truth), clock_(clock), slowness_(slowness) {}

  std::function<void(const Entry&)> on_enter;
  std::function<void()> on_lanes;  ///< its lanes are asked for
  std::uint32_t core_version = registers::kCoreVersionReset;
  std::uint32_t lane_bits = 12;
  std::uint32_t most_bucket_bits = kMaxBucketBits;
  std::uint32_t sources = 0;  ///< subnets that it holds; 0: software
  bool fault = false;
  bool gone = false;  ///< off its bus
  /// The network takes none of its frames. So it does not finish entering an epoch, and ignores that epoch's contents
  /// and the next epoch.
  bool stuck = false;
  bool opened = true;
  std::uint32_t in_flight = 0;
  NodeMask unanswered = 0;
  /// From now on, each fetch takes this many cycles.
  void take(std::uint32_t cycles) { slowness_ = cycles; }

  std::uint32_t read(std::uint32_t offset) override {
    using namespace registers;
    if (gone) return ~std::uint32_t{0};
    ++reads;
    if (!stuck && entering_) enter(*std::exchange(entering_, std::nullopt));
    if (offset == kEpochOffset && entering_) return now.epoch;
    if (offset == kIdOffset) return kIdReset;
    if (offset == kCoreVersionOffset) return core_version;
    if (offset == kCapabilityOffset) return kCapabilitySources.set(kCapabilityLaneBits.set(0, lane_bits), sources);
    if (offset == kBucketBitsOffset) return std::min(values_[offset / 4], most_bucket_bits);
    if (offset == cycles_offset(0)) {
      latched_ = clock_.local(truth_);
      return static_cast<std::uint32_t>(latched_);
    }
    if (offset == cycles_offset(1)) return static_cast<std::uint32_t>(latched_ >> 32);
    if (offset == kStateOffset) {
      std::uint32_t state = kStateServing.set(0, serving() ? 1 : 0);
      if (truth_ < cleared_at_) state = kStateClearing.set(state, 1);
      state = kStateEntering.set(state, entering_ ? 1 : 0);
      state = kStateOpened.set(kStateUnanswered.set(state, unanswered), opened ? 1 : 0);
      return kStateInFlight.set(kStateFault.set(state, fault ? 1 : 0), in_flight);
    }
    settle();
    if (offset == kSyncCountOffset) return buckets_left_;
    if (offset == kSyncLanesOffset) return lanes_left_;
    return values_[offset / 4];
  }

  void write(std::uint32_t offset, std::uint32_t value) override {
    using namespace registers;
    if (gone) return;
    ++writes;
    if (!stuck && entering_) enter(*std::exchange(entering_, std::nullopt));
    const bool staged = offset == kNodeOffset || offset == kMembersOffset || offset == kUdpPortOffset ||
                        (offset >= leader_offset(0) && offset < kFramesKvOffset);
    if (entering_ && (staged || offset == kEpochOffset)) {
      ++unheard;
      return;
    }
    settle();
    values_[offset / 4] = value;
    if (offset == lease_offset(1)) lease = std::uint64_t{value} << 32 | values_[lease_offset(0) / 4];
    if (offset == kControlOffset && (value & kControlClearTable.mask()) != 0 && now.epoch == 0) {
      cleared_at_ = truth_ + slowness_;
      fetched = 0;
      lanes = fault = false;
      buckets_left_ = lanes_left_ = 0;
    }
    if (offset == kSyncCountOffset) {
      buckets_left_ = value;
      done_at_ = truth_ + slowness_;
      in_order = in_order && values_[kSyncFromOffset / 4] == fetched;
    }
    if (offset == kSyncLanesOffset) {
      lanes_left_ = value;
      done_at_ = truth_ + slowness_;
      if (on_lanes) on_lanes();
    }
    if (offset == kEpochOffset && stuck && value != now.epoch) entering_ = value;
    if (offset == kEpochOffset && !stuck) enter(value);
  }

  [[nodiscard]] bool leased() const { return lease > clock_.local(truth_); }
  [[nodiscard]] bool serving() const {
    return now.epoch != 0 && !fault && has(now.serving, values_[registers::kNodeOffset / 4] % kMaxNodes) && leased();
  }
  [[nodiscard]] Cycles lease_truth() const { return clock_.truth(lease); }

  Entry now;
  Cycles lease = 0;
  std::uint64_t fetched = 0;
  bool lanes = false;
  bool in_order = true;
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
  std::uint64_t unheard = 0;  ///< writes that came while an epoch was being entered

 private:
  void settle() {
    if (now.epoch == 0 || truth_ < done_at_) return;
    fetched += std::exchange(buckets_left_, 0);
    if (std::exchange(lanes_left_, 0) != 0) lanes = true;
  }
  void enter(std::uint32_t epoch) {
    using namespace registers;
    now = Entry{};
    if (epoch == 0) return;
    now.epoch = epoch;
    now.members = static_cast<NodeMask>(kMembersAll.get(values_[kMembersOffset / 4]));
    now.serving = static_cast<NodeMask>(kMembersServing.get(values_[kMembersOffset / 4]));
    for (std::uint32_t slot = 0; slot < kSlots; ++slot)
      now.leaders[slot] = values_[leader_offset(slot / 8) / 4] >> 4 * (slot % 8) & 0xf;
    if (on_enter) on_enter(now);
  }

  const Cycles& truth_;
  DriftingClock clock_;
  std::uint32_t slowness_;
  std::array<std::uint32_t, registers::kBytes / 4> values_{};
  std::optional<std::uint32_t> entering_;
  Cycles latched_ = 0;
  Cycles cleared_at_ = 0;
  Cycles done_at_ = 0;
  std::uint32_t buckets_left_ = 0;
  std::uint32_t lanes_left_ = 0;
};

}  // namespace wherry::kv
