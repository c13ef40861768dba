// SPDX-License-Identifier: Apache-2.0
#include "route/client/mapped_hop.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.hpp"

namespace wherry::route {

MappedHop::MappedHop(Rank rank, std::uint32_t lane, Presence presence, pid_t process)
    : rank_(rank), lane_(lane), presence_(presence) {
  if (process != 0) process_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, process, 0U)));
}

bool MappedHop::ended() const noexcept {
  pollfd one{process_.get(), POLLIN, 0};
  return process_ && ::poll(&one, 1, 0) == 1;
}

Presence::Seen MappedHop::look(bool ask_kernel) {
  constexpr std::uint64_t kPatienceNs = 1'000'000'000;
  if (!presence_.here()) return presence_.look();
  if (!ask_kernel || !ended()) return {};
  const std::uint64_t now = now_ns();
  if (ended_since_ == 0) ended_since_ = now;
  if (now - ended_since_ < kPatienceNs) return {};
  Presence::Seen seen = presence_.look();
  if (seen.state == Presence::State::kHere) seen.state = Presence::State::kLeft;
  return seen;
}

}  // namespace wherry::route
