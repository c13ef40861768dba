// SPDX-License-Identifier: Apache-2.0
// Elects a keeper, and stores its configuration, in etcd, through etcd's JSON gateway (v3). A call may block for
// `timeout` for each endpoint, so it needs its own thread: run() uses one, the keeper's store another. The thread that
// grants leases calls only mandate_ns() and elected(), which never wait.
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

/// A candidate. Threads: one at a time for {campaign, keep_alive, resign, watch, leader, run}, and one at a time for a
/// store's calls. Any thread may call the rest.
class EtcdElection {
 public:
  static Result<std::unique_ptr<EtcdElection>> open(EtcdOptions options);
  ~EtcdElection();

  /// Stands for election and keeps the office. While another keeper is elected, it watches that keeper. At `stop` it
  /// resigns and returns.
  void run(const std::atomic<bool>& stop);
  /// Tells run() that the present keeper cannot store its configuration and must lose its office.
  void step_down() noexcept;
  /// The number of the election that this keeper won; 0: it is not elected.
  [[nodiscard]] std::int64_t elected() const noexcept;

  /// Tries once to be elected. kWouldBlock: another keeper is elected.
  wherry::Status campaign();
  /// Renews the election; call it several times per lease. kFailedPrecondition: the election has ended.
  wherry::Status keep_alive();
  /// Gives up the election, so that another keeper can be elected at once.
  wherry::Status resign();
  /// Waits, at most about `time`, until no keeper is elected. This call only reads, so etcd does not write.
  wherry::Status watch(std::chrono::milliseconds time, const std::atomic<bool>& stop);
  /// The time, by boot_ns(), until which no other keeper can be elected. For Keeper::set_mandate. 0: not elected.
  [[nodiscard]] std::uint64_t mandate_ns() const noexcept;
  /// The elected keeper as host:port; empty if none is elected.
  Result<std::string> leader();

  /// A store for the elected keeper's configuration. The value is replaced only if this keeper is still elected and is
  /// the last one that has read or written the value. This election must outlive the store.
  std::unique_ptr<ConfigurationStore> store();

  struct Impl;

 private:
  explicit EtcdElection(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry::kv
