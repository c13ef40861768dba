// SPDX-License-Identifier: Apache-2.0
#include "sim/dma/soak.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/dma/data_rig.hpp"

namespace wherry::sim::dma {
namespace {

constexpr std::uint32_t kMillion = 1'000'000;
constexpr std::uint64_t kPatience = 200'000;  // cycles without an answer; a time-out takes 16 thousand
constexpr unsigned kTimeoutTicks = 32;        // of 256 cycles: hdl's parameter TickBits here is 8
constexpr std::uint32_t kLine = 64;
constexpr std::uint64_t kStoppedTurns = 100;  // cycles of a reset in which turns still come

/// Addresses that follow each other with gaps, round a memory, so that open turns never overlap.
class Places {
 public:
  Places(std::uint64_t base, std::size_t size) : base_(base), size_(size) {}
  /// The next place for `bytes`, at a multiple of `align` plus `off`.
  std::uint64_t next(std::uint32_t bytes, std::uint32_t align, std::uint32_t off) {
    at_ = (at_ + align - 1) / align * align + off;
    if (at_ + bytes > size_) at_ = off;
    const std::uint64_t found = base_ + at_;
    at_ += bytes;
    return found;
  }

 private:
  std::uint64_t base_;
  std::size_t size_, at_ = 0;
};

RigOptions draw_options(SplitMix64& random, std::uint64_t seed, bool faults) {
  RigOptions options;
  options.seed = seed;
  options.mrrs = random.below(6);
  options.mps = random.below(3);
  options.link.completion = kLine << random.below(3);
  options.link.random_splits = random.below(2) == 0;
  options.link.rtt_ns = 100 + random.below(2000);
  options.link.jitter_ns = random.below(1000);
  if (random.below(2) == 0) options.link.pauses = random.below(kMillion / 2);
  if (random.below(2) == 0) options.card_pauses = random.below(kMillion / 2);
  options.card_latency = 1 + random.below(80);
  if (faults) {
    options.timeout = kTimeoutTicks;
    if (random.below(2) == 0) options.card_faults = random.below(20'000);
  }
  return options;
}

Turn draw_turn(SplitMix64& random, Places& host, Places& card, std::uint32_t style) {
  Turn turn;
  turn.bytes = 1 + random.below(kTurnBytes);
  if (random.below(3) == 0) turn.bytes = 1 + random.below(2 * kLine);
  if (random.below(4) == 0) turn.bytes = kTurnBytes;
  if (style == 0) turn.bytes = (turn.bytes + kLine - 1) / kLine * kLine;
  const std::uint32_t align = style == 0 || random.below(4) == 0 ? kLine : 1;
  turn.host = host.next(turn.bytes, align, align == 1 ? random.below(style == 1 ? 3 : 200) : 0);
  turn.card = card.next(turn.bytes, align, align == 1 ? random.below(style == 1 ? 3 : 200) : 0);
  if (style == 2) turn.card = card.next(turn.bytes, kTurnBytes, random.below(kTurnBytes));
  turn.channel = random.below(4);
  turn.last = random.below(2) == 0;
  return turn;
}

}  // namespace

SoakResult soak(std::uint64_t seed, std::uint64_t bytes, bool faults) {
  SplitMix64 random(seed * 7 + 3);
  const RigOptions options = draw_options(random, seed, faults);
  DataRig rig(options);
  if (faults) {
    LinkFaults& injected = rig.link().faults;
    for (std::uint32_t* one :
         {&injected.unsupported, &injected.aborted, &injected.poisoned, &injected.short_, &injected.long_}) {
      if (random.below(2) == 0) *one = random.below(random.below(4) == 0 ? 50'000 : 5'000);
    }
    if (random.below(3) == 0) injected.lost = random.below(1'000);
  }
  // Sources lie anywhere in 64 bits; destinations lie in the memories.
  Places host_from(random() >> 2 & ~std::uint64_t{0xFFF}, std::size_t{1} << 40);
  Places card_from(random() >> 2 & ~std::uint64_t{0xFFF}, std::size_t{1} << 40);
  Places host_to(rig.host_memory().base(), rig.host_memory().size()),
      card_to(rig.card_memory().base(), rig.card_memory().size());
  const std::uint32_t style = random.below(4), ways = 1 + random.below(3);
  const std::size_t depth = 1 + random.below(40);
  const std::uint32_t between_resets = 2'000U << random.below(7);  // cycles
  SoakResult result;
  std::uint64_t last_answer = rig.now(), stop_at = 0, frozen_until = 0;
  const auto take = [&](Way way) {
    while (!rig.done(way).empty()) {
      const Done& done = rig.done(way).front();
      result.bytes += done.bytes;
      ++result.turns;
      if (done.error != Error::kNone) ++result.failed;
      rig.done(way).pop_front();
      last_answer = rig.now();
    }
  };
  while (rig.error().empty() && (result.bytes < bytes || rig.open(Way::kToCard) + rig.open(Way::kToHost) != 0)) {
    if (result.bytes < bytes && (stop_at == 0 || rig.now() < stop_at + kStoppedTurns)) {
      if ((ways & 1) != 0 && rig.open(Way::kToCard) < depth)
        rig.post(Way::kToCard, draw_turn(random, host_from, card_to, style));
      if ((ways & 2) != 0 && rig.open(Way::kToHost) < depth)
        rig.post(Way::kToHost, draw_turn(random, host_to, card_from, style));
    }
    if (faults && stop_at == 0 && random.below(between_resets) == 0) {
      stop_at = rig.now();
      rig.stop(true);
      ++result.resets;
    }
    // The stop lasts some cycles at least, then until all is quiet, and sometimes longer.
    if (stop_at != 0 && rig.now() > stop_at + 3 && rig.idle() && random.below(50) == 0) {
      rig.stop(false);
      stop_at = 0;
    }
    if (random.below(50'000) == 0) {
      rig.freeze_card(true);
      frozen_until = rig.now() + random.below(2'000);
    }
    if (frozen_until != 0 && rig.now() >= frozen_until) {
      rig.freeze_card(false);
      frozen_until = 0;
    }
    rig.cycle();
    take(Way::kToCard);
    take(Way::kToHost);
    if (rig.now() - last_answer > kPatience) {
      result.error = fmt::format("seed {}: nothing is answered from cycle {} on", seed, last_answer);
      break;
    }
  }
  if (result.error.empty()) result.error = rig.error();
  result.faults = rig.faults_injected;
  result.timed_out = rig.timed_out;
  result.unexpected = rig.unexpected;
  result.cycles = rig.now();
  if (result.error.empty() && result.unexpected != 0) result.error = "a completion of no request";
  return result;
}

}  // namespace wherry::sim::dma
