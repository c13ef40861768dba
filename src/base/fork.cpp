// SPDX-License-Identifier: Apache-2.0
#include "base/fork.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <pthread.h>
#include <unistd.h>

#include <mutex>
#include <utility>

namespace wherry {

/// The list of watches. fork() holds its lock, so that the child finds the list consistent.
struct ForkWatches {
  std::mutex mutex;
  ForkWatch* first = nullptr;
  static ForkWatches& all() noexcept {
    // Never destroyed: static objects may hold sessions.
    static auto& watches = *new ForkWatches;  // NOLINT(bugprone-unhandled-exception-at-new): once, of few bytes
    return watches;
  }
  void add(ForkWatch& watch) noexcept {
    const std::lock_guard lock(mutex);
    watch.next_ = first;
    if (first != nullptr) first->before_ = &watch;
    first = &watch;
  }
  void remove(ForkWatch& watch) noexcept {
    const std::lock_guard lock(mutex);
    (watch.before_ != nullptr ? watch.before_->next_ : first) = watch.next_;
    if (watch.next_ != nullptr) watch.next_->before_ = watch.before_;
  }
  void tell() const noexcept {
    for (ForkWatch* watch = first; watch != nullptr; watch = watch->next_) watch->in_child();
  }
};

void detail::notice_forks() noexcept {
  [[maybe_unused]] static const int installed =
      pthread_atfork([] { ForkWatches::all().mutex.lock(); }, [] { ForkWatches::all().mutex.unlock(); },
                     [] {
                       forks.fetch_add(1, std::memory_order_relaxed);
                       ForkWatches::all().tell();
                       ForkWatches::all().mutex.unlock();
                     });
}

void ForkWatch::start_watching() noexcept {
  detail::notice_forks();
  ForkWatches::all().add(*this);
  watching_ = true;
}

ForkWatch::~ForkWatch() { stop_watching(); }

void ForkWatch::stop_watching() noexcept {
  if (std::exchange(watching_, false)) ForkWatches::all().remove(*this);
}

void detach_descriptor(int fd) noexcept {
  if (fd < 0) return;
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nothing < 0) return;
  (void)::dup3(nothing, fd, O_CLOEXEC);
  ::close(nothing);
}

Status inherited_by_fork(std::string_view what, std::string_view remedy) {
  return {
      StatusCode::kFailedPrecondition,
      fmt::format("this {0} was opened by process {1}, of which this process is a fork: a {0} cannot be shared with "
                  "a child process, {2}",
                  what, getpid(), remedy)};
}

}  // namespace wherry
