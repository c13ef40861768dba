// SPDX-License-Identifier: Apache-2.0 kv: a client of the replicated key-value store (docs/design/kv-protocol.md). Keys
// are 64-bit numbers, values up to 1024 bytes. Every key is linearizable; every live node has each acknowledged write;
// a write takes effect at most once.
//
//   auto store = wherry::kv::Client::connect({.cluster = "lab.toml"});
//   auto written = store->put(7, bytes);                       // blocks until the leader has answered
//   auto read = store->get(7);
//   if (read.outcome == wherry::kv::Outcome::kOk) use(read.value);
//   auto changed = store->put_if(7, read.version, other);      // kVersionMismatch if somebody was faster
//
// Many at once: post_get(), post_put(), ..., then wait() and poll().
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

/// How an operation ended. All but kUnknown and kLaneTaken are certain.
enum class Outcome : std::uint8_t {
  kOk = 0,
  kNoSuchKey = 1,
  kVersionMismatch = 2,  ///< `version` is the one found; 0: there is no such key
  kTableFull = 3,        ///< no room in the key's bucket; other keys go on
  kTooLong = 4,          ///< a value of more than 1024 bytes
  kBadFrame = 5,         ///< a node does not understand this client
  kBadLane = 6,          ///< the nodes keep no record for this client's lanes, or it connected without any
  kUnknown = 7,          ///< the deadline passed: the write may have taken effect, or still take effect, once
  kNoAnswer = 8,         ///< the deadline passed, and nothing was changed: a read, or a write that was never sent
  kLaneTaken = 9,        ///< another client writes through this one's lane: the write may have taken effect, once
  kForked = 10,          ///< this process is a fork of the one that connected, and nothing was sent
};
/// "ok", "no such key", ...; static text.
WHERRY_API std::string_view to_string(Outcome outcome) noexcept;
/// kNotFound, kFailedPrecondition (version mismatch, forked), kResourceExhausted (table full), kDeadlineExceeded
/// (unknown), kUnavailable (no answer), kUnsupported (bad frame), kCancelled (lane taken), kInvalidArgument.
WHERRY_API StatusCode status_code(Outcome outcome) noexcept;

/// Which node is asked first. Any node that serves can answer.
enum class ReadFrom : std::uint8_t {
  kNearest,     ///< the one that answers a ping first; asked anew every second
  kRoundRobin,  ///< each in turn
  kLeader,      ///< the key's leader, which never has to pass a read on
};

/// What a blocking call does until an answer arrives.
enum class Waiting : std::uint8_t {
  kBlock,  ///< sleeps until an answer arrives
  kSpin,   ///< asks without end: some microseconds faster, at the price of a core
  kYield,  ///< as kSpin, but others on its core run once it has asked: where there are fewer cores than who spins
};

/// Where the cluster is, and how a client asks it.
struct ClientOptions {
  /// The cluster file: it names the nodes and the keepers, unless the next two do.
  std::string cluster = {};
  /// "host:port" of the keepers, of which the one that is elected answers. It grants this client its lanes, and names
  /// the nodes if no cluster file does.
  std::vector<std::string> keepers = {};
  /// "host:port" or "host" (port 19286), IPv4, in the order of their numbers in the cluster: at most 8. "": no node of
  /// that number.
  std::vector<std::string> nodes = {};
  /// Static lanes, without a keeper: this one and the following ones belong to this client alone, as long as it lives.
  /// Of those below the cluster's `static_lanes`.
  std::optional<std::uint16_t> first_lane = std::nullopt;
  /// At most so many writes are in flight at once; 0: this client only reads, and needs no keeper.
  std::uint32_t lanes = 64;
  /// In flight, or finished and not yet polled: a power of two, up to 65536.
  std::uint32_t operations = 1024;
  /// For calls that name none.
  std::chrono::nanoseconds deadline = std::chrono::seconds(5);
  /// After so long without an answer a request is sent again, then after `timeout_factor` times as long, ...
  std::chrono::nanoseconds first_timeout = std::chrono::milliseconds(2);
  std::uint32_t timeout_factor = 2;  ///< see first_timeout
  /// The longest time until a request is sent again.
  std::chrono::nanoseconds timeout_cap = std::chrono::milliseconds(100);
  /// How long connect() waits for a serving node.
  std::chrono::nanoseconds connect_timeout = std::chrono::seconds(5);
  ReadFrom reads = ReadFrom::kNearest;  ///< which node answers reads
  Waiting waiting = Waiting::kBlock;    ///< of blocking calls and of wait()
  /// Past the kernel, with AF_XDP: an interface through which all nodes are reached, "eth0", or "eth0:3" for its queue
  /// 3, which is this client's alone; or several with the same address, "eth0,eth1", which lead to different nodes.
  /// Needs root or CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF. Empty: a UDP socket.
  std::string xdp = {};
  /// Of pauses and tags; 0: a random one.
  std::uint64_t seed = 0;
};

/// The outcome of an operation. `value`: of a read that ended kOk.
struct Reply {
  Outcome outcome = Outcome::kNoAnswer;  ///< how it ended
  std::uint32_t version = 0;             ///< read or written; of kVersionMismatch the one found
  std::vector<std::byte> value;          ///< the caller's
  /// The same as a Status: its status_code(), and a sentence.
  [[nodiscard]] WHERRY_API wherry::Status status() const;
};

/// The result of a posted operation.
struct Completion {
  std::uint64_t tag = 0;                 ///< as posted
  Outcome outcome = Outcome::kNoAnswer;  ///< how it ended
  std::uint32_t version = 0;             ///< read or written; of kVersionMismatch the one found
  std::span<const std::byte> value;      ///< until the next poll()
};

/// Counts since connect().
struct ClientStatistics {
  std::uint64_t sent = 0;         ///< frames, of all kinds
  std::uint64_t timeouts = 0;     ///< requests sent again because nobody answered
  std::uint64_t redirects = 0;    ///< requests sent again at once, to another node or in another epoch
  std::uint64_t pauses = 0;       ///< requests that waited because a node was busy
  std::uint64_t ignored = 0;      ///< frames that were no answer to anything: late, repeated, or not of a node
  std::uint64_t unknown = 0;      ///< writes whose end is not known
  std::uint64_t lanes_taken = 0;  ///< lanes that were found in another client's use

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

/// One thread at a time. A client belongs to the process that connected it: in a child of fork() operations end with
/// Outcome::kForked, post_*() return kFailedPrecondition, there is nothing to poll, and destruction only closes.
class WHERRY_API Client {
 public:
  /// Blocks until a node that serves has answered, and a keeper has granted the lanes. kInvalidArgument: the options,
  /// or the cluster file, or the keeper is another cluster's; kUnavailable: no node serves, or no keeper grants lanes;
  /// kResourceExhausted: too few are free, or (at once) the cluster does not have so many.
  static Result<Client> connect(const ClientOptions& options);
  Client(Client&& other) noexcept;
  Client& operator=(Client&& other) noexcept;
  ~Client();  ///< Whatever is in flight is given up: writes may still take effect, once.

  // Each blocks until the operation has ended, `deadline` at most (zero: that of the options). Operations that were
  // posted before go on meanwhile.
  /// Reads the key.
  [[nodiscard]] Reply get(std::uint64_t key, std::chrono::nanoseconds deadline = {});
  /// Writes the key, whether it is there or not. `value` is read during the call.
  [[nodiscard]] Reply put(std::uint64_t key, std::span<const std::byte> value, std::chrono::nanoseconds deadline = {});
  /// Writes only if the key has this version; 0: only if there is no such key.
  [[nodiscard]] Reply put_if(std::uint64_t key, std::uint32_t version, std::span<const std::byte> value,
                             std::chrono::nanoseconds deadline = {});
  /// kNoSuchKey if there is none.
  [[nodiscard]] Reply remove(std::uint64_t key, std::chrono::nanoseconds deadline = {});
  /// The same, only if the key has this version.
  [[nodiscard]] Reply remove_if(std::uint64_t key, std::uint32_t version, std::chrono::nanoseconds deadline = {});

  // Each returns at once; poll() tells the end, with this tag. The value is copied. It leaves with others, at the next
  // poll(), wait() or flush(). kWouldBlock: as many operations as the options allow, or all lanes are in use.
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

  /// Takes up to out.size() completions; how many. Receives and sends; never blocks. An operation counts against
  /// `operations` until it was polled, and its value is kept until the next poll().
  std::size_t poll(std::span<Completion> out);
  /// Blocks until there is something to poll, or `timeout` has passed: false. False at once in a child of fork().
  [[nodiscard]] bool wait(std::chrono::nanoseconds timeout);
  /// For an event loop of one's own (epoll, poll): readable when poll() has something to take in. -1 in a child of
  /// fork().
  [[nodiscard]] int descriptor() const noexcept;
  /// How long until poll() is due in any case, since requests are repeated and lanes are kept there. Until then what
  /// was posted must have been flushed. Never in a child of fork().
  [[nodiscard]] std::chrono::nanoseconds due() const noexcept;
  /// This process is a fork of the one that connected.
  [[nodiscard]] bool forked() const noexcept;
  /// Sends all posted operations now.
  void flush();

  /// Posted, and not polled.
  [[nodiscard]] std::size_t in_flight() const noexcept;
  /// A copy of the counts.
  [[nodiscard]] ClientStatistics statistics() const noexcept;

 private:
  struct Impl;
  explicit Client(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry::kv
