// SPDX-License-Identifier: Apache-2.0
// This process as a client of its PMIx server. There is one, from the first start of a runtime to the end of the
// process.
//
// - Threads: one at a time, except for health(). PMIx's calls block, and not every server keeps their time limits. So
//   another thread makes them. A call that takes too long is left behind, and no later one can succeed.
// - The end: exit(0) tells the server that this rank is done. Another status aborts the job, unless the program had
//   initialised PMIx itself, through its MPI for example. The only rank of a job leaves the server at once.
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
  /// Connects to the server the first time. kNotFound, kVersionMismatch: no libpmix, or another one's; nothing has been
  /// said to the server. kFailedPrecondition: this process is a fork of the rank. kDeadlineExceeded, kUnavailable: no
  /// call can succeed any more.
  static Result<Client*> get(const Deadline& deadline);

  [[nodiscard]] Rank rank() const noexcept { return self_.rank; }
  [[nodiscard]] Rank ranks() const noexcept { return ranks_; }
  /// Collective over the ranks of the job, each time.
  Result<std::vector<Bytes>> exchange(ByteView mine, const Deadline& deadline);
  /// kUnavailable: the server has gone. Never blocks. A server ends the other ranks when one dies; it does not tell
  /// them.
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
  std::uint32_t round_ = 0;
  Status broken_;  ///< a call has not ended, or has failed
};

}  // namespace wherry::route::pmix
