// SPDX-License-Identifier: Apache-2.0
#include "sim/bypass/rtl_card.hpp"

#include <fmt/core.h>

#include <chrono>
#include <map>
#include <string_view>
#include <utility>

#include "base/try.hpp"
#include "bypass/card.hpp"
#include "bypass/generated/registers.hpp"

namespace wherry::sim {
namespace {

namespace reg = bypass::registers;

constexpr std::uint32_t kFcs = 4;
constexpr std::uint64_t kPauseCycles = 64;  ///< for the host's pauses: the core comes to rest in fewer, or never
/// Time until everything in the core is at rest and counted: 36 cycles (bypass_counters.sv).
constexpr std::uint64_t kSettled = 64;
constexpr std::uint64_t kLongestDrain = 1'000'000;

Status wrong_setup(const std::string& what) { return {StatusCode::kInvalidArgument, "card set-up: " + what}; }

class Access final : public bypass::CardAccess {
 public:
  explicit Access(RtlCore& core) : core_(core) {}
  std::uint32_t read(std::uint32_t offset) override { return core_.read_register(offset); }
  void write(std::uint32_t offset, std::uint32_t value) override { core_.write_register(offset, value); }
  Status read_window(std::uint32_t offset, std::span<std::byte> into) override {
    core_.read(offset, into);
    return {};
  }
  Status write_window(std::uint32_t offset, std::span<const std::byte> from) override {
    core_.write(offset, from);
    return {};
  }
  void pause(std::chrono::microseconds) override {
    for (std::uint64_t i = 0; i < kPauseCycles; ++i) core_.cycle();
  }

 private:
  RtlCore& core_;
};

bypass::Card open(RtlCore& core, Access& access) {
  auto card = bypass::Card::open(access);
  if (!card) core.fail(card.status().message());
  return *std::move(card);
}

}  // namespace

struct RtlCard::Inside {
  Inside(const RtlOptions& options, InPlaceFunction* in_place)
      : core(options, in_place), access(core), host(open(core, access)), function(in_place) {}

  void settle() {
    for (const std::uint64_t begin = core.now(); core.now() - begin < kSettled || core.still() < kSettled;)
      core.cycle();
  }
  /// Sums of the core's counters over all set-ups, because each set-up clears the registers.
  std::uint64_t total(std::string_view name) const { return totals.at(name); }
  void add_counters() {
    settle();
    const auto now = host.counters();
    if (!now) core.fail(now.status().message());
    for (const bypass::Counter& one : *now) {
      totals[one.name] += one.value - last[one.name];  // they wrap
      last[one.name] = one.value;
    }
  }

  RtlCore core;
  Access access;
  bypass::Card host;
  InPlaceFunction* function;
  bool configured = false, running = false, accessed = false;
  std::uint32_t tx_limit = 0;
  std::map<std::string_view, std::uint64_t> totals;
  std::map<std::string_view, std::uint32_t> last;
  std::uint64_t rx_tail = 0;  ///< its address
  std::uint64_t rx_tails = 0, tx_tails = 0;
  std::uint64_t taken = 0, put = 0;                  ///< frames, by the function
  std::uint64_t rx_forgotten = 0, tx_forgotten = 0;  ///< frames that waited at the core's ports when it was stopped
};

RtlCard::RtlCard(InPlaceFunction* function, const RtlOptions& options)
    : inside_(std::make_unique<Inside>(options, function)) {}

RtlCard::~RtlCard() = default;

std::uint32_t RtlCard::rx_entries() const noexcept { return inside_->host.shape().rx_entries; }
std::uint32_t RtlCard::tx_entries() const noexcept { return inside_->host.shape().tx_entries; }
std::uint64_t RtlCard::cycles() const noexcept { return inside_->core.now(); }

void RtlCard::write(std::uint32_t offset, std::span<const std::byte> data) {
  inside_->core.write(offset, data);
  inside_->accessed = true;
}

void RtlCard::read(std::uint32_t offset, std::span<std::byte> data) {
  inside_->core.read(offset, data);
  inside_->accessed = true;
}

std::optional<TailWrite> RtlCard::next_tail() {
  const auto tail = inside_->core.take_tail();
  if (tail) ++(tail->address == inside_->rx_tail ? inside_->rx_tails : inside_->tx_tails);
  return tail;
}

void RtlCard::tick() {
  RtlCore& core = inside_->core;
  core.cycle();
  if (!std::exchange(inside_->accessed, false)) core.run_on();
}

std::optional<Frame> RtlCard::take() {
  auto frame = inside_->core.take_frame();
  if (frame) ++inside_->taken;
  return frame;
}

bool RtlCard::try_put(const Frame& frame) {
  Inside& in = *inside_;
  if (!in.running || frame.queue != 0 || frame.bytes.empty() || frame.bytes.size() > kMaxFrameBytes) return false;
  if (in.core.frames_to_send() >= RtlCore::kFramesToSend) return false;
  in.core.put_frame(frame);
  ++in.put;
  return true;
}

Status RtlCard::configure(const CardSetup& setup) {
  Inside& in = *inside_;
  const bypass::CardShape& shape = in.host.shape();
  if (in.running) return {StatusCode::kFailedPrecondition, "card set-up: the queue is running: stop it first"};
  if (setup.nic == nullptr) return wrong_setup("no NIC was chosen");
  if (setup.in_place && in.function == nullptr) return wrong_setup("in_place, but the card has no function for it");
  if (setup.queues.size() != 1) return wrong_setup(fmt::format("{} queue pairs: this core has 1", setup.queues.size()));
  const QueueSetup& queue = setup.queues.front();
  if (queue.rx_entries != shape.rx_entries || queue.tx_entries != shape.tx_entries)
    return wrong_setup(fmt::format("rx_entries {} and tx_entries {}: this core has {} and {}", queue.rx_entries,
                                   queue.tx_entries, shape.rx_entries, shape.tx_entries));
  if (queue.first_slot != 0 || queue.slots < shape.rx_entries)
    return wrong_setup(
        fmt::format("slots {} + {}: this core has {}, from 0 on", queue.first_slot, queue.slots, shape.rx_entries));
  const DoorbellSetup& bell = setup.doorbell;
  const std::uint32_t credits_max = reg::kDoorbellsTxCredits.get(~0U), batch_max = shape.rx_entries / 2;
  const std::uint32_t patience_max = 0xFFFF;  // bypass_doorbell.sv
  if (bell.tx_credits > credits_max) return wrong_setup(fmt::format("tx_credits: at most {}", credits_max));
  if (bell.rx_batch == 0 || bell.rx_batch > batch_max) return wrong_setup(fmt::format("rx_batch: 1 to {}", batch_max));
  if (bell.patience == 0 || bell.patience > patience_max)
    return wrong_setup(fmt::format("patience: 1 to {}", patience_max));

  in.add_counters();
  WHERRY_TRY(in.host.configure(
      *setup.nic,
      {.window = setup.bar, .nic = setup.nic_bar, .in_place = setup.in_place, .frame_bytes = kMaxFrameBytes + kFcs}));
  in.last.clear();
  std::uint32_t doorbells = in.core.read_register(reg::kDoorbellsOffset);
  doorbells = reg::kDoorbellsTxCredits.set(doorbells, bell.tx_credits == 0 ? credits_max : bell.tx_credits);
  doorbells = reg::kDoorbellsRxBatch.set(doorbells, bell.rx_batch);
  in.core.write_register(reg::kDoorbellsOffset, doorbells);
  in.core.write_register(reg::kDoorbellTimerOffset, bell.patience);
  in.tx_limit = in.core.read_register(reg::kTxLimitOffset);
  in.rx_tail = setup.nic_bar + setup.nic->rx_tail_offset;
  in.configured = true;
  return {};
}

Status RtlCard::start(std::uint32_t queue) {
  if (queue != 0) return wrong_setup(fmt::format("start of queue {} of 1", queue));
  if (!inside_->configured) return {StatusCode::kFailedPrecondition, "card set-up: start before configure"};
  WHERRY_TRY(inside_->host.start());
  inside_->running = true;
  return {};
}

void RtlCard::stop(std::uint32_t queue) {
  Inside& in = *inside_;
  if (queue != 0) return;
  in.running = false;
  in.tx_forgotten += in.core.forget_frames_to_send();
  in.core.drain(true);
  if (const Status status = in.host.stop(); !status) in.core.fail(status.message());
  // The core drops the rest of a packet in progress only after that rest has arrived.
  for (const std::uint64_t begin = in.core.now(); in.core.frames_to_send() + in.core.verdicts_waiting() > 0;) {
    if (in.core.now() - begin > kLongestDrain) in.core.fail("a stopped queue does not take what is on its way");
    in.core.cycle();
  }
  in.settle();
  in.core.drain(false);
  while (in.core.take_frame()) ++in.rx_forgotten;
  in.core.forget_tails();
}

CardCounters RtlCard::counters() const {
  Inside& in = *inside_;
  in.add_counters();
  const RtlCore& core = in.core;
  const auto total = [&in](std::string_view name) { return in.total(name); };
  const std::uint32_t state = in.core.read_register(reg::queue_state_offset(0));
  const std::uint64_t given = reg::kQueueStateTxGiven.get(state);

  // A frame in the core between two counters is visible only as their difference. It counts as waiting only if it has a
  // reason to wait. Otherwise this difference would hide a lost frame.
  const bool rx_waits = core.frame_held_up() || core.verdicts_waiting() > 0;
  const bool tx_waits = in.running && given >= in.tx_limit;
  const std::uint64_t rx_done = total("rx_frames") + total("rx_error") + total("rx_size") + total("rx_stopped");
  const std::uint64_t tx_dropped = total("tx_refused") + total("tx_size") + total("tx_late");
  const std::uint64_t before_rx = rx_waits ? total("rx_in") - rx_done + total("rx_frames") - core.frames_seen() : 0;
  const std::uint64_t before_tx = tx_waits ? total("tx_in") - total("tx_posted") - tx_dropped : 0;

  CardCounters counters;
  counters.rx_frames = total("rx_in");
  counters.rx_bytes = total("rx_bytes");
  counters.rx_damaged = total("rx_error");
  counters.rx_too_long = total("rx_size");
  counters.rx_refused = total("verdicts_drop");
  counters.rx_delivered = in.taken + core.forwarded();
  counters.rx_stopped = total("rx_stopped") + in.rx_forgotten;
  counters.rx_waiting = core.frames_waiting() + core.verdicts_waiting() + before_rx;
  counters.tx_frames = total("tx_done");
  counters.tx_bytes = total("tx_bytes");
  counters.tx_taken = in.put + core.forwarded();
  counters.tx_stopped = total("tx_stopped") + tx_dropped + in.tx_forgotten;
  counters.tx_waiting = given + core.frames_to_send() + before_tx;
  counters.rx_tails = in.rx_tails;
  counters.tx_tails = in.tx_tails;
  counters.tx_writebacks = total("tx_written_back");
  counters.wrong_writebacks = total("rx_unexpected");
  counters.stray_reads = total("outside_reads");
  counters.stray_writes = total("outside_writes") + total("rx_stray");
  return counters;
}

}  // namespace wherry::sim
