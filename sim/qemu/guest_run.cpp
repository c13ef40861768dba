// SPDX-License-Identifier: Apache-2.0
#include "sim/qemu/guest_run.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <memory>
#include <sstream>
#include <utility>

#include "base/clock.hpp"
#include "base/try.hpp"
#include "bypass/generated/registers.hpp"
#include "pci/bus_address.hpp"
#include "sim/bypass/echo.hpp"
#include "sim/bypass/rtl_endpoint.hpp"
#include "sim/qemu/neighbour.hpp"

namespace wherry::sim {
namespace {

constexpr std::uint32_t kLongest = 1514;      ///< what `wherry bypass up` takes, unless it is told otherwise
constexpr std::chrono::minutes kSilence{10};  ///< of a guest that boots in a quarter of one
constexpr std::chrono::seconds kExit{10};     ///< between the ends of QEMU's sockets and its own
/// QEMU 7.2 may crash when the guest's kernel switches its IOMMU on. The guest's write rearranges QEMU's memory map.
/// Meanwhile the multi-process device releases QEMU's lock, so another thread frees what the write still uses
/// (softmmu/memory.c, access_with_adjusted_size; softmmu/physmem.c, cpu_reloading_memory_map;
/// hw/remote/proxy-memory-listener.c). A busier machine makes this more likely. Our code has not run by then.
constexpr int kCrashed = 128 + 11;
constexpr int kBoots = 8;
constexpr std::uint64_t kHeldFrames = 20;          ///< fewer than the card's slots
constexpr std::chrono::milliseconds kListen{500};  ///< longer than any frame is on its way
constexpr std::uint64_t kFramesAfterRelease = 5;   ///< which nobody may echo
/// e1000e holds frames back while it has no descriptors; the card has 63.
constexpr InFlight kInFlight{.frames = 48, .slots = 48};

double seconds_since(std::uint64_t start) { return static_cast<double>(now_ns() - start) * 1e-9; }

/// The card, with a function at its streams.
class EchoingFunction final : public DmaTarget {
 public:
  explicit EchoingFunction(RtlEndpoint& card) : card_(card), echo_(card) {}
  void write(std::uint32_t offset, std::span<const std::byte> data) override { card_.write(offset, data); }
  void read(std::uint32_t offset, std::span<std::byte> data) override { card_.read(offset, data); }
  std::optional<TailWrite> next_tail() override { return card_.next_tail(); }
  void tick() override {
    card_.tick();
    echo_.turn();
  }

 private:
  RtlEndpoint& card_;
  StreamEcho echo_;
};

class Runner {
 public:
  Runner(const GuestRunOptions& options, const LineObserver& observer)
      : options_(options),
        observer_(observer),
        card_(in_place_, {.seed = options.seed, .pauses = 0, .trace = {}}),
        echoing_(card_) {}

  Status run() {
    for (int attempt = 1;; ++attempt) {
      Status done = boot_and_listen();
      if (!crashed_at_boot_ || attempt == kBoots) return done;
      ++report_.boots_crashed;
    }
  }

  GuestReport take() {
    report_.seconds = seconds_since(start_);
    report_.tails = guest_->tails();
    report_.tails_refused = guest_->tails_refused();
    report_.tails_faulted = guest_->tails_faulted();
    report_.card_resets = guest_->proxy().resets();
    return std::move(report_);
  }

 private:
  Status boot_and_listen() {
    start_ = now_ns();
    crashed_at_boot_ = false;
    exchange_.reset();
    guest_.reset();
    WHERRY_ASSIGN(guest_, Guest::start(options_.guest, echoing_, card_));
    exchange_.emplace(*guest_, Traffic(options_.seed, kLongest), kInFlight);
    for (Deadline silence(kSilence);;) {
      if (Status turned = guest_->turn(1); !turned) return explain(turned);
      WHERRY_TRY(answer_neighbours());
      while (auto line = guest_->take_line()) {
        silence = Deadline(kSilence);
        observer_(*line);
        WHERRY_TRY(hear(*line));
      }
      if (report_.results.contains("end")) return {};
      if (silence.passed())
        return {StatusCode::kDeadlineExceeded, fmt::format("the guest says nothing for {} minutes", kSilence.count())};
    }
  }

  /// QEMU has closed a socket.
  Status explain(const Status& why) {
    for (const Deadline deadline(kExit); !guest_->ended() && !deadline.passed();) ::usleep(1000);
    crashed_at_boot_ = guest_->ended() == kCrashed && report_.marks.empty();
    return {why.code(), fmt::format("QEMU has ended with status {} before the guest did: {}; {}",
                                    guest_->ended().value_or(-1), guest_->said(), why.message())};
  }

  Status answer_neighbours() {
    for (;;) {
      WHERRY_ASSIGN(const auto frame, guest_->wire().take());
      if (!frame) return {};
      const auto answer = neighbour_.answer(*frame);
      if (!answer) {
        ++unanswered_;
        continue;
      }
      ++report_.pings;
      guest_->wire().send(*answer);
    }
  }

  Status hear(const std::string& line) {
    std::istringstream words(line);
    std::string sort, name, value;
    words >> sort >> name >> value;
    if (sort == "MARK") report_.marks[name] = seconds_since(start_);
    if (sort == "RESULT") report_.results[name] = value;
    if (sort != "TURN") return {};
    WHERRY_TRY(turn(name));
    guest_->say("go");
    return {};
  }

  Status turn(const std::string& name) {
    const ExchangeCounters before = exchange_->counters();
    const auto messages = [this] { return guest_->proxy().bar_reads() + guest_->proxy().bar_writes(); };
    const std::uint64_t messages_before = messages(), begin = now_ns(), unanswered = unanswered_;
    WHERRY_TRY(act(name));
    WHERRY_TRY(guest_->settle());
    const ExchangeCounters& now = exchange_->counters();
    report_.turns.push_back({.name = name,
                             .frames = {.sent = now.sent - before.sent,
                                        .replies = now.replies - before.replies,
                                        .unanswered = now.unanswered - before.unanswered,
                                        .returned = now.returned - before.returned,
                                        .wrong = now.wrong - before.wrong,
                                        .lost = now.lost - before.lost},
                             .uninvited = unanswered_ - unanswered,
                             .messages = messages() - messages_before,
                             .seconds = seconds_since(begin)});
    return {};
  }

  Status act(const std::string& name) {
    if (name.starts_with("echo")) return exchange_->run(options_.frames);
    if (name == "attach") return attach();
    if (name == "hold") return hold();
    if (name == "let_go") return let_go();
    if (name == "release") return released();
    return {StatusCode::kProtocol, fmt::format("the guest wants '{}'", name)};
  }

  /// The guest's kernel has given the card an address, and the IOMMU its tables.
  Status attach() {
    const auto at = pci::parse_bus_address(report_.results["card"]);
    if (!at) return at.status();
    return guest_->attach(source_id(at->bus, at->device, at->function));
  }

  /// Sends frames into the card, which may not tell the NIC to fetch the replies.
  Status hold() {
    namespace reg = bypass::registers;
    guest_->hold_tails(true);
    const std::uint32_t before = card_.read_register(reg::kRxInOffset);
    for (std::uint64_t i = 0; i < kHeldFrames; ++i) guest_->wire().send(traffic_.frame(kFirstHeld + i));
    std::uint32_t last = before;
    for (Deadline deadline(kSilence); last - before < kHeldFrames;) {
      WHERRY_TRY(guest_->turn(1));
      if (std::exchange(last, card_.read_register(reg::kRxInOffset)) != last) deadline = Deadline(kSilence);
      if (deadline.passed())
        return {StatusCode::kDeadlineExceeded,
                fmt::format("{} of {} frames reach the card", last - before, kHeldFrames)};
    }
    return {};
  }

  /// None of the held frames may come out.
  Status let_go() {
    guest_->hold_tails(false);
    return listen();
  }

  /// The NIC belongs to its driver again, so the card must not answer.
  Status released() {
    report_.mapped_after_down = guest_->translate(guest_->last_tail()).has_value();
    for (std::uint64_t i = 0; i < kFramesAfterRelease; ++i) guest_->wire().send(traffic_.frame(kFirstHeld + i));
    return listen();
  }

  /// Only the kernel's driver may send frames now: it may ask who has an address.
  Status listen() {
    for (const Deadline deadline(kListen); !deadline.passed();) {
      WHERRY_TRY(guest_->turn(1));
      WHERRY_TRY(answer_neighbours());
    }
    return {};
  }

  static constexpr std::uint64_t kFirstHeld = std::uint64_t{1} << 32;  ///< numbers that the exchange never comes to

  const GuestRunOptions& options_;
  const LineObserver& observer_;
  InPlaceEcho in_place_;
  RtlEndpoint card_;
  EchoingFunction echoing_;
  std::uint64_t start_ = 0;
  bool crashed_at_boot_ = false;
  Traffic traffic_{2, kLongest};
  Neighbour neighbour_;
  std::uint64_t unanswered_ = 0;  ///< frames that were not for the neighbour
  std::unique_ptr<Guest> guest_;
  std::optional<Exchange> exchange_;
  GuestReport report_;
};

}  // namespace

Result<GuestReport> run_guest(const GuestRunOptions& options, const LineObserver& observer) {
  Runner runner(options, observer);
  WHERRY_TRY(runner.run());
  return runner.take();
}

}  // namespace wherry::sim
