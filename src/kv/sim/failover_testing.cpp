// SPDX-License-Identifier: Apache-2.0
#include "kv/sim/failover_testing.hpp"

namespace wherry::kv::sim {
namespace {

constexpr Cycles kLimit = 10 * std::uint64_t{1'000'000'000} / kCycleNs;
constexpr Cycles kThink = 2500;  ///< 10 us

/// Writes one key repeatedly, one write after the other.
class Writer final : public KvSink {
 public:
  Writer(Cluster& cluster, std::uint64_t key, std::uint64_t seed)
      : cluster_(cluster),
        key_(key),
        client_(cluster.network(), Cluster::endpoint_of(kMaxNodes), client_options(cluster, seed), 0, *this) {
    client_.start();
    next();
  }

  void complete(Cycles now, std::uint64_t, const Answer& answer) override {
    if (answer.outcome == Outcome::kOk) last_ = now;
    cluster_.network().call_at(now + kThink, [this](Cycles) { next(); });
  }
  [[nodiscard]] Cycles last() const noexcept { return last_; }

 private:
  static ClientCore::Options client_options(const Cluster& cluster, std::uint64_t seed) {
    ClientCore::Options client = cluster.options().client;
    client.lanes = Cluster::kLanesEach;
    client.operations = 16;
    client.seed = seed;
    for (std::uint32_t i = 0; i < cluster.options().nodes; ++i) client.nodes[i] = Cluster::endpoint_of(i);
    return client;
  }
  void next() { client_.submit(++number_, {.verb = Verb::kPut, .key = key_, .value = value_}); }

  Cluster& cluster_;
  std::uint64_t key_;
  StoreClient client_;
  std::array<std::byte, 64> value_{};
  std::uint64_t number_ = 0;
  Cycles last_ = 0;
};

}  // namespace

std::optional<FailoverTimes> measure_failover(std::uint64_t seed, ClusterOptions options) {
  options.clients = 0;
  Cluster cluster(seed, options);
  cluster.start();
  Random random(seed);
  const std::uint64_t key = random.next();
  Writer writer(cluster, key, seed);
  Network& network = cluster.network();
  const auto step = [&] { return network.now() < kLimit && network.step(); };
  while (writer.last() == 0 && step()) {
  }
  network.run_until(network.now() + options.lease + random.below(static_cast<std::uint32_t>(2 * options.lease)));
  if (writer.last() == 0) return std::nullopt;

  const Cycles death = network.now();
  cluster.kill_node(cluster.leader_of(key), false);
  // Until this time, earlier answers of the dead leader may still arrive.
  const Cycles old = death + options.link.latency + options.link.jitter;
  while (writer.last() <= old && step()) {
  }
  const auto& failovers = cluster.keeper().keeper().failovers();
  if (writer.last() <= old || failovers.empty()) return std::nullopt;
  // The first write may end before the keeper learns of it.
  while (failovers.back().confirmed == 0 && step()) {
  }
  return FailoverTimes{.published = failovers.back().published - death,
                       .confirmed = failovers.back().confirmed - death,
                       .written = writer.last() - death};
}

}  // namespace wherry::kv::sim
