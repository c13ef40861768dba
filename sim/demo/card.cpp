// SPDX-License-Identifier: Apache-2.0
#include "sim/demo/card.hpp"

#include <algorithm>
#include <utility>

#include "base/try.hpp"
#include "bypass/card.hpp"
#include "sim/bypass/rtl_core.hpp"
#include "sim/bypass/twin.hpp"

namespace wherry::sim {
namespace {

/// Longer than anything takes from one sign at a port to the next: docs/bypass-core.md, The way of a packet.
constexpr std::uint64_t kStill = 16;
constexpr std::uint64_t kShortestTick = 8, kLongestTick = 64;  ///< cycles
constexpr std::size_t kFramesToSend = 2;                       ///< so many wait before s_tx

class RtlDemoCard final : public DemoCard {
 public:
  RtlDemoCard() : core_({}, nullptr) {}

  void write(std::uint32_t offset, std::span<const std::byte> data) override {
    core_.write(offset, data);
    accessed_ = true;
  }
  void read(std::uint32_t offset, std::span<std::byte> data) override {
    core_.read(offset, data);
    accessed_ = true;
  }
  std::optional<TailWrite> next_tail() override { return core_.take_tail(); }
  /// After an access one cycle. Else until the core is still: some cycles at least, so that its timers go on.
  void tick() override {
    core_.cycle();
    if (std::exchange(accessed_, false)) return;
    for (std::uint64_t done = 1; done < kShortestTick || (done < kLongestTick && core_.still() < kStill); ++done)
      core_.cycle();
  }

  std::optional<Frame> take() override { return core_.take_frame(); }
  bool try_put(const Frame& frame) override {
    if (core_.frames_to_send() >= kFramesToSend) return false;
    core_.put_frame(frame);
    return true;
  }

  std::uint32_t read_register(std::uint32_t offset) override { return core_.read_register(offset); }
  void write_register(std::uint32_t offset, std::uint32_t value) override { core_.write_register(offset, value); }
  Status run(bool) override { return {StatusCode::kUnsupported, "this card is started by its registers"}; }
  std::vector<ShownCounter> counters() override;
  [[nodiscard]] std::uint64_t cycles() const noexcept override { return core_.now(); }

 private:
  class Access;

  RtlCore core_;
  bool accessed_ = false;
};

class RtlDemoCard::Access final : public bypass::CardAccess {
 public:
  explicit Access(RtlCore& core) : core_(core) {}
  std::uint32_t read(std::uint32_t offset) override { return core_.read_register(offset); }
  void write(std::uint32_t offset, std::uint32_t value) override { core_.write_register(offset, value); }
  Status read_window(std::uint32_t, std::span<std::byte>) override { return no_window(); }
  Status write_window(std::uint32_t, std::span<const std::byte>) override { return no_window(); }
  void pause(std::chrono::microseconds) override {}

 private:
  static Status no_window() { return {StatusCode::kUnsupported, "the screen reads counters only"}; }
  RtlCore& core_;
};

std::vector<ShownCounter> RtlDemoCard::counters() {
  Access access(core_);
  auto card = bypass::Card::open(access);
  if (!card) core_.fail(card.status().message());
  const auto counters = card->counters();
  if (!counters) core_.fail(counters.status().message());
  std::vector<ShownCounter> shown;
  for (const bypass::Counter& one : *counters) shown.push_back({std::string(one.name), one.value});
  return shown;
}

class TwinDemoCard final : public DemoCard {
 public:
  explicit TwinDemoCard(std::function<CardSetup()> setup) : setup_(std::move(setup)) {}

  void write(std::uint32_t offset, std::span<const std::byte> data) override { twin_.write(offset, data); }
  void read(std::uint32_t offset, std::span<std::byte> data) override { twin_.read(offset, data); }
  std::optional<TailWrite> next_tail() override { return twin_.next_tail(); }
  void tick() override { twin_.tick(); }
  std::optional<Frame> take() override { return twin_.take(); }
  bool try_put(const Frame& frame) override { return twin_.try_put(frame); }

  std::uint32_t read_register(std::uint32_t) override { return ~0U; }
  void write_register(std::uint32_t, std::uint32_t) override {}
  Status run(bool on) override {
    if (!on) {
      twin_.stop(0);
      return {};
    }
    WHERRY_TRY(twin_.configure(setup_()));
    return twin_.start(0);
  }
  std::vector<ShownCounter> counters() override {
    const CardCounters now = twin_.counters();
    return {{"rx_frames", now.rx_frames},
            {"tx_done", now.tx_frames},
            {"tails", now.rx_tails + now.tx_tails},
            {"tx_written_back", now.tx_writebacks},
            {"rx_unexpected", now.wrong_writebacks},
            {"outside_reads", now.stray_reads},
            {"outside_writes", now.stray_writes}};
  }
  [[nodiscard]] std::uint64_t cycles() const noexcept override { return 0; }

 private:
  std::function<CardSetup()> setup_;
  Twin twin_;
};

}  // namespace

std::unique_ptr<DemoCard> make_rtl_card() { return std::make_unique<RtlDemoCard>(); }

std::unique_ptr<DemoCard> make_twin_card(std::function<CardSetup()> setup) {
  return std::make_unique<TwinDemoCard>(std::move(setup));
}

}  // namespace wherry::sim
