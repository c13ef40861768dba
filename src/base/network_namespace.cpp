// SPDX-License-Identifier: Apache-2.0
#include "base/network_namespace.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sched.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <thread>

namespace wherry {
namespace {

constexpr const char* kMine = "/proc/thread-self/ns/net";

}  // namespace

NetworkNamespace NetworkNamespace::current() noexcept {
  NetworkNamespace one;
  one.space_ = Fd(::open(kMine, O_RDONLY | O_CLOEXEC));
  return one;
}

Status NetworkNamespace::run(const std::function<void()>& function) const {
  struct stat here{}, there{};
  if (!space_ || ::stat(kMine, &here) != 0 || ::fstat(space_.get(), &there) != 0 || here.st_ino == there.st_ino) {
    function();
    return ok_status();
  }
  // A thread that enters the namespace may be unable to return, so a new thread enters it.
  int error = 0;
  std::thread([&] {
    if (::setns(space_.get(), CLONE_NEWNET) == 0) {
      function();
    } else {
      error = errno;
    }
  }).join();
  if (error == 0) return ok_status();
  return {StatusCode::kPermissionDenied,
          fmt::format("the network namespace in which this client connected cannot be entered again: {}",
                      std::strerror(error))};
}

}  // namespace wherry
