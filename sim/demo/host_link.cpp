// SPDX-License-Identifier: Apache-2.0
#include "sim/demo/host_link.hpp"

#include <fmt/core.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "base/try.hpp"

namespace wherry::sim {
namespace {

void send_whole(int socket, const HostMessage& message) {
  (void)::send(socket, &message, sizeof message, MSG_NOSIGNAL);
}

}  // namespace

std::uint32_t HostLink::call(HostCall call, std::uint32_t offset, std::uint32_t value) const {
  send_whole(socket_, {.call = call, .offset = offset, .value = value, .text = {}});
  HostMessage answer;
  ssize_t got = 0;
  do {
    got = ::recv(socket_, &answer, sizeof answer, 0);
  } while (got < 0 && errno == EINTR);
  if (got != ssize_t{sizeof answer}) std::exit(EXIT_FAILURE);  // the machine is gone, and with it NIC and card
  return answer.value;
}

void HostLink::fail(std::string_view why) const {
  HostMessage message{.call = HostCall::kFailed};
  std::copy_n(why.begin(), std::min(why.size(), message.text.size() - 1), message.text.begin());
  send_whole(socket_, message);
}

Result<HostPart> HostPart::start(const std::string& program, std::vector<std::string> arguments) {
  std::array<int, 2> ends{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return Status(StatusCode::kInternal, fmt::format("a pair of sockets: {}", std::strerror(errno)));
  Fd mine(ends[0]);
  const Fd theirs(ends[1]);
  arguments.insert(arguments.end(), {"--fd", std::to_string(theirs.get())});
  const std::array kept{theirs.get()};
  WHERRY_ASSIGN(auto process, ChildProcess::start(program, arguments, kept));
  return HostPart(std::move(process), std::move(mine));
}

Status HostPart::serve(const Access& access) {
  for (;;) {
    HostMessage message;
    const ssize_t got = ::recv(socket_.get(), &message, sizeof message, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
    if (got != ssize_t{sizeof message}) {
      if (giving_back_) return {};
      return {StatusCode::kUnavailable,
              fmt::format("the host's part has ended with status {}: {}", process_.wait(), process_.said())};
    }
    message.text.back() = 0;
    if (message.call == HostCall::kFailed) return {StatusCode::kFailedPrecondition, message.text.data()};
    if (message.call == HostCall::kReady) {
      ready_ = true;
      return {};
    }
    ++accesses_;
    WHERRY_ASSIGN(const std::uint32_t value, access(message));
    send_whole(socket_.get(), {.call = message.call, .offset = message.offset, .value = value, .text = {}});
  }
}

ProcessUse use_of(pid_t pid) {
  ProcessUse use;
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(pid, &clock) == 0 && ::clock_gettime(clock, &time) == 0)
    use.cpu_ns = static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(time.tv_nsec);
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t name = text.rfind(')');  // which may contain anything
  if (name != std::string::npos && name + 2 < text.size()) use.state = text[name + 2];
  return use;
}

void HostPart::suspend() const { ::kill(pid(), SIGSTOP); }
void HostPart::resume() const { ::kill(pid(), SIGCONT); }

void HostPart::give_back() {
  giving_back_ = true;
  send_whole(socket_.get(), {.call = HostCall::kReady});
}

}  // namespace wherry::sim
