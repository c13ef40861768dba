// SPDX-License-Identifier: Apache-2.0
#include "probe/host/child.hpp"

#include <fmt/core.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>

#include "base/clock.hpp"
#include "base/cpu.hpp"
#include "base/try.hpp"
#include "probe/cores.hpp"
#include "probe/cpu_cost.hpp"
#include "probe/host/copy.hpp"

namespace wherry::probe {

void spin(std::uint64_t& count) noexcept {
  const std::uint64_t every = cores().count > 1 ? 65536 : 1;
  if (++count % every == 0)
    sched_yield();
  else
    cpu_relax();
}

Result<Child> Child::start(const std::function<void()>& serve) {
  const pid_t parent = getpid();
  const Cores& where = cores();  // before the fork: the child would ask anew
  Child child;
  child.pid_ = fork();
  if (child.pid_ < 0)
    return Status(StatusCode::kResourceExhausted,
                  fmt::format("no process for the other side: {}", std::strerror(errno)));
  if (child.pid_ > 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, SIG_IGN);  // the parent ends it
  (void)pin_thread({where.other});  // a core that was taken away meanwhile is as good as any
  serve();
  _exit(0);
}

void Child::stop() noexcept {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

bool Child::alive() const noexcept {
  siginfo_t how{};
  return pid_ > 0 && waitid(P_PID, static_cast<id_t>(pid_), &how, WEXITED | WNOHANG | WNOWAIT) == 0 && how.si_pid == 0;
}

void Answers::report() noexcept {
  const Path::CpuTime time = process_cpu_time();
  user_ns = time.user_ns;
  system_ns = time.system_ns;
}

Result<Bound> ChildPath::open(const Shape& shape) {
  WHERRY_TRY(accepts(shape));
  layout_ = {shape.bytes, shape.depth, shape.align};
  WHERRY_ASSIGN(from_,
                Mapping::make(layout_.total(), source_is_childs_ ? Mapping::Kind::kPrivate : Mapping::Kind::kShared));
  WHERRY_ASSIGN(to_, Mapping::make(layout_.total(), to_kind_));
  WHERRY_ASSIGN(answers_memory_, Mapping::make(sizeof(Answers), Mapping::Kind::kShared));
  answers_ = new (answers_memory_.data().data()) Answers;
  asked_ = 0;
  WHERRY_TRY(connect(shape));
  WHERRY_ASSIGN(child_, Child::start([this] { serve(); }));
  return one_thread_bound();
}

void ChildPath::prepare(std::uint64_t seed) {
  posted_ = 0;
  fill_destination(to_.data(), layout_, seed);
  if (source_is_childs_) {
    if (ask({.op = Request::kFill, .argument = seed})) (void)await_answer();  // a child that is gone fails later
  } else {
    fill_source(from_.data(), layout_, seed);
  }
}

Status ChildPath::verify(std::uint64_t seed) {
  std::atomic_thread_fence(std::memory_order_acquire);
  return check_destination(to_.data(), layout_, seed, posted_);
}

Path::CpuTime ChildPath::other_side() {
  if (!ask({.op = Request::kReport}) || !await_answer()) return {};
  return {answers_->user_ns, answers_->system_ns};
}

void ChildPath::answer(const Request& request) noexcept {
  if (request.op == Request::kFill) fill_source(from_.data(), layout_, request.argument);
  if (request.op == Request::kReport) answers_->report();
  answers_->done();
}

bool ChildPath::await_answer() noexcept {
  ++asked_;
  const Deadline deadline(std::chrono::seconds(5));
  std::uint64_t count = 0;
  while (answers_->given.load(std::memory_order_acquire) < asked_) {
    spin(count);
    if (count % 65536 == 0 && (deadline.passed() || !child_.alive())) return false;
  }
  return true;
}

void ChildPath::close() noexcept {
  child_.stop();
  disconnect();
  answers_ = nullptr;
  answers_memory_.reset();
  from_.reset();
  to_.reset();
}

}  // namespace wherry::probe
