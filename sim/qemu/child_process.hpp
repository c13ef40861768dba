// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "wherry/status.hpp"

namespace wherry::sim {

/// Another program, which always ends with this process: the kernel kills it with the thread that started it (prctl(2),
/// PR_SET_PDEATHSIG). It has its own process group, so Ctrl-C on a terminal reaches only this process. It can be moved
/// but not copied. The destructor kills the program and waits for its end.
class ChildProcess {
 public:
  ChildProcess() noexcept = default;
  /// `program`: a path, or a name on $PATH. The child has the descriptors `kept` under their numbers, and nothing on
  /// standard input. said() returns its output. kNotFound: there is no such program; kInternal.
  static Result<ChildProcess> start(const std::string& program, const std::vector<std::string>& arguments,
                                    std::span<const int> kept);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess();

  /// False once it has ended.
  [[nodiscard]] bool running();
  /// Waits for its end. Returns its exit status, or 128 plus the signal's number if a signal ended it.
  int wait();
  /// The program's standard output and standard error, at most the last 4 KiB.
  [[nodiscard]] std::string said() const;
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// Lets it continue, if it was stopped (SIGSTOP).
  void resume() const noexcept;

 private:
  void kill_and_wait() noexcept;

  pid_t pid_ = -1;
  int status_ = -1;  ///< as of waitpid(2); -1: it runs
  Fd output_;
};

}  // namespace wherry::sim
