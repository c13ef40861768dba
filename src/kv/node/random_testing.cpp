// SPDX-License-Identifier: Apache-2.0
#include "kv/node/random_testing.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace wherry::kv::testing {
namespace {

constexpr std::size_t kMostOfAKey = 56;  // the checker takes 64, with the last reads
constexpr Cycles kLease = 120'000;
constexpr unsigned kLaneBits = 4;

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t below(std::uint64_t n) { return std::uniform_int_distribution<std::uint64_t>(0, n - 1)(engine_); }
  unsigned of_mask(unsigned mask) {
    auto skip = below(static_cast<unsigned>(std::popcount(mask)));
    for (; skip > 0; --skip) mask &= mask - 1;
    return static_cast<unsigned>(std::countr_zero(mask));
  }

 private:
  std::mt19937_64 engine_;
};

/// Plays section 9 of the protocol with the nodes' drivers: membership, leases, and delays on the way to the nodes.
class Fate {
 public:
  Fate(Cluster& cluster, Random& random, Story& story, unsigned bucket_bits)
      : cluster_(cluster), random_(random), story_(story), buckets_(1U << bucket_bits) {
    plan_.epoch = 0xfff0;  // soon past the number that is left out
    plan_.members = plan_.serving = static_cast<std::uint8_t>((1U << cluster.size()) - 1);
    nodes_.resize(cluster.size());
    for (auto& leader : plan_.leaders) leader = static_cast<std::uint8_t>(random_.of_mask(plan_.serving));
    for (unsigned i = 0; i < cluster.size(); ++i) {
      cluster_.enter(i, plan_);
      grant(i);
    }
  }

  void step(bool calm) {
    for (unsigned i = 0; i < nodes_.size(); ++i) {
      State& n = nodes_[i];
      if (!cluster_.alive(i) || n.cut_off) continue;
      if (n.enter_at <= cluster_.now) {
        n.enter_at = kNever;
        enter(i);
      }
      if (n.renew_at <= cluster_.now) grant(i);
    }
    remove_the_lost();
    promote();
    if (!calm && next_blow_ <= cluster_.now) {
      next_blow_ = cluster_.now + 60'000 + random_.below(300'000);
      strike();
    }
  }

  [[nodiscard]] bool whole() const {
    return std::ranges::all_of(nodes_, [](const State& n) { return n.enter_at == kNever; }) && !somebody_lost();
  }
  [[nodiscard]] const Plan& plan() const { return plan_; }

 private:
  struct State {
    Cycles enter_at = kNever;
    Cycles renew_at = 0;
    Cycles lease_end = 0;
    bool cut_off = false;  ///< from the keeper; frames still pass
    bool returning = false;
    bool syncing = false;
  };

  void grant(unsigned i) {
    nodes_[i].lease_end = cluster_.now + kLease;
    nodes_[i].renew_at = cluster_.now + kLease / 4;
    cluster_.lease(i, nodes_[i].lease_end);
  }
  void publish() {
    do ++plan_.epoch;
    while ((plan_.epoch & 0xffff) == 0);
    ++story_.epochs;
    for (unsigned i = 0; i < nodes_.size(); ++i)
      if ((plan_.members >> i & 1) != 0) nodes_[i].enter_at = cluster_.now + random_.below(40'000);
  }
  void enter(unsigned i) {
    if ((plan_.members >> i & 1) == 0) return;
    cluster_.enter(i, plan_);
    if (!nodes_[i].returning || nodes_[i].syncing) return;
    nodes_[i].syncing = true;
    AnyNode& n = cluster_.node(i);
    n.write(registers::kSyncFromOffset, 0);
    n.write(registers::kSyncCountOffset, buckets_);
    n.write(registers::kSyncLanesOffset, 1U << kLaneBits);
  }
  [[nodiscard]] bool lost(unsigned i) const {
    return (plan_.members >> i & 1) != 0 && (!cluster_.alive(i) || nodes_[i].cut_off);
  }
  [[nodiscard]] bool somebody_lost() const {
    for (unsigned i = 0; i < nodes_.size(); ++i)
      if (lost(i)) return true;
    return false;
  }
  void remove_the_lost() {
    for (unsigned i = 0; i < nodes_.size(); ++i) {
      const bool over = lost(i) && (!cluster_.alive(i) || nodes_[i].lease_end <= cluster_.now);
      if (!over || std::popcount(plan_.serving & ~(1U << i)) == 0) continue;
      plan_.members = static_cast<std::uint8_t>(plan_.members & ~(1U << i));
      plan_.serving = static_cast<std::uint8_t>(plan_.serving & ~(1U << i));
      for (auto& leader : plan_.leaders)
        if (leader == i) leader = static_cast<std::uint8_t>(random_.of_mask(plan_.serving));
      ++story_.takeovers;
      publish();
    }
  }
  void promote() {
    for (unsigned i = 0; i < nodes_.size(); ++i) {
      State& n = nodes_[i];
      if (!n.syncing || lost(i) || n.enter_at != kNever) continue;
      AnyNode& node = cluster_.node(i);
      if (node.read(registers::kSyncCountOffset) != 0 || node.read(registers::kSyncLanesOffset) != 0 ||
          registers::kStateLeftovers.get(node.read(registers::kStateOffset)) != 0)
        continue;
      n.returning = n.syncing = false;
      plan_.serving = static_cast<std::uint8_t>(plan_.serving | 1U << i);
      for (auto& leader : plan_.leaders)
        if (random_.below(2) == 0) leader = static_cast<std::uint8_t>(i);
      ++story_.returns;
      publish();
    }
  }
  void strike() {
    unsigned serving = 0;
    for (unsigned i = 0; i < nodes_.size(); ++i)
      if ((plan_.serving >> i & 1) != 0 && !lost(i)) serving |= 1U << i;
    const auto blow = random_.below(4);
    if (blow < 2 && std::popcount(serving) > 1) {
      const unsigned victim = random_.of_mask(serving);
      if (blow == 0)
        cluster_.kill(victim);
      else
        nodes_[victim].cut_off = true;
    } else if (blow == 2 && serving == plan_.serving) {
      for (auto& leader : plan_.leaders)
        if (random_.below(2) == 0) leader = static_cast<std::uint8_t>(random_.of_mask(serving));
      publish();
    } else {
      for (unsigned i = 0; i < nodes_.size(); ++i) {
        if ((plan_.members >> i & 1) != 0) continue;
        cluster_.restart(i);
        nodes_[i] = {.returning = true};
        plan_.members = static_cast<std::uint8_t>(plan_.members | 1U << i);
        publish();
        return;
      }
    }
  }

  Cluster& cluster_;
  Random& random_;
  Story& story_;
  std::uint32_t buckets_;
  Plan plan_;
  std::vector<State> nodes_;
  Cycles next_blow_ = 100'000;
};

/// Plays section 7 of the protocol, one operation at a time.
class Client {
 public:
  Client(unsigned number, Cluster& cluster, Random& random, Story& story)
      : number_(number), cluster_(cluster), random_(random), story_(story) {}

  [[nodiscard]] bool busy() const { return operation_.kind != Kind{}; }

  void begin(std::uint64_t key, Kind kind) {
    key_ = key;
    operation_ = {};
    operation_.kind = kind;
    operation_.invoked = cluster_.now;
    version_ = 0;
    if (kind == Kind::write || kind == Kind::write_if) {
      operation_.written = ++story_.values;
      value_.assign(8 + random_.below(random_.below(8) == 0 ? 1017 : 40), static_cast<std::byte>(operation_.written));
      std::memcpy(value_.data(), &operation_.written, 8);
    } else {
      value_.clear();
    }
    if (kind == Kind::write_if || kind == Kind::remove_if) {
      const auto seen = seen_[key];
      version_ = seen.first;
      operation_.expected = seen.second;
    }
    request_ += kind == Kind::read ? 0 : 1;
    tag_ += 1;
    deadline_ = cluster_.now + 600'000;
    timeout_ = 15'000;
    target_ = kind == Kind::read ? any() : leaders_[slot()];
    attempt();
  }
  void step() {
    if (!busy()) return;
    if (cluster_.now >= deadline_) return finish(std::nullopt);
    if (cluster_.now < again_at_) return;
    if (timed_out_) {
      timeout_ = std::min<Cycles>(2 * timeout_, 120'000);
      target_ = any();
    }
    attempt();
  }
  void receive(const Frame& frame) {
    const Kv& h = frame.header;
    if (!busy() || h.kind != (static_cast<unsigned>(operation_.kind) | kReplyBit) || h.key != key_) return;
    if (h.request != (reads() ? tag_ : request_)) return;
    if (static_cast<std::int16_t>(h.epoch - epoch_) > 0) epoch_ = h.epoch;
    if (h.epoch == epoch_) leaders_[slot()] = h.node;
    if (!reads() && h.epoch != tried_epoch_) {
      if (h.epoch == epoch_) pause(h.node);
      return;
    }
    const Status status = frame.status();
    if (status < Status::not_leader) {
      operation_.version = h.version;
      if (reads() && status == Status::ok) operation_.found = value_in(frame);
      return finish(status);
    }
    const bool elsewhere = status == Status::not_serving || (reads() && status == Status::busy);
    pause(elsewhere ? any() : h.node);
  }

 private:
  [[nodiscard]] bool reads() const { return operation_.kind == Kind::read; }
  [[nodiscard]] unsigned slot() const { return slot_of(hash_of(key_)); }
  unsigned any() { return static_cast<unsigned>(random_.below(cluster_.size())); }
  void pause(unsigned target) {
    target_ = target;
    again_at_ = cluster_.now + 1000 + random_.below(4000);
    timed_out_ = false;
  }
  void attempt() {
    tried_epoch_ = epoch_;
    const Kv h{.kind = static_cast<std::uint8_t>(operation_.kind),
               .epoch = epoch_,
               .client = static_cast<std::uint16_t>(number_),
               .request = reads() ? tag_ : request_,
               .version = version_,
               .key = key_};
    again_at_ = cluster_.now + timeout_;
    timed_out_ = true;
    cluster_.send(client_at(number_), node_at(target_), {h, value_});
  }
  static std::uint64_t value_in(const Frame& frame) {
    std::uint64_t value = 0;
    if (frame.value.size() < 8) return ~std::uint64_t{0};
    std::memcpy(&value, frame.value.data(), 8);
    const auto filled = std::all_of(frame.value.begin() + 8, frame.value.end(),
                                    [&](std::byte b) { return b == static_cast<std::byte>(value); });
    return filled ? value : ~std::uint64_t{0};
  }
  void finish(std::optional<Status> status) {
    operation_.status = status;
    if (status) {
      operation_.returned = cluster_.now;
      ++story_.statuses[*status];
      const bool present = status == Status::ok && (reads() || operation_.written != 0);
      if (present) seen_[key_] = {operation_.version, reads() ? operation_.found : operation_.written};
      if (status == Status::no_such_key) seen_[key_] = {0, 0};
    } else {
      ++story_.unknown;
    }
    if (status || !reads()) story_.histories[key_].push_back(operation_);
    operation_ = {};
  }

  unsigned number_;
  Cluster& cluster_;
  Random& random_;
  Story& story_;
  std::uint64_t key_ = 0;
  Operation operation_;
  std::uint32_t version_ = 0;
  std::vector<std::byte> value_;
  std::uint32_t request_ = 0xfffffff0;  // soon past the wrap
  std::uint32_t tag_ = 0;
  std::uint16_t epoch_ = 0xfff0;
  std::uint16_t tried_epoch_ = 0;
  std::array<unsigned, kSlots> leaders_{};
  unsigned target_ = 0;
  bool timed_out_ = false;
  Cycles deadline_ = 0;
  Cycles again_at_ = 0;
  Cycles timeout_ = 0;
  std::map<std::uint64_t, std::pair<std::uint32_t, std::uint64_t>> seen_;
};

Kind some_kind(Random& random) {
  const auto n = random.below(10);
  return n < 4 ? Kind::read : n < 7 ? Kind::write : n < 8 ? Kind::write_if : n < 9 ? Kind::remove : Kind::remove_if;
}

/// When nothing is in flight any more, the members' tables must be equal.
void compare_tables(Cluster& cluster, const Plan& plan, unsigned bits, Story& story) {
  const auto under_way = [&](unsigned node) {
    const std::uint32_t state = cluster.node(node).read(registers::kStateOffset);
    return registers::kStateInFlight.get(state) != 0 || registers::kStateLeftovers.get(state) != 0;
  };
  const auto is_member = [&](unsigned node) { return (plan.serving >> node & 1) != 0; };
  for (unsigned node = 0; node < cluster.size(); ++node)
    for (unsigned i = 0; i < 1000 && is_member(node) && under_way(node); ++i) cluster.run(cluster.now + 1000);
  const auto one = static_cast<unsigned>(std::countr_zero(plan.serving));
  const Table& table = cluster.node(one).table();
  try {
    for (const auto& [key, at] : all_keys(table))
      if (bucket_at(at) != bucket_of(hash_of(key), bits)) ++story.elsewhere;
  } catch (const std::logic_error&) {
    story.same_tables = false;
  }
  for (unsigned node = 0; node < cluster.size(); ++node)
    if (is_member(node) && !same_tables(table, cluster.node(node).table())) story.same_tables = false;
}

}  // namespace

Story tell_story(std::uint64_t seed, unsigned nodes, unsigned operations, const NodeFaults& faults,
                 const std::array<std::uint32_t, kWays>& old_versions, unsigned bucket_bits) {
  Story story;
  story.old_versions = old_versions != std::array<std::uint32_t, kWays>{};
  Random random(seed);
  const Weather weather{.loss = 0.04, .repeat = 0.05, .shortest = 300, .longest = 4000, .late = 0.05};
  Cluster cluster(nodes, {.lane_bits = kLaneBits}, weather, seed + 1, bucket_bits, faults);
  if (story.old_versions)
    for (unsigned i = 0; i < nodes; ++i) cluster.node(i).preset_versions(old_versions);
  Fate fate(cluster, random, story, bucket_bits);
  // If each key has several buckets: six keys with one first bucket, and others whose first bucket is a candidate of
  // the six.
  const bool several = bucket_bits > Cluster::kBucketBits;
  std::vector<std::uint64_t> keys = keys_of_one_bucket(3, 6, bucket_bits);
  for (const std::uint32_t bucket :
       {several ? bucket_at_index(hash_of(keys[2]), candidates(bucket_bits) / 2, bucket_bits) : 70U,
        several ? 3U | 1U << 8 : 141U})
    for (const std::uint64_t key : keys_of_one_bucket(bucket, 2, bucket_bits)) keys.push_back(key);
  std::vector<Client> clients;
  for (unsigned i = 0; i < 6; ++i) clients.emplace_back(i, cluster, random, story);
  cluster.on_client = [&](const Frame& frame) {
    for (unsigned i = 0; i < clients.size(); ++i)
      if (frame.to == client_at(i)) clients[i].receive(frame);
  };
  std::map<std::uint64_t, std::size_t> begun;
  for (unsigned left = operations; left > 0;) {
    cluster.run(cluster.now + 500);
    fate.step(false);
    for (Client& client : clients) {
      client.step();
      const std::uint64_t key = keys[random.below(keys.size())];
      if (client.busy() || left == 0 || random.below(4) != 0) continue;
      if (begun[key] >= kMostOfAKey) {
        --left;
        continue;
      }
      ++begun[key];
      --left;
      client.begin(key, some_kind(random));
    }
  }
  // A calm phase; afterwards every key is read once more by every client.
  const auto rest = [&] {
    for (unsigned i = 0; i < 4000; ++i) {
      const bool busy = std::ranges::any_of(clients, [](const Client& c) { return c.busy(); });
      if (!busy && fate.whole()) return;
      cluster.run(cluster.now + 500);
      fate.step(true);
      for (Client& client : clients) client.step();
    }
  };
  rest();
  for (const std::uint64_t key : keys) {
    for (Client& client : clients) client.begin(key, Kind::read);
    rest();
  }
  cluster.on_client = nullptr;
  compare_tables(cluster, fate.plan(), bucket_bits, story);
  return story;
}

}  // namespace wherry::kv::testing
