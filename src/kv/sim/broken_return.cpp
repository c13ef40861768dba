// SPDX-License-Identifier: Apache-2.0
#include "kv/sim/broken_return.hpp"

#include <algorithm>
#include <bit>

namespace wherry::kv::sim {
namespace {

constexpr Cycles kLookAgain = 500;
constexpr std::uint16_t kLastLane = (1U << Cluster::kLaneBits) - 1;
constexpr Cycles kWriteRemovals = 2;  ///< for so many a write is waited for
constexpr Cycles kRemovals = 20;      ///< and so many later it is over, come what may: a core returns slowly

Kv header_of(const Packet& packet) { return Kv::unpack(packet.bytes.first<Kv::kBytes>()); }
bool is_replicate(const Kv& header) {
  const auto kind = static_cast<Kind>(header.kind);
  return kind == Kind::replicate || kind == Kind::replicate_remove;
}

}  // namespace

void BrokenReturn::begin(std::uint64_t key, Cycles now) {
  const std::uint32_t nodes = cluster_.options().nodes;
  key_ = key;
  arranged_ = likely();
  leader_ = cluster_.leader_of(key);
  returning_ = (leader_ + 1 + random_.below(nodes - 1)) % nodes;
  const std::uint32_t next = next_leader();
  const bool next_holds = nodes == kFewestNodes || !mostly();
  do holder_ = random_.below(nodes);
  while (holder_ == leader_ || holder_ == returning_ || (holder_ == next && !next_holds));
  deaf_ = mask_of(returning_);
  slow_ = dead_ = 0;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    if (node != leader_ && node != holder_ && (node == next ? mostly() : likely())) deaf_ |= mask_of(node);
    if (!likely()) slow_ |= mask_of(node);
  }
  late_ = up_to(removal_);
  unheard_ = mostly();
  told_first_ = mostly();
  still_ = mostly();
  second_ = nodes > kFewestNodes && toss();
  told_ = paused_ = false;
  due_ = 0;
  limit_ = now + kWriteRemovals * removal_;
  phase_ = Phase::kArmed;
  cluster_.network().interfere([this](Port from, Port to, const Packet& packet) { return delay_of(from, to, packet); });
  cluster_.kill_node(returning_, toss());
  look(now);
}

void BrokenReturn::see(Fate fate, const Packet& packet) {
  if (fate != Fate::kDelivered) return;
  if (phase_ == Phase::kReturning && tells(packet)) told_ = true;
  if (phase_ != Phase::kArmed) return;
  if (!(packet.from == Cluster::endpoint_of(leader_)) || !(packet.to == Cluster::endpoint_of(holder_))) return;
  const Kv header = header_of(packet);
  if (!is_replicate(header) || slot_of(hash_of(header.key)) != slot_of(hash_of(key_))) return;
  lane_ = header.client;
  client_ = cluster_.client_of_lane(lane_).port();
  paused_ = mostly();
  limit_ = cluster_.network().now() + kRemovals * removal_;
  phase_ = Phase::kAway;
}

/// Whether this is the holder's record of the write's lane, as the returning node accepts it.
bool BrokenReturn::tells(const Packet& packet) const {
  if (!(packet.from == Cluster::endpoint_of(holder_)) || !(packet.to == Cluster::endpoint_of(returning_)) ||
      !cluster_.keeper().alive())
    return false;
  const Kv header = header_of(packet);
  const Configuration& c = cluster_.keeper().keeper().configuration();
  return static_cast<Kind>(header.kind) == Kind::lane_record && header.client == lane_ && has(c.members, returning_) &&
         header.epoch == (c.epoch & 0xffff) && static_cast<Status>(header.detail) == Status::ok;
}

Cycles BrokenReturn::delay_of(Port from, Port to, const Packet& packet) const {
  if (phase_ == Phase::kOver || packet.bytes.size() < Kv::kBytes) return 0;
  const Kv header = header_of(packet);
  const auto kind = static_cast<Kind>(header.kind);
  if (from == Cluster::port_of(leader_) && is_replicate(header) && to < kMaxNodes && has(deaf_, to))
    return Network::kLose;
  if (phase_ == Phase::kArmed) return 0;
  if (unheard_ && kind == Kind::fetch && from == Cluster::port_of(holder_) && to == Cluster::port_of(leader_))
    return Network::kLose;
  if (kind != Kind::lane || from != Cluster::port_of(returning_)) return 0;
  // A node does not serve until it has received all lanes.
  if (second_ && header.client == kLastLane && to == Cluster::port_of(holder_)) return 2 * removal_;
  // Delay only the write's lane: a core asks for four lanes at a time, so it would not finish before the limit.
  return header.client == lane_ && to < kMaxNodes && has(slow_, to) ? late_ : 0;
}

void BrokenReturn::look(Cycles now) {
  if (cluster_.keeper().alive()) step(now);
  if (now >= limit_ && goes_on()) end(now);
  if (goes_on()) cluster_.network().call_at(now + kLookAgain, [this](Cycles later) { look(later); });
}

bool BrokenReturn::due(Cycles now, Cycles most) {
  if (due_ == 0) due_ = now + up_to(most);
  if (now < due_) return false;
  due_ = 0;
  return true;
}

void BrokenReturn::step(Cycles now) {
  const Configuration& c = cluster_.keeper().keeper().configuration();
  const Machine* const machine = cluster_.machine(returning_);
  const bool serves = machine != nullptr && has(c.serving, returning_) && machine->driver().epoch() == c.epoch;
  switch (phase_) {
    case Phase::kAway:
      if (paused_) cluster_.network().pause(client_);
      cluster_.start_node(returning_);
      phase_ = Phase::kReturning;
      return;
    case Phase::kReturning:
      // The node is in the epoch. The others enter it too, and the leader repeats its messages.
      if (machine == nullptr || machine->driver().epoch() != c.epoch || !has(c.members, returning_)) return;
      if ((told_first_ && !told_) || !due(now, removal_ / (told_first_ ? 4 : 2))) return;
      phase_ = second_ ? Phase::kLed : Phase::kServing;
      if (alive_and_serving() < 2) return;
      ++died_[0];
      die(leader_);
      if (!still_) return;
      for (std::uint32_t i = 0; i < cluster_.options().clients; ++i)
        cluster_.network().pause(cluster_.client(i).port());
      return;
    case Phase::kLed:
      // In most cases, this leaves time to settle the leftovers.
      if (has(c.members, leader_) || !due(now, removal_ / 2)) return;
      phase_ = Phase::kServing;
      if (serves || alive_and_serving() < 2) return;
      ++died_[1];
      die(cluster_.leader_of(key_));
      return;
    case Phase::kServing:
      if (serves && due(now, removal_ / 4)) end(now);
      return;
    default:
      return;
  }
}

void BrokenReturn::die(std::uint32_t node) {
  cluster_.kill_node(node, toss());
  dead_ |= mask_of(node);
}

void BrokenReturn::end(Cycles now) {
  const std::uint32_t slot = slot_of(hash_of(key_));
  phase_ = Phase::kEnding;
  cluster_.network().interfere({});
  // A client that was paused may find that the returned node leads.
  if (cluster_.keeper().alive() && mostly())
    (void)cluster_.keeper().command({.op = Op::move, .node = returning_, .first_slot = slot, .last_slot = slot});
  const Cycles later = now + 20 * cluster_.options().control_latency;
  cluster_.network().call_at(later, [this](Cycles) {
    if (paused_ || still_) cluster_.network().resume(client_);
    for (std::uint32_t node = 0; node < cluster_.options().nodes; ++node)
      if (node == returning_ || has(dead_, node)) cluster_.start_node(node);
  });
  // Pause the others longer: if they wrote the key before this client repeats its request, the fault would stay hidden.
  cluster_.network().call_at(later + (still_ ? removal_ / 2 : 0), [this](Cycles) {
    for (std::uint32_t i = 0; i < cluster_.options().clients; ++i) cluster_.network().resume(cluster_.client(i).port());
    phase_ = Phase::kOver;
  });
}

/// The leader of the key's slot after the returning node has left and then the leader has died.
std::uint32_t BrokenReturn::next_leader() const {
  const Configuration& c = cluster_.keeper().keeper().configuration();
  Leaders leaders = c.leaders;
  const NodeMask left = without(c.serving, mask_of(returning_));
  spread_leaders(leaders, left);
  spread_leaders(leaders, without(left, mask_of(leader_)));
  return leaders[slot_of(hash_of(key_))];
}

/// The number of nodes that are alive and answer clients.
std::uint32_t BrokenReturn::alive_and_serving() const {
  const Configuration& c = cluster_.keeper().keeper().configuration();
  std::uint32_t count = 0;
  for (std::uint32_t node = 0; node < cluster_.options().nodes; ++node)
    if (const Machine* const machine = cluster_.machine(node);
        machine != nullptr && has(c.serving, node) && machine->driver().epoch() == c.epoch)
      ++count;
  return count;
}

}  // namespace wherry::kv::sim
