// SPDX-License-Identifier: Apache-2.0
// A keeper elected, and its configuration kept, in etcd, through etcd's JSON gateway (v3). Calls block for at most
// `timeout` for each endpoint, so that they belong in threads of their own: run() is one, the keeper's store another.
// What the thread that grants leases needs, mandate_ns() and elected(), never waits.
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
/// calls; any for the rest.
class EtcdElection {
 public:
  static Result<std::unique_ptr<EtcdElection>> open(EtcdOptions options);
  ~EtcdElection();

  /// Stands for election, keeps it, and while another one is elected watches it, until `stop`. Then resigns.
  void run(const std::atomic<bool>& stop);
  /// Of run(): the present keeper cannot keep its configuration, and shall not be elected any more.
  void step_down() noexcept;
  /// Which election was won; 0: this one is not elected.
  [[nodiscard]] std::int64_t elected() const noexcept;

  /// Tries once. kWouldBlock: another keeper is elected.
  wherry::Status campaign();
  /// Keeps it so; call it several times a lease. kFailedPrecondition: it is over.
  wherry::Status keep_alive();
  /// Lets another one be elected at once.
  wherry::Status resign();
  /// Waits, at most about so long, until nobody is elected: reads alone, which cost etcd no write.
  wherry::Status watch(std::chrono::milliseconds time, const std::atomic<bool>& stop);
  /// Until when, by boot_ns(), nobody else can be elected: for Keeper::set_mandate. 0: not elected.
  [[nodiscard]] std::uint64_t mandate_ns() const noexcept;
  /// Who is elected, host:port; empty: nobody.
  Result<std::string> leader();

  /// Where the elected keeps its configuration: replaced only if this is still elected, and nobody replaced what this
  /// one read or wrote last. This election must outlive it.
  std::unique_ptr<ConfigurationStore> store();

  struct Impl;

 private:
  explicit EtcdElection(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry::kv
