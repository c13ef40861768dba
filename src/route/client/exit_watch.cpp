// SPDX-License-Identifier: Apache-2.0
#include "route/client/exit_watch.hpp"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

namespace wherry::route::detail {

/// All watches of this process. After exit() a Runtime is never destroyed, so the watch ends the rank. The process
/// itself may live on for long (in MPI_Finalize).
struct ExitWatches {
  pid_t process = getpid();  // a child of fork() is not a rank: its exit() says nothing
  std::mutex mutex;
  std::vector<ExitWatch*> all;

  static ExitWatches& get() {
    static ExitWatches* const one = [] {
      (void)spdlog::default_logger_raw();  // made before, so that it is destroyed after: at_exit() may log
      on_exit([](int status, void*) { get().at_exit(status); }, nullptr);
      return new ExitWatches;  // never destroyed: threads may still run while the process ends
    }();
    return *one;
  }

 private:
  void at_exit(int status) {
    if (process != getpid()) return;
    const std::lock_guard lock(mutex);
    for (ExitWatch* watch : all) watch->at_exit(status);
  }
};

ExitWatch::ExitWatch(Presence presence, std::function<void()> leave) : presence_(presence), leave_(std::move(leave)) {
  const std::lock_guard lock(ExitWatches::get().mutex);
  ExitWatches::get().all.push_back(this);
}

ExitWatch::~ExitWatch() {
  const std::lock_guard lock(ExitWatches::get().mutex);
  std::erase(ExitWatches::get().all, this);
}

/// Another thread may be using its runtime now, so this function sets only that runtime's presence, which is one
/// word.
void ExitWatch::at_exit(int status) noexcept {
  if (status == 0 && pthread_equal(user_.load(std::memory_order_relaxed), pthread_self()) != 0) leave_();
  presence_.leave();
}

}  // namespace wherry::route::detail
