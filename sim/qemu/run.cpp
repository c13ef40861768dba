// SPDX-License-Identifier: Apache-2.0
#include "sim/qemu/run.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/clock.hpp"
#include "base/try.hpp"
#include "bypass/nic/nic.hpp"

namespace wherry::sim {
namespace {

constexpr std::uint32_t kEntries = 64;  ///< of a ring: small, so that it wraps many times
constexpr std::uint32_t kCardSlots = 96;
constexpr std::uint32_t kCrcBytes = 4;
constexpr std::chrono::milliseconds kMoment{20};  ///< in which an event makes itself felt
/// Ticks after which a tail is written without credits: about as many as a frame takes. A card's clock stands still
/// while QEMU works. QEMU takes a burst of frames from its socket before it looks at a tail, and igb drops the frames
/// for which it knows no descriptor.
constexpr std::uint32_t kPatience = 256;

/// Too many frames for the NIC to have them all at the event, and few enough to be fast.
constexpr std::uint64_t kFramesAroundEvent = 240;
constexpr std::uint32_t kShortFrames = 100;
constexpr std::uint64_t kFramesAfterEvent = 40;

/// e1000e holds frames back while it has no descriptors, so more may be in flight than it has. igb drops them (82576
/// datasheet, 4.5.9; QEMU does not count them), so only as many may be in flight as fit. QEMU sends all of these, and
/// takes as many new ones, before it looks at the tail that returns their slots.
InFlight limits_for(const std::string& nic) {
  if (nic == "igb") return {.frames = 24, .slots = kEntries / 2 - 1};
  return {.frames = 96, .slots = 120};
}

/// Describes where frames are stuck.
std::string describe(const CardCounters& card) {
  return fmt::format(
      "the card: received {}, waiting {}, sent {}, to be sent {}, tail writes {} and {}, wrong "
      "write-backs {}, stray accesses {} and {}",
      card.rx_frames, card.rx_waiting, card.tx_frames, card.tx_waiting, card.rx_tails, card.tx_tails,
      card.wrong_writebacks, card.stray_reads, card.stray_writes);
}

/// The card, with a function at its stream. In place, there is nothing to do at the stream.
class EchoingCard final : public DmaTarget {
 public:
  explicit EchoingCard(Card& card) : card_(card), echo_(card) {}
  void set_longest(std::uint32_t bytes) { echo_.set_longest(bytes); }
  void write(std::uint32_t offset, std::span<const std::byte> data) override { card_.write(offset, data); }
  void read(std::uint32_t offset, std::span<std::byte> data) override { card_.read(offset, data); }
  std::optional<TailWrite> next_tail() override { return card_.next_tail(); }
  void tick() override {
    card_.tick();
    echo_.turn();
  }
  void forget() { echo_.clear(); }

 private:
  Card& card_;
  StreamEcho echo_;
};

class Runner {
 public:
  Runner(const RunOptions& options, Card& card, InPlaceEcho& function, const PhaseObserver& observer)
      : options_(options), card_(card), function_(function), echoing_(card), observer_(observer) {}

  Status start() {
    WHERRY_ASSIGN(machine_, Machine::start(options_.machine, echoing_));
    nic_ = bypass::find_personality(options_.machine.nic);
    WHERRY_ASSIGN(driver_, bypass::make_nic(*nic_, machine_->nic_registers(), {}));
    exchange_.emplace(*machine_, Traffic(options_.seed), limits_for(options_.machine.nic));
    report_.qemu = machine_->version();
    return {};
  }

  Status traffic() {
    WHERRY_TRY(set_up(true));
    WHERRY_TRY(phase("in place", false, [this] { return exchange_->run(options_.frames / 2); }));
    stop_card();
    WHERRY_TRY(set_up(false));
    return phase("by the stream", false, [this] { return exchange_->run(options_.frames - options_.frames / 2); });
  }

  /// Makes each event in both ways of working, after which traffic must be complete again.
  Status events() {
    for (const bool in_place : {false, true}) {
      stop_card();
      WHERRY_TRY(set_up(in_place));
      const std::string way = in_place ? ", in place" : ", by the stream";
      WHERRY_TRY(event("orderly reset" + way, [&] { return orderly_reset(in_place); }));
      WHERRY_TRY(event("reset in mid-traffic" + way, [&] { return sudden_reset(in_place); }));
      WHERRY_TRY(event("link off and on" + way, [&] { return link_off_and_on(); }));
      WHERRY_TRY(event("removal and a new NIC" + way, [&] { return removal(in_place); }));
    }
    return {};
  }

  RunReport take() {
    report_.card = card_.counters();
    return std::move(report_);
  }

 private:
  void stop_card() {
    card_.stop(0);
    echoing_.forget();
  }

  /// The functions do not exceed what the NIC of this QEMU can send.
  void limit(bool in_place) {
    const SendLimits& limits = machine_->send_limits();
    const std::uint32_t slot = std::min(kSlotBytes, limits.buffer_bytes);
    const std::uint32_t longest = std::min(in_place ? limits.buffers * slot : limits.buffer_bytes, kMaxFrameBytes);
    function_.set_longest(longest);
    echoing_.set_longest(longest);
    exchange_->set_replies({.longer = in_place ? LongFrames::kNothing : LongFrames::kCut, .longest = longest});
  }

  Status set_up(bool in_place) {
    limit(in_place);
    CardSetup setup;
    setup.nic = nic_;
    setup.bar = machine_->card_bar();
    setup.nic_bar = machine_->nic_bar();
    setup.in_place = in_place;
    setup.doorbell.patience = kPatience;
    setup.queues = {{.rx_entries = kEntries, .tx_entries = kEntries, .first_slot = 0, .slots = kCardSlots}};
    WHERRY_TRY(done(driver_->reset()));
    WHERRY_TRY(card_.configure(setup));
    WHERRY_TRY(done(driver_->start(
        {.rings = {.rx = setup.bar, .tx = setup.bar + kTxRing, .rx_entries = kEntries, .tx_entries = kEntries},
         .slot_bytes = kSlotBytes,
         .frame_bytes = kMaxFrameBytes + kCrcBytes,
         .promiscuous = true})));
    WHERRY_TRY(card_.start(0));
    // An 82576 drops frames that arrive before it knows descriptors.
    WHERRY_TRY(wait_until("the card's first receive tail",
                          [this] { return machine_->nic_registers().read(nic_->rx_tail_offset) != 0; }));
    return wait_for_link();
  }

  /// QEMU's own failure, if it has ended.
  Status done(Status status) { return machine_->nic_failure() ? std::move(status) : machine_->nic_failure(); }

  template <typename Condition>
  Status wait_until(const char* what, const Condition& condition) {
    for (const Deadline deadline(std::chrono::minutes(1)); !condition();) {
      WHERRY_TRY(machine_->nic_failure());
      if (deadline.passed()) return {StatusCode::kDeadlineExceeded, fmt::format("{} does not come", what)};
      WHERRY_TRY(machine_->turn_for(std::chrono::milliseconds(1)));
    }
    return {};
  }
  Status wait_for_link() {
    return wait_until("the NIC's link", [this] { return driver_->link().up; });
  }

  /// Stops first the NIC and then the card, so that no write arrives unexpectedly.
  Status orderly_reset(bool in_place) {
    WHERRY_TRY(done(driver_->stop()));
    stop_card();
    return set_up(in_place);
  }

  /// The NIC is reset, and the card does not know.
  Status sudden_reset(bool in_place) {
    bypass::update(machine_->nic_registers(), nic_->reset_offset, 0, nic_->reset_mask);
    WHERRY_TRY(machine_->turn_for(kMoment));
    stop_card();
    return set_up(in_place);
  }

  /// The card does not learn of it, so frames that it sends meanwhile are lost in the NIC.
  Status link_off_and_on() {
    WHERRY_TRY(machine_->set_link(false));
    WHERRY_TRY(machine_->turn_for(kMoment));
    if (driver_->link().up) return {StatusCode::kInternal, "the NIC has a link without a cable"};
    WHERRY_TRY(machine_->set_link(true));
    return wait_for_link();
  }

  Status removal(bool in_place) {
    WHERRY_TRY(machine_->remove_nic());
    WHERRY_TRY(machine_->turn_for(kMoment));
    stop_card();
    WHERRY_TRY(machine_->insert_nic());
    return set_up(in_place);
  }

  /// Makes an event with frames in flight. Their outcomes are counted. Afterwards no frame may be missing.
  template <typename Happens>
  Status event(const std::string& name, const Happens& happens) {
    exchange_->set_traffic(Traffic(options_.seed, kShortFrames));
    const auto in_traffic = [&]() -> Status {
      WHERRY_TRY(exchange_->run_into(kFramesAroundEvent, kFramesAroundEvent / 4));
      machine_->set_background([this] { return exchange_->pump(); });
      const Status status = happens();
      machine_->set_background(nullptr);
      WHERRY_TRY(status);
      return exchange_->settle();
    };
    WHERRY_TRY(phase(name, true, in_traffic));
    exchange_->set_traffic(Traffic(options_.seed));
    return phase("after " + name, false, [this] { return exchange_->run(kFramesAfterEvent); });
  }

  template <typename Body>
  Status phase(const std::string& name, bool may_lose, const Body& body) {
    const ExchangeCounters before = exchange_->counters();
    const std::uint64_t messages = machine_->proxy().bar_reads() + machine_->proxy().bar_writes();
    const std::uint64_t refused = card_.counters().rx_refused;
    const std::uint64_t start = now_ns();
    if (const Status status = body(); !status)
      return {status.code(), status.message() + "; " + describe(card_.counters())};
    const ExchangeCounters& now = exchange_->counters();
    Phase phase{.name = name, .may_lose = may_lose};
    phase.frames = {.sent = now.sent - before.sent,
                    .replies = now.replies - before.replies,
                    .unanswered = now.unanswered - before.unanswered,
                    .returned = now.returned - before.returned,
                    .wrong = now.wrong - before.wrong,
                    .lost = now.lost - before.lost};
    phase.messages = machine_->proxy().bar_reads() + machine_->proxy().bar_writes() - messages;
    phase.seconds = static_cast<double>(now_ns() - start) * 1e-9;
    phase.refused = card_.counters().rx_refused - refused;
    phase.balanced = holds_balance(card_.counters());
    report_.phases.push_back(phase);
    observer_(phase);
    return {};
  }

  const RunOptions& options_;
  Card& card_;
  InPlaceEcho& function_;
  EchoingCard echoing_;
  const PhaseObserver& observer_;
  const bypass::Personality* nic_ = nullptr;
  std::unique_ptr<Machine> machine_;
  std::unique_ptr<bypass::Nic> driver_;
  std::optional<Exchange> exchange_;
  RunReport report_;
};

}  // namespace

bool RunReport::good() const noexcept {
  return card.tx_writebacks == 0 &&
         std::all_of(phases.begin(), phases.end(), [](const Phase& one) { return one.good(); });
}

Result<RunReport> run_bypass(const RunOptions& options, Card& card, InPlaceEcho& function,
                             const PhaseObserver& observer) {
  Runner runner(options, card, function, observer);
  WHERRY_TRY(runner.start());
  WHERRY_TRY(runner.traffic());
  if (options.events) WHERRY_TRY(runner.events());
  return runner.take();
}

}  // namespace wherry::sim
