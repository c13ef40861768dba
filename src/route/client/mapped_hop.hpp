// SPDX-License-Identifier: Apache-2.0
// A next hop whose inbox this rank maps, with a check whether it still takes part in the job. The hop's presence shows
// that. If its process ended without setting the presence, the kernel reports the end.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "base/socket.hpp"
#include "route/presence.hpp"
#include "wherry/route_message.hpp"

namespace wherry::route {

class MappedHop {
 public:
  /// `process` 0: the hop is a thread of this process.
  MappedHop(Rank rank, std::uint32_t lane, Presence presence, pid_t process);

  [[nodiscard]] Rank rank() const noexcept { return rank_; }
  [[nodiscard]] std::uint32_t lane() const noexcept { return lane_; }
  /// Costs one load in the normal case, and a system call with `ask_kernel`. A process that ended without setting its
  /// presence counts as departed after a second, in which its launcher may report more.
  [[nodiscard]] Presence::Seen look(bool ask_kernel);

 private:
  [[nodiscard]] bool ended() const noexcept;

  Rank rank_;
  std::uint32_t lane_;
  Presence presence_;
  Fd process_;                     ///< none: a thread, or the kernel has no such descriptors
  std::uint64_t ended_since_ = 0;  ///< now_ns(); 0: it runs
};

}  // namespace wherry::route
