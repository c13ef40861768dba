// SPDX-License-Identifier: Apache-2.0
// A rank for tests of launchers: bootstrap_rank [RANK:]ACTION... Actions run in order. Only rank RANK runs an action
// with RANK.
//
//   exchange   joins; three exchanges, whose results are checked; "rank R of N node K job J"
//   gather     joins; only the first of these exchanges
//   messages   as a Runtime: messages from every rank to every rank are counted; "rank R: the runtime's description"
//   spin=MS    messages for MS ms, or until the job fails: "broken: why", and exits with status 0
//   spin-or-exit=N   messages until the job fails: exits with status N
//   linger=MS  exit() takes MS ms after the runtime is destroyed
//   twice      starts a second Runtime beside the first one: "second: code"; then one after it: "then: code"
//   again-in-a-child   a forked child destroys the inherited runtime and starts another: "child: code"; then a quiesce
//   messages-beside-a-child   as messages; half-way it forks a child, which tries every call and exits
//   children-of-handlers      as messages; handlers fork, and the children return from them
//   watch      waits until the job fails: "broken: why", and exits with status 0
//   watch-or-exit=N   like watch, but exits with status N
//   blame=N    tells the launcher that rank N has caused the failure of the job; -1: no rank is known
//   join=MS    joins the job of the launcher within MS ms
//   leave      leaves the job; `exchange` joins again
//   kill, exit=N, exit-beside-a-child=N (which keeps all inherited descriptors open), sleep=MS, lines=N, long (a line
//   of 300 KB), die-slowly (prints that SIGTERM came, and stays), fork (a child that sleeps for an hour), environment,
//   where (cores), echo (standard input)
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "base/cpu.hpp"
#include "route/client/bootstrap.hpp"
#include "route/client/patient_testing.hpp"
#include "wherry/route.hpp"

using namespace wherry;
using namespace wherry::route;
using namespace std::chrono_literals;

namespace {

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "bootstrap_rank: %s\n", why.c_str());
  std::exit(3);
}

/// The contribution of `rank` in `round`: empty, short, or so long that one frame cannot hold the contributions of all
/// ranks.
Bytes gift(Rank rank, std::uint32_t round) {
  const std::size_t size = round == 0 ? 0 : round == 1 ? 1 + rank : 400'000;
  return Bytes(size, static_cast<std::byte>(rank * 3 + round));
}

void gather(std::unique_ptr<Bootstrap>& bootstrap, std::uint32_t rounds) {
  if (bootstrap == nullptr) {
    auto found = find_bootstrap(Deadline(20s));
    if (!found) fail(found.status().to_string());
    if (*found == nullptr) {
      std::puts("alone");
      return;
    }
    bootstrap = *std::move(found);
  }
  for (std::uint32_t round = 0; round < rounds; ++round) {
    auto all = bootstrap->exchange(gift(bootstrap->rank(), round), Deadline(20s));
    if (!all) fail(all.status().to_string());
    if (all->size() != bootstrap->ranks()) fail("contributions are missing");
    for (Rank rank = 0; rank < bootstrap->ranks(); ++rank) {
      if ((*all)[rank] != gift(rank, round)) fail("the contribution of rank " + std::to_string(rank) + " is wrong");
    }
  }
  if (const Status s = bootstrap->health(); !s) fail(s.to_string());
  std::printf("rank %u of %u node %u job %016llx\n", bootstrap->rank(), bootstrap->ranks(), bootstrap->node(),
              static_cast<unsigned long long>(bootstrap->job()));
}

void watch(Bootstrap& bootstrap, int status = 0) {
  for (;;) {
    if (const Status s = bootstrap.health(); !s) {
      std::printf("broken: %s\n", s.message().c_str());
      std::fflush(stdout);
      std::_Exit(status);
    }
    std::this_thread::sleep_for(1ms);
  }
}

void messages(bool go_on, std::chrono::milliseconds how_long, int status = 0) {
  auto runtime = Runtime::start(testing_support::patient());
  if (!runtime) fail(runtime.status().to_string());
  std::uint64_t sum = 0;
  const auto add = runtime->on<std::uint64_t>([&](const std::uint64_t& value) { sum += value; });
  const auto send_to_all = [&] {
    for (Rank to = 0; to < runtime->ranks(); ++to) {
      if (runtime->send(to, add, std::uint64_t{1} + runtime->rank()) != StatusCode::kOk) return;  // status() says why
    }
  };
  constexpr std::uint64_t kRounds = 10'000;
  for (std::uint64_t round = 0; round < kRounds; ++round) send_to_all();
  if (const Status s = runtime->quiesce(30s); !s) fail(s.to_string());
  const std::uint64_t ranks = runtime->ranks();
  // Faster ranks may already have sent messages of a later round.
  const std::uint64_t expected = kRounds * ranks * (ranks + 1) / 2;
  if (go_on ? sum < expected : sum != expected) fail("messages were lost, or came twice");
  std::printf("rank %u: %s\n", runtime->rank(), runtime->describe().c_str());
  std::fflush(stdout);
  const Deadline deadline(go_on && how_long == 0ms ? -1ms : how_long);
  while (runtime->status() && !deadline.passed()) {
    send_to_all();
    if (!runtime->quiesce()) break;
  }
  if (const Status& s = runtime->status(); !s) {
    std::printf("broken: %s\n", s.message().c_str());
    std::fflush(stdout);
    std::_Exit(status);
  }
}

void twice() {
  auto runtime = Runtime::start(testing_support::patient());
  if (!runtime) fail(runtime.status().to_string());
  const auto second = Runtime::start(testing_support::patient());
  std::printf("second: %s\n", second ? "ok" : std::string(to_string(second.status().code())).c_str());
  if (const Status s = runtime->quiesce(30s); !s) fail(s.to_string());
  {
    const Runtime gone = *std::move(runtime);
  }
  const auto then = Runtime::start(testing_support::patient());
  std::printf("then: %s\n", then ? "ok" : then.status().to_string().c_str());
}

/// Tries each call of the parent's runtime in a child of fork(). Returns 0, or the number of a call that worked.
int use_in_child(Result<Runtime>& runtime, Handler<std::uint64_t> add, Handler<ByteView> take,
                 Service<std::uint32_t, std::uint64_t> twice) {
  constexpr StatusCode kRefused = StatusCode::kFailedPrecondition;
  const std::vector<std::byte> long_one(100'000);
  for (Rank to = 0; to < runtime->ranks(); ++to) {
    for (int i = 0; i < 100; ++i) {
      if (runtime->send(to, add, std::uint64_t{1} << 40) != kRefused) return 10;
      if (runtime->try_send(to, add, std::uint64_t{1} << 40) != kRefused) return 11;
    }
    if (runtime->send(to, take, ByteView(long_one)) != kRefused) return 12;
    if (!runtime->try_buffer(to, 64).empty()) return 13;
    runtime->post_buffer(to, 64, 4);  // of what the parent got before: the runtime neither shows nor counts it
    if (runtime->request(to, twice, std::uint32_t{1}, [](const std::uint64_t&) {}) != kRefused) return 18;
    if (runtime->send(to, add, std::uint64_t{1} << 40) != kRefused) return 19;
  }
  runtime->flush();
  if (runtime->poll() != 0) return 14;
  if (runtime->try_quiesce() != kRefused || runtime->quiesce(1s).code() != kRefused) return 15;
  if (runtime->reduce(std::uint64_t{1}).status().code() != kRefused) return 16;
  if (runtime->status().message().find(std::to_string(getppid())) == std::string::npos) return 17;
  const Runtime destroyed = *std::move(runtime);
  return 0;
}

void messages_beside_a_child() {
  auto runtime = Runtime::start(testing_support::patient());
  if (!runtime) fail(runtime.status().to_string());
  std::uint64_t sum = 0;
  const auto add = runtime->on<std::uint64_t>([&](const std::uint64_t& value) { sum += value; });
  const auto take = runtime->on<ByteView>([&](ByteView) { sum += std::uint64_t{1} << 50; });
  const auto twice =
      runtime->serve<std::uint32_t, std::uint64_t>([](const std::uint32_t& x) { return std::uint64_t{2} * x; });
  constexpr std::uint64_t kRounds = 10'000;
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    for (Rank to = 0; to < runtime->ranks(); ++to) {
      if (runtime->send(to, add, std::uint64_t{1} + runtime->rank()) != StatusCode::kOk) fail("not sent");
    }
    if (round != kRounds / 2) continue;
    const Rank next = (runtime->rank() + 1) % runtime->ranks();
    std::span<std::byte> buffer = runtime->try_buffer(next, 64);  // the child comes before it is posted
    for (; buffer.empty() && runtime->status().ok(); buffer = runtime->try_buffer(next, 64)) runtime->poll();
    std::fflush(stdout);
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);
      std::exit(use_in_child(runtime, add, take, twice));  // with all that the libraries do at the end of a process
    }
    int how = 0;
    if (waitpid(child, &how, 0) != child || !WIFEXITED(how) || WEXITSTATUS(how) != 0)
      fail("the child ended with " + std::to_string(WIFEXITED(how) ? WEXITSTATUS(how) : -WTERMSIG(how)));
    constexpr std::uint64_t kOne = 1;
    for (std::size_t at = 0; at != 64; at += 16) {
      Header::make(8, add.id(), next).store(buffer.data() + at);
      std::memcpy(buffer.data() + at + 8, &kOne, 8);
    }
    runtime->post_buffer(next, 64, 4);
  }
  if (const Status s = runtime->quiesce(60s); !s) fail(s.to_string());
  const std::uint64_t ranks = runtime->ranks();
  if (sum != kRounds * ranks * (ranks + 1) / 2 + 4) fail("messages were lost, came twice, or were the child's");
  std::printf("rank %u: %s\n", runtime->rank(), runtime->describe().c_str());
}

/// A handler forks. The child returns from it into the library, which was reading the parent's buffers.
void children_of_handlers() {
  auto runtime = Runtime::start(testing_support::patient());
  if (!runtime) fail(runtime.status().to_string());
  constexpr std::uint64_t kMessages = 40'000, kEvery = 8'000;
  std::uint64_t sum = 0, children = 0, asked = 0;
  bool is_child = false;
  const auto beget = [&] {
    if (is_child) return;
    std::fflush(stdout);
    const pid_t child = ::fork();
    is_child = child == 0;
    if (is_child) {
      ::alarm(60);
      return;
    }
    ++children;
    int how = 0;
    if (waitpid(child, &how, 0) != child || !WIFEXITED(how) || WEXITSTATUS(how) != 0)
      fail("the child ended with " + std::to_string(WIFEXITED(how) ? WEXITSTATUS(how) : -WTERMSIG(how)));
  };
  const auto add = runtime->on<std::uint64_t>([&](const std::uint64_t& i) {
    sum += i;
    if (i % kEvery == 1) beget();
  });
  const auto other = runtime->on<ByteView>([&](ByteView bytes) { sum += bytes.size(); });
  const auto service = runtime->serve<std::uint64_t, std::uint64_t>([&](const std::uint64_t& i) {
    if (i % kEvery == 2) beget();
    return i;
  });
  // In a child, the call that ran the handler must fail, and so must all later calls.
  const auto taken = [&](StatusCode code) {
    if (is_child) {
      const bool refused = runtime->send(0, add, std::uint64_t{1} << 40) == StatusCode::kFailedPrecondition &&
                           runtime->poll() == 0 && !runtime->quiesce(1s) && !runtime->status();
      std::exit(refused ? 0 : 10);
    }
    if (code != StatusCode::kOk) fail(runtime->status().to_string());
  };
  const std::array<std::byte, 24> bytes{};
  for (std::uint64_t i = 1; i <= kMessages; ++i) {
    const Rank to = static_cast<Rank>(i % runtime->ranks());
    taken(runtime->send(to, add, i));
    taken(runtime->send(to, other, bytes));
    if (i % 100 == 2)
      taken(runtime->request(to, service, i, [&, i](const std::uint64_t& answer) { asked += answer == i; }));
  }
  taken(runtime->quiesce(60s).code());
  std::uint64_t due = 0;
  for (std::uint64_t i = 1; i <= kMessages; ++i)
    due += i % runtime->ranks() == runtime->rank() ? (i + bytes.size()) * runtime->ranks() : 0;
  if (sum != due) fail("messages were lost, came twice, or were a child's");
  if (asked != (kMessages + 98) / 100) fail("answers were lost");
  const auto all = runtime->reduce(children);
  if (!all || *all != 2 * kMessages / kEvery * runtime->ranks()) fail("not all children came");
  std::printf("rank %u: %s\n", runtime->rank(), runtime->describe().c_str());
}

void again_in_a_child() {
  auto runtime = Runtime::start(testing_support::patient());
  if (!runtime) fail(runtime.status().to_string());
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    {
      const Runtime destroyed = *std::move(runtime);
    }
    Options options;
    options.start_timeout = 5s;  // the others do not come: this says that it was not refused
    const auto again = Runtime::start(options);
    std::printf("child: %s\n", again ? "ok" : again.status().to_string().c_str());
    std::fflush(stdout);
    ::_exit(0);
  }
  int how = 0;
  if (waitpid(child, &how, 0) != child || !WIFEXITED(how) || WEXITSTATUS(how) != 0) fail("the child did not end well");
  if (const Status s = runtime->quiesce(60s); !s) fail(s.to_string());
  std::printf("rank %u: done\n", runtime->rank());
}

void say_term(int /*signal*/) {
  constexpr std::string_view kText = "SIGTERM came\n";
  if (::write(STDOUT_FILENO, kText.data(), kText.size()) < 0) _exit(4);
}

void where() {
  std::string cores;
  for (const int core : allowed_cores()) cores += (cores.empty() ? "" : ",") + std::to_string(core);
  std::printf("cores %s\n", cores.c_str());
}

void run(const std::string& action, int number, std::unique_ptr<Bootstrap>& bootstrap) {
  if (action == "exchange") {
    gather(bootstrap, 3);
  } else if (action == "gather") {
    gather(bootstrap, 1);
  } else if (action == "messages" || action == "spin") {
    messages(action == "spin", std::chrono::milliseconds(number));
  } else if (action == "twice") {
    twice();
  } else if (action == "spin-or-exit") {
    messages(true, 0ms, number);
  } else if (action == "linger") {
    static int lingers;
    lingers = number;
    std::atexit([] { std::this_thread::sleep_for(std::chrono::milliseconds(lingers)); });
  } else if (action == "again-in-a-child") {
    again_in_a_child();
  } else if (action == "messages-beside-a-child") {
    messages_beside_a_child();
  } else if (action == "children-of-handlers") {
    children_of_handlers();
  } else if (action == "watch" && bootstrap != nullptr) {
    watch(*bootstrap);
  } else if (action == "watch-or-exit" && bootstrap != nullptr) {
    watch(*bootstrap, number);
  } else if (action == "blame" && bootstrap != nullptr) {
    bootstrap->report(
        {{StatusCode::kUnavailable, "it is to blame"}, number < 0 ? JobFailure::kNobody : static_cast<Rank>(number)});
  } else if (action == "join") {
    auto found = find_bootstrap(Deadline(std::chrono::milliseconds(number)));
    if (!found) fail(found.status().to_string());
    bootstrap = *std::move(found);
  } else if (action == "leave") {
    bootstrap.reset();
  } else if (action == "kill") {
    std::fflush(stdout);
    ::kill(::getpid(), SIGKILL);
  } else if (action == "exit") {
    std::exit(number);
  } else if (action == "exit-beside-a-child") {
    if (::fork() == 0) {
      for (const int fd : {0, 1, 2}) ::close(fd);
      std::this_thread::sleep_for(2s);
      std::_Exit(0);
    }
    std::exit(number);
  } else if (action == "sleep") {
    std::this_thread::sleep_for(std::chrono::milliseconds(number));
  } else if (action == "lines") {
    for (int i = 0; i < number; ++i) std::printf("line %d of some length, so that many fill a pipe\n", i);
  } else if (action == "long") {
    std::puts(std::string(300'000, 'x').c_str());
  } else if (action == "die-slowly") {
    ::signal(SIGTERM, say_term);
    std::fflush(stdout);
    for (;;) std::this_thread::sleep_for(1h);
  } else if (action == "fork") {
    if (::fork() == 0) {
      std::this_thread::sleep_for(1h);
      std::_Exit(0);
    }
  } else if (action == "environment") {
    for (char** entry = environ; *entry != nullptr; ++entry) {
      if (std::string_view(*entry).starts_with("WHERRY_")) std::puts(*entry);
    }
  } else if (action == "where") {
    where();
  } else if (action == "echo") {
    std::cout << std::cin.rdbuf() << std::flush;
  } else {
    fail("no action " + action);
  }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const char* rank = std::getenv("WHERRY_RANK");
  if (rank == nullptr) rank = std::getenv("PMI_RANK");
  if (rank == nullptr) rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (rank == nullptr) rank = std::getenv("PMIX_RANK");
  std::unique_ptr<Bootstrap> bootstrap;
  for (int i = 1; i < argc; ++i) {
    std::string action = argv[i];
    if (const std::size_t colon = action.find(':'); colon != std::string::npos) {
      if (rank == nullptr || action.substr(0, colon) != rank) continue;
      action.erase(0, colon + 1);
    }
    int number = 0;
    if (const std::size_t equals = action.find('='); equals != std::string::npos) {
      std::from_chars(action.data() + equals + 1, action.data() + action.size(), number);
      action.resize(equals);
    }
    run(action, number, bootstrap);
  }
  return 0;
}
