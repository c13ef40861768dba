// SPDX-License-Identifier: Apache-2.0
// A client core on the simulated network, used by a workload.
#pragma once

#include <optional>
#include <set>

#include "kv/client/core.hpp"
#include "kv/sim/alarm.hpp"
#include "kv/sim/wire.hpp"
#include "kv/sim/workload.hpp"

namespace wherry::kv::sim {

class StoreClient final : public KvPort, MessageSink, Completions {
 public:
  /// `impatience`: the chance that an operation is given up early, in parts per million.
  StoreClient(Network& network, const Endpoint& at, const ClientCore::Options& options, std::uint32_t impatience,
              KvSink& sink);

  void start();
  void submit(std::uint64_t ticket, const Request& request) override;
  /// Acts like a process that is killed and restarted: operations in flight are unknown, and its lanes continue.
  void restart();
  /// For granted lanes: as in the core, and sets the alarm.
  void give_lanes(std::uint16_t first_lane);
  void lose_lanes();
  [[nodiscard]] ClientCore& core() noexcept { return *core_; }
  /// The number of times that the client was started.
  [[nodiscard]] std::uint64_t life() const noexcept { return life_; }
  [[nodiscard]] Port port() const noexcept { return port_.port(); }
  /// Counts since the first start.
  [[nodiscard]] ClientStatistics statistics() const;

 private:
  void on_message(Cycles now, const Endpoint& from, const Message& message) override;
  void on_wake(Cycles now, std::uint64_t tag) override;
  void on_complete(const Completion& completion) override;
  void answer_soon(std::uint64_t ticket, Outcome outcome);
  void arm() { alarm_.ask(network_, port_.port(), core_->next_wake()); }

  Network& network_;
  MessagePort port_;
  ClientCore::Options options_;
  std::uint32_t impatience_;
  Random random_;
  std::optional<ClientCore> core_;
  KvSink& sink_;
  Alarm alarm_;
  std::set<std::uint64_t> open_;  ///< tickets
  ClientStatistics before_;
  std::uint64_t life_ = 0;
};

}  // namespace wherry::kv::sim
