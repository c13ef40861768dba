// SPDX-License-Identifier: Apache-2.0
// A next hop that shares memory with this rank: whether it still takes part in the job, by what it says of itself, or,
// when its process has ended without a word, by the kernel's account.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "base/socket.hpp"
#include "route/presence.hpp"
#include "wherry/route_message.hpp"

namespace wherry::route {

class Neighbour {
 public:
  /// `process`: 0 if it is a thread of this process.
  Neighbour(Rank rank, std::uint32_t lane, Presence presence, pid_t process);

  [[nodiscard]] Rank rank() const noexcept { return rank_; }
  [[nodiscard]] std::uint32_t lane() const noexcept { return lane_; }
  /// One load while all is well, and with `ask_kernel` a system call. A process that has ended without a word counts as
  /// one that has left, after a second in which a launcher can say more about its end.
  [[nodiscard]] Presence::Seen look(bool ask_kernel);

 private:
  [[nodiscard]] bool ended() const noexcept;

  Rank rank_;
  std::uint32_t lane_;
  Presence presence_;
  Fd process_;  ///< none: a thread, or the kernel does not offer such descriptors
  std::uint64_t ended_since_ = 0;
};

}  // namespace wherry::route
