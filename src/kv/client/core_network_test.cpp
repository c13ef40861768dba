// SPDX-License-Identifier: Apache-2.0
// Tests ClientCore on a network that loses, repeats and reorders messages, in virtual time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <random>

#include "kv/client/core.hpp"
#include "kv/client/testing.hpp"

namespace wherry::kv {
namespace {

/// A few clients that add to the same counters with put_if. The counters must contain every addition that was reported
/// to a client as successful.
class Network {
 public:
  Network(std::uint64_t seed, double loss, double repeat) : random_(seed), loss_(loss), repeat_(repeat), store_(3) {}

  struct Client final : Output, Completions {
    Client(Network& network, std::uint16_t lane, std::uint64_t seed) : net(network), first_lane(lane) {
      ClientCore::Options o;
      for (std::uint8_t n = 0; n < 3; ++n) o.nodes[n] = {.ip = n + 1U, .port = 1};
      o.first_lane = lane;
      o.lanes = 4;
      o.operations = 8;
      o.deadline = 2000 * kMillisecond;
      o.seed = seed;
      core.emplace(o, *this, *this);
      core->start(net.now_);
    }
    void send(const Endpoint& to, const Message& m) override {
      // A request may arrive after its client was killed, so it must not use the client's memory.
      net.carry([network = &net, client = this, node = static_cast<std::uint8_t>(to.ip - 1), h = m.header,
                 v = std::vector<std::byte>(m.value.begin(), m.value.end())] { network->at_node(client, node, h, v); });
    }
    void on_complete(const Completion& c) override {
      ends.push_back({c.tag, c.outcome, c.version, c.value.empty() ? 0 : number(c.value)});
    }
    static std::uint64_t number(ByteView value) {
      std::uint64_t n = 0;
      std::memcpy(&n, value.data(), std::min(value.size(), sizeof n));
      return n;
    }
    struct End {
      std::uint64_t tag;
      Outcome outcome;
      std::uint32_t version;
      std::uint64_t value;
    };
    /// Each of four workers reads a counter, then replaces it with the next number.
    void step() {
      const auto done = std::exchange(ends, {});
      for (const End& end : done) {
        Worker& w = workers[end.tag];
        const bool was_read = w.reading;
        w.busy = false;
        w.reading = true;
        if (was_read) {
          if (end.outcome == Outcome::kOk || end.outcome == Outcome::kNoSuchKey) {
            w.reading = false;
            w.version = end.outcome == Outcome::kOk ? end.version : 0;
            w.value = end.value + 1;
          } else {
            EXPECT_EQ(end.outcome, Outcome::kNoAnswer);
          }
          continue;
        }
        net.certain += end.outcome == Outcome::kOk;
        net.unknown += end.outcome == Outcome::kUnknown;
        net.refused += end.outcome == Outcome::kVersionMismatch;
      }
      for (std::uint64_t i = 0; i < 4; ++i) {
        Worker& w = workers[i];
        if (w.busy || net.stopping) continue;
        w.busy = w.reading ? core->submit({.key = w.key(i), .tag = i}, net.now_)
                           : core->submit({.kind = Kind::write_if,
                                           .key = w.key(i),
                                           .version = w.version,
                                           .value = std::as_bytes(std::span(&w.value, 1)),
                                           .tag = i},
                                          net.now_);
      }
    }
    struct Worker {
      bool busy = false, reading = true;
      std::uint32_t version = 0;
      std::uint64_t value = 0;
      static std::uint64_t key(std::uint64_t i) { return i % 3; }
    };
    Network& net;
    std::uint16_t first_lane;
    std::array<Worker, 4> workers;
    std::vector<End> ends;
    std::optional<ClientCore> core;
  };

  void carry(std::function<void()> what) {
    if (chance() < loss_) return;
    const int copies = chance() < repeat_ ? 2 : 1;
    for (int i = 0; i < copies; ++i)
      events_.emplace(now_ + 2000 + (chance() < 0.05 ? random_() % (20 * kMillisecond) : random_() % 5000), what);
  }
  void at_node(Client* client, std::uint8_t node, const Kv& header, const std::vector<std::byte>& value) {
    if ((dead >> node & 1) != 0) return;
    auto reply = store_.handle(node, {header, value});
    if (!reply) return;
    carry([this, client, node, r = *reply] {
      // A restarted client may get messages for its predecessor, as at the same address.
      if (std::ranges::find(clients, client) != clients.end())
        client->core->on_message({.ip = node + 1U, .port = 1}, r.message(), now_);
    });
  }
  void run(Cycles time) {
    const Cycles end = now_ + time;
    while (now_ < end) {
      Cycles next = end;
      if (!events_.empty()) next = std::min(next, events_.begin()->first);
      for (Client* c : clients) next = std::min(next, c->core->next_wake());
      now_ = std::max(now_, next);
      while (!events_.empty() && events_.begin()->first <= now_) {
        const auto what = std::move(events_.begin()->second);
        events_.erase(events_.begin());
        what();
      }
      for (Client* c : clients) {
        c->core->tick(now_);
        c->step();
      }
    }
  }
  /// The sum of all counters.
  std::uint64_t sum() {
    std::uint64_t total = 0;
    for (const auto& [key, entry] : store_.table) total += Client::number(entry.value);
    return total;
  }
  double chance() { return std::uniform_real_distribution<>()(random_); }

  std::mt19937_64 random_;
  double loss_, repeat_;
  testing::ReferenceStore store_;
  Cycles now_ = 1;
  std::multimap<Cycles, std::function<void()>> events_;
  std::vector<Client*> clients;
  std::uint64_t certain = 0, unknown = 0, refused = 0;
  std::uint8_t dead = 0;
  bool stopping = false;
};

class KvClientNetwork : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(KvClientNetwork, LossRepetitionNewLeadersRestarts_EveryAcknowledgedWriteOnce) {
  const std::uint64_t seed = GetParam();
  Network net(seed, 0.1, 0.1);
  net.store_.epoch = 65530;  // wraps around during the test
  auto a = std::make_unique<Network::Client>(net, 0, seed + 1);
  Network::Client b(net, 100, seed + 2);
  net.clients = {a.get(), &b};
  for (int round = 0; round < 20; ++round) {
    net.run(200 * kMillisecond);
    net.store_.epoch = static_cast<std::uint16_t>(net.store_.epoch == 65535 ? 1 : net.store_.epoch + 1);
    net.store_.shift = static_cast<std::uint8_t>(net.random_() % 3);
    net.dead = static_cast<std::uint8_t>(round % 4 == 1 ? 1U << (1 + net.random_() % 2) : 0);
    if (round % 5 == 4) {  // the first client is killed, and starts again with the same lanes
      for (const auto& worker : a->workers) net.unknown += worker.busy && !worker.reading;
      net.clients = {&b};
      a = std::make_unique<Network::Client>(net, 0, seed + 100 + static_cast<std::uint64_t>(round));
      net.clients.push_back(a.get());
    }
  }
  net.dead = 0;
  net.stopping = true;
  net.run(5000 * kMillisecond);
  EXPECT_EQ(a->core->in_flight() + b.core->in_flight(), 0);
  EXPECT_GT(net.certain, 1000);
  EXPECT_GT(net.refused, 100);
  EXPECT_GE(net.sum(), net.certain);
  EXPECT_LE(net.sum(), net.certain + net.unknown);
}

TEST_P(KvClientNetwork, NoLoss_NothingIsUnknownNorSentTwice) {
  Network net(GetParam(), 0, 0);
  Network::Client a(net, 0, 1);
  net.clients = {&a};
  net.run(50 * kMillisecond);
  net.stopping = true;
  net.run(3000 * kMillisecond);
  EXPECT_EQ(net.unknown, 0);
  EXPECT_EQ(net.sum(), net.certain);
  EXPECT_GT(net.certain, 100);
}

INSTANTIATE_TEST_SUITE_P(Seeds, KvClientNetwork, ::testing::Range<std::uint64_t>(1, 9));

}  // namespace
}  // namespace wherry::kv
