// SPDX-License-Identifier: Apache-2.0
// A job whose rank 1 ends with status 0 while the others still need it, for python/tests:
//   route_leaving HOW WHAT
// HOW:  return (destroys its Runtime), exit (std::exit: does not destroy it), _exit (runs no code at exit)
// WHAT: send (to all ranks, without end), quiesce or reduce (without end), convey (an open session),
//       end0 or end1 (nothing: rank 0 or 1 leaves after all ranks have completed a quiesce, the others a little later)
// The leaving rank prints "leaves". The others print "told: why" and end with status 7, or print "not told" and end
// with 11 after four minutes. With end0 and end1 they print "done" and end with status 0 if the job has not failed
// although the rank has left.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "base/clock.hpp"
#include "route/client/patient_testing.hpp"
#include "route/client/runtime_access.hpp"
#include "wherry/convey.h"
#include "wherry/route.hpp"

using namespace wherry;
using namespace wherry::route;
using namespace std::chrono_literals;

namespace {

constexpr auto kPatience = 240s;  // for what never happens

int told(const std::string& why) {
  std::printf("told: %s\n", why.c_str());
  std::fflush(stdout);
  return 7;
}

int not_told() {
  std::puts("not told");
  std::fflush(stdout);
  return 11;
}

int go(const std::string& how) {
  std::puts("leaves");
  std::fflush(stdout);
  if (how == "exit") std::exit(0);
  if (how == "_exit") ::_exit(0);
  return 0;
}

/// Ends a job that all ranks have finished and that one rank has left.
int end(Runtime& runtime, Rank who, const std::string& how) {
  if (runtime.rank() == who) return go(how);
  const auto has_left = [&] {
    return std::ranges::any_of(route::detail::core_of(runtime).departed(),
                               [&](const Departure& one) { return one.rank == who; });
  };
  const Deadline deadline(kPatience);
  while (runtime.status() && !has_left()) {
    if (deadline.passed()) return not_told();
    runtime.poll();
  }
  // The process and its connections end after its departure. Poll with pauses: otherwise these two seconds in sixteen
  // runs would cost the test suite a core for half a minute.
  for (const Deadline later(2s); runtime.status() && !later.passed(); std::this_thread::sleep_for(1ms)) runtime.poll();
  if (!runtime.status()) return told(runtime.status().message());
  std::puts("done");
  return 0;
}

int convey(const std::string& how) {
  const std::int64_t me = wherry_convey_rank(), ranks = wherry_convey_ranks();
  convey_t* const c = convey_new(SIZE_MAX, 0, nullptr, convey_opt_QUIET);
  convey_begin(c, 8, 0);
  std::int64_t item = 0, pushed = 0;
  const Deadline deadline(kPatience);
  for (;;) {
    const int code = convey_advance(c, false);
    if (code < 0) return told(convey_error_string(c, code));
    for (int i = 0; i < 1000 && convey_push(c, &item, pushed % ranks) == convey_OK; ++i) ++pushed;
    while (convey_pull(c, &item, nullptr) == convey_OK) {
    }
    if (me == 1 && pushed > 100'000) return go(how);
    if (deadline.passed()) return not_told();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string how = argv[1], what = argv[2];
  if (what == "convey") return convey(how);
  auto runtime = Runtime::start(testing_support::patient());
  if (!runtime) return std::fprintf(stderr, "%s\n", runtime.status().message().c_str()), 3;
  const auto take = runtime->on<std::uint64_t>([](const std::uint64_t&) {});
  // Rank 1 may have ended before this rank returns from the first call.
  if (const Status s = runtime->quiesce(kPatience); !s)
    return s.code() == StatusCode::kDeadlineExceeded ? 4 : told(s.message());
  if (what == "end0" || what == "end1") return end(*runtime, what == "end0" ? 0 : 1, how);
  const Deadline deadline(kPatience);
  for (std::uint64_t i = 0; !deadline.passed(); ++i) {
    if (runtime->rank() == 1 && i == (what == "send" ? 50'000 : 50)) return go(how);
    if (runtime->send(static_cast<Rank>(i % runtime->ranks()), take, i) != StatusCode::kOk)
      return told(runtime->status().message());
    if (what == "quiesce") {
      if (const Status s = runtime->quiesce(kPatience); !s)
        return s.code() == StatusCode::kDeadlineExceeded ? not_told() : told(s.message());
    } else if (what == "reduce") {
      if (const auto sum = runtime->reduce(i); !sum) return told(sum.status().message());
    }
  }
  return not_told();
}
