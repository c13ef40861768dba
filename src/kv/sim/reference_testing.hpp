// SPDX-License-Identifier: Apache-2.0
// A trivially correct store (one server without replicas), and three incorrect ones. For tests of the simulated
// network, of the history and of its checker. Not a part of the store itself.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "kv/sim/wire.hpp"
#include "kv/sim/workload.hpp"

namespace wherry::kv::sim {

enum class Flaw : std::uint8_t {
  kNone,
  kStaleReads,       ///< some reads get the value before the last write, as of a replica that lags behind
  kLostUpdates,      ///< some writes are acknowledged, and nothing else
  kDuplicateEffect,  ///< a write takes effect as often as it arrives
};

class ReferenceServer final : MessageSink {
 public:
  ReferenceServer(Network& network, const Endpoint& at, Flaw flaw, std::uint64_t seed)
      : port_(network, at, *this), flaw_(flaw), random_(seed) {}
  [[nodiscard]] Port port() const noexcept { return port_.port(); }

 private:
  struct Location {
    bool present = false;
    std::uint32_t version = 0;
    Bytes value;
  };
  struct Record {
    std::uint32_t request = 0;
    Kv reply;
  };
  void on_message(Cycles now, const Endpoint& from, const Message& message) override;
  void on_wake(Cycles, std::uint64_t) override {}
  void read(const Endpoint& from, const Kv& header);
  Kv execute(const Message& message);

  MessagePort port_;
  Flaw flaw_;
  Random random_;
  std::map<std::uint64_t, Location> table_;
  std::map<std::uint64_t, Location> before_;  ///< the last write
  std::map<std::uint16_t, Record> lanes_;
};

/// Uses one lane, for one request at a time.
class ReferenceClient final : public KvPort, MessageSink {
 public:
  ReferenceClient(Network& network, const Endpoint& at, const Endpoint& server, std::uint16_t lane, KvSink& sink)
      : port_(network, at, *this), network_(network), server_(server), lane_(lane), sink_(sink) {}
  [[nodiscard]] Port port() const noexcept { return port_.port(); }

  void submit(std::uint64_t ticket, const Request& request) override;

 private:
  void on_message(Cycles now, const Endpoint& from, const Message& message) override;
  void on_wake(Cycles now, std::uint64_t tag) override;
  void transmit();

  MessagePort port_;
  Network& network_;
  Endpoint server_;
  std::uint16_t lane_;
  KvSink& sink_;
  bool waiting_ = false;
  std::uint64_t ticket_ = 0;
  Kv header_;
  Bytes value_;
  Cycles deadline_ = 0;
  Cycles timeout_ = 0;
};

/// A server that pauses, clients and their workload, on a bad network.
class ReferenceCluster {
 public:
  ReferenceCluster(Flaw flaw, std::uint64_t seed, const WorkloadOptions& options, std::uint32_t clients = 4);

  [[nodiscard]] Network& network() noexcept { return network_; }
  /// Runs until the workload is done or there are no more events.
  const History& run();

 private:
  Network network_;
  ReferenceServer server_;
  Workload workload_;
  std::vector<std::unique_ptr<ReferenceClient>> clients_;
};

}  // namespace wherry::kv::sim
