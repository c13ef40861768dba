// SPDX-License-Identifier: Apache-2.0
// Tests a key's several buckets: how full a table gets, where keys go, their versions, and the effect of writes in
// flight, deaths and returns. The tests find keys by reading every location, not by a look-up.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>
#include <set>

#include "kv/node/testing.hpp"
#include "kv/serial.hpp"

namespace wherry::kv::testing {
namespace {

constexpr unsigned kBits = 12;

/// Nodes that all serve in epoch 1. Node 0 leads.
class KvCandidates : public ::testing::Test {
 protected:
  void start(unsigned nodes, unsigned bits = kBits, NodeFaults faults = {}) {
    cluster = std::make_unique<Cluster>(nodes, NodeOptions{.lane_bits = 8}, Weather{}, 1, bits, faults);
    plan.epoch = 1;
    plan.members = plan.serving = static_cast<std::uint8_t>((1U << nodes) - 1);
    plan.lead_all(0);
    cluster->enter_all(plan);
    cluster->run(cluster->now + 100'000);
    cluster->on_client = [this](const Frame& frame) { answers.push_back(frame); };
  }
  void send(unsigned node, Kind kind, std::uint64_t key, std::string_view value = {}, std::uint32_t version = 0) {
    const bool read = kind == Kind::read;
    cluster->send(client_at(0), node_at(node),
                  {{.kind = static_cast<std::uint8_t>(kind),
                    .epoch = static_cast<std::uint16_t>(plan.epoch),
                    .client = static_cast<std::uint16_t>(read ? 0 : lane++ % 200),
                    .request = ++number,
                    .version = version,
                    .key = key},
                   bytes_of(value)});
  }
  Frame ask(unsigned node, Kind kind, std::uint64_t key, std::string_view value = {}, std::uint32_t version = 0) {
    answers.clear();
    send(node, kind, key, value, version);
    cluster->run(cluster->now + 20'000);
    return answers.empty() ? Frame{} : answers.back();
  }
  std::uint32_t write(std::uint64_t key, std::string_view value) {
    const Frame done = ask(leader, Kind::write, key, value);
    EXPECT_EQ(done.status(), Status::ok) << key;
    return done.header.version;
  }
  void remove(std::uint64_t key) { EXPECT_EQ(ask(leader, Kind::remove, key).status(), Status::ok) << key; }
  std::string read(unsigned node, std::uint64_t key) {
    const Frame done = ask(node, Kind::read, key);
    if (done.status() != Status::ok) return std::string(name_of(done.status()));
    return {reinterpret_cast<const char*>(done.value.data()), done.value.size()};
  }
  Location where(std::uint64_t key, unsigned node = 0) {
    const auto all = all_keys(cluster->node(node).table());
    return all.contains(key) ? all.at(key) : Table::kNowhere;
  }
  /// The position of a location's bucket in the search order.
  unsigned index_of(std::uint64_t key, Location at, unsigned bits = kBits) {
    for (std::uint32_t i = 0; i < candidates(bits); ++i)
      if (bucket_at_index(hash_of(key), i, bits) == bucket_at(at)) return i;
    ADD_FAILURE() << "key " << key << " is in none of its buckets";
    return 99;
  }
  void expect_alike() {
    for (unsigned i = 0; i < cluster->size(); ++i) {
      if (!cluster->alive(i) || (plan.members >> i & 1) == 0) continue;
      EXPECT_TRUE(same_tables(cluster->node(leader).table(), cluster->node(i).table())) << i;
    }
  }
  void next_epoch(std::uint8_t members, std::uint8_t serving, unsigned new_leader) {
    ++plan.epoch;
    plan.members = members;
    plan.serving = serving;
    leader = new_leader;
    plan.lead_all(new_leader);
    cluster->enter_all(plan);
  }
  /// Keys with the same first bucket. The first two fill it enough that others must go to another bucket.
  std::vector<std::uint64_t> family(std::size_t count, std::uint32_t bucket = 0x123) {
    return keys_of_one_bucket(bucket, count, kBits);
  }

  std::unique_ptr<Cluster> cluster;
  Plan plan;
  unsigned leader = 0;
  std::uint32_t lane = 0, number = 0;
  std::vector<Frame> answers;
};

/// A node that leads alone, without a network. Values are empty, so the table costs 64 bytes per bucket.
class Alone final : Output {
 public:
  explicit Alone(unsigned bits, NodeFaults faults = {})
      : node_owner_(make_node({}, *this, faults)), node_(*node_owner_) {
    node_.write(registers::kBucketBitsOffset, bits);
    node_.write(registers::kControlOffset, registers::kControlEnable.mask());
    node_.write(registers::kMembersOffset, registers::kMembersAll.set(0, 1) | registers::kMembersServing.set(0, 1));
    node_.write(registers::lease_offset(0), ~0U);
    node_.write(registers::lease_offset(1), ~0U);
  }
  /// Gives all locations versions, like those of deleted keys.
  void begin(const std::array<std::uint32_t, kWays>& versions = {}) {
    if (versions != std::array<std::uint32_t, kWays>{}) node_.preset_versions(versions);
    node_.write(registers::kEpochOffset, 1);
  }
  Kv call(Kind kind, std::uint64_t key, std::uint32_t version = 0) {
    node_.receive(
        client_at(0),
        {{.kind = static_cast<std::uint8_t>(kind), .epoch = 1, .request = ++number_, .version = version, .key = key},
         {}},
        1);
    return reply_;
  }
  [[nodiscard]] Status status() const { return static_cast<Status>(reply_.detail); }
  [[nodiscard]] AnyNode& node() { return node_; }

 private:
  void send(const Endpoint&, const Message& message) override { reply_ = message.header; }
  std::unique_ptr<AnyNode> node_owner_;
  AnyNode& node_;
  Kv reply_;
  std::uint32_t number_ = 0;
};

/// The share of locations that are full when the first random key is refused.
double fill(Alone& store, unsigned bits, std::uint64_t seed, std::vector<std::uint64_t>& keys) {
  std::mt19937_64 random(seed);
  const double locations = static_cast<double>(kWays << bits);
  for (;;) {
    const std::uint64_t key = random();
    (void)store.call(Kind::write, key);
    if (store.status() == Status::table_full) return static_cast<double>(keys.size()) / locations;
    EXPECT_EQ(store.status(), Status::ok);
    if (store.status() != Status::ok) return 0;
    keys.push_back(key);
  }
}

TEST(KvCandidatesFill, RandomKeys_ExpectFourFifthsOfTheTableBeforeTheFirstRefusal) {
  for (const auto& [bits, seed] : {std::pair{16U, 1U}, {16U, 2U}, {18U, 3U}}) {
    Alone store(bits);
    store.begin();
    std::vector<std::uint64_t> keys;
    const double share = fill(store, bits, seed, keys);
    EXPECT_GE(share, 0.80) << bits << " bits";
    fmt::print("bucket_bits {}: {:.0f} %\n", bits, 100 * share);
    const auto all = all_keys(store.node().table());
    EXPECT_EQ(all.size(), keys.size());
    for (const std::uint64_t key : keys) {
      ASSERT_TRUE(all.contains(key));
      const Kv found = store.call(Kind::read, key);
      ASSERT_EQ(store.status(), Status::ok) << key;
      ASSERT_EQ(found.version, store.node().table().way(all.at(key)).version);
    }
    for (std::uint64_t absent = 1; absent < 1000; ++absent) {
      (void)store.call(Kind::read, absent);
      ASSERT_EQ(store.status(), all.contains(absent) ? Status::ok : Status::no_such_key);
    }
  }
}

/// Checks the table of docs/guide/kv.md: how full a table is when the first key is refused, by size.
TEST(KvCandidatesFill, TablesOfAllSizes_ExpectTheSharesOfTheDocs) {
  struct Size {
    unsigned bits;
    double least, median;
  };
  for (const Size& size : {Size{8, 0.15, 0.20}, Size{9, 0.20, 0.28}, Size{10, 0.35, 0.42}, Size{11, 0.45, 0.53},
                           Size{12, 0.57, 0.62}, Size{14, 0.70, 0.75}, Size{15, 0.75, 0.79}, Size{16, 0.80, 0.81}}) {
    std::vector<double> shares;
    for (std::uint64_t seed = 1; seed <= 9; ++seed) {
      Alone store(size.bits);
      store.begin();
      std::vector<std::uint64_t> keys;
      shares.push_back(fill(store, size.bits, seed, keys));
    }
    std::ranges::sort(shares);
    fmt::print("bucket_bits {}: least {:.0f} %, median {:.0f} %\n", size.bits, 100 * shares[0], 100 * shares[4]);
    EXPECT_GE(shares[0], size.least) << size.bits;
    EXPECT_GE(shares[4], size.median) << size.bits;
  }
}

/// Keys with the same hash have the same buckets.
std::vector<std::uint64_t> keys_of_one_hash(std::size_t count) {
  std::vector<std::uint64_t> same{0};
  std::map<int, std::uint64_t> by_top;  // of a hash's difference: the key's difference
  for (unsigned bit = 0; bit < 64 && same.size() < count; ++bit) {
    std::uint64_t key = std::uint64_t{1} << bit;
    std::uint32_t differs = hash_of(key) ^ hash_of(0);
    while (differs != 0 && by_top.contains(std::bit_width(differs))) {
      key ^= by_top[std::bit_width(differs)];
      differs = hash_of(key) ^ hash_of(0);
    }
    if (differs != 0) by_top[std::bit_width(differs)] = key;
    for (std::size_t i = differs != 0 ? 0 : same.size(); i-- > 0;) same.push_back(same[i] ^ key);
  }
  same.resize(count);
  return same;
}

TEST(KvCandidatesFill, KeysOfOneHash_ExpectEveryWayOfTheirBucketsTaken) {
  for (const auto& [bits, most] : {std::pair{8U, 4U}, {9U, 8U}, {10U, 16U}, {11U, 32U}, {12U, 32U}, {21U, 32U}}) {
    Alone store(bits);
    store.begin();
    unsigned taken = 0;
    for (const std::uint64_t key : keys_of_one_hash(40)) {
      (void)store.call(Kind::write, key);
      if (store.status() == Status::ok) ++taken;
    }
    EXPECT_EQ(taken, most) << bits;
  }
}

/// Adds and removes keys in buckets that they share, and checks their versions. `versions`: the initial versions of all
/// locations.
void expect_no_version_twice(const std::array<std::uint32_t, kWays>& versions, std::uint64_t seed, bool fault = false) {
  Alone store(11, fault ? NodeFaults{NodeFault::ignore_other_versions} : NodeFaults{});
  store.begin(versions);
  const auto keys = keys_of_one_hash(24);
  std::map<std::uint64_t, std::set<std::uint32_t>> had;
  std::map<std::uint64_t, std::uint32_t> last;
  std::set<std::pair<std::uint64_t, Location>> locations;
  std::mt19937_64 random(seed);
  unsigned again = 0;
  for (unsigned i = 0; i < 20'000; ++i) {
    const std::uint64_t key = keys[random() % keys.size()];
    const Kind kind = random() % 2 == 0 ? Kind::write : Kind::remove;
    Kv done = store.call(kind, key);
    for (int tries = 0; store.status() == Status::busy && tries < 9; ++tries) done = store.call(kind, key);
    ASSERT_NE(store.status(), Status::busy);
    if (store.status() != Status::ok) continue;
    if (!had[key].insert(done.version).second) {
      ASSERT_TRUE(fault) << "key " << key << " had version " << done.version << " before, at step " << i;
      ++again;
    }
    if (last.contains(key) && !fault) {
      ASSERT_TRUE(version_newer(done.version, last[key])) << i;
    }
    last[key] = done.version;
    const auto all = all_keys(store.node().table());
    ASSERT_EQ(all.contains(key), kind == Kind::write);
    if (all.contains(key)) locations.emplace(key, all.at(key));
  }
  EXPECT_GT(locations.size(), 5 * keys.size()) << "keys went from bucket to bucket";
  EXPECT_EQ(again > 0, fault);
}

TEST(KvCandidatesVersions, KeysThatComeAndGo_ExpectNoVersionTwice) {
  constexpr std::uint32_t k31 = 1U << 31, k30 = 1U << 30, k28 = 1U << 28;
  unsigned seed = 0;
  for (const std::uint32_t turn : {k28, k30, k31, 0U}) {
    expect_no_version_twice({turn - 20, turn - 400, turn - 3000, 0}, ++seed);
    expect_no_version_twice({0, turn - 1, turn - 9000, turn - 3}, ++seed);
  }
  expect_no_version_twice({0, 0, 0, 0}, ++seed);
  expect_no_version_twice({0, 0, 0, 0}, ++seed, true);  // that the test would notice
}

// What the docs promise for candidates whose versions are far apart. If a candidate is at most 2^28 ahead, the new
// version is higher than its version. Otherwise it does not count, and a follower can still compare versions.
TEST(KvCandidatesVersions, JumpsOfUpTo2To28_ExpectThoseAndNoLonger) {
  constexpr std::uint32_t kReach = 1U << 28;
  struct Case {
    std::uint32_t base, other, expected;
  };
  for (const std::uint32_t from : {5U, (1U << 28) - 3, (1U << 31) - 9, 0U - 100, 0U - kReach - 2}) {
    for (const Case& c : {Case{from, from + 1, from + 2}, Case{from, from + kReach, from + kReach + 1},
                          Case{from, from + kReach + 1, from + 1}, Case{from, from - 1, from + 1},
                          Case{from, from + (1U << 30), from + 1}}) {
      Table table;
      ASSERT_TRUE(table.allocate(11));
      const std::uint32_t hash = hash_of(77);
      const std::uint32_t bucket = bucket_at_index(hash, 2, 11), other = bucket_at_index(hash, 6, 11);
      for (std::uint32_t i = 0; i < candidates(11); ++i)
        table.store(location_of(bucket_at_index(hash, i, 11), 0), 1, c.base, false, {});
      for (std::uint32_t i = 0; i < kWays; ++i) {
        table.store(location_of(bucket, i), 1, c.base - i, false, {});
        table.store(location_of(other, i), 2, c.other, false, {});
      }
      EXPECT_EQ(table.version_after_all(hash, bucket), c.expected) << c.base << " " << c.other;
    }
  }
  // A location that was never written, so the next version is 1, as in any other table.
  Table table;
  ASSERT_TRUE(table.allocate(11));
  const std::uint32_t hash = hash_of(77), bucket = bucket_at_index(hash, 0, 11), other = bucket_at_index(hash, 1, 11);
  EXPECT_EQ(table.version_after_all(hash, bucket), 1U);
  table.store(location_of(other, 0), 1, kReach, false, {});
  EXPECT_EQ(table.version_after_all(hash, bucket), kReach + 1);
  table.store(location_of(other, 0), 1, kReach + 1, false, {});
  EXPECT_EQ(table.version_after_all(hash, bucket), 1U);
  table.store(location_of(bucket, 0), 1, 0U - 3, false, {});
  table.store(location_of(other, 0), 1, 0, false, {});
  EXPECT_EQ(table.version_after_all(hash, bucket), 1U);
  table.store(location_of(bucket, 0), 1, 0U - kReach, false, {});
  EXPECT_EQ(table.version_after_all(hash, bucket), 1U);
  table.store(location_of(bucket, 0), 1, 0U - kReach - 1, false, {});
  EXPECT_EQ(table.version_after_all(hash, bucket), 0U - kReach) << "1 is kReach + 1 ahead of that";
}

TEST_F(KvCandidates, TheThirdKeyOfABucketGoesElsewhere_ExpectItOnAllNodes) {
  start(3);
  const auto keys = family(6);
  for (const std::uint64_t key : keys) (void)write(key, "v" + std::to_string(key));
  for (std::size_t i = 0; i < keys.size(); ++i) {
    // Two keys are in the first bucket. The others go to the other group, where each finds an empty bucket.
    EXPECT_EQ(index_of(keys[i], where(keys[i])), i < 2 ? 0U : 4U) << i;
    for (unsigned node = 0; node < 3; ++node) EXPECT_EQ(read(node, keys[i]), "v" + std::to_string(keys[i]));
  }
  expect_alike();
  const Location before = where(keys[4]);
  const std::uint32_t version = write(keys[4], "more");
  EXPECT_EQ(where(keys[4]), before);
  EXPECT_EQ(ask(0, Kind::write_if, keys[4], "x", version - 1).status(), Status::version_mismatch);
  EXPECT_EQ(ask(0, Kind::write_if, keys[4], "y", version).status(), Status::ok);
  EXPECT_EQ(read(2, keys[4]), "y");
  remove(keys[4]);
  for (unsigned node = 0; node < 3; ++node) EXPECT_EQ(read(node, keys[4]), "no_such_key");
  EXPECT_EQ(ask(0, Kind::remove, keys[4]).status(), Status::no_such_key);
  EXPECT_EQ(where(keys[4]), Table::kNowhere);
  expect_alike();
}

TEST_F(KvCandidates, TheFirstBucketIsEmptiedAgain_ExpectKeysElsewhereFoundAndNewOnesInIt) {
  start(2);
  const auto keys = family(4);
  for (std::size_t i = 0; i < 3; ++i) (void)write(keys[i], "v");
  remove(keys[0]);
  remove(keys[1]);
  EXPECT_EQ(read(0, keys[2]), "v");
  EXPECT_EQ(read(1, keys[2]), "v");
  (void)write(keys[3], "w");
  EXPECT_EQ(index_of(keys[3], where(keys[3])), 0U);
  EXPECT_EQ(ask(0, Kind::write, keys[2], "x").status(), Status::ok);
  EXPECT_EQ(index_of(keys[2], where(keys[2])), 4U) << "no key moves";
}

TEST_F(KvCandidates, RemovedAndAddedInAnotherBucket_ExpectAConditionalWriteNotFooled) {
  start(3);
  const auto keys = family(3);
  (void)write(keys[0], "a");
  (void)write(keys[1], "b");
  std::uint32_t version = 0;
  for (int i = 0; i < 40; ++i) version = write(keys[2], "old");
  EXPECT_EQ(index_of(keys[2], where(keys[2])), 4U);
  remove(keys[2]);
  remove(keys[0]);
  EXPECT_GT(write(keys[2], "new"), version);
  EXPECT_EQ(index_of(keys[2], where(keys[2])), 0U);
  for (std::uint32_t v = 1; v <= version; ++v)
    EXPECT_EQ(ask(0, Kind::write_if, keys[2], "fooled", v).status(), Status::version_mismatch);
  EXPECT_EQ(read(1, keys[2]), "new");
}

TEST_F(KvCandidates, FewerThanTwoWaysEverWritten_ExpectNoOtherBucketLookedInto) {
  start(2);
  const auto keys = family(4);
  (void)write(keys[0], "a");
  // Keep a write to another candidate of keys[2] in flight.
  const std::uint32_t hash = hash_of(keys[2]);
  const std::uint64_t there = keys_of_one_bucket(bucket_at_index(hash, 4, kBits), 1, kBits)[0];
  cluster->drop = [](const Frame& f) { return f.kind() == Kind::replicated; };
  send(0, Kind::write, there, "x");
  cluster->run(cluster->now + 5000);
  EXPECT_EQ(read(1, there), "pending");
  EXPECT_EQ(read(1, keys[2]), "no_such_key");
  EXPECT_EQ(ask(0, Kind::remove, keys[2]).status(), Status::no_such_key);
  cluster->drop = nullptr;
  cluster->run(cluster->now + 100'000);
  (void)write(keys[1], "b");  // two: from now on the other buckets count
  cluster->drop = [](const Frame& f) { return f.kind() == Kind::replicated; };
  send(0, Kind::write, there, "y");
  cluster->run(cluster->now + 5000);
  EXPECT_EQ(read(1, keys[2]), "pending");
  EXPECT_EQ(read(1, keys[0]), "a") << "who is in the first bucket does not care";
  EXPECT_EQ(read(0, keys[2]), "no_such_key") << "the leader knows";
  EXPECT_EQ(ask(0, Kind::write, keys[2], "z").status(), Status::busy);
  EXPECT_EQ(ask(0, Kind::remove, keys[2]).status(), Status::busy);
}

TEST_F(KvCandidates, TwoWritersOfANewKey_ExpectOneLocation) {
  for (const bool fault : {false, true}) {
    start(2, kBits, fault ? NodeFaults{NodeFault::ignore_other_flights} : NodeFaults{});
    const auto keys = family(3);
    (void)write(keys[0], "a");
    (void)write(keys[1], "b");
    cluster->drop = [first = lane](const Frame& f) { return f.kind() == Kind::replicated && f.header.client == first; };
    send(0, Kind::write, keys[2], "one");  // goes to the second group
    cluster->run(cluster->now + 5000);
    answers.clear();
    // Now the key's first bucket has room for it.
    remove(keys[0]);
    send(0, Kind::write, keys[2], "two");
    cluster->run(cluster->now + 5000);
    EXPECT_EQ(answers.back().status(), fault ? Status::ok : Status::busy);
    cluster->drop = nullptr;
    cluster->run(cluster->now + 200'000);
    if (fault)
      EXPECT_THROW((void)all_keys(cluster->node(0).table()), std::logic_error);
    else
      EXPECT_EQ(read(1, keys[2]), "one");
  }
}

TEST_F(KvCandidates, TheLeaderDiesWithALeftoverInAnotherBucket_ExpectItTakenBackOrCompleted) {
  for (const unsigned next : {1U, 2U}) {
    leader = 0;
    start(3);
    const auto keys = family(4);
    for (std::size_t i = 0; i < 3; ++i) (void)write(keys[i], "v");
    const auto bucket = bucket_at_index(hash_of(keys[3]), 4, kBits);
    cluster->drop = [](const Frame& f) { return f.kind() == Kind::replicate && f.to == node_at(1); };
    send(0, Kind::write, keys[3], "left");
    cluster->run(cluster->now + 5000);
    ASSERT_EQ(bucket_at(where(keys[3], 2)), bucket);
    cluster->kill(0);
    cluster->drop = nullptr;
    next_epoch(0b110, 0b110, next);
    cluster->run(cluster->now + 200'000);
    expect_alike();
    EXPECT_EQ(read(1, keys[3]), next == 1 ? "no_such_key" : "left");
    EXPECT_EQ(read(2, keys[3]), next == 1 ? "no_such_key" : "left");
    remove(keys[0]);
    (void)write(keys[3], "again");
    EXPECT_EQ(index_of(keys[3], where(keys[3], next)), next == 1 ? 0U : 4U);
    EXPECT_EQ(read(3 - next, keys[3]), "again");
    expect_alike();
  }
}

// A leader that takes writes before all have entered puts a key in one place while its leftover is in another. The next
// leader, which has both, replays the leftover.
TEST_F(KvCandidates, ALeaderThatOpensEarly_ExpectAKeyTwice) {
  for (const bool fault : {false, true}) {
    leader = 0;
    start(3, kBits, fault ? NodeFaults{NodeFault::open_early} : NodeFaults{});
    const auto keys = family(3);
    (void)write(keys[0], "a");
    (void)write(keys[1], "b");
    cluster->drop = [](const Frame& f) { return f.kind() == Kind::replicate && f.to == node_at(1); };
    send(0, Kind::write, keys[2], "left");
    cluster->run(cluster->now + 5000);
    cluster->kill(0);
    cluster->drop = [](const Frame& f) { return f.kind() == Kind::entry; };  // node 2 cannot settle it
    next_epoch(0b110, 0b110, 1);
    cluster->run(cluster->now + 100'000);
    EXPECT_EQ(ask(1, Kind::remove, keys[0]).status(), fault ? Status::ok : Status::busy);
    EXPECT_EQ(ask(1, Kind::write, keys[2], "other").status(), fault ? Status::ok : Status::busy);
    cluster->kill(1);
    cluster->drop = nullptr;
    next_epoch(0b100, 0b100, 2);
    cluster->run(cluster->now + 100'000);
    if (fault)
      EXPECT_THROW((void)all_keys(cluster->node(2).table()), std::logic_error);
    else
      EXPECT_EQ(read(2, keys[2]), "left");
  }
}

TEST_F(KvCandidates, ANodeReturns_ExpectKeysWhereTheOthersHaveThem) {
  start(3);
  const auto keys = family(12);
  for (const std::uint64_t key : keys) (void)write(key, "v" + std::to_string(key));
  cluster->kill(2);
  next_epoch(0b011, 0b011, 0);
  cluster->run(cluster->now + 100'000);
  remove(keys[1]);
  remove(keys[5]);
  cluster->restart(2);
  next_epoch(0b111, 0b011, 0);
  cluster->run(cluster->now + 20'000);
  AnyNode& back = cluster->node(2);
  back.set_now(cluster->now);
  back.write(registers::kSyncFromOffset, 0);
  back.write(registers::kSyncCountOffset, 1U << kBits);
  back.write(registers::kSyncLanesOffset, 256);
  (void)write(keys[5], "while it fetches");
  for (int i = 0; i < 400 && back.read(registers::kSyncCountOffset) != 0; ++i) {
    cluster->wake(2);
    cluster->run(cluster->now + 20'000);
  }
  ASSERT_EQ(back.read(registers::kSyncCountOffset), 0U);
  next_epoch(0b111, 0b111, 2);
  cluster->run(cluster->now + 200'000);
  expect_alike();
  for (const std::uint64_t key : keys) {
    const std::string expected = key == keys[1]   ? "no_such_key"
                                 : key == keys[5] ? "while it fetches"
                                                  : "v" + std::to_string(key);
    for (unsigned node = 0; node < 3; ++node) EXPECT_EQ(read(node, key), expected) << key;
    if (key != keys[1]) (void)write(key, "w");
  }
  expect_alike();
}

TEST_F(KvCandidates, ALostCommitInAnotherBucket_ExpectTheReaderToAskForIt) {
  start(2);
  const auto keys = family(3);
  for (const std::uint64_t key : {keys[0], keys[1]}) (void)write(key, "v");
  cluster->drop = [](const Frame& f) { return f.kind() == Kind::commit; };
  (void)write(keys[2], "w");
  EXPECT_EQ(read(1, keys[2]), "pending");
  cluster->drop = nullptr;
  cluster->run(cluster->now + 100'000);
  std::string found;
  for (int i = 0; i < 9 && found != "w"; ++i) found = read(1, keys[2]);
  EXPECT_EQ(found, "w");
}

TEST_F(KvCandidates, ARequestWithACandidate_ExpectBadLane) {
  start(1);
  for (const Kind kind : {Kind::write, Kind::remove, Kind::lane}) {
    answers.clear();
    cluster->send(
        client_at(0), node_at(0),
        {{.kind = static_cast<std::uint8_t>(kind), .candidate = 1, .epoch = 1, .client = 3, .request = 9}, {}});
    cluster->run(cluster->now + 5000);
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0].status(), Status::bad_lane);
    EXPECT_EQ(answers[0].header.candidate, 1) << "as it came";
  }
}

}  // namespace
}  // namespace wherry::kv::testing
