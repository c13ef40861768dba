// SPDX-License-Identifier: Apache-2.0
// A rank for tests of networks: all ranks send to all ranks, thousands of times a second, until the job fails. Usage:
// route_chatter SECONDS. Prints "talking" when it has received from all others. Ends with 0 after SECONDS, or with 3
// and the reason.
#include <fmt/core.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <thread>

#include "wherry/route.hpp"

using namespace wherry;
using namespace wherry::route;

int main(int argc, char** argv) {
  const std::chrono::seconds duration(argc > 1 ? std::atoi(argv[1]) : 10);
  auto runtime = Runtime::start();
  if (!runtime) {
    fmt::print(stderr, "{}\n", runtime.status().message());
    return 1;
  }
  const Rank me = runtime->rank();
  std::set<std::uint64_t> heard;
  const auto hear = runtime->on<std::uint64_t>([&](const std::uint64_t& from) { heard.insert(from); });
  const auto start = std::chrono::steady_clock::now();
  bool told = false;
  while (runtime->status() && std::chrono::steady_clock::now() - start < duration) {
    for (Rank to = 0; to < runtime->ranks(); ++to) {
      if (to != me) (void)runtime->try_send(to, hear, std::uint64_t{me});
    }
    (void)runtime->poll();
    std::this_thread::sleep_for(std::chrono::microseconds(200));  // what matters is that they talk, not how fast
    if (!told && heard.size() + 1 == runtime->ranks()) {
      told = true;
      fmt::print("talking\n");
      std::fflush(stdout);
    }
  }
  Status s = runtime->status();
  if (s) s = runtime->quiesce();
  if (s) return 0;
  fmt::print("{}\n", s.message());
  std::fflush(stdout);
  std::_Exit(3);
}
