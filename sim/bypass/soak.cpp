// SPDX-License-Identifier: Apache-2.0
#include "sim/bypass/soak.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "base/random.hpp"
#include "sim/bypass/echo.hpp"
#include "sim/bypass/rig.hpp"
#include "sim/bypass/stream_functions.hpp"

namespace wherry::sim {
namespace {

using pcie::FaultKind;
using pcie::kMicrosecond;
using pcie::Time;
using pcie::TlpKind;

constexpr std::array<std::string_view, static_cast<std::size_t>(Trouble::kCount)> kNames{
    "none",          "reads vanish",     "completions vanish", "completions poisoned", "reads refused",
    "reads aborted", "completions late", "writes vanish",      "writes poisoned",      "writes refused",
    "tails vanish",  "NIC removed",      "NIC reset",          "NIC's bus master off", "card's bus master off",
    "card removed",  "hot reset",        "link down",          "hostile NIC"};

constexpr Time kCompletionTimeout = 20 * kMicrosecond;
constexpr Time kOutage = 60 * kMicrosecond;    ///< how long something is gone
constexpr Time kDrain = 4'000 * kMicrosecond;  ///< after the last frame: longer than all repeats of a read
constexpr std::uint64_t kAgain = 40;           ///< frames that must pass afterwards

bool resets_core(Trouble trouble) { return trouble == Trouble::kCardRemoved || trouble == Trouble::kHotReset; }
/// Frames may carry wrong data, because the card cannot detect data that were lost or damaged before they reach it.
bool may_spoil(Trouble trouble) {
  return trouble == Trouble::kWritesVanish || trouble == Trouble::kWritesPoisoned ||
         trouble == Trouble::kWritesRefused || trouble == Trouble::kHostile;
}

RigOptions random_rig(const SoakOptions& options, SplitMix64& random) {
  struct Card {
    std::string_view nic;
    std::uint32_t mbits;
    pcie::LinkOptions link;
  };
  // Faster than the real 1 Gbit/s cards, so that more happens in a microsecond.
  const std::array<Card, 7> cards{
      Card{"e1000e", 10'000, {.generation = 2, .lanes = 4}},   Card{"igb", 10'000, {.generation = 2, .lanes = 4}},
      Card{"ixgbe", 10'000, {.generation = 2, .lanes = 8}},    Card{"x550", 10'000, {.generation = 3, .lanes = 4}},
      Card{"i40e", 40'000, {.generation = 3, .lanes = 8}},     Card{"ice", 100'000, {.generation = 4, .lanes = 16}},
      Card{"iavf_flex", 25'000, {.generation = 3, .lanes = 8}}};
  const Card& card = cards[random.below(cards.size())];
  RigOptions rig;
  rig.nic = card.nic;
  rig.mbits = card.mbits;
  rig.nic_link = card.link;
  if (random.below(3) == 0) rig.nic_link.replay_one_in = 50;
  if (random.below(3) == 0) rig.card_link.replay_one_in = 50;
  constexpr std::array<Topology, 3> kTopologies{Topology::kSwitch, Topology::kIntel, Topology::kAmd};
  rig.topology = kTopologies[random.below(3)];
  rig.in_place = random.below(2) == 0;
  rig.seed = options.seed;
  rig.pauses = random.below(2) * random.below(200'000);
  rig.reordering = {.per_mille = random.below(4) == 0 ? 0 : random.below(400), .split_anywhere = random.below(2) == 0};
  rig.tx_credits = 1 + random.below(4);
  rig.rx_batch = 1U << random.below(5);
  rig.completion_timeout = kCompletionTimeout;
  rig.repeats_reads = options.seed / static_cast<std::uint64_t>(Trouble::kCount) % 2 != 0;
  if (options.trouble == Trouble::kHostile)
    rig.hostile = {
        .ghost_writebacks = random.below(200), .long_lengths = random.below(100), .outside_reads = random.below(200)};
  return rig;
}

std::vector<std::uint32_t> random_sizes(const RigOptions& rig, SplitMix64& random) {
  std::vector<std::uint32_t> sizes;
  const std::uint32_t longest = rig.nic == "e1000e" ? 2 * kSlotBytes + 100 : 9'000;
  for (int i = 0; i < 16; ++i) {
    const std::uint32_t limit = random.below(16) == 0 ? longest : random.below(2) == 0 ? 1514 : 200;
    sizes.push_back(60 + random.below(limit - 59));
  }
  return sizes;
}

class Soak {
 public:
  explicit Soak(const SoakOptions& options)
      : options_(options),
        random_(options.seed * 64 + static_cast<std::uint64_t>(options.trouble)),
        rig_options_(random_rig(options, random_)),
        rig_(rig_options_, &in_place_, rig_options_.in_place ? nullptr : &stream_) {}

  SoakResult run() {
    if (!rig_.ready) {
      result_.wrong.push_back("set-up: " + rig_.ready.message());
      return result_;
    }
    rig_.queue.run(rig_.queue.now() + 20 * kMicrosecond);
    const std::vector<std::uint32_t> sizes = random_sizes(rig_options_, random_);
    Time length = 0;
    for (std::uint64_t i = 0; i < options_.frames; ++i)
      length += nic::slot_time(sizes[i % sizes.size()], rig_options_.mbits);
    const std::uint32_t load = 300 + random_.below(701);
    length = length * 1000 / load;
    const Time start = rig_.queue.now();
    const nic::Source source(rig_.queue, rig_.meter,
                             {.mbits = rig_options_.mbits,
                              .frames = options_.frames,
                              .sizes = sizes,
                              .load_per_mille = load,
                              .start = start,
                              .bad_fcs_one_in = random_.below(4) == 0 ? 50U : 0U});
    const Time when = start + static_cast<Time>(random_.below(1000)) * length / 1000;
    begin_faults();
    rig_.queue.run(when);
    begin_outage();
    rig_.queue.run(when + kOutage);
    end_outage();
    rig_.queue.run(std::max(rig_.queue.now(), start + length) + kDrain);
    finish(source.sent());
    pass_again();
    result_.cycles = rig_.card.counters().cycles;
    return result_;
  }

 private:
  void fault(FaultKind kind, TlpKind tlp, pcie::NodeId at, pcie::FunctionId requester, std::uint32_t one_in,
             std::uint64_t count) {
    rig_.fabric.add_fault({.kind = kind,
                           .at = at,
                           .tlp = tlp,
                           .requester = requester,
                           .skip = random_.below(100),
                           .count = count,
                           .one_in = one_in,
                           .delay = static_cast<Time>(random_.below(3000)) * pcie::kNanosecond});
  }
  void begin_faults() {
    const pcie::FunctionId nic = rig_.nic_port->id(), card = rig_.card_port->id();
    const std::uint64_t few = 1 + random_.below(4);
    switch (options_.trouble) {
      case Trouble::kReadsVanish:
        return fault(FaultKind::kVanish, TlpKind::kRead, rig_.card_node, nic, 20, 10);
      case Trouble::kCompletionsVanish:
        return fault(FaultKind::kVanish, TlpKind::kCompletion, rig_.nic_node, nic, 20, 10);
      case Trouble::kCompletionsPoisoned:
        return fault(FaultKind::kPoison, TlpKind::kCompletion, rig_.nic_node, nic, 30, few);
      case Trouble::kReadsRefused:
        return fault(FaultKind::kUnsupportedRequest, TlpKind::kRead, rig_.card_node, nic, 60, few);
      case Trouble::kReadsAborted:
        return fault(FaultKind::kCompleterAbort, TlpKind::kRead, rig_.card_node, nic, 60, few);
      case Trouble::kCompletionsLate:
        return fault(FaultKind::kDelay, TlpKind::kCompletion, rig_.nic_node, nic, 5, 10'000);
      case Trouble::kWritesVanish:
        return fault(FaultKind::kVanish, TlpKind::kWrite, rig_.card_node, nic, 60, few);
      case Trouble::kWritesPoisoned:
        return fault(FaultKind::kPoison, TlpKind::kWrite, rig_.card_node, nic, 60, few);
      case Trouble::kWritesRefused:
        return fault(FaultKind::kUnsupportedRequest, TlpKind::kWrite, rig_.card_node, nic, 60, few);
      case Trouble::kTailsVanish:
        return fault(FaultKind::kVanish, TlpKind::kWrite, rig_.nic_node, card, 20, few);
      default:
        return;
    }
  }
  void begin_outage() {
    switch (options_.trouble) {
      case Trouble::kNicRemoved:
        return rig_.fabric.remove(rig_.nic_node);
      case Trouble::kNicReset:
        return rig_.nic_port->reset();
      case Trouble::kNicMasterOff:
        return rig_.nic.set_bus_master(false);
      case Trouble::kCardMasterOff:
        return rig_.card_port->set_bus_master(false);
      case Trouble::kCardRemoved:
        return rig_.fabric.remove(rig_.card_node);
      case Trouble::kHotReset:
        return rig_.fabric.hot_reset(rig_.card_node);
      case Trouble::kLinkDown:
        return rig_.nic.set_link(false);
      default:
        return;
    }
  }
  void end_outage() {
    switch (options_.trouble) {
      case Trouble::kNicRemoved:
        return rig_.fabric.insert(rig_.nic_node);
      case Trouble::kNicMasterOff:
        return rig_.nic.set_bus_master(true);
      case Trouble::kCardMasterOff:
        return rig_.card_port->set_bus_master(true);
      case Trouble::kCardRemoved:
        return rig_.fabric.insert(rig_.card_node);
      case Trouble::kLinkDown:
        return rig_.nic.set_link(true);
      default:
        return;
    }
  }

  void demand(bool holds, const std::string& sentence) {
    if (!holds) result_.wrong.push_back(sentence);
  }
  void equal(const char* what, std::uint64_t a, std::uint64_t b) {
    demand(a == b, fmt::format("{}: {} and {}", what, a, b));
  }

  /// The host stops the queues: first the NIC's, then the core's. Then every frame must be accounted for.
  void finish(std::uint64_t sent) {
    const bool quiet = options_.trouble == Trouble::kNone || options_.trouble == Trouble::kCompletionsLate ||
                       options_.trouble == Trouble::kReadsVanish || options_.trouble == Trouble::kCompletionsVanish;
    const nic::NicCounters before = rig_.nic.counters();
    const std::uint64_t waiting = rig_.nic.rx_waiting() + rig_.nic.tx_waiting();
    rig_.fabric.clear_faults();
    rig_.nic.stop_rx(0);
    rig_.nic.stop_tx(0);
    rig_.queue.run(rig_.queue.now() + kDrain);
    rig_.card.core().drain(true);
    if (const Status status = rig_.host().stop(); !status && !resets_core(options_.trouble))
      result_.wrong.push_back("stop: " + status.message());
    rig_.queue.run(rig_.queue.now() + 100 * kMicrosecond);
    std::map<std::string_view, std::uint64_t> c;
    const auto counters = rig_.host().counters();
    if (!counters) result_.wrong.push_back("counters: " + counters.status().message());
    if (counters)
      for (const bypass::Counter& one : *counters) c[one.name] = one.value;

    const nic::NicCounters& n = rig_.nic.counters();
    nic::Checker& checker = rig_.meter.checker();
    RtlCore& core = rig_.card.core();
    result_.in = sent;
    result_.out = checker.frames;
    for (const std::uint64_t one : rig_.fabric.counters().faults) result_.struck += one;
    result_.struck += n.hostile_acts;
    result_.refused = c["rx_unexpected"] + c["rx_stray"] + c["outside_reads"] + c["outside_writes"];
    result_.counted = n.rx_dropped_all() + n.tx_dropped_all() + c["rx_error"] + c["rx_size"] + c["rx_stopped"] +
                      c["tx_stopped"] + c["tx_refused"] + c["tx_size"] + c["tx_late"] + c["verdicts_drop"];

    // The NIC.
    equal("NIC: received is what was sent to it", n.received, sent);
    equal("NIC: received = delivered + dropped + inside", n.received,
          n.delivered + n.rx_dropped_all() + rig_.nic.rx_waiting());
    equal("NIC: accepted = sent + dropped + inside", n.accepted, n.sent + n.tx_dropped_all() + rig_.nic.tx_waiting());
    equal("wire: what the NIC sent arrived", n.sent, checker.frames);
    result_.retries = n.retries;
    if (!may_spoil(options_.trouble)) {
      equal("wire: frames with wrong bytes, and none", checker.wrong, 0);
      equal("wire: frames out of order, and none", checker.reordered, 0);
    } else if (options_.trouble != Trouble::kHostile) {
      demand(checker.wrong <= result_.struck,
             fmt::format("wire: {} frames with wrong bytes, {} TLPs struck", checker.wrong, result_.struck));
    }
    // The core.
    if (!resets_core(options_.trouble)) {
      equal("core: rx_in = rx_frames + rx_error + rx_size + rx_stopped", c["rx_in"],
            c["rx_frames"] + c["rx_error"] + c["rx_size"] + c["rx_stopped"]);
      equal("core: tx_in = tx_posted + tx_refused + tx_size + tx_late", c["tx_in"],
            c["tx_posted"] + c["tx_refused"] + c["tx_size"] + c["tx_late"]);
      equal("core: tx_posted = tx_done + tx_stopped", c["tx_posted"], c["tx_done"] + c["tx_stopped"]);
      // Balance of the function, which does not drop frames.
      equal("function: rx_frames = tx_in + held", c["rx_frames"],
            c["tx_in"] + c["verdicts_drop"] + core.frames_waiting() + core.frames_to_send() + core.verdicts_waiting());
      // Balance between NIC and core, over PCIe.
      demand(n.accepted <= c["tx_posted"],
             fmt::format("the NIC accepted {} frames of {} that were posted", n.accepted, c["tx_posted"]));
      if (options_.trouble != Trouble::kHostile)
        demand(c["rx_in"] <= n.delivered,
               fmt::format("the core has {} frames of {} that the NIC delivered", c["rx_in"], n.delivered));
      if (options_.trouble != Trouble::kHostile && !may_spoil(options_.trouble) &&
          options_.trouble != Trouble::kNicRemoved)
        equal("core: all that the NIC delivered came in", c["rx_in"], n.delivered);
    }
    if (quiet && before.rings_stopped == 0 && before.tx_dropped_all() == 0) {
      equal("NIC: frames that wait at the end, and none", waiting, 0);
      equal("in = out + counted", sent, checker.frames + n.rx_dropped_all());
      equal("core: what it refused, and nothing", result_.refused, 0);
    }
  }

  /// The host sets both up again, and frames must pass.
  void pass_again() {
    if (!result_.wrong.empty()) return;
    rig_.card.core().drain(false);
    while (rig_.card.core().take_frame()) {
    }
    rig_.nic.reset();
    rig_.nic.set_hostile({});
    if (const Status status = rig_.start(); !status) {
      result_.wrong.push_back("set-up again: " + status.message());
      return;
    }
    rig_.queue.run(rig_.queue.now() + 20 * kMicrosecond);
    Meter meter(rig_.queue, rig_.nic, true);
    const nic::Source source(rig_.queue, meter,
                             {.mbits = rig_options_.mbits,
                              .frames = kAgain,
                              .sizes = {60, 1514, 300},
                              .load_per_mille = 100,
                              .start = rig_.queue.now()});
    rig_.queue.run(rig_.queue.now() + kDrain);
    nic::Checker& checker = meter.checker();
    equal("afterwards: frames of 40 that came back", checker.frames, kAgain);
    equal("afterwards: wrong or out of order, and none", checker.wrong + checker.reordered, 0);
  }

  SoakOptions options_;
  SplitMix64 random_;
  RigOptions rig_options_;
  InPlaceEcho in_place_;
  EchoStream stream_;
  Rig rig_;
  SoakResult result_;
};

}  // namespace

std::string_view name_of(Trouble trouble) noexcept { return kNames[static_cast<std::size_t>(trouble)]; }

SoakResult soak(const SoakOptions& options) {
  Soak one(options);
  return one.run();
}

}  // namespace wherry::sim
