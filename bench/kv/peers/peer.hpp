// SPDX-License-Identifier: Apache-2.0
// The fastest client of a store that we can make: one connection, no library. Used for other projects' stores, and for
// reads of Wherry's where servers are compared.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kv/load.hpp"
#include "kv/peers/tcp_stream.hpp"

namespace wherry::kv::bench {

class Peer {
 public:
  Peer() = default;
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  virtual ~Peer() = default;

  /// `tag` comes back from poll() when it has ended. Leaves at the next flush().
  virtual void read(std::uint32_t tag, std::uint64_t key) = 0;
  /// The write ends after a follower has it, too.
  virtual void write(std::uint32_t tag, std::uint64_t key, ByteView value) = 0;
  [[nodiscard]] virtual wherry::Status flush() = 0;
  /// Adds the tags of the operations that have ended. Never blocks. Returns an error if an operation failed.
  [[nodiscard]] virtual wherry::Status poll(std::vector<std::uint32_t>& ended) = 0;
  virtual void wait(Idle how) const noexcept = 0;
};

/// Redis: GET; SET, and one WAIT 1 0 for all writes of a flush.
Result<std::unique_ptr<Peer>> connect_redis(const std::string& at, std::uint32_t value_bytes);
/// etcd version 3: Put and linearizable Range, by gRPC. At most kEtcdInFlight operations at once.
Result<std::unique_ptr<Peer>> connect_etcd(const std::string& at, std::uint32_t value_bytes);
inline constexpr unsigned kEtcdInFlight = 32;

/// A kv node of Wherry, for reads alone.
Result<std::unique_ptr<Peer>> connect_wherry(const std::string& at, std::uint32_t value_bytes);

struct PeerLoad {
  Verb verb = Verb::read;
  unsigned depth = 1;
  Idle idle = Idle::spin;
  double seconds = 3, warm_up = 0.3;
  std::uint32_t value_bytes = 64;
  std::uint64_t keys = 10'000, seed = 1;
};

/// Writes every key once.
wherry::Status fill(Peer& peer, const PeerLoad& options);
/// Like load() for our client: blocks for warm_up + seconds, and counts operations that began after the warm-up.
Result<VerbResult> load(Peer& peer, const PeerLoad& options);

}  // namespace wherry::kv::bench
