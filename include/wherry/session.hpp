// SPDX-License-Identifier: Apache-2.0
// A session: one application process and one agent. Memory, regions and the streams of services belong to it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "wherry/status.hpp"
#include "wherry/transport.hpp"

namespace wherry {

/// Whether the agent reads host memory without the host's help. Measured when the session opens: the agent gets from
/// the client's memory while the client sleeps in a system call and makes no progress call.
enum class Verdict : std::uint8_t { kEmulated = 0, kOneSided = 1 };
/// The verdict's name: "emulated" or "one_sided"; static text.
WHERRY_API std::string_view to_string(Verdict verdict) noexcept;

/// An agent that the session starts for itself (SessionOptions::agent "embedded"). It ends with this process.
struct EmbeddedAgent {
  std::size_t budget_bytes = std::size_t{1} << 30;  ///< bytes of memory for frames
  int core = -1;                       ///< -1: the highest core that the caller may use, except the one it runs on
  bool flight = true;                  ///< serve Arrow Flight on a free loopback port
  std::string program;                 ///< path of wherryd; empty: beside the library, then PATH
  std::vector<std::string> arguments;  ///< further command line arguments of wherryd
};

/// PEM files for TLS with an agent on another machine. All are optional. If empty: $WHERRY_TLS_CA,
/// $WHERRY_TLS_CERTIFICATE, $WHERRY_TLS_KEY.
struct TlsOptions {
  std::string ca;           ///< the authority that must have issued the agent's certificate; if still empty: no TLS
  std::string certificate;  ///< this client's certificate, if the agent requires one; needs `key`
  std::string key;          ///< the private key of `certificate`
};

/// The agent that a session uses, and how the session reaches it.
struct SessionOptions {
  /// "auto": WHERRY_AGENT if set, else the agent of the default session file; "embedded" if that file does not exist or
  /// its agent is not running. A file that exists but cannot be used (others may read it, another version) is an error.
  /// "embedded": start an agent for this session only, which ends with this process. A path: the session file that an
  /// agent wrote; on the agent's machine the session then connects through its Unix socket. "host:port": that agent,
  /// over TCP, with `token`.
  std::string agent = "auto";
  std::string token;  ///< the agent's secret, for "host:port"; a session file contains its own
  std::string name;   ///< shown in the agent's status and logs; empty: the program's name
  /// The transport to the agent. kUnsupported if the named one is not available.
  Transport transport = Transport::kAuto;
  /// The longest time for open(), including the start of an embedded agent.
  std::chrono::milliseconds connect_timeout{10'000};
  /// The most offloads in flight; one more would block. A power of two, 1 to 4096.
  std::uint32_t max_tickets = 256;
  EmbeddedAgent embedded;  ///< used if `agent` is "embedded", or "auto" finds no agent
  TlsOptions tls;          ///< used with "host:port"
};

/// The agent of a session, and the result of the one-sidedness self-test.
struct SessionInfo {
  std::string agent_version;               ///< "0.1.0"
  std::string transports;                  ///< UCX's names, on the agent's side: "posix/memory cma/memory"
  Verdict heap = Verdict::kEmulated;       ///< for a get from ordinary heap memory
  Verdict allocated = Verdict::kEmulated;  ///< for a get from memory that Wherry allocated
  bool mapped = false;                     ///< the agent maps memory that Wherry allocated: plain loads instead of gets
  int agent_pid = 0;                       ///< process id, on the agent's machine
  std::string session_file;                ///< the agent's session file, if it was used; readers can use it
  std::string flight_uri;                  ///< "grpc://127.0.0.1:12345", or empty
  /// One line: "agent 0.1.0 (pid 12), cma/memory posix/memory, heap one_sided, allocated one_sided, mapped"
  [[nodiscard]] WHERRY_API std::string to_string() const;
};

namespace detail {
class SessionCore;
}

/// Memory that Wherry allocated: registered, page-aligned, mapped by an agent on the same machine. The destructor waits
/// for transfers that still read it, at most ten seconds and only while the agent lives. After that it warns on
/// standard error, and the session frees the memory when they are done. Move-only; must not outlive its session.
class WHERRY_API Memory {
 public:
  Memory() noexcept = default;
  Memory(Memory&&) noexcept;
  Memory& operator=(Memory&&) noexcept;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  /// All of it, as bytes. Lives as long as this object.
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {data_, size_}; }
  /// All of it, as whole T. Trailing bytes that are too few for a T are left out.
  template <typename T>
  [[nodiscard]] std::span<T> as() const noexcept {
    return {reinterpret_cast<T*>(data_), size_ / sizeof(T)};
  }

 private:
  friend class Session;
  detail::SessionCore* core_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::uint32_t region_ = 0;
};

/// Ordinary memory that the application owns, registered for transfers. The destructor unregisters it after waiting for
/// transfers like Memory's destructor (unregister() reports such transfers instead). If the memory is then changed or
/// released before their tickets are ready, those transfers deliver wrong data. Move-only; must not outlive its
/// session.
class WHERRY_API Region {
 public:
  Region() noexcept = default;
  Region(Region&&) noexcept;
  Region& operator=(Region&&) noexcept;
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region();

  /// Returns kFailedPrecondition while tickets that read the region are in flight; the region then stays registered.
  Status unregister();
  /// Its number in the session; 0: not registered.
  [[nodiscard]] std::uint32_t id() const noexcept { return region_; }

 private:
  friend class Session;
  detail::SessionCore* core_ = nullptr;
  std::uint32_t region_ = 0;
};

/// One thread at a time may use a session and its objects; any thread may call Ticket::ready(). A session belongs to
/// the process that opened it. In a child of fork(), its calls fail with kFailedPrecondition and destructors only close
/// descriptors; the parent is not affected. The child must open its own session. Memory from allocate() is shared with
/// the child: the parent sees the child's writes.
class WHERRY_API Session {
 public:
  /// Blocks until the agent has answered and the one-sidedness self-test is done (milliseconds), at most
  /// options.connect_timeout.
  static Result<Session> open(const SessionOptions& options = {});
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  /// Closes the session: waits briefly for tickets in flight, then leaves. An embedded agent drains and exits.
  ~Session();

  /// The agent and the self-test's results. Lives as long as the session.
  [[nodiscard]] const SessionInfo& info() const noexcept;

  /// Page-aligned, zeroed, registered memory for `bytes`. Touches every page, so offloads cause no page faults.
  Result<Memory> allocate(std::size_t bytes);
  /// Registers [data, data + bytes): offloads of memory in this range need no further registration. The memory must
  /// stay mapped until the region is unregistered.
  Result<Region> register_memory(const void* data, std::size_t bytes);

  /// Number of tickets that are posted and not completed.
  [[nodiscard]] std::size_t in_flight() const noexcept;
  /// Waits until nothing is in flight. Returns the first error of a ticket without a wait(), or kDeadlineExceeded.
  Status drain(std::chrono::nanoseconds timeout);
  /// Leaves the agent before the destructor does. Waits for offloads in flight as drain() does, cancels the remaining
  /// ones after `timeout`, and waits for an embedded agent to exit. Returns drain()'s result. Later calls on the
  /// session and its streams fail with kFailedPrecondition. Outcomes of tickets stay known; memory stays readable and
  /// writable. Idempotent.
  Status close(std::chrono::nanoseconds timeout = std::chrono::seconds(10));

  /// For the library's own use.
  [[nodiscard]] detail::SessionCore* core() const noexcept { return core_.get(); }

 private:
  explicit Session(std::unique_ptr<detail::SessionCore> core) noexcept;
  std::unique_ptr<detail::SessionCore> core_;
};

}  // namespace wherry
