// SPDX-License-Identifier: Apache-2.0
// Tests strangers at the listeners of a thread: their cost, and which of them are closed when descriptors run out.
#include "fabric/doorway.hpp"
#include "base/socket.hpp"
#include "base/testing.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <filesystem>
#include <list>
#include <thread>

#include "base/clock.hpp"
#include "fabric/fabric.hpp"
#include "fabric/stream_address.hpp"
#include "fabric/stream_worker.hpp"
#include "fabric/tls_testing.hpp"

namespace wherry::fabric {
namespace {

using testing_support::kPatience;
using namespace std::chrono_literals;

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all))) - 1;  // its own
}

/// While it lives, the process cannot open another descriptor.
class NoDescriptors {
 public:
  NoDescriptors() {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    rlim_t last = 0;
    for (const auto& one : std::filesystem::directory_iterator("/proc/self/fd"))
      last = std::max<rlim_t>(last, std::stoul(one.path().filename()));
    for (rlim_t number = 0; number <= last; taken_.emplace_back(static_cast<int>(number))) {  // and those below it
      number = static_cast<rlim_t>(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    }
    const rlimit none{static_cast<rlim_t>(taken_.back().get()) + 1, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoDescriptors() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
  std::vector<Fd> taken_;
};

// ---------------------------------------------------------------- the listener of a job

class JobListener : public testing::Test {
 protected:
  void listen(const TlsFiles& tls = {}) {
    const Status s = worker->listen({.listen = "lo", .tls = tls});
    ASSERT_TRUE(s) << s.message();
    at = decode_stream_address(worker->address())->candidates.front();
  }
  std::vector<Fd> strangers(int count) const {
    std::vector<Fd> all;
    for (int i = 0; i < count; ++i) all.push_back(*connect_tcp(at, Deadline(kPatience)));
    return all;
  }
  std::shared_ptr<Context> context = *Context::create(Transport::kTcp);
  std::unique_ptr<Worker> worker = *Worker::create(context);
  HostPort at;
};

TEST_F(JobListener, NoDescriptorsLeft_ExpectItToRest) {
  listen();
  const auto waiting = strangers(3);
  for (int i = 0; i < 100; ++i) worker->progress();  // all have come in
  const auto more = strangers(1);
  {
    const NoDescriptors none;
    // One of the accepted connections must be closed first, to make room for the new one.
    const auto stays = [&](const Fd& one) {
      pollfd p{one.get(), POLLRDHUP, 0};
      return ::poll(&p, 1, 0) == 0;
    };
    const Deadline patience(kPatience);
    while (std::ranges::all_of(waiting, stays) && !patience.passed()) worker->progress();
    EXPECT_EQ(std::ranges::count_if(waiting, stays), 2);
  }
}

TEST_F(JobListener, NobodyMakesWay_ExpectNoTurnToWorkButSomeEachSecond) {
  listen();
  const auto waiting = strangers(1);
  const NoDescriptors none;
  const std::uint64_t since = now_ns();
  std::uint64_t turns = 0, worked = 0;
  for (; now_ns() - since < 500'000'000; ++turns) worked += worker->progress();
  EXPECT_LE(worked, 10 + (now_ns() - since) / 50'000'000) << "of " << turns;
}

TEST_F(JobListener, ManyAtOnce_ExpectABoundedNumberInATurn) {
  listen();
  const auto waiting = strangers(60);
  const std::size_t before = open_descriptors();
  const Deadline patience(kPatience);
  while (open_descriptors() == before && !patience.passed()) (void)worker->progress();
  EXPECT_LE(open_descriptors() - before, 40U);
  while (open_descriptors() < before + 60 && !patience.passed()) (void)worker->progress();
  EXPECT_EQ(open_descriptors(), before + 60) << "all, in the end";
}

TEST_F(JobListener, FloodOfTlsHandshakes_ExpectATenthOfTheTime) {
  testing_support::Certificates made;
  listen(made.files("authority", "job", "IP:127.0.0.1"));
  const std::vector<char> hello = testing_support::client_hello();
  std::list<Fd> waiting;
  int answered = 0;
  std::uint64_t spent = 0;
  const std::uint64_t since = now_ns();
  while (now_ns() - since < 1'000'000'000) {
    while (waiting.size() < 32) {
      waiting.push_back(*connect_tcp(at, Deadline(kPatience)));
      ASSERT_EQ(::send(waiting.back().get(), hello.data(), hello.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(hello.size()));
    }
    const std::uint64_t before = thread_cpu_ns();
    if (worker->progress() != 0) spent += thread_cpu_ns() - before;
    answered += static_cast<int>(std::erase_if(waiting, [](const Fd& one) {
      pollfd p{one.get(), POLLIN, 0};
      return ::poll(&p, 1, 0) == 1;
    }));
  }
  EXPECT_LT(spent, (now_ns() - since) / 4 + 20'000'000) << "a tenth for handshakes, and the first burst";
  EXPECT_GT(answered, 0);
}

// ---------------------------------------------------------------- the doorway itself

class Doorways : public testing::Test {
 protected:
  std::unique_ptr<Doorway> make(std::function<void(int)> accepted = {}) {
    return *Doorway::create({.secret = [](Purpose, std::uint64_t) { return "secret"; },
                             .proven = [this](Doorway::Proven one) { proven.push_back(std::move(one)); },
                             .turned_away = [this](const Status& why) { turned_away.push_back(why); },
                             .cannot_accept = [this](int error) { errors.push_back(error); },
                             .accepted = std::move(accepted)});
  }
  Fd connect() const { return *connect_tcp(at, Deadline(kPatience)); }

  Fd listener = *listen_tcp({"127.0.0.1", 0});
  HostPort at{"127.0.0.1", *local_port(listener)};
  std::vector<Doorway::Proven> proven;
  std::vector<Status> turned_away;
  std::vector<int> errors;
};

TEST_F(Doorways, ProcessStopsDuringAHandshake_ExpectTheDoorToStayOpen) {
  testing_support::Certificates made;
  const auto tls = *Tls::server(made.files("authority", "agent", "IP:127.0.0.1"));
  // Takes wall time but no CPU time, as if the process were stopped.
  const auto doorway = make([](int) { std::this_thread::sleep_for(500ms); });
  ASSERT_TRUE(doorway->add(listener, tls));
  const Fd first = connect();
  doorway->step();
  ASSERT_EQ(doorway->unproven(), 1U);
  const Fd second = connect();
  pollfd news{doorway->fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&news, 1, 30'000), 1) << "shut, until tend() opens it";
}

TEST_F(Doorways, OutOfDescriptors_ExpectOneToMakeWayForEachThatComesAndNoneForNobody) {
  const auto doorway = make();
  ASSERT_TRUE(doorway->add(listener));
  std::vector<Fd> strangers;
  for (int i = 0; i < 5; ++i) strangers.push_back(connect());
  const Deadline patience(kPatience);
  while (doorway->unproven() < 5 && !patience.passed()) doorway->step();
  Fd next = connect();
  const NoDescriptors none;
  while (turned_away.empty() && !patience.passed()) doorway->step();
  ASSERT_EQ(turned_away.size(), 1U);
  EXPECT_EQ(turned_away.front().code(), StatusCode::kResourceExhausted);
  for (int i = 0; i < 100; ++i) doorway->step();
  EXPECT_EQ(turned_away.size(), 1U);
  EXPECT_EQ(doorway->unproven(), 5U);
  EXPECT_TRUE(errors.empty());
}

TEST_F(Doorways, LimitOfDescriptors_ExpectAQuarterOfThemAtMost) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{400, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  const auto doorway = make();
  ASSERT_TRUE(doorway->add(listener));
  std::vector<Fd> strangers;
  const Deadline patience(kPatience);
  for (std::size_t i = 1; i <= 120; ++i) {
    strangers.push_back(connect());
    while (doorway->unproven() + turned_away.size() < i && !patience.passed()) doorway->step();
  }
  EXPECT_EQ(doorway->unproven(), 100U);
  EXPECT_EQ(turned_away.size(), 20U);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace wherry::fabric
