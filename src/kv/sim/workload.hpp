// SPDX-License-Identifier: Apache-2.0
// Clients that make random requests for a few keys, and record the outcomes.
#pragma once

#include <array>
#include <map>
#include <vector>

#include "kv/sim/history.hpp"
#include "kv/sim/network.hpp"

namespace wherry::kv::sim {

/// A client of the store, of any kind. Each submitted ticket is completed once, or never.
class KvPort {
 public:
  /// The value is borrowed for the call. Must not complete the ticket within the call.
  virtual void submit(std::uint64_t ticket, const Request& request) = 0;

 protected:
  KvPort() = default;
  KvPort(const KvPort&) = default;
  KvPort& operator=(const KvPort&) = default;
  ~KvPort() = default;
};

/// Receives the outcome of a ticket from a KvPort. It may submit the next request within the call.
class KvSink {
 public:
  virtual void complete(Cycles now, std::uint64_t ticket, const Answer& answer) = 0;

 protected:
  KvSink() = default;
  KvSink(const KvSink&) = default;
  KvSink& operator=(const KvSink&) = default;
  ~KvSink() = default;
};

struct WorkloadOptions {
  std::uint32_t operations = 100;  ///< of each client
  std::uint32_t outstanding = 1;   ///< at once, of each client
  std::uint32_t bucket_keys = 5;   ///< that share a bucket: with more than four the table is full now and then
  std::uint32_t near_keys = 0;     ///< whose first bucket is another candidate of one of those
  std::uint32_t other_keys = 2;    ///< anywhere
  unsigned bucket_bits = 8;        ///< of the table: which keys share a bucket
  Cycles think = 5000;             ///< up to so much between an answer and the next request; 20 us
  std::array<std::uint32_t, 5> weights{40, 25, 20, 8, 7};  ///< of Verb's values
};

/// Different keys with the same first bucket in a table of 2^bits buckets. The first one is at or after `from`.
[[nodiscard]] std::vector<std::uint64_t> keys_of_one_bucket(std::size_t count, unsigned bits, std::uint64_t from = 1);

class Workload final : public KvSink {
 public:
  Workload(Network& network, std::uint64_t seed, const WorkloadOptions& options);
  Workload(const Workload&) = delete;  // the network has its address
  Workload& operator=(const Workload&) = delete;
  ~Workload() = default;

  /// Adds one client. The port must outlive the network's events.
  void add_client(KvPort& port);
  /// Starts the workload; the network's events continue it.
  void start();
  /// True if every operation was answered.
  [[nodiscard]] bool done() const noexcept { return answered_ == clients_.size() * options_.operations; }
  [[nodiscard]] const History& history() const noexcept { return history_; }
  [[nodiscard]] const std::vector<std::uint64_t>& keys() const noexcept { return keys_; }

  /// Tickets are unique among all clients.
  void complete(Cycles now, std::uint64_t ticket, const Answer& answer) override;

 private:
  struct Client {
    KvPort* port;
    std::uint32_t begun = 0;
    std::map<std::uint64_t, std::uint32_t> versions;  ///< by key, as last seen
  };
  void think(std::uint32_t client);
  void next(Cycles now, std::uint32_t client);
  [[nodiscard]] Verb choose();
  /// A value that is unique to client and number if its length allows it.
  ByteView make_value(std::uint32_t client, std::uint32_t number);

  Network& network_;
  Random random_;
  WorkloadOptions options_;
  std::vector<std::uint64_t> keys_;
  std::vector<Client> clients_;
  struct Ticket {
    std::uint32_t client;
    Verb verb;
    std::uint64_t key;
  };
  std::vector<Ticket> tickets_;
  History history_;
  std::uint64_t answered_ = 0;
  std::array<std::byte, kMaxValueBytes> value_{};
};

}  // namespace wherry::kv::sim
