// SPDX-License-Identifier: Apache-2.0
// A keeper elected, and its configuration kept, in etcd, through etcd's JSON gateway (v3). Calls block for at most
// `timeout` each; the keeper's leases are counted by clocks and do not mind.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "kv/keeper/keeper_server.hpp"

namespace wherry::kv {

struct EtcdOptions {
  std::string url;     ///< http://host:port
  std::string prefix;  ///< of the keys: <prefix>/keeper and <prefix>/configuration
  std::string self;    ///< host:port of this keeper, for the nodes to find
  std::chrono::seconds lease{5};
  std::chrono::milliseconds timeout{1000};
};

/// A candidate. One thread at a time.
class EtcdElection {
 public:
  static Result<std::unique_ptr<EtcdElection>> open(EtcdOptions options);
  ~EtcdElection();

  /// Tries once. kWouldBlock: another keeper is elected.
  wherry::Status campaign();
  /// Keeps it so; call it several times a lease. kFailedPrecondition: it is over.
  wherry::Status keep_alive();
  /// Lets another one be elected at once.
  wherry::Status resign();
  /// Until when, by now_ns(), nobody else can be elected: for Keeper::set_mandate. 0: not elected.
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
