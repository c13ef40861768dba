// SPDX-License-Identifier: Apache-2.0
// Against a real etcd, on a free port and with a directory of its own.
#include "kv/keeper/etcd.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "base/temporary_directory.hpp"

namespace wherry::kv {
namespace {

std::uint16_t free_port() {
  const auto socket = listen_tcp({"127.0.0.1", 0});
  return socket ? *local_port(*socket) : std::uint16_t{0};
}

class Etcd : public testing::Test {
 protected:
  void SetUp() override { start(false); }
  void start(bool tls) {
    auto directory = TemporaryDirectory::create("etcd");
    ASSERT_TRUE(directory);
    directory_ = *std::move(directory);
    url_ = (tls ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(free_port());
    const std::string peer = "http://127.0.0.1:" + std::to_string(free_port());
    const std::string data = directory_.file("data");
    const std::string log = directory_.file("log");
    const char* const auto_tls = tls ? "--auto-tls" : nullptr;  // a certificate of its own making
    process_ = fork();
    ASSERT_GE(process_, 0);
    if (process_ == 0) {
      const int fd = ::open(log.c_str(), O_WRONLY | O_CREAT, 0600);
      dup2(fd, 1);
      dup2(fd, 2);
      execlp("etcd", "etcd", "--data-dir", data.c_str(), "--listen-client-urls", url_.c_str(),
             "--advertise-client-urls", url_.c_str(), "--listen-peer-urls", peer.c_str(),
             "--initial-advertise-peer-urls", peer.c_str(), "--initial-cluster", ("default=" + peer).c_str(), auto_tls,
             static_cast<char*>(nullptr));
      _exit(127);
    }
    const Deadline deadline(std::chrono::seconds(30));
    if (tls) ca_ = data + "/fixtures/client/cert.pem";
    while (tls && ::access(ca_.c_str(), R_OK) != 0 && !deadline.passed())
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    auto probe = open("probe");
    while (!probe->leader() && !deadline.passed()) {
      ASSERT_EQ(waitpid(process_, nullptr, WNOHANG), 0) << "etcd does not start: is etcd-server installed?";
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    ASSERT_TRUE(probe->leader());
  }
  void TearDown() override {
    if (process_ <= 0) return;
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  std::unique_ptr<EtcdElection> open(const std::string& self) {
    EtcdOptions o;
    o.urls = urls_.empty() ? std::vector<std::string>{url_} : urls_;
    o.ca = ca_;
    o.prefix = "/wherry/kv/test";
    o.self = self;
    o.lease = std::chrono::seconds(2);
    auto election = EtcdElection::open(o);
    return election ? *std::move(election) : nullptr;
  }
  static Configuration epoch(std::uint64_t number) {
    Configuration c;
    c.epoch = number;
    c.members = c.serving = 1;
    c.leaders = first_leaders(1);
    c.peers[0] = {0, 0x7f000001, 19286};
    return c;
  }

  TemporaryDirectory directory_;
  std::string url_;
  std::vector<std::string> urls_;  ///< instead
  std::string ca_;
  pid_t process_ = -1;
};

class EtcdWithTls : public Etcd {
  void SetUp() override { start(true); }
};

TEST_F(Etcd, KeeperFallsSilent_ExpectAnotherGoesOnAndTheOldOneCannotPublish) {
  auto first = open("10.0.0.1:1");
  auto second = open("10.0.0.2:2");
  ASSERT_TRUE(first->campaign());
  EXPECT_GT(first->mandate_ns(), boot_ns());
  EXPECT_TRUE(second->campaign().is_would_block());
  EXPECT_EQ(*second->leader(), "10.0.0.1:1");
  auto old = first->store();
  ASSERT_TRUE(old->load());
  EXPECT_FALSE(old->load()->has_value());
  ASSERT_TRUE(old->store(epoch(1)));
  ASSERT_TRUE(old->store(epoch(2)));
  ASSERT_TRUE(first->keep_alive());

  const std::uint64_t mandate = first->mandate_ns();  // and no more word of it
  const Deadline deadline(std::chrono::seconds(30));
  while (!second->campaign() && !deadline.passed()) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  ASSERT_GT(second->mandate_ns(), 0U);
  EXPECT_GE(boot_ns(), mandate) << "another one was elected while the first could still believe in itself";
  auto now = second->store();
  const auto kept = now->load();
  ASSERT_TRUE(kept && kept->has_value());
  EXPECT_EQ((*kept)->epoch, 2U);
  EXPECT_EQ(old->store(epoch(3)).code(), StatusCode::kFailedPrecondition) << "it is not elected any more";
  ASSERT_TRUE(now->store(epoch(4)));
  EXPECT_EQ(old->store(epoch(5)).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(first->keep_alive().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ((*now->load())->epoch, 4U);

  ASSERT_TRUE(second->resign());
  ASSERT_TRUE(first->campaign()) << "after a resignation at once";
}

TEST_F(Etcd, FirstEndpointIsDead_ExpectTheNextAsked) {
  urls_ = {"http://127.0.0.1:" + std::to_string(free_port()), url_};
  auto one = open("10.0.0.1:1");
  ASSERT_TRUE(one->campaign());
  ASSERT_TRUE(one->store()->store(epoch(1)).code() == StatusCode::kOk);
  ASSERT_TRUE(one->keep_alive());
}

TEST_F(Etcd, Standby_ExpectItToWatchWithoutAWriteAndToFollowAtOnce) {
  auto first = open("10.0.0.1:1");
  auto second = open("10.0.0.2:2");
  ASSERT_TRUE(first->campaign());
  auto store = first->store();
  ASSERT_TRUE(store->store(epoch(1)));
  std::atomic<bool> stop = false;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(second->watch(std::chrono::milliseconds(100), stop));
  // etcd counts every write of anybody: this one finds its own the last, or its compare-and-swap would fail anyway.
  ASSERT_TRUE(store->store(epoch(2)));
  std::thread standby([&] { second->run(stop); });
  const Deadline deadline(std::chrono::seconds(30));
  ASSERT_TRUE(first->resign());
  while (second->elected() == 0 && !deadline.passed()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_NE(second->elected(), 0);
  EXPECT_GT(second->mandate_ns(), boot_ns());
  EXPECT_EQ(*first->leader(), "10.0.0.2:2");
  stop = true;
  standby.join();
  EXPECT_EQ(second->elected(), 0);
  EXPECT_EQ(*first->leader(), "") << "it resigned";
}

TEST_F(Etcd, EtcdStandsStill_ExpectTheMandateReadableMeanwhileAndThenOver) {
  auto one = open("10.0.0.1:1");
  std::atomic<bool> stop = false;
  std::thread thread([&] { one->run(stop); });
  Deadline deadline(std::chrono::seconds(30));
  while (one->elected() == 0 && !deadline.passed()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ASSERT_NE(one->elected(), 0);
  kill(process_, SIGSTOP);
  std::uint64_t fastest = ~std::uint64_t{0};
  while (one->mandate_ns() > boot_ns() && !deadline.passed()) {  // others may take the processor, but not each time
    const std::uint64_t start = now_ns();
    (void)one->mandate_ns();
    (void)one->elected();
    fastest = std::min(fastest, now_ns() - start);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_LT(fastest, 1'000'000U);
  EXPECT_LE(one->mandate_ns(), boot_ns()) << "it was not renewed";
  kill(process_, SIGCONT);
  // The same keeper goes on, if etcd has not let its lease go meanwhile, or is elected anew.
  while (one->mandate_ns() <= boot_ns() && !deadline.passed())
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_GT(one->mandate_ns(), boot_ns());
  stop = true;
  thread.join();
}

TEST_F(EtcdWithTls, Certificate_ExpectAskedForAndBelievedOnlyIfNamed) {
  auto trusting = open("10.0.0.1:1");
  EXPECT_TRUE(trusting->campaign());
  ASSERT_TRUE(trusting->store()->store(epoch(1)));
  ca_.clear();  // the system's do not know it
  EXPECT_EQ(open("10.0.0.2:2")->campaign().code(), StatusCode::kUnavailable);
}

TEST_F(Etcd, EtcdStops_ExpectSaidSo) {
  auto one = open("10.0.0.1:1");
  ASSERT_TRUE(one->campaign());
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
  process_ = -1;
  const auto s = one->keep_alive();
  EXPECT_EQ(s.code(), StatusCode::kUnavailable);
  EXPECT_NE(s.message().find(url_), std::string::npos) << s.message();
}

}  // namespace
}  // namespace wherry::kv
