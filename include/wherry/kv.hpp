// SPDX-License-Identifier: Apache-2.0
// kv: a client of the replicated key-value store (docs/design/kv-protocol.md). Keys are 64-bit numbers, values up to
// 1 KiB. Every key is linearizable. Every live node has each acknowledged write. A write takes effect at most once.
//
//   auto store = wherry::kv::Client::connect({.cluster = "lab.toml"});
//   auto written = store->put(7, bytes);                       // blocks until the leader has answered
//   auto read = store->get(7);
//   if (read.outcome == wherry::kv::Outcome::kOk) use(read.value);
//   auto changed = store->put_if(7, read.version, other);      // kVersionMismatch if somebody was faster
//
// Many operations at once: post_get(), post_put(), ..., then wait() and poll().
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wherry/status.hpp"

namespace wherry::kv {

/// How an operation ended. Each outcome is certain, except kUnknown and kLaneTaken.
enum class Outcome : std::uint8_t {
  kOk = 0,
  kNoSuchKey = 1,
  kVersionMismatch = 2,  ///< `version` is the one found; 0: the key does not exist
  kTableFull = 3,        ///< no room in the key's bucket; other keys are not affected
  kTooLong = 4,          ///< a value of more than 1024 bytes
  kBadFrame = 5,         ///< a node does not understand this client
  kBadLane = 6,          ///< the nodes keep no record for this client's lanes, or it connected without any
  kUnknown = 7,          ///< the deadline passed; the write may have taken effect, or may still do so, once
  kNoAnswer = 8,         ///< the deadline passed and nothing was changed: a read, or a write without a possible effect
  kLaneTaken = 9,        ///< another client writes through this client's lane; the write may have taken effect, once
  kForked = 10,          ///< this process is a fork of the one that connected, and nothing was sent
};
/// The name of the outcome, such as "ok" or "no such key"; static text.
WHERRY_API std::string_view to_string(Outcome outcome) noexcept;
/// Returns kNotFound, kFailedPrecondition (version mismatch, forked), kResourceExhausted (table full), kUnavailable (no
/// answer), kDeadlineExceeded (unknown), kUnsupported (bad frame), kCancelled (lane taken) or kInvalidArgument.
WHERRY_API StatusCode status_code(Outcome outcome) noexcept;

/// The node that is asked first. Any serving node can answer.
enum class ReadFrom : std::uint8_t {
  kNearest,     ///< the node that answers a ping first; measured again every second
  kRoundRobin,  ///< each node in turn
  kLeader,      ///< the key's leader, which never has to pass a read on
};

/// What a blocking call does until an answer arrives.
enum class Waiting : std::uint8_t {
  kBlock,  ///< sleeps until an answer arrives
  kSpin,   ///< polls all the time: some microseconds faster, but uses a whole core
  kYield,  ///< as kSpin, but yields the core after each poll; for machines with fewer cores than spinning threads
};

/// The cluster's address, and how a client asks the cluster.
struct ClientOptions {
  /// The cluster file. Its nodes and keepers are used if the next two members are empty.
  std::string cluster = {};
  /// "host:port" of the keepers; the elected keeper answers. It grants this client its lanes, and names the nodes if
  /// the cluster file does not.
  std::vector<std::string> keepers = {};
  /// "host:port" or "host" (port 19286), IPv4, in the order of the nodes' numbers in the cluster; at most 8. "": the
  /// cluster has no node of that number.
  std::vector<std::string> nodes = {};
  /// For static lanes, without a keeper: the first of `lanes` lanes that belong to this client alone, as long as it
  /// lives. Static lanes have numbers below the cluster's `static_lanes`.
  std::optional<std::uint16_t> first_lane = std::nullopt;
  /// The number of writes that may be in flight at once. 0: this client only reads, and needs no keeper.
  std::uint32_t lanes = 64;
  /// Operations in flight, or finished and not yet polled: a power of two, up to 65536.
  std::uint32_t operations = 1024;
  /// The deadline of calls that pass none.
  std::chrono::nanoseconds deadline = std::chrono::seconds(5);
  /// A request without an answer is sent again after this time, then after `timeout_factor` times as long, ...
  std::chrono::nanoseconds first_timeout = std::chrono::milliseconds(2);
  std::uint32_t timeout_factor = 2;  ///< see first_timeout
  /// The longest time between two attempts of a request.
  std::chrono::nanoseconds timeout_cap = std::chrono::milliseconds(100);
  /// How long connect() waits for a serving node.
  std::chrono::nanoseconds connect_timeout = std::chrono::seconds(5);
  ReadFrom reads = ReadFrom::kNearest;  ///< which node answers reads
  Waiting waiting = Waiting::kBlock;    ///< of blocking calls and of wait()
  /// For AF_XDP, which bypasses the kernel: "eth0", an interface that reaches all nodes; "eth0:3", its queue 3, for
  /// this client alone; "eth0,eth1", interfaces with the same address that lead to different nodes. Needs root or
  /// CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF. Empty: a UDP socket.
  std::string xdp = {};
  /// Seed of the random pauses and tags. 0: a random seed.
  std::uint64_t seed = 0;
};

/// The outcome of an operation. `value` is set by a read that ended with kOk.
struct Reply {
  Outcome outcome = Outcome::kNoAnswer;  ///< how it ended
  std::uint32_t version = 0;             ///< the version read or written; for kVersionMismatch, the version found
  std::vector<std::byte> value;          ///< the value read; owned by the caller
  /// The outcome as a Status: its status_code() and a message.
  [[nodiscard]] WHERRY_API wherry::Status status() const;
};

/// The result of a posted operation.
struct Completion {
  std::uint64_t tag = 0;                 ///< as posted
  Outcome outcome = Outcome::kNoAnswer;  ///< how it ended
  std::uint32_t version = 0;             ///< the version read or written; for kVersionMismatch, the version found
  std::span<const std::byte> value;      ///< valid until the next poll()
};

/// Counts since connect().
struct ClientStatistics {
  std::uint64_t sent = 0;         ///< frames, of all kinds
  std::uint64_t timeouts = 0;     ///< requests sent again because no answer came
  std::uint64_t redirects = 0;    ///< requests sent again at once, to another node or in another epoch
  std::uint64_t pauses = 0;       ///< requests that waited because a node was busy
  std::uint64_t ignored = 0;      ///< frames that answer no open request: late, repeated, or not from a node
  std::uint64_t unknown = 0;      ///< writes whose outcome is not known
  std::uint64_t lanes_taken = 0;  ///< lanes that another client was found to use

  ClientStatistics& operator+=(const ClientStatistics& other) noexcept {
    sent += other.sent;
    timeouts += other.timeouts;
    redirects += other.redirects;
    pauses += other.pauses;
    ignored += other.ignored;
    unknown += other.unknown;
    lanes_taken += other.lanes_taken;
    return *this;
  }
};

/// One thread at a time may use a client. In a child of fork() of the process that connected it, operations end with
/// Outcome::kForked, post_*() return kFailedPrecondition, poll() finds nothing and the destructor only closes.
class WHERRY_API Client {
 public:
  /// Blocks until a serving node has answered and a keeper has granted the lanes. kInvalidArgument: wrong options or
  /// cluster file, or the keeper belongs to another cluster. kUnavailable: no node serves, or no keeper grants lanes.
  /// kResourceExhausted: too few lanes are free, or (at once) the cluster has fewer lanes.
  static Result<Client> connect(const ClientOptions& options);
  Client(Client&& other) noexcept;
  Client& operator=(Client&& other) noexcept;
  ~Client();  ///< Does not wait for operations in flight: their writes may still take effect, once.

  // Each call blocks until its operation has ended, at most `deadline` (zero: the deadline of the options). Earlier
  // posted operations continue during the call.
  /// Reads the key.
  [[nodiscard]] Reply get(std::uint64_t key, std::chrono::nanoseconds deadline = {});
  /// Writes the key, whether it exists or not. `value` is read during the call.
  [[nodiscard]] Reply put(std::uint64_t key, std::span<const std::byte> value, std::chrono::nanoseconds deadline = {});
  /// Writes only if the key has this version. 0: only if the key does not exist.
  [[nodiscard]] Reply put_if(std::uint64_t key, std::uint32_t version, std::span<const std::byte> value,
                             std::chrono::nanoseconds deadline = {});
  /// Deletes the key. kNoSuchKey: the key does not exist.
  [[nodiscard]] Reply remove(std::uint64_t key, std::chrono::nanoseconds deadline = {});
  /// As remove(), but only if the key has this version.
  [[nodiscard]] Reply remove_if(std::uint64_t key, std::uint32_t version, std::chrono::nanoseconds deadline = {});

  // Each call copies the value and returns at once; poll() reports the outcome with `tag`. Operations are sent
  // together, at the next poll(), wait() or flush(). kWouldBlock: all allowed operations, or all lanes, are in use.
  /// As get().
  [[nodiscard]] StatusCode post_get(std::uint64_t key, std::uint64_t tag, std::chrono::nanoseconds deadline = {});
  /// As put().
  [[nodiscard]] StatusCode post_put(std::uint64_t key, std::span<const std::byte> value, std::uint64_t tag,
                                    std::chrono::nanoseconds deadline = {});
  /// As put_if().
  [[nodiscard]] StatusCode post_put_if(std::uint64_t key, std::uint32_t version, std::span<const std::byte> value,
                                       std::uint64_t tag, std::chrono::nanoseconds deadline = {});
  /// As remove().
  [[nodiscard]] StatusCode post_remove(std::uint64_t key, std::uint64_t tag, std::chrono::nanoseconds deadline = {});
  /// As remove_if().
  [[nodiscard]] StatusCode post_remove_if(std::uint64_t key, std::uint32_t version, std::uint64_t tag,
                                          std::chrono::nanoseconds deadline = {});

  /// Returns up to out.size() completions, and their number. Receives and sends; never blocks. An operation counts
  /// against `operations` until poll() returns it. Its value stays valid until the next poll().
  std::size_t poll(std::span<Completion> out);
  /// Blocks until there is something to poll. False if `timeout` is over; false at once in a child of fork().
  [[nodiscard]] bool wait(std::chrono::nanoseconds timeout);
  /// For the application's own event loop (epoll, poll): readable when poll() has something to receive. Returns -1 in a
  /// child of fork().
  [[nodiscard]] int descriptor() const noexcept;
  /// Time until poll() must be called even without input, because it repeats requests and renews lanes. Before such a
  /// pause, flush() what was posted. In a child of fork(): no such time.
  [[nodiscard]] std::chrono::nanoseconds due() const noexcept;
  /// True if this process is a fork of the one that connected.
  [[nodiscard]] bool forked() const noexcept;
  /// Sends all posted operations now.
  void flush();

  /// Number of operations that were posted and not yet polled.
  [[nodiscard]] std::size_t in_flight() const noexcept;
  /// A copy of the counts.
  [[nodiscard]] ClientStatistics statistics() const noexcept;

 private:
  struct Impl;
  explicit Client(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry::kv
