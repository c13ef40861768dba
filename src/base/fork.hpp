// SPDX-License-Identifier: Apache-2.0
// Keeps children of fork() from using inherited sessions. The child shares the parent's sockets and shared memory: a
// message from it would look like the parent's, and its destructors would close connections in use. So in a child every
// call fails, and destructors only close descriptors.
//
// Children of the C library's fork() are detected (pthread_atfork); those of _Fork() and raw clone(2) are not. vfork()
// and posix_spawn() need no detection.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "wherry/status.hpp"

namespace wherry {

namespace detail {
inline std::atomic<std::uint32_t> forks{0};  ///< between the process in which this code was loaded and this one
void notice_forks() noexcept;
}  // namespace detail

/// Remembers the process in which it was created; copies keep that process. A check is one load, for cold paths.
class ProcessMark {
 public:
  ProcessMark() noexcept : forks_((detail::notice_forks(), detail::forks.load(std::memory_order_relaxed))) {}
  /// Whether this process is a forked child of that process.
  [[nodiscard]] bool inherited() const noexcept { return forks_ != detail::forks.load(std::memory_order_relaxed); }

 private:
  std::uint32_t forks_;
};

/// A base class for objects that must change in a child before fork() returns there. Such an object closes connections
/// that must end with the parent, and sets a flag that its hot path reads anyway. Thread-safe.
class ForkWatch {
 public:
  ForkWatch(const ForkWatch&) = delete;
  ForkWatch& operator=(const ForkWatch&) = delete;

 protected:
  ForkWatch() noexcept = default;
  virtual ~ForkWatch();
  /// Call it last in the constructor of a derived class: another thread may fork while members are constructed.
  void start_watching() noexcept;
  /// Call it first in the destructor of a derived class: another thread may fork while members are destroyed.
  void stop_watching() noexcept;

 private:
  friend struct ForkWatches;
  /// Runs in the child, in a handler of pthread_atfork: must not allocate, lock or log. At the fork, another thread of
  /// the parent may have been inside any call of the object.
  virtual void in_child() noexcept = 0;
  ForkWatch* next_ = nullptr;
  ForkWatch* before_ = nullptr;
  bool watching_ = false;
};

/// Disconnects `fd` from its file in this process. Its number stays in use until close(). For in_child().
void detach_descriptor(int fd) noexcept;

/// The Status that calls return in children of this process, made before fork(). kFailedPrecondition: "this session was
/// opened by process 12, of which this process is a fork: ..." `what`: "session". `remedy`: what the child can do
/// instead.
Status inherited_by_fork(std::string_view what, std::string_view remedy = "open one here");

}  // namespace wherry
