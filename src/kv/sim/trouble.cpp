// SPDX-License-Identifier: Apache-2.0
#include "kv/sim/trouble.hpp"

#include <algorithm>

namespace wherry::kv::sim {
namespace {

constexpr Cycles kLook = 5000;
constexpr Cycles kPatience = 10'000'000;  ///< 40 ms
constexpr std::array<std::string_view, Trouble::kKinds> kNames{
    "death",       "deaths",      "ambush",      "broken_return", "moves",
    "isolation",   "silence",     "broken_line", "late_node",     "keeper_death",
    "keeper_loss", "stand_still", "partition",   "client_death",  "client_still"};

}  // namespace

std::string_view name_of(Trouble::Kind kind) noexcept { return kNames[static_cast<std::size_t>(kind)]; }

std::optional<Trouble::Kind> trouble_named(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Trouble::Kind>(found - kNames.begin());
}

Trouble::Trouble(Cluster& cluster, std::uint64_t seed)
    : cluster_(cluster),
      random_(seed),
      interval_(cluster.options().ping_interval),
      lease_(cluster.options().lease),
      removal_(std::max(lease_, (cluster.options().misses + 1) * interval_) + 2 * interval_),
      broken_return_(cluster, random_, removal_) {
  cluster.network().set_tap(this);
}

void Trouble::start() {
  at(up_to(interval_), [this](Cycles now) { begin(now); });
}

void Trouble::begin(Cycles now) {
  if (cluster_.workload().done()) return;
  const bool busy = now <= busy_until_ || broken_return_.active();
  const bool ready = !busy && cluster_.whole();
  if (busy) waits_since_ = now;
  if (!ready) {
    stuck_ = now > waits_since_ + kPatience;
    if (!stuck_) cluster_.network().call_at(now + kLook, [this](Cycles later) { begin(later); });
    return;
  }
  const bool first = count(Kind::kDeath) == 0 && !only_;
  const auto any = static_cast<Kind>(random_.below(kKinds));
  make(first ? Kind::kDeath : only_.value_or(any), now);
  cluster_.network().call_at(now + kLook + up_to(2 * interval_), [this](Cycles later) { begin(later); });
}

void Trouble::make(Kind kind, Cycles now) {
  const std::uint32_t nodes = cluster_.options().nodes;
  const bool needs_three =
      kind == Kind::kDeaths || kind == Kind::kAmbush || kind == Kind::kBrokenReturn || kind == Kind::kMoves;
  if (needs_three && nodes < 3) kind = Kind::kDeath;
  ++counts_[static_cast<std::size_t>(kind)];
  Network& network = cluster_.network();
  KeeperSeat& keeper = cluster_.keeper();
  const std::uint32_t node = some_node();
  const Port client = cluster_.client(random_.below(cluster_.options().clients)).port();
  switch (kind) {
    case Kind::kDeath:
      return die(node, now);
    case Kind::kDeaths:
      die(node, now);
      return at(now + up_to(2 * removal_),
                [this, node, nodes](Cycles later) { die((node + 1 + random_.below(nodes - 1)) % nodes, later); });
    case Kind::kAmbush:
    case Kind::kMoves:
      return set_trap(kind == Kind::kMoves, now);
    case Kind::kBrokenReturn:
      return broken_return_.begin(key(), now);
    case Kind::kIsolation:
      return isolate(node, now);
    case Kind::kSilence:
      return stall(node, now + interval_ + up_to(2 * removal_));
    case Kind::kBrokenLine:
      keeper.disconnect(node, random_.below(2) == 0);
      return at(now + up_to(2 * removal_), [&keeper, node](Cycles) { keeper.connect(node); });
    case Kind::kLateNode:
      stall(node, now + removal_ + lease_ + up_to(4 * interval_));
      return restart_keeper(true, now);
    case Kind::kKeeperDeath:
    case Kind::kKeeperLoss:
      return restart_keeper(kind == Kind::kKeeperDeath, now);
    case Kind::kStandStill:
      network.pause(Cluster::port_of(node));
      return at(now + up_to(2 * removal_), [&network, node](Cycles) { network.resume(Cluster::port_of(node)); });
    case Kind::kPartition:
      network.split(side_of(node));
      return at(now + up_to(2 * removal_), [&network](Cycles) { network.heal(); });
    case Kind::kClientDeath:
      return cluster_.client(random_.below(cluster_.options().clients)).restart();
    case Kind::kClientStill:
      network.pause(client);
      return at(now + up_to(2 * removal_), [&network, client](Cycles) { network.resume(client); });
  }
}

/// In most cases, the leader of the bucket with many keys.
std::uint32_t Trouble::some_node() {
  return random_.below(3) != 0 ? cluster_.leader_of(key()) : random_.below(cluster_.options().nodes);
}

/// The ports of a node and of half of the clients.
std::vector<Port> Trouble::side_of(std::uint32_t node) {
  std::vector<Port> side{Cluster::port_of(node)};
  for (std::uint32_t i = random_.below(2); i < cluster_.options().clients; i += 2)
    side.push_back(cluster_.client(i).port());
  return side;
}

void Trouble::stall(std::uint32_t node, Cycles until) {
  busy_until_ = std::max(busy_until_, until);
  cluster_.keeper().stall(node, until);
}

void Trouble::die(std::uint32_t node, Cycles now) {
  cluster_.kill_node(node, random_.below(2) == 0);
  const Cycles away = up_to(random_.below(2) == 0 ? interval_ : 2 * removal_);
  at(now + away, [this, node](Cycles) { cluster_.start_node(node); });
}

/// The node learns of its removal only after its frames reach the others again, in an epoch without it.
void Trouble::isolate(std::uint32_t node, Cycles now) {
  const Cycles heal = now + removal_ + up_to(4 * interval_);
  cluster_.network().split(side_of(node));
  stall(node, heal + interval_ / 2 + up_to(interval_));
  at(heal, [this](Cycles) { cluster_.network().heal(); });
}

void Trouble::restart_keeper(bool keeps, Cycles now) {
  cluster_.keeper().kill();
  if (!keeps) cluster_.keeper().forget();
  at(now + up_to(random_.below(2) == 0 ? interval_ : 2 * lease_), [this](Cycles) { cluster_.keeper().start(); });
}

void Trouble::set_deaf(bool deaf) {
  Link link = cluster_.options().link;
  if (deaf) link.loss = kAlways;
  for (std::uint32_t node = 0; node < cluster_.options().nodes; ++node)
    if (has(trap_.deaf, node))
      cluster_.network().set_link(Cluster::port_of(trap_.leader), Cluster::port_of(node), link);
}

void Trouble::set_trap(bool moves, Cycles now) {
  const std::uint32_t nodes = cluster_.options().nodes;
  trap_ = {.armed = true, .moves = moves, .leader = cluster_.leader_of(key()), .deaf = 0};
  // One follower hears the leader; at least one does not; chance decides for the others.
  const std::uint32_t hears = (trap_.leader + 1 + random_.below(nodes - 1)) % nodes;
  for (std::uint32_t node = 0; node < nodes; ++node)
    if (node != trap_.leader && node != hears && (trap_.deaf == 0 || random_.below(2) == 0))
      trap_.deaf |= mask_of(node);
  set_deaf(true);
  at(now + 5 * interval_, [this](Cycles) {
    if (trap_.armed) set_deaf(false);
    trap_.armed = false;
  });
}

void Trouble::see(Cycles now, Fate fate, const Packet& packet) {
  if (next_ != nullptr) next_->see(now, fate, packet);
  broken_return_.see(fate, packet);
  if (!trap_.armed || fate != Fate::kDelivered || !(packet.from == Cluster::endpoint_of(trap_.leader))) return;
  const Kv header = Kv::unpack(packet.bytes.first<Kv::kBytes>());
  const auto kind = static_cast<kv::Kind>(header.kind);
  if (kind != kv::Kind::replicate && kind != kv::Kind::replicate_remove) return;
  if (slot_of(hash_of(header.key)) != slot_of(hash_of(key()))) return;
  trap_.armed = false;
  const std::uint32_t holder = packet.to.ip - Cluster::endpoint_of(0).ip;
  at(now, [this, holder, lane = header.client](Cycles then) { spring(holder, lane, then); });
}

void Trouble::spring(std::uint32_t holder, std::uint16_t lane, Cycles now) {
  if (trap_.moves)
    move_twice(holder, lane, now);
  else
    kill_or_cut(now);
}

void Trouble::kill_or_cut(Cycles now) {
  const std::uint32_t leader = trap_.leader;
  if (random_.below(2) == 0) {
    set_deaf(false);
    return die(leader, now);
  }
  // Its repeated messages arrive after the others have removed it, and before it learns of this.
  const Cycles heal = now + removal_ + up_to(2 * interval_);
  stall(leader, heal + interval_ / 2 + up_to(interval_));
  at(heal, [this](Cycles) { set_deaf(false); });
}

/// The write is rolled back. Its client, paused meanwhile, repeats it at a node that had the write.
void Trouble::move_twice(std::uint32_t holder, std::uint16_t lane, Cycles now) {
  const Cycles epoch = 10 * cluster_.options().control_latency;
  const Port client = cluster_.client_of_lane(lane).port();
  cluster_.network().pause(client);
  std::uint32_t without_it = 0;
  while (!has(trap_.deaf, without_it)) ++without_it;
  move(without_it);
  at(now + epoch, [this](Cycles) { set_deaf(false); });
  at(now + 2 * epoch, [this, holder](Cycles) { move(holder); });
  at(now + 3 * epoch + up_to(interval_), [this, client](Cycles) { cluster_.network().resume(client); });
}

void Trouble::move(std::uint32_t to) {
  const std::uint32_t slot = slot_of(hash_of(key()));
  (void)cluster_.keeper().command({.op = Op::move, .node = to, .first_slot = slot, .last_slot = slot});
}

}  // namespace wherry::kv::sim
