// SPDX-License-Identifier: Apache-2.0
#include "sim/card/soak.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <numeric>
#include <vector>

#include "sim/card/rig.hpp"

namespace wherry::sim::card {
namespace {

using namespace std::chrono_literals;
namespace driver = wherry::dma;
using driver::Direction;

constexpr std::uint32_t kSlotBytes = 16384, kGuard = 64,
                        kSlots = 24;                          // a ring has so many transfers outstanding, at most
constexpr std::uint64_t kRingBytes = std::uint64_t{1} << 20;  // of the card's memory
constexpr std::uint64_t kWorldBytes = 400'000;
constexpr auto kStandstill = 500us;  // longer than any time-out of the engine here, and any delay

/// The TLPs that a fault may strike.
enum class Target : std::uint8_t { kCompletions, kReads, kWrites, kBells };

struct Slot {
  std::uint64_t cookie = 0;
  std::uint32_t host_off = 0, card_off = 0, bytes = 0;
  std::byte poison{};
  std::vector<std::uint8_t> data;
};

struct Channel {
  driver::Ring* ring = nullptr;
  bool to_card = false;
  pci::DmaMemory memory;
  std::uint64_t card = 0, next = 0;
  std::deque<Slot> open;
};

class World {
 public:
  World(std::uint64_t seed, const SoakOptions& of, SoakResult& result)
      : random_(seed),
        forgotten_(of.forgotten),
        event_in_(of.event_in),
        result_(result),
        rig_(options()),
        budget_(kWorldBytes) {}
  /// Empty: all was right.
  std::string run();

 private:
  RigOptions options();
  bool begin();
  void add_faults();
  void post(Channel& channel);
  void look(Channel& channel);
  void judge(const Channel& channel, const Slot& slot, const driver::Done& done);
  void event();
  void recover(Channel& channel);
  void reset();
  void wrong(const std::string& why) {
    if (error_.empty()) error_ = why;
  }
  [[nodiscard]] bool chance(std::uint32_t of) { return random_.below(of) == 0; }
  [[nodiscard]] std::uint32_t between(std::uint32_t least, std::uint32_t most) {
    return least + static_cast<std::uint32_t>(random_.below(most - least + 1));
  }
  [[nodiscard]] Channel& any_channel() {
    return channels_[between(0, static_cast<std::uint32_t>(channels_.size()) - 1)];
  }
  [[nodiscard]] std::size_t open() const {
    return std::accumulate(channels_.begin(), channels_.end(), std::size_t{0},
                           [](std::size_t sum, const Channel& one) { return sum + one.open.size(); });
  }

  SplitMix64 random_;
  const bool forgotten_;
  const std::uint32_t event_in_;
  SoakResult& result_;
  Rig rig_;
  std::uint64_t budget_;
  std::unique_ptr<driver::Engine> engine_;
  std::vector<Channel> channels_;
  bool writes_struck_ = false, by_interrupt_ = false, calm_ = false;
  std::chrono::nanoseconds moved_{};
  std::string error_;
};

RigOptions World::options() {
  RigOptions made;
  made.with_switch = chance(2);
  made.link.generation = between(1, 4);
  made.link.lanes = 1U << between(2, 4);
  if (chance(8)) made.link.replay_one_in = between(20, 500);
  made.fabric.mps = 128U << between(0, 2);
  made.fabric.mrrs = 128U << between(0, 5);
  made.fabric.root.rcb = 64U << between(0, 1);
  made.fabric.root.completion_bytes = made.fabric.root.rcb << between(0, 2);
  made.fabric.root.memory_latency = between(50, 1500) * pcie::kNanosecond;
  made.fabric.root.memory_jitter = between(0, 800) * pcie::kNanosecond;
  if (chance(2))
    made.fabric.reordering = {
        .per_mille = between(0, 400), .longest_hold = 500 * pcie::kNanosecond, .split_anywhere = chance(2)};
  made.fabric.seed = random_();
  made.card.seed = random_();
  made.card.memory = chance(6) ? MemoryKind::kDdr4 : MemoryKind::kBram;
  made.card.timeout = between(20, 60);
  made.card.pauses = chance(3) ? between(1000, 400'000) : 0;
  made.card.reads_at_reset = chance(2) && forgotten_ ? ReadsAtReset::kForgotten : ReadsAtReset::kReported;
  return made;
}

bool World::begin() {
  by_interrupt_ = chance(3);
  auto engine = driver::Engine::open(rig_.device, {.ring_bits = between(4, 7),
                                                   .interrupts = by_interrupt_,
                                                   .status_pace = between(1, 30),
                                                   .plenty = between(0, 20'000),
                                                   .reads_ahead = between(driver::kMostAhead / 2, driver::kMostAhead)});
  if (!engine) {
    wrong(engine.status().to_string());
    return false;
  }
  engine_ = *std::move(engine);
  const unsigned used = between(1, engine_->channels());
  for (const Direction direction : {Direction::kToCard, Direction::kToHost}) {
    for (unsigned i = 0; i < used; ++i) {
      Channel& channel = channels_.emplace_back();
      channel.ring = &engine_->ring(direction, i);
      channel.to_card = direction == Direction::kToCard;
      channel.card = kRingBytes * driver::ring_number(direction, i);
      channel.memory = rig_.device.allocate(std::size_t{kSlotBytes} * kSlots).value();
      if (by_interrupt_) channel.ring->moderate(between(0, 4), between(0, 50));
    }
  }
  add_faults();
  return true;
}

void World::add_faults() {
  for (unsigned left = between(0, 2); left != 0; --left) {
    const auto target = static_cast<Target>(between(0, 3));
    pcie::Fault fault;
    fault.kind = static_cast<pcie::FaultKind>(between(0, 4));
    if (fault.kind == pcie::FaultKind::kDelay)
      fault.delay = between(100, chance(4) ? 200'000 : 5'000) * pcie::kNanosecond;
    fault.tlp = target == Target::kCompletions ? pcie::TlpKind::kCompletion
                : target == Target::kReads     ? pcie::TlpKind::kRead
                                               : pcie::TlpKind::kWrite;
    fault.requester = rig_.card.port().id();
    if (target == Target::kBells) {
      fault.requester = pcie::kHostId;
      fault.address = rig_.card.port().bar_address(driver::kBellBar);
      fault.bytes = driver::kBellBytes;
    }
    fault.skip = between(0, 300);
    fault.count = between(1, 8);
    fault.one_in = between(1, 60);
    if (target == Target::kWrites) {
      writes_struck_ = true;
      // A poisoned write reaches the memory with a mark that only the host's error handling sees. A status word could
      // then be wrong, so the write vanishes instead.
      if (fault.kind == pcie::FaultKind::kPoison) fault.kind = pcie::FaultKind::kVanish;
    }
    rig_.fabric.add_fault(fault);
  }
}

void World::post(Channel& channel) {
  const std::uint32_t most = chance(3) ? kSlotBytes - 4 * kGuard : chance(2) ? 300 : 4200;
  Slot slot;
  slot.cookie = channel.next;
  slot.bytes = between(1, most);
  slot.host_off = kGuard + (chance(3) ? 0 : between(0, 127));
  slot.card_off = kGuard + (chance(3) ? 0 : between(0, 127));
  slot.poison = static_cast<std::byte>(random_());
  slot.data.resize(slot.bytes);
  for (std::size_t i = 0; i < slot.data.size(); i += 8) {
    const std::uint64_t word = random_();
    std::memcpy(slot.data.data() + i, &word, std::min<std::size_t>(8, slot.data.size() - i));
  }
  const std::uint64_t place = channel.next % kSlots * kSlotBytes;
  std::byte* const host = channel.memory.bytes.data() + place;
  const std::uint64_t card = channel.card + place;
  if (channel.to_card) {
    std::memcpy(host + slot.host_off, slot.data.data(), slot.bytes);
    rig_.card.content().load(
        card + slot.card_off - kGuard,
        std::vector<std::uint8_t>(slot.bytes + 2 * kGuard, std::to_integer<std::uint8_t>(slot.poison)));
  } else {
    rig_.card.content().load(card + slot.card_off, slot.data);
    std::memset(host + slot.host_off - kGuard, std::to_integer<int>(slot.poison), slot.bytes + 2 * kGuard);
  }
  const Status posted = channel.ring->post({.host = channel.memory.iova + place + slot.host_off,
                                            .card = card + slot.card_off,
                                            .bytes = slot.bytes,
                                            .cookie = slot.cookie,
                                            .interrupt = by_interrupt_ && chance(2)});
  if (!posted) {
    if (!posted.is_would_block()) wrong(posted.to_string());
    return;
  }
  result_.bytes += slot.bytes;
  budget_ -= std::min<std::uint64_t>(budget_, slot.bytes + 500);  // small ones cost time, too
  ++result_.transfers;
  ++channel.next;
  channel.open.push_back(std::move(slot));
}

void World::judge(const Channel& channel, const Slot& slot, const driver::Done& done) {
  const std::string what = fmt::format("ring {}, transfer {} of {} bytes ({})", channel.ring->number(), slot.cookie,
                                       slot.bytes, driver::to_string(done.error));
  if (done.cookie != slot.cookie) return wrong(fmt::format("{}: was told as {}", what, done.cookie));
  const std::uint64_t place = slot.cookie % kSlots * kSlotBytes;
  std::vector<std::uint8_t> found(slot.bytes + 2 * kGuard);
  if (channel.to_card)
    rig_.card.content().dump(channel.card + place + slot.card_off - kGuard, found);
  else
    std::memcpy(found.data(), channel.memory.bytes.data() + place + slot.host_off - kGuard, found.size());
  const auto poison = std::to_integer<std::uint8_t>(slot.poison);
  std::uint64_t missing = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const bool inside = i >= kGuard && i < kGuard + slot.bytes;
    if (inside && found[i] == slot.data[i - kGuard]) continue;
    if (found[i] != poison)
      return wrong(fmt::format("{}: byte {} is neither what was there nor what was sent", what,
                               static_cast<std::int64_t>(i) - kGuard));
    if (!inside) continue;
    ++missing;
    // All bytes before the error were moved, and must be there.
    if (i - kGuard < done.bytes && channel.to_card)
      return wrong(fmt::format("{}: byte {} is missing, and {} were moved", what, i - kGuard, done.bytes));
  }
  if (done.error == driver::Error::kReset) {
    ++result_.voided;
    return;
  }
  if (done.error != driver::Error::kNone) {
    ++result_.failed;
    return;
  }
  if (done.bytes != slot.bytes) return wrong(fmt::format("{}: says that {} bytes were moved", what, done.bytes));
  if (missing != 0 && (channel.to_card || !writes_struck_))
    return wrong(fmt::format("{}: {} bytes are missing", what, missing));
  result_.holes += missing;
  ++result_.good;
  result_.good_bytes += slot.bytes;
}

void World::look(Channel& channel) {
  std::array<driver::Done, 16> done;
  const std::size_t count = channel.ring->poll(done);
  for (std::size_t i = 0; i < count; ++i) {
    if (channel.open.empty()) return wrong("a transfer that was not posted is told");
    judge(channel, channel.open.front(), done[i]);
    channel.open.pop_front();
    moved_ = rig_.device.now();
  }
}

void World::reset() {
  ++result_.resets;
  // Faults do not strike the host's recovery.
  if (const Status done = engine_->reset(); !done) wrong(done.to_string());
  moved_ = rig_.device.now();
}

void World::recover(Channel& channel) {
  ++result_.recoveries;
  if (!channel.ring->recover()) reset();
  moved_ = rig_.device.now();
}

void World::event() {
  switch (between(0, 5)) {
    case 0:
      return reset();
    case 1:
      ++result_.masters_off;
      static_cast<void>(rig_.device.set_bus_master(false));
      rig_.device.pause(std::chrono::nanoseconds(between(1, 8000)));
      static_cast<void>(rig_.device.set_bus_master(true));
      return;
    case 2:
      return recover(any_channel());
    case 3: {
      driver::Ring& ring = *any_channel().ring;
      if (ring.failed()) return;
      if (ring.stop())
        ring.start();
      else
        reset();
      return;
    }
    case 4:
      if (!chance(4)) return;
      ++result_.resets;
      rig_.fabric.hot_reset(rig_.slot);
      rig_.device.pause(5us);
      return reset();
    default:
      return;
  }
}

std::string World::run() {
  if (!begin()) return error_;
  moved_ = rig_.device.now();
  while (error_.empty() && (budget_ != 0 || open() != 0)) {
    for (Channel& channel : channels_) {
      if (channel.ring->failed() && (calm_ || chance(4))) recover(channel);
      if (!error_.empty()) break;
      const bool posts = budget_ != 0 && !channel.ring->failed() && chance(3);
      for (unsigned left = posts ? between(1, 6) : 0;
           left != 0 && channel.open.size() < kSlots && channel.ring->room() != 0; --left)
        post(channel);
      if (posts && chance(3))
        channel.ring->ring_bell_in_time();
      else if (posts)
        channel.ring->ring_bell(chance(2) ? driver::Bell::kTail : driver::Bell::kDescriptor);
    }
    if (by_interrupt_ && chance(4))
      static_cast<void>(any_channel().ring->wait(std::chrono::nanoseconds(between(10, 4000)), true));
    else
      rig_.device.pause(std::chrono::nanoseconds(between(10, chance(10) ? 20'000 : 2000)));
    for (Channel& channel : channels_) look(channel);
    if (budget_ != 0 && chance(event_in_)) event();
    if (budget_ == 0) calm_ = true;
    if (open() != 0 && rig_.device.now() - moved_ > kStandstill) {  // a doorbell or a status word is lost
      if (calm_) rig_.fabric.clear_faults();
      reset();
    }
    if (open() == 0) moved_ = rig_.device.now();
  }
  for (const Channel& channel : channels_)
    if (channel.ring->outstanding() != 0 && error_.empty()) wrong("the driver has transfers that nobody posted");
  if (const std::string broken = rig_.card.violation(); !broken.empty()) wrong(broken);
  for (const std::uint64_t struck : rig_.fabric.counters().faults) result_.struck += struck;
  result_.engine_timeouts += rig_.card.counters().timed_out;
  result_.unexpected += rig_.card.counters().unexpected;
  result_.cycles += rig_.card.counters().cycles;
  return error_;
}

}  // namespace

SoakResult soak(const SoakOptions& options) {
  SoakResult result;
  for (std::uint64_t seed = options.seed; result.bytes < options.bytes && result.error.empty(); ++seed) {
    ++result.worlds;
    if (const std::string error = World(seed, options, result).run(); !error.empty())
      result.error = fmt::format("seed {}: {}", seed, error);
  }
  return result;
}

}  // namespace wherry::sim::card
