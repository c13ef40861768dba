// SPDX-License-Identifier: Apache-2.0
// The listeners of one thread, and their connections until these have proven that they know a secret.
//
// - A connection has 5 s for its handshake. Its messages may only be as large as the protocol needs.
// - All Doorways of the process together may have 1024 unproven connections, but at most a quarter of the process's
//   file descriptors (RLIMIT_NOFILE). Each may always have 16. Beyond that, or if the process has no free descriptor,
//   it closes one from the source that has most of them (Crowd).
// - TLS handshakes cost milliseconds of CPU time, also for strangers. So they may use a tenth of the thread's time.
//   When that is used up, the listener's door is shut for a while. A door is also shut for 100 ms if no connection can
//   be accepted or closed.
// - It never waits. One call of step() accepts a bounded number of connections. Silent connections cost nothing.
// - If there is no memory for a connection, it is closed. The other connections and the Doorway continue.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>

#include "base/byte_stream.hpp"
#include "base/crowd.hpp"
#include "base/fd.hpp"
#include "base/time_share.hpp"
#include "base/unix_socket.hpp"
#include "fabric/stream_auth.hpp"
#include "fabric/tls.hpp"
#include "wherry/status.hpp"

namespace wherry::fabric {

/// One thread at a time.
class Doorway {
 public:
  /// A connection that has proven that it knows the secret.
  struct Proven {
    std::unique_ptr<ByteStream> stream;
    std::optional<PeerCredentials> credentials;  ///< of a Unix socket
    Purpose purpose = Purpose::kControl;
    std::uint64_t key = 0, from = 0;  ///< StreamHandshake
  };
  /// These functions are called inside step(), tend() and make_way(), and must not call those again. An exception ends
  /// only the connection concerned.
  struct Host {
    StreamHandshake::Find secret;
    std::function<void(Proven)> proven;
    std::function<void(const Status&)> turned_away;
    std::function<void(int error)> cannot_accept;  ///< strangers wait in the kernel's queue: an errno
    std::function<void(int socket)> accepted;      ///< socket options other than a stream's; may be empty
  };
  static Result<std::unique_ptr<Doorway>> create(Host host);
  ~Doorway();
  Doorway(const Doorway&) = delete;
  Doorway& operator=(const Doorway&) = delete;

  /// The listener must outlive the Doorway.
  Status add(const Fd& listener, std::shared_ptr<const Tls> tls = nullptr);
  /// A descriptor that is readable when step() has something to do.
  [[nodiscard]] int fd() const noexcept { return open_.get(); }
  /// Accepts connections, and advances the handshakes of connections that have sent something.
  void step() noexcept;
  /// Ends handshakes that take too long, and reopens doors that were shut long enough. `now`: now_ns().
  void tend(std::uint64_t now) noexcept;
  /// Whether tend() must be called again.
  [[nodiscard]] bool busy() const noexcept { return !arrivals_.empty() || shut_ != 0; }
  /// Closes one unproven connection, if any, because the process needs its descriptor.
  bool make_way(const char* why) noexcept;
  [[nodiscard]] std::size_t unproven() const noexcept { return arrivals_.size(); }

 private:
  /// A door has an epoll instance with its listener and its unproven connections, and that instance is in open_. So one
  /// epoll call shuts the door for all of them.
  struct Door {
    Fd events;
    const Fd* listener = nullptr;
    std::shared_ptr<const Tls> tls;
    bool local = false;
    bool open = true;
    std::uint64_t opens_at = 0;
  };
  struct Arrival {
    Door* door;
    Crowd::Source source;
    std::unique_ptr<ByteStream> stream;
    std::optional<PeerCredentials> credentials;
    StreamHandshake handshake;
    std::uint64_t since;
    std::uint32_t watched;
  };
  using Where = std::list<Arrival>::iterator;

  explicit Doorway(Host host) : host_(std::move(host)) {}
  void shut(Door& door, std::uint64_t until) noexcept;
  bool charge(Door& door, std::uint64_t since) noexcept;
  void answer(Door& door) noexcept;
  void accept_some(Door& door) noexcept;
  Status enter(Door& door, Fd socket);
  void advance(Where arrival) noexcept;
  void forget(Where arrival) noexcept;
  void turn_away(StatusCode code, const char* why) noexcept;

  Host host_;
  Fd open_;  ///< epoll: the doors
  std::list<Door> doors_;
  std::list<Arrival> arrivals_;  ///< oldest first
  std::unordered_map<int, Where> by_socket_;
  Crowd crowd_;
  TimeShare handshake_time_;
  std::size_t shut_ = 0;  ///< doors
};

}  // namespace wherry::fabric
