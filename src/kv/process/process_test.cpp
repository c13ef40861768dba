// SPDX-License-Identifier: Apache-2.0
// Runs keepers and nodes as their program does, each in a thread.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <future>
#include <optional>
#include <utility>

#include "base/temporary_directory.hpp"
#include "base/testing.hpp"
#include "kv/keeper/keeper_server.hpp"
#include "kv/net/udp_port.hpp"
#include "kv/process/keeper_process.hpp"
#include "kv/process/node_process.hpp"

namespace {
/// Called when the kernel has refused an address or a lock: makes the present owner release it.
std::function<void()> predecessor_goes;  // NOLINT(cert-err58-cpp)

int noted(long result) {
  const int error = errno;
  if (result != 0 && predecessor_goes) std::exchange(predecessor_goes, nullptr)();
  errno = error;
  return static_cast<int>(result);
}
}  // namespace

extern "C" int bind(int fd, const sockaddr* address, socklen_t bytes) noexcept {
  return noted(::syscall(SYS_bind, fd, address, bytes));
}
extern "C" int flock(int fd, int operation) noexcept { return noted(::syscall(SYS_flock, fd, operation)); }

namespace wherry::kv {
namespace {

using namespace std::chrono_literals;

constexpr Endpoint kAny{.ip = INADDR_LOOPBACK};

/// Runs a process's work in a thread until the end of the test.
class Running {
 public:
  template <typename Run>
  explicit Running(const Run& run) : end_(std::async(std::launch::async, [this, run] { return run(stop_); })) {}
  ~Running() { stop_ = true; }
  /// Waits until `done()` is true. Fails if the work ends before.
  bool until(const std::function<bool()>& done) {
    for (const Deadline deadline(2min); !deadline.passed();) {
      if (done()) return true;
      if (end_.wait_for(10ms) == std::future_status::ready) {
        ADD_FAILURE() << end_.get().message();
        return false;
      }
    }
    return false;
  }

 private:
  std::atomic<bool> stop_ = false;
  std::future<wherry::Status> end_;
};

ClusterFile cluster_of(const std::string& head, const Endpoint& node) {
  return *parse_cluster_file(
      fmt::format(
          "[cluster]\nname = \"lab\"\nbucket_bits = 8\nlanes = 16\n{}\n[[node]]\nnumber = 0\nudp = \"127.0.0.1:{}\"\n",
          head, node.port),
      "test");
}

Running node_of(const ClusterFile& cluster) {
  NodeProcessOptions options;
  options.cluster = cluster;
  return Running([options](const std::atomic<bool>& stop) { return run_node(options, stop); });
}

void ping(UdpPort& from, const Endpoint& node) {
  from.send(node, {.header = {.kind = static_cast<std::uint8_t>(Kind::ping), .request = 7}});
  from.flush();
}
std::size_t answers(UdpPort& at) {
  return at.poll([](const Endpoint&, const Message&) {});
}

TEST(KvNodeProcess, PredecessorStillHasThePort_ExpectItWaitedFor) {
  std::optional<UdpPort> predecessor(*UdpPort::open(kAny));
  const Endpoint node = predecessor->local();
  std::atomic<bool> gone = false;
  predecessor_goes = [&] {
    predecessor.reset();
    gone = true;
  };
  Running successor = node_of(cluster_of("mode = \"static\"", node));
  UdpPort client = *UdpPort::open(kAny);
  EXPECT_TRUE(successor.until([&] {
    if (gone) ping(client, node);
    return answers(client) != 0;
  }));
  predecessor_goes = nullptr;
}

TEST(KvKeeperProcess, PredecessorStillHasThePortOrTheLock_ExpectItWaitedFor) {
  const auto directory = TemporaryDirectory::create("keeper");
  KeeperProcessOptions options{.state_file = directory->file("state.json")};
  for (const bool lock : {false, true}) {
    std::optional<Fd> port(*listen_tcp({"127.0.0.1", 0}));
    options.listen = {"127.0.0.1", *local_port(*port)};
    options.cluster =
        cluster_of(fmt::format("mode = \"keeper\"\nkeeper = \"{}\"", options.listen.to_string()), {.port = 19286});
    std::unique_ptr<ConfigurationStore> store;
    if (lock) {
      store = *open_file_store(options.state_file);
      port.reset();
    }
    std::atomic<bool> gone = false;
    predecessor_goes = [&] {
      store.reset();
      port.reset();
      gone = true;
    };
    Running successor([options](const std::atomic<bool>& stop) { return run_keeper(options, stop); });
    EXPECT_TRUE(successor.until([&] { return gone && connect_tcp(options.listen, Deadline(1s)); })) << lock;
    predecessor_goes = nullptr;
  }
}

TEST(KvNodeProcess, SourceThatTheFileDoesNotAllow_ExpectNoAnswerAndAnAllowedOneAnswered) {
  const Endpoint at{.ip = INADDR_LOOPBACK, .port = testing_support::free_port()};
  Running node = node_of(cluster_of("mode = \"static\"\nclients = [\"127.0.0.4/31\"]", at));
  const auto client = [](std::uint32_t last) { return *UdpPort::open({.ip = 0x7f000000 + last}); };
  UdpPort stranger = client(2), beside = client(6);
  for (const std::uint32_t last : {4, 5, 1}) {  // the last one is a member's
    UdpPort allowed = client(last);
    EXPECT_TRUE(node.until([&] {
      ping(stranger, at);  // before the one that is answered
      ping(beside, at);
      ping(allowed, at);
      return answers(allowed) != 0;
    })) << last;
  }
  EXPECT_EQ(answers(stranger), 0U);
  EXPECT_EQ(answers(beside), 0U);
}

}  // namespace
}  // namespace wherry::kv
