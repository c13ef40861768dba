// SPDX-License-Identifier: Apache-2.0
// A whole cluster in virtual time: nodes, their drivers, a keeper, clients and their workload, on a bad network and
// with nodes that stand still, die and come back, all as one seed says. What clients saw is the history.
//
// The frames' network is the simulated one. The control connections (TCP) are in order and without loss; they end with
// their node. Every node has a clock with an origin of its own.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "kv/client/core.hpp"
#include "kv/keeper/driver.hpp"
#include "kv/keeper/keeper.hpp"
#include "kv/node/node.hpp"
#include "kv/sim/wire.hpp"
#include "kv/sim/workload.hpp"

namespace wherry::kv::sim {

struct ClusterOptions {
  std::uint32_t nodes = 3;
  std::uint32_t clients = 4;
  WorkloadOptions workload{};
  Link link{.loss = 10'000, .duplicate = 10'000, .late = 10'000, .lateness = 25'000};
  std::uint32_t faults = 6;         ///< nodes that stand still, die and come back, or are cut off
  Cycles between_faults = 500'000;  ///< on average
  Cycles deadline = 2'000'000;      ///< of a request; 8 ms
  Cycles ping_interval = 50'000;    ///< the keeper removes a node after three
  Cycles control_latency = 1000;
  NodeFaults node_faults{};  ///< breaches of the protocol that the judge must find
  KeeperFault keeper_fault = KeeperFault::none;
  Cycles limit = 100'000'000;  ///< of virtual time, 0.4 s: a cluster that is stuck ends here
};

namespace cluster_detail {

inline constexpr std::uint32_t kLanesEach = 4;
inline constexpr unsigned kLaneBits = 8;

inline Endpoint endpoint_of(std::uint32_t index) {
  return {.mac = 0x020000000000U + index, .ip = 0x0a000000U + index, .port = static_cast<std::uint16_t>(kUdpPort)};
}

/// The one time at which a process wants to be woken. The network cannot take a wake back, so those that were overtaken
/// by an earlier one are to be told apart: a wake's tag is its time.
class Alarm {
 public:
  void ask(Network& network, Port port, Cycles when) {
    when = std::max(when, network.now());
    if (when >= at_) return;
    at_ = when;
    network.wake_at(when, port, when);
  }
  /// Whether this wake is the one that is waited for.
  bool rings(std::uint64_t tag) noexcept {
    if (tag != at_) return false;
    at_ = ~Cycles{0};
    return true;
  }

 private:
  Cycles at_ = ~Cycles{0};
};

/// A client core on the network.
class Client final : public KvPort, MessageSink, Completions {
 public:
  Client(Network& network, const Endpoint& at, const ClientCore::Options& options, KvSink& sink)
      : network_(network), port_(network, at, *this), core_(options, port_, *this), sink_(sink) {}

  void start() {
    core_.start(network_.now());
    arm();
  }
  void submit(std::uint64_t ticket, const Request& request) override {
    static constexpr std::array kKinds{Kind::read, Kind::write, Kind::write_if, Kind::remove, Kind::remove_if};
    const bool taken = core_.submit({.kind = kKinds[static_cast<std::size_t>(request.verb)],
                                     .key = request.key,
                                     .version = request.expected,
                                     .value = request.value,
                                     .tag = ticket},
                                    network_.now());
    // Would block: nothing happened, which is an answer, but one must not complete from within.
    if (!taken)
      network_.call_at(network_.now() + 1,
                       [this, ticket](Cycles now) { sink_.complete(now, ticket, {.outcome = Outcome::kRefused}); });
    arm();
  }

 private:
  void on_message(Cycles now, const Endpoint& from, const Message& message) override {
    core_.on_message(from, message, now);
    arm();
  }
  void on_wake(Cycles now, std::uint64_t tag) override {
    if (!alarm_.rings(tag)) return;
    core_.tick(now);
    arm();
  }
  void on_complete(const Completion& completion) override {
    sink_.complete(
        network_.now(), completion.tag,
        {.outcome = outcome_of(completion.outcome), .version = completion.version, .value = completion.value});
  }
  void arm() { alarm_.ask(network_, port_.port(), core_.next_wake()); }
  static Outcome outcome_of(kv::Outcome outcome) {
    switch (outcome) {
      case kv::Outcome::kOk:
        return Outcome::kOk;
      case kv::Outcome::kNoSuchKey:
        return Outcome::kNoSuchKey;
      case kv::Outcome::kVersionMismatch:
        return Outcome::kVersionMismatch;
      case kv::Outcome::kTableFull:
        return Outcome::kTableFull;
      case kv::Outcome::kUnknown:
        return Outcome::kUnknown;
      default:
        return Outcome::kRefused;
    }
  }

  Network& network_;
  MessagePort port_;
  ClientCore core_;
  KvSink& sink_;
  Alarm alarm_;
};

/// One life of a node and its driver. What goes to the keeper is handed to a function.
class Machine final : public Receiver, Output, DriverOutput {
 public:
  using ToKeeperFunction = std::function<void(const ToKeeper&)>;

  Machine(Network& network, const NodeOptions& node, const DriverOptions& driver, std::uint64_t seed,
          ToKeeperFunction to_keeper)
      : network_(network),
        random_(seed),
        to_keeper_(std::move(to_keeper)),
        origin_(random_.next() >> 32),
        node_(node, *this),
        driver_((node_.set_now(local()), driver), node_, *this, local()) {}
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  ~Machine() = default;

  void begin(Port port) {
    port_ = port;
    node_.set_now(local());
    driver_.connected(local());
    work();
  }
  /// A message of the keeper's: held while the process stands still, as everything else.
  void deliver(const FromKeeper& message, Cycles when) {
    inbox_.push_back(message);
    network_.wake_at(when, port_, kFromKeeper);
  }
  [[nodiscard]] const Node& node() const noexcept { return node_; }
  [[nodiscard]] const Driver& driver() const noexcept { return driver_; }

  void receive(Cycles, const Packet& packet) override {
    if (packet.bytes.size() < Kv::kBytes) return;
    node_.receive(packet.from, {Kv::unpack(packet.bytes.first<Kv::kBytes>()), packet.bytes.subspan(Kv::kBytes)},
                  local());
    work();
  }
  void wake(Cycles, std::uint64_t tag) override {
    if (tag != kFromKeeper && !alarm_.rings(tag)) return;
    node_.set_now(local());
    if (tag == kFromKeeper) {
      const FromKeeper message = std::move(inbox_.front());
      inbox_.pop_front();
      driver_.on_message(message, local());
    }
    work();
  }

 private:
  static constexpr std::uint64_t kFromKeeper = ~std::uint64_t{0};  ///< no time

  [[nodiscard]] Cycles local() const noexcept { return network_.now() + origin_; }
  void work() {
    if (driver_.next_time() <= local()) driver_.on_time(local());
    const Cycles next = std::min(node_.tick(local()), driver_.next_time());
    if (next != ~Cycles{0}) alarm_.ask(network_, port_, std::max(next, local() + 1) - origin_);
  }
  void send(const Endpoint& to, const Message& message) override {
    std::array<std::byte, Kv::kBytes + kMaxValueBytes> datagram;
    message.header.pack(std::span(datagram).first<Kv::kBytes>());
    std::copy(message.value.begin(), message.value.end(), datagram.begin() + Kv::kBytes);
    network_.send(port_, to, ByteView(datagram).first(Kv::kBytes + message.value.size()));
  }
  void send(const ToKeeper& message) override { to_keeper_(message); }
  std::uint64_t draw_boot() override { return random_.next() | 1; }

  Network& network_;
  Random random_;
  ToKeeperFunction to_keeper_;
  Cycles origin_;
  Port port_ = 0;
  Node node_;
  Driver driver_;
  Alarm alarm_;
  std::deque<FromKeeper> inbox_;
};

}  // namespace cluster_detail

class Cluster final : KeeperOutput {
 public:
  Cluster(std::uint64_t seed, const ClusterOptions& options)
      : options_(options),
        network_(seed),
        workload_(network_, seed + 1, options.workload),
        machines_(options.nodes),
        lives_(options.nodes),
        silent_until_(options.nodes),
        keeper_(keeper_options(), *this, std::nullopt, 0) {
    network_.set_links(options.link);
    ClientCore::Options client{.lanes = cluster_detail::kLanesEach,
                               .operations = 16,
                               .deadline = options.deadline,
                               .first_timeout = 5000,
                               .timeout_cap = 100'000,
                               .lane_grace = 20'000,
                               .first_pause = 500,
                               .pause_cap = 20'000,
                               .probe_every = 1'000'000,
                               .reads = ReadFrom::kRoundRobin};
    for (std::uint32_t i = 0; i < options.nodes; ++i) client.nodes[i] = cluster_detail::endpoint_of(i);
    for (std::uint32_t i = 0; i < options.nodes; ++i) start_node(i);
    for (std::uint32_t i = 0; i < options.clients; ++i) {
      client.first_lane = static_cast<std::uint16_t>(i * cluster_detail::kLanesEach);
      client.seed = seed + 2 + i;
      clients_.push_back(std::make_unique<cluster_detail::Client>(network_, cluster_detail::endpoint_of(kMaxNodes + i),
                                                                  client, workload_));
      workload_.add_client(*clients_.back());
    }
    plan_faults();
  }

  /// To the end of the workload, or the limit.
  const History& run() {
    keeper_time(0);
    for (const auto& client : clients_) client->start();
    workload_.start();
    while (!workload_.done() && network_.now() < options_.limit && network_.step()) {
    }
    return workload_.history();
  }

  [[nodiscard]] Network& network() noexcept { return network_; }
  [[nodiscard]] const Keeper& keeper() const noexcept { return keeper_; }
  [[nodiscard]] bool done() const noexcept { return workload_.done(); }
  /// Null while it is dead.
  [[nodiscard]] const cluster_detail::Machine* machine(std::uint32_t node) const { return machines_[node].get(); }

 private:
  KeeperOptions keeper_options() const {
    KeeperOptions keeper{.cluster = "sim",
                         .bucket_bits = options_.workload.bucket_bits,
                         .lanes = 1U << cluster_detail::kLaneBits,
                         .ping_interval = options_.ping_interval,
                         .lease = 3 * options_.ping_interval,
                         .fault = options_.keeper_fault};
    for (std::uint32_t i = 0; i < options_.nodes; ++i)
      keeper.nodes[i] = {.configured = true, .name = std::to_string(i), .endpoint = cluster_detail::endpoint_of(i)};
    return keeper;
  }

  void start_node(std::uint32_t index) {
    const std::uint64_t life = ++lives_[index];
    const NodeOptions node{.lane_bits = cluster_detail::kLaneBits, .faults = options_.node_faults};
    const DriverOptions driver{.cluster = "sim",
                               .node = index,
                               .bucket_bits = options_.workload.bucket_bits,
                               .lanes = 1U << cluster_detail::kLaneBits,
                               .retry_cycles = 5000,
                               .busy_interval = 2000,
                               .idle_interval = 20'000};
    auto to_keeper = [this, index, life](const ToKeeper& message) {
      network_.call_at(control_arrival(index), [this, index, life, message](Cycles now) {
        if (lives_[index] != life) return;
        keeper_.on_message(index, message, now);
        keeper_time(now);
      });
    };
    machines_[index] =
        std::make_unique<cluster_detail::Machine>(network_, node, driver, network_.random().next(), to_keeper);
    if (life == 1)
      network_.attach(cluster_detail::endpoint_of(index), *machines_[index]);  // ports are numbered as nodes are
    else
      network_.revive(static_cast<Port>(index), *machines_[index]);
    machines_[index]->begin(static_cast<Port>(index));
  }

  void kill_node(std::uint32_t index, Cycles now) {
    if (machines_[index] == nullptr) return;
    network_.kill(static_cast<Port>(index));
    machines_[index].reset();
    ++lives_[index];
    keeper_.disconnected(index, now);
    keeper_time(now);
  }

  /// Calls the keeper when it wants to be called.
  void keeper_time(Cycles now) {
    keeper_.on_time(now);
    const Cycles next = std::max(keeper_.next_time(), now + 1);
    if (next >= keeper_next_ && keeper_next_ > now) return;
    keeper_next_ = next;
    network_.call_at(next, [this, next](Cycles at) {
      if (keeper_next_ == next) keeper_time(at);
    });
  }

  void send(std::uint32_t node, const FromKeeper& message) override {
    if (machines_[node] != nullptr) machines_[node]->deliver(message, control_arrival(node));
  }
  void store(const Configuration&) override {
    network_.call_at(network_.now() + options_.control_latency, [this](Cycles now) {
      keeper_.stored(true, now);
      keeper_time(now);
    });
  }

  void plan_faults() {
    Random& random = network_.random();
    Cycles at = options_.between_faults / 2;
    for (std::uint32_t i = 0; i < options_.faults; ++i) {
      at += random.below(static_cast<std::uint32_t>(2 * options_.between_faults));
      const std::uint32_t node = random.below(options_.nodes);
      const Cycles until = at + random.below(static_cast<std::uint32_t>(8 * options_.ping_interval));
      plan_fault(random.below(4), node, at, until);
      at = until + options_.ping_interval * 6;  // one at a time: some replica must live
    }
  }

  void plan_fault(std::uint32_t kind, std::uint32_t node, Cycles at, Cycles until) {
    const auto port = static_cast<Port>(node);
    switch (kind) {
      case 0:  // stands still
        network_.call_at(at, [this, port](Cycles) { network_.pause(port); });
        network_.call_at(until, [this, port](Cycles) { network_.resume(port); });
        break;
      case 1:  // dies
        network_.call_at(at, [this, node](Cycles now) { kill_node(node, now); });
        network_.call_at(until, [this, node](Cycles) {
          if (machines_[node] == nullptr) start_node(node);
        });
        break;
      case 2:  // goes on, but does not reach the keeper
        network_.call_at(at, [this, node, until](Cycles) { silent_until_[node] = until; });
        break;
      default:  // is cut off from the others, with half of the clients, but not from the keeper
        network_.call_at(at, [this, port](Cycles) {
          std::vector<Port> side{port};
          for (std::size_t i = 0; i < clients_.size(); i += 2) side.push_back(static_cast<Port>(options_.nodes + i));
          network_.split(side);
        });
        network_.call_at(until, [this](Cycles) { network_.heal(); });
    }
  }
  /// When a control message arrives that is sent now.
  [[nodiscard]] Cycles control_arrival(std::uint32_t node) const {
    return std::max(network_.now() + options_.control_latency, silent_until_[node]);
  }

  ClusterOptions options_;
  Network network_;
  Workload workload_;
  std::vector<std::unique_ptr<cluster_detail::Machine>> machines_;
  std::vector<std::uint64_t> lives_;  ///< changes with each start and death
  std::vector<Cycles> silent_until_;  ///< their control connections hold everything until then
  Keeper keeper_;
  Cycles keeper_next_ = 0;
  std::vector<std::unique_ptr<cluster_detail::Client>> clients_;
};

}  // namespace wherry::kv::sim
