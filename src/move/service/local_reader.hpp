// SPDX-License-Identifier: Apache-2.0
// Frames for processes on the same machine, without a copy: the processes map the arena read-only, and get the offset
// of each frame.
//
// A Unix stream socket (mode 0600) carries newline-delimited JSON both ways, with one reply per request, in order. A
// request is at most 64 KiB.
//   {"token": "...", "version": 1}                  first, within 5 s
//                                                   -> {"ok":true,"arena_bytes":N}, with the arena's read-only
//                                                   descriptor in an SCM_RIGHTS message
//   {"op":"list"[,"stream":"s"]}                    -> {"ok":true,"streams":[...]} (stream_json.hpp); of one or all
//   {"op":"next","stream":s,"sequence":n,"timeout_ms":t}
//       -> {"ok":true,"what":"frame","lease":id,"sequence","tag","rows","offset" (in the arena),
//           "bytes" (of the IPC stream),"skipped","transfer_ns","source_bytes","generation"},
//           or "what": "end" | "timeout" | "no_stream". If the request has the "generation" of an earlier frame, and
//           the name now belongs to another stream: "end".
//   {"op":"release","lease":id}                     -> {"ok":true}; the frame counts as read
// From the reply on, the connection holds the frame until the release or its own end (then the frame does not count as
// read). Errors: {"ok":false,"error":"..."}, and "code":"resource_exhausted" if readers hold too much. A wrong token or
// version, a line that is too long, or silence before the token ends the connection. Other errors do not.
#pragma once

#include <memory>
#include <string>

#include "fabric/arena.hpp"
#include "move/service/catalogue.hpp"

namespace wherry::move {

inline constexpr std::size_t kMaxLocalReaders = 64;   ///< connections that have shown the token; one thread each
inline constexpr std::size_t kMaxSilentReaders = 64;  ///< connections that have not; then one goes

class LocalReaderService {
 public:
  /// Serves until stop(). Replaces a socket file without a listener. The catalogue must outlive the service.
  /// kInvalidArgument: an empty token, or a name that is too long (kMaxSocketName); kAlreadyExists: a process listens
  /// there, or the file is not a socket; kUnavailable.
  static Result<std::unique_ptr<LocalReaderService>> start(Catalogue& catalogue, std::shared_ptr<Arena> arena,
                                                           const std::string& socket_path, const std::string& token);
  ~LocalReaderService();
  LocalReaderService(const LocalReaderService&) = delete;
  LocalReaderService& operator=(const LocalReaderService&) = delete;

  /// Ends all connections within about 100 ms, joins their threads and removes the socket file. Idempotent; not from
  /// two threads at once.
  void stop();
  [[nodiscard]] std::size_t connections() const;

 private:
  struct Impl;
  explicit LocalReaderService(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry::move
