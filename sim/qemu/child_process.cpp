// SPDX-License-Identifier: Apache-2.0
#include "sim/qemu/child_process.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace wherry::sim {
namespace {

Status failed(const std::string& what) {
  return {StatusCode::kInternal, fmt::format("{}: {}", what, std::strerror(errno))};
}

/// Runs in the child, between fork and exec: only async-signal-safe calls. Returns if there is no such program.
void become(char* const* arguments, std::span<const int> kept, int output, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it died before the line above
  ::setpgid(0, 0);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  for (const int fd : kept) ::fcntl(fd, F_SETFD, 0);
  ::execvp(arguments[0], arguments);
}

}  // namespace

Result<ChildProcess> ChildProcess::start(const std::string& program, const std::vector<std::string>& arguments,
                                         std::span<const int> kept) {
  std::vector<char*> words{const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);

  ChildProcess child;
  child.output_ = Fd(::memfd_create("output", MFD_CLOEXEC));
  std::array<int, 2> ends{-1, -1};
  if (!child.output_ || ::pipe2(ends.data(), O_CLOEXEC) != 0) return failed("cannot start " + program);
  const Fd report(ends[0]);
  Fd no_report(ends[1]);  // closes with exec: then the child is what it should be
  const pid_t parent = ::getpid();
  child.pid_ = ::fork();
  if (child.pid_ < 0) return failed("cannot start " + program);
  if (child.pid_ == 0) {
    become(words.data(), kept, child.output_.get(), parent);
    const int why = errno;
    (void)!::write(no_report.get(), &why, sizeof why);
    ::_exit(127);
  }
  no_report.reset();
  int why = 0;
  if (::read(report.get(), &why, sizeof why) == sizeof why)
    return Status(why == ENOENT ? StatusCode::kNotFound : StatusCode::kInternal,
                  fmt::format("cannot start {}: {}", program, std::strerror(why)));
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), status_(other.status_), output_(std::move(other.output_)) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (this == &other) return *this;
  kill_and_wait();
  pid_ = std::exchange(other.pid_, -1);
  status_ = other.status_;
  output_ = std::move(other.output_);
  return *this;
}

ChildProcess::~ChildProcess() { kill_and_wait(); }

void ChildProcess::kill_and_wait() noexcept {
  if (pid_ < 0) return;
  if (running()) {
    ::kill(pid_, SIGKILL);
    wait();
  }
  pid_ = -1;
}

bool ChildProcess::running() {
  if (pid_ < 0 || status_ != -1) return false;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return true;
  status_ = status;
  return false;
}

void ChildProcess::resume() const noexcept {
  if (pid_ > 0) ::kill(pid_, SIGCONT);
}

int ChildProcess::wait() {
  if (pid_ >= 0 && status_ == -1)
    while (::waitpid(pid_, &status_, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
}

std::string ChildProcess::said() const {
  constexpr off_t kMost = 4096;
  struct stat file{};
  if (!output_ || ::fstat(output_.get(), &file) != 0) return {};
  const off_t from = std::max<off_t>(0, file.st_size - kMost);
  std::string text(static_cast<std::size_t>(file.st_size - from), '\0');
  const ssize_t got = ::pread(output_.get(), text.data(), text.size(), from);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace wherry::sim
