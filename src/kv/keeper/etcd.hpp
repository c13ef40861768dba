// SPDX-License-Identifier: Apache-2.0
// Elects a keeper, and stores its configuration, in etcd, through etcd's JSON gateway (v3). Calls block for at most
// `timeout` for each endpoint, so they belong in threads of their own. run() is one thread, the keeper's store another.
// The thread that grants leases needs only mandate_ns() and elected(), which never wait.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "kv/keeper/configuration_store.hpp"

namespace wherry::kv {

struct EtcdOptions {
  std::vector<std::string>
      urls;               ///< http://host:port or https://host:port: of one etcd; when one fails the next is asked
  std::string ca;         ///< file of certificates that are believed; empty: the system's
  std::string cert, key;  ///< files: this keeper's own, if etcd asks for one
  std::string prefix;     ///< of the keys: <prefix>/keeper and <prefix>/configuration
  std::string self;       ///< host:port of this keeper, for the nodes to find
  std::chrono::seconds lease{5};
  std::chrono::milliseconds timeout{1000};
};

/// A candidate. Threads: one at a time for each of {campaign, keep_alive, resign, watch, leader, run} and a store's
/// calls. Any thread may call the rest.
class EtcdElection {
 public:
  static Result<std::unique_ptr<EtcdElection>> open(EtcdOptions options);
  ~EtcdElection();

  /// Stands for election and keeps it. While another keeper is elected it watches that one. Ends at `stop`. Then
  /// resigns.
  void run(const std::atomic<bool>& stop);
  /// For run(): the present keeper cannot store its configuration, and must not be elected any more.
  void step_down() noexcept;
  /// The number of the election that was won. 0: this keeper is not elected.
  [[nodiscard]] std::int64_t elected() const noexcept;

  /// Tries once. kWouldBlock: another keeper is elected.
  wherry::Status campaign();
  /// Keeps the election. Call it several times in a lease. kFailedPrecondition: the election is over.
  wherry::Status keep_alive();
  /// Lets another one be elected at once.
  wherry::Status resign();
  /// Waits, for about `time` at most, until no keeper is elected. It only reads, so etcd writes nothing.
  wherry::Status watch(std::chrono::milliseconds time, const std::atomic<bool>& stop);
  /// The time, by boot_ns(), until which no other keeper can be elected: for Keeper::set_mandate. 0: not elected.
  [[nodiscard]] std::uint64_t mandate_ns() const noexcept;
  /// The elected keeper, host:port. Empty: none.
  Result<std::string> leader();

  /// The elected keeper stores its configuration here. It is replaced only if this keeper is still elected, and no
  /// other has replaced the value that this one last read or wrote. This election must outlive it.
  std::unique_ptr<ConfigurationStore> store();

  struct Impl;

 private:
  explicit EtcdElection(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry::kv
