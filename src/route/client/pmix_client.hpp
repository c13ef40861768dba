// SPDX-License-Identifier: Apache-2.0
// This process as a client of its PMIx server. One object exists, from the first start of a runtime to the end of the
// process.
//
// - Threads: one at a time, except for health(). PMIx's calls block, and some servers ignore their time limits. So
//   another thread makes the calls. A call that takes too long is left behind, and all later calls fail.
// - The end: exit(0) tells the server that this rank is done. Any other status aborts the job, except if the program
//   itself had initialised PMIx, for example through its MPI, or if it has left the server.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "route/client/pmix_library.hpp"
#include "wherry/route.hpp"

namespace wherry::route::pmix {

class Client {
 public:
  /// Connects to the server the first time. kNotFound, kVersionMismatch: no libpmix, or another version; the server was
  /// not contacted. kFailedPrecondition: this process is a fork of the rank. kDeadlineExceeded, kUnavailable: all later
  /// calls fail as well.
  static Result<Client*> get(const Deadline& deadline);

  [[nodiscard]] Rank rank() const noexcept { return self_.rank; }
  [[nodiscard]] Rank ranks() const noexcept { return ranks_; }
  /// Every call is collective over the ranks of the job.
  Result<std::vector<Bytes>> exchange(ByteView mine, const Deadline& deadline);
  /// Disconnects from the server, for a process that is not the rank itself: a shell or another launcher, which is the
  /// rank, has started it. Then its end does not look like the rank's death. rank() and ranks() stay; no exchange can
  /// follow.
  void leave(const Deadline& deadline);
  /// kUnavailable: the server has gone. Never blocks. If a rank dies, the server ends the other ranks without a
  /// message.
  [[nodiscard]] static Status health() noexcept;

 private:
  Client() = default;
  Status connect(const Deadline& deadline);
  /// Calls `work` in another thread.
  Status within(const Deadline& deadline, const char* late, std::function<Status()> work);
  static void at_exit(int status, void* client);

  Library library_;
  Process self_{};
  Rank ranks_ = 0;
  bool connected_ = false;
  bool was_initialized_ = false;  ///< by the program
  bool left_ = false;
  std::uint32_t round_ = 0;
  Status broken_;  ///< a call has not ended, or has failed
};

}  // namespace wherry::route::pmix
