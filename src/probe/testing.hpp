// SPDX-License-Identifier: Apache-2.0
// For tests: a clock that moves only when a path advances it, and a path that follows a test's orders.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "probe/path.hpp"
#include "probe/pattern.hpp"
#include "probe/timer.hpp"

namespace wherry::probe::testing_support {

class FakeClock final : public Clock {
 public:
  [[nodiscard]] std::uint64_t now_ns() noexcept override { return now_; }
  [[nodiscard]] double resolution_ns() const noexcept override { return 10; }
  void pass(std::uint64_t ns) noexcept { now_ += ns; }

 private:
  std::uint64_t now_ = 1000;
};

/// A path whose n-th transfer (from 0) takes `ns_of(n)` of a FakeClock. It serves one at a time, in order.
class FakePath final : public Path {
 public:
  FakePath(std::string id, std::string group, FakeClock* clock = nullptr) : clock_(clock) {
    info_.id = std::move(id);
    info_.group = std::move(group);
    info_.from = "here", info_.to = "there";
  }

  [[nodiscard]] const PathInfo& info() const override { return info_; }
  [[nodiscard]] Status accepts(const Shape& shape) const override {
    if (shape.depth <= 16 && shape.flow == Flow::kH2C && shape.cache == CacheState::kWarm &&
        shape.pattern == Pattern::kSequential && shape.channels == 1 && shape.align == 0)
      return ok_status();
    return {StatusCode::kUnsupported, "no"};
  }
  [[nodiscard]] Work work(const Shape& shape) const override {
    Work work = Path::work(shape);
    work.units = units;
    work.per_restore = per_restore;
    return work;
  }
  [[nodiscard]] Result<Bound> open(const Shape& shape) override {
    ++opened;
    if (!open_says.ok()) return open_says;
    is_open = true;
    memory_.assign(shape.bytes, std::byte{});
    return bound;
  }
  void prepare(std::uint64_t seed) override {
    seeds.push_back(seed);
    seed_ = seed;
    fill_poison(memory_, seed);
  }
  void restore() override {
    ++restored;
    since_restore_ = 0;
  }
  [[nodiscard]] bool try_post(unsigned slot) override {
    if (per_restore > 0 && ++since_restore_ > per_restore) ++stale;
    if (clock_ != nullptr) clock_->pass(post_ns);
    queue_.push_back(slot);
    return true;
  }
  [[nodiscard]] Result<unsigned> poll(std::span<unsigned> done) override {
    if (!poll_says.ok()) return poll_says;
    if (queue_.empty() || hangs) {
      if (clock_ != nullptr) clock_->pass(hangs ? 1'000'000 : 1000);
      return 0U;
    }
    if (clock_ != nullptr) clock_->pass(ns_of(transfers));
    ++transfers;
    fill_pattern(memory_, seed_);
    done[0] = invents ? 15 : queue_.front();
    queue_.pop_front();
    return 1U;
  }
  [[nodiscard]] Status verify(std::uint64_t seed) override {
    ++verified;
    if (lies) memory_[0] ^= std::byte{1};
    if (const auto at = find_wrong(memory_, seed))
      return {StatusCode::kInternal, "wrong data at byte " + std::to_string(*at)};
    return ok_status();
  }
  [[nodiscard]] std::span<std::byte> landing() override { return memory_; }
  [[nodiscard]] CpuTime other_side() override { return other; }
  [[nodiscard]] std::uint64_t own_ns() override { return own; }
  void close() noexcept override {
    if (is_open) ++closed;
    is_open = false;
    queue_.clear();
  }

  PathInfo& change() { return info_; }

  // Its behaviour.
  std::function<std::uint64_t(std::uint64_t)> ns_of = [](std::uint64_t) { return 5000; };
  Bound bound;
  Status open_says, poll_says;
  unsigned units = 1, per_restore = 0;
  std::uint64_t post_ns = 0;
  bool lies = false;     ///< wrong bytes arrive
  bool hangs = false;    ///< nothing ends
  bool invents = false;  ///< transfers end that nobody posted
  CpuTime other;
  std::uint64_t own = 0;
  // The number of calls that it received.
  unsigned opened = 0, closed = 0, verified = 0, restored = 0, stale = 0;
  std::uint64_t transfers = 0;
  std::vector<std::uint64_t> seeds;
  bool is_open = false;

 private:
  PathInfo info_;
  FakeClock* clock_;
  std::vector<std::byte> memory_;
  std::deque<unsigned> queue_;
  std::uint64_t seed_ = 0;
  unsigned since_restore_ = 0;
};

}  // namespace wherry::probe::testing_support
