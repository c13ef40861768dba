// SPDX-License-Identifier: Apache-2.0
// The driver's accesses to the registers.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "kv/node/driver/driver.hpp"

namespace wherry::kv {

using namespace registers;

namespace {
constexpr std::uint64_t kLineBytes = kWays * WayHeader::kBytes;
}  // namespace

Cycles Driver::cycles() {
  const std::uint32_t low = core_.read(cycles_offset(0));  // latches the high word
  return std::uint64_t{core_.read(cycles_offset(1))} << 32 | low;
}

void Driver::write_lease(Cycles end) {
  lease_end_ = end;
  core_.write(lease_offset(0), static_cast<std::uint32_t>(end));
  core_.write(lease_offset(1), static_cast<std::uint32_t>(end >> 32));
}

void Driver::clear() {
  std::uint32_t control = kControlEnable.mask() | kControlClearTable.mask();
  if (options_.accept) control |= kControlAccept.mask();
  core_.write(kControlOffset, control);
}

/// Checks that the core supports the cluster file's values. If a register does not keep its value, this node would
/// differ from what the other nodes expect.
void Driver::check_core() {
  unfit_.clear();
  const std::uint32_t capability = core_.read(kCapabilityOffset);
  const std::uint32_t version = core_.read(kCoreVersionOffset);
  if (core_.read(kIdOffset) != kIdReset) return;  // off its bus: look() says so
  if (constexpr auto kMajor = kCoreVersionMajor.get(kCoreVersionReset); kCoreVersionMajor.get(version) != kMajor) {
    unfit_ = fmt::format(
        "the core has registers of version {}.{}, and this program knows those of version {}: load a "
        "core and use a program of the same release",
        kCoreVersionMajor.get(version), kCoreVersionMinor.get(version), kMajor);
    return;
  }
  const std::uint32_t lanes = std::uint32_t{1} << kCapabilityLaneBits.get(capability);
  if (lanes < options_.lanes)
    unfit_ = fmt::format("the core keeps records for {} lanes, the cluster file has lanes = {}", lanes, options_.lanes);
  const std::uint32_t bits = core_.read(kBucketBitsOffset);
  if (bits != options_.bucket_bits) {
    unfit_ = fmt::format("the core has 2^{} buckets and does not take the cluster file's bucket_bits = {}", bits,
                         options_.bucket_bits);
  }
  const std::uint32_t room = kCapabilitySources.get(capability);
  if (room != 0 && options_.sources.size() > room) {
    unfit_ = fmt::format(
        "the core holds {} subnets that it answers, and those of the cluster file ('clients' and the nodes) are {} "
        "after all that can be were merged: name fewer or larger ones in 'clients'",
        room, options_.sources.size());
  }
}

/// A subnet is not in use while it changes. So the core never answers a source that is in neither the old nor the new
/// list.
void Driver::tell_sources() {
  const std::uint32_t room = kCapabilitySources.get(core_.read(kCapabilityOffset));
  for (std::uint32_t i = 0; i < room; ++i) core_.write(source_mask_offset(i), 0);
  for (std::uint32_t i = 0; i < room && i < options_.sources.size(); ++i) {
    core_.write(source_ip_offset(i), options_.sources[i].ip);
    core_.write(source_mask_offset(i), options_.sources[i].mask);
  }
}

/// Starts a new boot, which has no data and is in no epoch.
void Driver::begin(std::uint64_t ended, Cycles now) {
  write_lease(0);
  core_.write(kEpochOffset, 0);
  left_ = false;
  (void)leave();
  ended_ = ended;
  boot_ = output_.draw_boot();
  if (static_ && entered_) {  // the others have acknowledged writes that this boot does not have
    static_.reset();
    left_static_ = true;
  }
  entered_.reset();
  next_.reset();
  entering_ = false;
  ready_ = stopped_ = settled_ = complete_ = fetching_ = lanes_asked_ = false;
  next_bucket_ = 0;
  asked_ = 0;
  next_look_ = now + options_.busy_interval;
  hello();
}

/// Begins to empty the core after it has left its epoch. Before that, the core ignores the commands for it. True: it
/// has left.
bool Driver::leave() {
  if (left_) return true;
  if (entering()) return false;
  if (core_.read(kEpochOffset) != 0) {  // it was being entered when the core was told to leave, and it did not hear
    core_.write(kEpochOffset, 0);
    if (entering() || core_.read(kEpochOffset) != 0) return false;
  }
  core_.write(kBucketBitsOffset, options_.bucket_bits);
  check_core();
  if (unfit_.empty()) tell_sources();
  // Values follow the lines; with 2^8 or more buckets the lines end at a multiple of 4096.
  const std::uint64_t values = kLineBytes << options_.bucket_bits;
  for (std::uint32_t i = 0; i < 2; ++i) {
    core_.write(line_base_offset(i), 0);
    core_.write(value_base_offset(i), static_cast<std::uint32_t>(values >> 32 * i));
  }
  core_.write(kRetryCyclesOffset, options_.retry_cycles);
  patience_ = 0;
  fetch_patience_ = 0;
  fetch_looked_ = 0;
  unanswered_since_ = 0;
  silent_ = 0;
  clear();
  return left_ = true;
}

/// A core that is entering an epoch gets no other one. Entering lasts until the network has taken its frames.
bool Driver::entering() { return kStateEntering.get(core_.read(kStateOffset)) != 0; }

/// Reports the epoch only when the core has entered it. Until then the core may still commit in the epoch before, and
/// the keeper would assume the opposite.
void Driver::tell_entered() {
  entering_ = entering();
  if (!entering_ && entered_) output_.send(Entered{boot_, entered_->epoch});
}

/// Reads the state and reacts to it. False: the core is faulty, and this was reported.
bool Driver::look(Cycles now) {
  state_ = core_.read(kStateOffset);
  // A card that has left its bus reads as all ones.
  const bool gone = state_ == ~std::uint32_t{0} && core_.read(kIdOffset) != kIdReset;
  if (gone || kStateFault.get(state_) != 0) {
    const bool known = fault_;
    fault_ = true;
    next_look_ = now + options_.idle_interval;
    if (entered_) {
      report(0);
      begin(gone ? 0 : boot_, now);  // a core that does not hear is not known to have stopped
    } else if (kStateClearing.get(state_) == 0 || gone) {
      begin(ended_, now);  // the core may have come back with anything in it
      if (!known) report(0);
    }
    next_look_ = now + options_.idle_interval;
    return false;
  }
  if (fault_) {  // it is over, and what the core was told meanwhile it may not have heard
    fault_ = false;
    begin(ended_, now);
    return true;
  }
  if (!left_) {  // the state was read before: it says nothing of what is begun here
    (void)leave();
    next_look_ = now + options_.busy_interval;
    return true;
  }
  if (entering_ && kStateEntering.get(state_) == 0) {
    tell_entered();
    if (next_) {
      const Configuration next = *std::exchange(next_, std::nullopt);
      obey(next, now);
    }
  }
  if (!options_.silent_members) watch_answers(now);
  const bool was_ready = ready_;
  const bool was_complete = complete_;
  if (!ready_ && kStateClearing.get(state_) == 0) ready_ = true;
  if (entered_ && !complete_ && !entering_) synchronise();
  next_look_ = now + (busy() ? options_.busy_interval : options_.idle_interval);
  if (ready_ != was_ready || complete_ != was_complete) report(0);
  return true;
}

/// A core in hardware repeats unanswered messages at one rate for ever. If its counters show that writes wait and
/// nothing is answered, the driver sets a lower rate. The members to which the core last repeated something are then
/// silent.
void Driver::watch_answers(Cycles now) {
  constexpr std::array<Cycles, 3> kSteps{5'000'000, 25'000'000, 125'000'000};  // 20, 100, 500 ms: 4, 16, 64 times
  const auto led = [this] { return std::ranges::find(entered_->leaders, options_.node) != entered_->leaders.end(); };
  const bool waits = entered_ && !entering_ && complete_ &&
                     (kStateInFlight.get(state_) != 0 || (kStateOpened.get(state_) == 0 && led()));
  std::uint64_t answers = answers_;
  if (waits) {
    answers = 0;
    for (const Kind kind : {Kind::replicated, Kind::replicated_remove, Kind::entered})
      answers += core_.read(received_offset(static_cast<std::uint32_t>(kind)));
  }
  if (!waits || unanswered_since_ == 0 || answers != answers_) unanswered_since_ = waits ? now : 0;
  answers_ = answers;
  const Cycles time = unanswered_since_ == 0 ? 0 : now - unanswered_since_;
  const auto steps = std::ranges::count_if(kSteps, [&](Cycles step) { return time >= step; });
  set_pace(std::max(static_cast<std::uint32_t>(2 * steps), watch_fetching(now)));
  silent_ = 0;
  if (time < options_.silence) return;
  const auto repeated_to = static_cast<NodeMask>(kStateUnanswered.get(state_));
  silent_ = repeated_to & without(entered_->members, mask_of(options_.node));
}

/// The power of two by which a core that catches up must slow its requests. If answers take longer than retry_cycles,
/// it requests each location again and again. The answers then delay the next ones, and the core never finishes.
std::uint32_t Driver::watch_fetching(Cycles now) {
  constexpr Cycles kLook = 12'500'000;  // 50 ms
  constexpr std::uint32_t kMost = 6;    // 64 times
  if (!entered_ || entering_ || complete_) {
    fetch_patience_ = 0;
    fetch_looked_ = 0;
    return 0;
  }
  if (fetch_looked_ != 0 && now - fetch_looked_ < kLook) return fetch_patience_;
  const std::uint32_t repeated = core_.read(kRetriesOffset);
  const std::uint32_t answered = core_.read(received_offset(static_cast<std::uint32_t>(Kind::entry))) +
                                 core_.read(received_offset(static_cast<std::uint32_t>(Kind::lane_record)));
  if (fetch_looked_ != 0) {
    const std::uint32_t more = repeated - fetch_repeated_;
    const std::uint32_t came = answered - fetch_answered_;
    if (more > came / 2) fetch_patience_ = std::min(fetch_patience_ + 1, kMost);
    if (more < came / 8 && fetch_patience_ > 0) --fetch_patience_;
  }
  fetch_looked_ = now;
  fetch_repeated_ = repeated;
  fetch_answered_ = answered;
  return fetch_patience_;
}

void Driver::set_pace(std::uint32_t patience) {
  if (patience == patience_) return;
  patience_ = patience;
  core_.write(kRetryCyclesOffset, options_.retry_cycles << patience_);
}

void Driver::stage(const Configuration& c) {
  core_.write(kNodeOffset, options_.node);
  core_.write(kMembersOffset, kMembersAll.set(kMembersServing.set(0, c.serving), c.members));
  core_.write(kUdpPortOffset, c.peers[options_.node].port);
  for (std::uint32_t word = 0; word < kLeaderCount; ++word) {
    std::uint32_t value = 0;
    for (std::uint32_t i = 0; i < 8; ++i) value |= std::uint32_t{c.leaders[8 * word + i]} << 4 * i;
    core_.write(leader_offset(word), value);
  }
  for (std::uint32_t node = 0; node < kMaxNodes; ++node) {
    core_.write(peer_mac_low_offset(node), static_cast<std::uint32_t>(c.peers[node].mac));
    core_.write(peer_mac_high_offset(node), static_cast<std::uint32_t>(c.peers[node].mac >> 32));
    core_.write(peer_ip_offset(node), c.peers[node].ip);
    core_.write(peer_port_offset(node), c.peers[node].port);
  }
}

void Driver::enter(const Configuration& c, Cycles now) {
  unanswered_since_ = 0;  // in this epoch nothing has waited yet
  silent_ = 0;
  const bool first = !entered_;
  stage(c);
  if (!has(c.serving, options_.node)) write_lease(0);
  core_.write(kEpochOffset, static_cast<std::uint32_t>(c.epoch & 0xffff));
  entered_ = c;
  settled_ = settled_ && !first;
  stopped_ = false;
  asked_ = 0;  // it was asked for in another epoch
  next_ask_ = now;
  if (first && has(c.serving, options_.node)) complete_ = true;  // an empty cluster starts: empty is everything
  if (static_) write_lease(~Cycles{0});
  if (!complete_) next_look_ = now;
}

/// First requests buckets, one chunk at a time, then lanes. The lanes wait until all members have entered an epoch with
/// this node as a member. A node still in the epoch before could answer for its lanes and then commit there without
/// this node.
void Driver::synchronise() {
  const std::uint64_t all = std::uint64_t{1} << options_.bucket_bits;
  if (fetching_ && core_.read(kSyncCountOffset) != 0) return;
  fetching_ = false;
  if (next_bucket_ < all) {
    const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(options_.chunk, all - next_bucket_));
    core_.write(kSyncFromOffset, static_cast<std::uint32_t>(next_bucket_));
    core_.write(kSyncCountOffset, count);
    next_bucket_ += count;
    fetching_ = true;
    return;
  }
  if (!lanes_asked_) {
    if (!settled_) return;
    core_.write(kSyncLanesOffset, options_.lanes);
    lanes_asked_ = true;
    return;
  }
  if (core_.read(kSyncLanesOffset) != 0) return;
  complete_ = kStateLeftovers.get(core_.read(kStateOffset)) == 0;
}

}  // namespace wherry::kv
