// SPDX-License-Identifier: Apache-2.0
#include "bypass/process/status_server.hpp"

#include <fmt/core.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/clock.hpp"
#include "base/try.hpp"
#include "base/unix_socket.hpp"

namespace wherry::bypass {
namespace {

/// Calls of `work` between two looks for a client. A call without work takes some hundred nanoseconds.
constexpr int kCallsPerLook = 1000;

/// A client that does not read gets only what fits into the socket's buffer, so the server never waits for it.
void answer_one(int listener, const std::function<std::string()>& answer) {
  const Fd asker(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!asker) return;
  const std::string text = answer();
  (void)::send(asker.get(), text.data(), text.size(), MSG_NOSIGNAL);
}

}  // namespace

Status serve_status(const std::string& socket, const std::function<std::string()>& answer,
                    const std::atomic<bool>& stop, const std::function<Status()>& work) {
  WHERRY_ASSIGN(const Fd listener, listen_unix(socket));
  // Signals arrive only during the sleep, so a signal between the check and the sleep is not missed.
  sigset_t ours{}, before{};
  sigemptyset(&ours);
  sigaddset(&ours, SIGINT);
  sigaddset(&ours, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ours, &before);
  const timespec at_once{};
  Status worked;
  while (worked && !stop.load(std::memory_order_relaxed)) {
    for (int i = 0; work && worked && i < kCallsPerLook; ++i) worked = work();
    pollfd ready{.fd = listener.get(), .events = POLLIN, .revents = 0};
    if (::ppoll(&ready, 1, work ? &at_once : nullptr, &before) == 1) answer_one(listener.get(), answer);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::unlink(socket.c_str());
  return worked;
}

Result<std::string> ask_status(const std::string& socket, std::chrono::milliseconds limit) {
  const Deadline deadline(limit);
  WHERRY_ASSIGN(const Fd connection, connect_unix(socket, deadline));
  std::string text;
  for (;;) {
    pollfd ready{.fd = connection.get(), .events = POLLIN, .revents = 0};
    const int left = deadline.left_ms(1000);
    if (left == 0)
      return Status(StatusCode::kDeadlineExceeded,
                    "the process does not answer; it may be stopped: `kill -CONT` lets it go on");
    if (::poll(&ready, 1, left) != 1) continue;
    std::array<char, 4096> bytes{};
    const ssize_t count = ::recv(connection.get(), bytes.data(), bytes.size(), 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (count <= 0) return text;
    text.append(bytes.data(), static_cast<std::size_t>(count));
    if (text.size() > 1U << 20) return Status(StatusCode::kProtocol, "the process's answer has no end");
  }
}

}  // namespace wherry::bypass
