// SPDX-License-Identifier: Apache-2.0
// Runs a keeper and its nodes' drivers in virtual time, in thousands of random schedules with all faults that can
// happen between them. After every event the test checks the promises of docs/design/kv-protocol.md about membership.
// The same checks must find deliberate faults of the keeper.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <set>

#include "kv/keeper/keeper.hpp"
#include "kv/node/driver/driver.hpp"
#include "kv/node/driver/testing.hpp"

namespace wherry::kv {
namespace {

constexpr Cycles kPing = 10'000;
constexpr Cycles kLease = 30'000;
constexpr std::uint32_t kBucketBits = 8;
constexpr double kDrift = 0.0005;  // of each clock, so 0.1 % between two

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kSchedules = 250;  // twenty times slower each
#else
constexpr std::uint64_t kSchedules = 2000;
#endif

struct Plan {
  std::uint64_t seed = 0;
  bool forgetful = false;  ///< a keeper's store is lost with it, at times
  KeeperFault fault = KeeperFault::none;
};

class World {
 public:
  explicit World(const Plan& plan) : plan_(plan), random_(plan.seed) {
    count_ = static_cast<std::uint32_t>(2 + draw(4));
    max_delay_ = draw(2) != 0 ? 500 : 6000;
    for (std::uint32_t node = 0; node < count_; ++node) start_node(node);
    start_keeper();
  }

  /// Returns the violated rule; empty if there is none.
  std::string run() {
    const Cycles chaos_ends = 40 * kLease;
    at(draw(2 * kLease), [this] { trouble(); });
    while (truth_ < chaos_ends && violation_.empty()) step();
    calm_ = true;
    max_delay_ = 200;
    for (std::uint32_t i = 0; i < 40 && violation_.empty(); ++i) {
      repair();
      const Cycles until = truth_ + 5 * kLease;
      while (truth_ < until && violation_.empty()) step();
      if (healthy()) return violation_;
    }
    if (violation_.empty()) violate("(f) nodes healthy for long, and not all serve: " + keeper_->status(now()));
    return violation_;
  }

  std::uint64_t events = 0;
  std::uint64_t epochs = 0;
  std::uint64_t failovers = 0;
  std::uint64_t returns = 0;
  std::uint64_t losses = 0;

 private:
  struct Link {
    bool up = false;
    std::uint64_t number = 0;  // of the connection: what belongs to an older one is dropped
    Cycles to_keeper = 0;      // when the last message arrives
    Cycles to_node = 0;
  };
  struct Machine final : DriverOutput {
    World* world = nullptr;
    std::uint32_t node = 0;
    DriftingClock clock;
    std::unique_ptr<FakeCore> core;
    std::unique_ptr<Driver> driver;
    Cycles frozen = 0;
    std::deque<FromKeeper> inbox;
    void send(const ToKeeper& message) override { world->to_keeper(node, message); }
    std::uint64_t draw_boot() override {
      boot = ++world->boots_;
      return boot;
    }
    std::uint64_t boot = 0;
    std::uint64_t core_boot = 0;  // under which the core entered its epoch: it may be off its bus, and go on
  };
  struct Shell final : KeeperOutput {
    World* world = nullptr;
    void send(std::uint32_t node, const FromKeeper& message) override { world->to_node(node, message); }
    void store(const Configuration& c) override { world->store(c); }
  };
  struct Event {
    Cycles time;
    std::uint64_t order;
    std::function<void()> action;
    bool operator<(const Event& other) const { return time != other.time ? time > other.time : order > other.order; }
  };

  std::uint64_t draw(std::uint64_t below) { return below == 0 ? 0 : random_() % below; }
  bool chance(std::uint32_t percent) { return draw(100) < percent; }
  DriftingClock draw_clock() {
    return {1 + kDrift * (static_cast<double>(draw(2001)) - 1000) / 1000, draw(std::uint64_t{1} << 30)};
  }
  Cycles now() const { return keeper_clock_.local(truth_); }
  void at(Cycles delay, std::function<void()> action) { events_.push({truth_ + delay, ++order_, std::move(action)}); }
  void violate(const std::string& what) {
    if (violation_.empty())
      violation_ = "seed " + std::to_string(plan_.seed) + ", at " + std::to_string(truth_) + ": " + what;
  }

  // ---- processes
  void start_node(std::uint32_t node) {
    Machine& m = machines_[node];
    m.world = this;
    m.node = node;
    m.clock = draw_clock();
    m.frozen = 0;
    m.inbox.clear();
    m.core = std::make_unique<FakeCore>(truth_, m.clock, 1 + static_cast<std::uint32_t>(draw(3000)));
    m.core->on_enter = [this, node](const FakeCore::Entry& e) { entered(node, e); };
    m.core->on_lanes = [this, node] { lanes(node); };
    DriverOptions o;
    o.cluster = "test";
    o.node = node;
    o.bucket_bits = kBucketBits;
    o.lanes = 64;
    o.chunk = 100;
    o.busy_interval = 400;
    o.idle_interval = 5000;
    m.driver = std::make_unique<Driver>(o, *m.core, m, m.clock.local(truth_));
  }
  void kill_node(std::uint32_t node) {
    machines_[node].driver.reset();
    machines_[node].core.reset();
    drop(node, chance(50));
  }
  void start_keeper() {
    keeper_clock_ = draw_clock();
    shell_.world = this;
    KeeperOptions o;
    o.cluster = "test";
    o.bucket_bits = kBucketBits;
    o.ping_interval = kPing;
    o.lease = kLease;
    o.fault = plan_.fault;
    o.first_epoch = plan_.forgetful ? truth_ + 1 : 1;
    for (std::uint32_t node = 0; node < count_; ++node) o.nodes[node] = {true, "n", {0, 0x0a000001 + node, 19286}};
    keeper_ = std::make_unique<Keeper>(o, shell_, kept_, now());
    ++keepers_;
  }
  void kill_keeper() {
    keeper_.reset();
    ++keepers_;
    if (plan_.forgetful && chance(50)) {
      kept_.reset();
      // No node entered this configuration, so it is lost with the keeper. This loss is allowed: all links are cut, so
      // no node can enter the configuration.
      last_ = entered_;
    } else if (storing_ && chance(50)) {  // it arrived, and the answer did not: it counts as published
      kept_ = storing_;
      published(*kept_);
    }
    storing_.reset();
    for (std::uint32_t node = 0; node < count_; ++node) drop(node, false);
  }

  // ---- connections
  void drop(std::uint32_t node, bool notices) {
    Link& link = links_[node];
    if (!link.up) return;
    link.up = false;
    ++link.number;
    machines_[node].inbox.clear();
    if (machines_[node].driver) machines_[node].driver->disconnected();
    if (notices && keeper_) keeper_->disconnected(node, now());
  }
  void connect(std::uint32_t node) {
    Link& link = links_[node];
    Machine& m = machines_[node];
    if (link.up || !keeper_ || !m.driver || m.frozen > truth_) return;
    link = {true, link.number + 1, truth_, truth_};
    m.driver->connected(m.clock.local(truth_));
  }
  Cycles arrival(Cycles& last) {
    const Cycles delay = chance(2) && !calm_ ? draw(2 * kLease) : draw(max_delay_);
    return last = std::max(last, truth_ + delay);
  }
  void to_keeper(std::uint32_t node, const ToKeeper& message) {
    Link& link = links_[node];
    if (!link.up) return;
    const auto decoded = decode_to_keeper(encode(message));
    if (!decoded || !(*decoded == message)) return violate("a message to the keeper is not what was encoded");
    at(arrival(link.to_keeper) - truth_, [this, node, message, number = link.number, keeper = keepers_] {
      if (links_[node].number == number && keepers_ == keeper && keeper_) keeper_->on_message(node, message, now());
    });
  }
  void to_node(std::uint32_t node, const FromKeeper& message) {
    if (const auto* configure = std::get_if<Configure>(&message)) published(configure->configuration);
    Link& link = links_[node];
    if (!link.up) return;
    at(arrival(link.to_node) - truth_, [this, node, message, number = link.number] {
      if (links_[node].number != number) return;
      machines_[node].inbox.push_back(message);
      read_inbox(node);
    });
  }
  void read_inbox(std::uint32_t node) {
    Machine& m = machines_[node];
    while (m.driver && m.frozen <= truth_ && !m.inbox.empty()) {
      const FromKeeper message = m.inbox.front();
      m.inbox.pop_front();
      m.driver->on_message(message, m.clock.local(truth_));
    }
  }
  void store(const Configuration& c) {
    storing_ = c;
    at(1 + draw(500), [this, keeper = keepers_] {
      if (keepers_ != keeper || !keeper_) return;
      kept_ = std::exchange(storing_, std::nullopt);
      published(*kept_);  // even if nobody is there to be told
      keeper_->stored(true, now());
    });
  }

  // ---- trouble
  void trouble() {
    if (calm_) return;
    at(draw(2 * kLease), [this] { trouble(); });
    const auto node = static_cast<std::uint32_t>(draw(count_));
    Machine& m = machines_[node];
    switch (draw(12)) {
      case 0:
      case 1:
        if (m.driver)
          kill_node(node);
        else
          start_node(node);
        break;
      case 2:
        if (m.driver) {  // too fast for anybody to notice
          kill_node(node);
          start_node(node);
        }
        break;
      case 3:
      case 4:
        drop(node, chance(50));
        break;
      case 5:  // the software sleeps, the core does not
        m.frozen = truth_ + draw(3 * kLease);
        at(m.frozen - truth_, [this, node] { read_inbox(node); });
        break;
      case 6:
        links_[node].to_keeper = std::max(links_[node].to_keeper, truth_ + draw(3 * kLease));
        break;
      case 7:
        links_[node].to_node = std::max(links_[node].to_node, truth_ + draw(3 * kLease));
        break;
      case 8:
        if (keeper_)
          kill_keeper();
        else
          start_keeper();
        break;
      case 9:
        if (keeper_) {
          kill_keeper();
          start_keeper();
        }
        break;
      case 10:
        if (m.core) (chance(50) ? m.core->fault : m.core->gone) = true;
        if (m.core)
          at(draw(kLease), [this, node] {
            if (machines_[node].core) machines_[node].core->gone = false;
          });
        break;
      default:
        if (!keeper_) break;
        Command c;
        constexpr std::array<Op, 6> kOps{Op::remove, Op::admit, Op::move, Op::stop, Op::resume, Op::move};
        c.op = kOps[draw(kOps.size())];
        // An operator's `resume` may lose data if the keeper is asking; the operator was told so.
        if (c.op == Op::resume && keeper_->phase() == Keeper::Phase::asking) break;
        c.node = node;
        c.first_slot = static_cast<std::uint32_t>(draw(128));
        c.last_slot = c.first_slot + static_cast<std::uint32_t>(draw(128));
        (void)keeper_->command(c, now());
    }
  }
  /// Does the operators' work until the cluster is healthy.
  void repair() {
    if (!keeper_) start_keeper();
    for (std::uint32_t node = 0; node < count_; ++node) {
      if (!machines_[node].driver) start_node(node);
      machines_[node].core->gone = false;
      (void)keeper_->command({Op::admit, node, 0, 0}, now());
    }
    if (keeper_->phase() == Keeper::Phase::halted) (void)keeper_->command({Op::resume, 0, 0, 0}, now());
    if (keeper_->phase() == Keeper::Phase::lost) {
      ++losses;
      starts_over_ = true;
      (void)keeper_->command({Op::start_over, 0, 0, 0}, now());
    } else if (keeper_->phase() == Keeper::Phase::asking && truth_ > asked_until_) {
      asked_until_ = truth_ + 10 * kLease;  // time to find out by itself; the second time all are started anew
      if (asked_before_) {
        starts_over_ = true;
        for (std::uint32_t node = 0; node < count_; ++node) {
          kill_node(node);
          start_node(node);
        }
      }
      asked_before_ = true;
    }
  }

  // ---- what is checked
  void published(const Configuration& c) {
    const std::string content = encode(c);
    const auto [known, is_new] = contents_.emplace(c.epoch, content);
    if (known->second != content) violate("(d) epoch " + std::to_string(c.epoch) + " has two contents");
    if (!is_new) return;
    ++epochs;
    if (const auto s = check(c); !s) violate("(3) " + s.message());
    if (c.epoch <= highest_) violate("(d) an epoch that is not higher");
    highest_ = c.epoch;
    const bool goes_on = same_any(c);
    const bool fresh = !anybody_lived() || !goes_on || nobody_lived(c);
    for (std::uint32_t node = 0; node < kMaxNodes; ++node) {
      if (!has(c.members, node)) continue;
      const bool was = has(last_.members, node) && last_.boots[node] == c.boots[node];
      if (!was && lived_.contains(c.boots[node])) violate("(c) a node that was in an epoch returns as it was");
      if (!was && has(last_.members, node) && !fresh) violate("(c) a restarted node was not removed first");
      const bool served = was && has(last_.serving, node);
      if (has(c.serving, node) && !served && !fresh && !(was && complete_.contains(c.boots[node])))
        violate("(b) node " + std::to_string(node) + " serves and has not everything");
      if (has(c.serving, node) && !served && was) ++returns;
    }
    if (fresh && !goes_on && last_.epoch != 0 && !starts_over_) {
      for (std::uint32_t node = 0; node < count_; ++node) {
        if (machines_[node].driver && has(last_.serving, node) && machines_[node].boot == last_.boots[node] &&
            lived_.contains(last_.boots[node]))
          violate("(b) starts empty while a node has the data");
      }
    }
    if (without(last_.serving, c.serving) != 0) ++failovers;
    last_ = c;
    starts_over_ = false;
  }
  bool nobody_lived(const Configuration& c) const {
    for (std::uint32_t node = 0; node < kMaxNodes; ++node) {
      if (has(c.members, node) && lived_.contains(c.boots[node])) return false;
    }
    return true;
  }
  bool anybody_lived() const { return !nobody_lived(last_); }
  bool same_any(const Configuration& c) const {
    for (std::uint32_t node = 0; node < kMaxNodes; ++node) {
      if (has(c.serving, node) && has(last_.members, node) && c.boots[node] == last_.boots[node] &&
          (has(last_.serving, node) || lived_.contains(c.boots[node])))
        return true;
    }
    return false;
  }
  void entered(std::uint32_t node, const FakeCore::Entry& e) {
    lived_.insert(machines_[node].boot);
    machines_[node].core_boot = machines_[node].boot;
    for (const auto& [epoch, content] : contents_) {
      if ((epoch & 0xffff) != e.epoch || epoch + 65536 <= last_.epoch) continue;
      const auto c = decode_configuration(content);
      if (!c || c->members != e.members || c->serving != e.serving || c->leaders != e.leaders)
        violate("(d) a node entered something else under this epoch");
      else if (c->epoch > entered_.epoch)
        entered_ = *c;
      return;
    }
    violate("(d) a node entered an epoch that was never published");
  }
  void lanes(std::uint32_t node) {
    const std::uint64_t boot = machines_[node].boot;
    for (std::uint32_t other = 0; other < count_; ++other) {
      const Machine& m = machines_[other];
      if (!m.driver || !m.driver->entered()) continue;
      const Configuration& c = *m.driver->entered();
      const bool before = c.epoch < machines_[node].driver->epoch();
      if (before && has(last_.serving, other) && last_.boots[other] == m.boot && c.boots[node] != boot)
        violate("lanes are asked for while a serving node is in an epoch before the asker's");
    }
  }
  void check_all() {
    for (std::uint32_t node = 0; node < count_; ++node) {
      Machine& m = machines_[node];
      if (!m.core) continue;
      if (!m.core->in_order) violate("buckets are fetched out of order");
      if (m.core->lanes && m.core->fetched == std::uint64_t{1} << kBucketBits) complete_.insert(m.boot);
      if (m.core->serving() && (!has(last_.serving, node) || last_.boots[node] != m.core_boot))
        violate("(a) node " + std::to_string(node) + " may answer and is not serving any more");
      if (keeper_ && keeper_->phase() == Keeper::Phase::running && m.core->leased() && m.core->now.epoch != 0 &&
          m.core->lease_truth() > keeper_clock_.truth(keeper_->lease_end(node)) + 1)
        violate("(e) the lease of node " + std::to_string(node) + " ends later than its keeper believes");
      if (keeper_ && keeper_->phase() == Keeper::Phase::lost && m.driver->boot() == last_.boots[node] &&
          has(last_.serving, node) && keeper_->configuration() == last_ && !m.core->fault)
        violate("says that all is lost, and node " + std::to_string(node) + " has it");
    }
  }
  bool healthy() {
    if (!keeper_ || keeper_->phase() != Keeper::Phase::running) return false;
    const Configuration& c = keeper_->configuration();
    for (std::uint32_t node = 0; node < count_; ++node) {
      const FakeCore& core = *machines_[node].core;
      if (!has(c.serving, node) || !core.serving() || core.now.epoch != (c.epoch & 0xffff)) return false;
    }
    return true;
  }

  void step() {
    for (std::uint32_t node = 0; node < count_; ++node) {
      if (!links_[node].up && keeper_ && machines_[node].driver && !connecting_[node]) {
        connecting_[node] = true;
        at(draw(2000), [this, node] {
          connecting_[node] = false;
          connect(node);
        });
      }
    }
    Cycles next = events_.empty() ? truth_ + kLease : events_.top().time;
    if (keeper_) next = std::min(next, keeper_clock_.truth(keeper_->next_time()));
    for (std::uint32_t node = 0; node < count_; ++node) {
      const Machine& m = machines_[node];
      if (m.driver) next = std::min(next, std::max(m.frozen, m.clock.truth(m.driver->next_time())));
    }
    truth_ = std::max(truth_, next);
    if (++events > 400'000) return violate("events without end");
    if (!events_.empty() && events_.top().time <= truth_) {
      const auto action = events_.top().action;
      events_.pop();
      action();
      check_all();
    }
    if (keeper_ && keeper_->next_time() <= now()) keeper_->on_time(now());
    check_all();
    for (std::uint32_t node = 0; node < count_; ++node) {
      Machine& m = machines_[node];
      if (m.driver && m.frozen <= truth_ && m.driver->next_time() <= m.clock.local(truth_))
        m.driver->on_time(m.clock.local(truth_));
    }
    check_all();
  }

  Plan plan_;
  std::mt19937_64 random_;
  std::uint32_t count_ = 0;
  Cycles truth_ = 0;
  Cycles max_delay_ = 0;
  bool calm_ = false;
  std::priority_queue<Event> events_;
  std::uint64_t order_ = 0;
  std::uint64_t boots_ = 0;
  std::array<Machine, kMaxNodes> machines_;
  std::array<Link, kMaxNodes> links_;
  std::array<bool, kMaxNodes> connecting_{};
  DriftingClock keeper_clock_;
  Shell shell_;
  std::unique_ptr<Keeper> keeper_;
  std::uint64_t keepers_ = 0;
  std::optional<Configuration> kept_;
  std::optional<Configuration> storing_;
  Configuration last_;     // published
  Configuration entered_;  // the highest that any node entered
  std::uint64_t highest_ = 0;
  std::map<std::uint64_t, std::string> contents_;
  std::set<std::uint64_t> lived_;     // boots that were in an epoch
  std::set<std::uint64_t> complete_;  // boots that got everything
  bool starts_over_ = false;
  bool asked_before_ = false;
  Cycles asked_until_ = 0;
  std::string violation_;
};

struct Totals {
  std::uint64_t events = 0;
  std::uint64_t epochs = 0;
  std::uint64_t failovers = 0;
  std::uint64_t returns = 0;
  std::uint64_t losses = 0;
};

std::string run(const Plan& plan, Totals* totals = nullptr) {
  World world(plan);
  std::string violation = world.run();
  if (totals != nullptr) {
    totals->events += world.events;
    totals->epochs += world.epochs;
    totals->failovers += world.failovers;
    totals->returns += world.returns;
    totals->losses += world.losses;
  }
  return violation;
}

TEST(KeeperSimulation, RandomSchedules_ExpectTheFourRulesAndThatAllServeInTheEnd) {
  Totals totals;
  for (std::uint64_t seed = 1; seed <= kSchedules; ++seed) ASSERT_EQ(run({.seed = seed}, &totals), "");
  // Check that the schedules reach the intended situations.
  EXPECT_GT(totals.failovers, kSchedules);
  EXPECT_GT(totals.returns, kSchedules);
  EXPECT_GT(totals.losses, kSchedules / 100);
  RecordProperty("events", std::to_string(totals.events));
  RecordProperty("epochs", std::to_string(totals.epochs));
}

TEST(KeeperSimulation, KeepersThatForget_ExpectTheSame) {
  for (std::uint64_t seed = 1; seed <= kSchedules / 2; ++seed) ASSERT_EQ(run({.seed = seed, .forgetful = true}), "");
}

class KeeperFaults : public testing::TestWithParam<std::pair<KeeperFault, const char*>> {};

TEST_P(KeeperFaults, DeliberateFault_ExpectFoundByItsProperty) {
  const auto [fault, property] = GetParam();
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    const std::string found = run({.seed = seed, .fault = fault});
    if (found.find(property) != std::string::npos) return;
  }
  FAIL() << "500 schedules did not show it";
}

INSTANTIATE_TEST_SUITE_P(
    All, KeeperFaults,
    testing::Values(std::pair(KeeperFault::ignore_leases, "(a)"), std::pair(KeeperFault::serve_incomplete, "(b)"),
                    std::pair(KeeperFault::leader_is_member, "(3)"), std::pair(KeeperFault::overlook_restart, "(d)"),
                    std::pair(KeeperFault::repeat_epoch, "(d)"), std::pair(KeeperFault::forget_leases, "(e)")));

}  // namespace
}  // namespace wherry::kv
