// SPDX-License-Identifier: Apache-2.0
// Tests against a real etcd on a free port, in its own directory.
#include "kv/keeper/etcd.hpp"
#include "base/testing.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "base/socket.hpp"
#include "base/temporary_directory.hpp"
#include "fabric/tls_testing.hpp"

namespace wherry::kv {
namespace {

using testing_support::free_port;
using testing_support::kPatience;

/// The time for an answer of an endpoint that hangs: then the next one is asked.
constexpr std::chrono::milliseconds kHangs(1000);

class Etcd : public testing::Test {
 protected:
  void SetUp() override { start("http"); }
  /// `tls`: etcd's arguments for certificates.
  void start(const std::string& scheme, const std::vector<std::string>& tls = {}) {
    url_ = scheme + "://127.0.0.1:" + std::to_string(free_port());
    const std::string peer = "http://127.0.0.1:" + std::to_string(free_port());
    const std::string log = directory_.file("log");
    std::vector<std::string> words{"etcd",
                                   "--data-dir=" + data_,
                                   "--listen-client-urls=" + url_,
                                   "--advertise-client-urls=" + url_,
                                   "--listen-peer-urls=" + peer,
                                   "--initial-advertise-peer-urls=" + peer,
                                   "--initial-cluster=default=" + peer};
    words.insert(words.end(), tls.begin(), tls.end());
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    process_ = fork();
    ASSERT_GE(process_, 0);
    if (process_ == 0) {
      const int fd = ::open(log.c_str(), O_WRONLY | O_CREAT, 0600);
      dup2(fd, 1);
      dup2(fd, 2);
      execvp("etcd", arguments.data());
      _exit(127);
    }
    const Deadline deadline(kPatience);
    while (!ca_.empty() && ::access(ca_.c_str(), R_OK) != 0 && !deadline.passed())
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    auto probe = open("probe", std::chrono::seconds(300), kHangs);
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
  /// On a busy machine an answer may take seconds, so a test that does not wait for a limit has long ones.
  std::unique_ptr<EtcdElection> open(const std::string& self, std::chrono::seconds lease = std::chrono::seconds(300),
                                     std::chrono::milliseconds timeout = kPatience) {
    EtcdOptions o;
    o.urls = urls_.empty() ? std::vector<std::string>{url_} : urls_;
    o.ca = ca_;
    o.cert = own_.certificate;
    o.key = own_.key;
    o.prefix = "/wherry/kv/test";
    o.self = self;
    o.lease = lease;
    o.timeout = timeout;
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

  TemporaryDirectory directory_ = *TemporaryDirectory::create("etcd");
  std::string data_ = directory_.file("data");
  std::string url_;
  std::vector<std::string> urls_;  ///< instead
  std::string ca_;
  fabric::TlsFiles own_;  ///< a keeper's certificate and key
  pid_t process_ = -1;
};

class EtcdWithTls : public Etcd {
  void SetUp() override {
    ca_ = data_ + "/fixtures/client/cert.pem";
    start("https", {"--auto-tls"});  // a certificate of its own making
  }
};

class EtcdThatAsksForCertificates : public Etcd {
 protected:
  void SetUp() override {
    ASSERT_NE(signal(SIGPIPE, SIG_IGN), SIG_ERR);  // as the programs do: OpenSSL writes to what etcd has closed
    const fabric::TlsFiles etcd = certificates_.files("authority", "etcd", "IP:127.0.0.1");
    own_ = certificates_.files("authority", "keeper", "IP:127.0.0.1");
    ca_ = etcd.ca;
    start("https", {"--client-cert-auth", "--trusted-ca-file=" + etcd.ca, "--cert-file=" + etcd.certificate,
                    "--key-file=" + etcd.key});
  }
  testing_support::Certificates certificates_;
};

/// Relays connections to an etcd endpoint. While it hangs, it accepts connections but sends nothing.
class Relay {
 public:
  explicit Relay(const std::string& url) : to_(*parse_host_port(url.substr(url.find("//") + 2))) {
    thread_ = std::thread([this] { run(); });
  }
  ~Relay() {
    over_ = true;
    thread_.join();
  }
  void hang() { hangs_ = true; }
  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(*local_port(listener_)); }

 private:
  void run() {
    std::vector<std::pair<Fd, Fd>> pairs;
    std::vector<Fd> unheard;
    while (!over_) {
      pollfd came{listener_.get(), POLLIN, 0};
      if (::poll(&came, 1, 2) == 1) {
        Fd from(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (hangs_)
          unheard.push_back(std::move(from));
        else
          pairs.emplace_back(std::move(from), *connect_tcp(to_, Deadline(kPatience)));
      }
      for (const auto& [a, b] : pairs) {
        pass(a, b);
        pass(b, a);
      }
    }
  }
  void pass(const Fd& from, const Fd& to) const {
    std::array<char, 4096> data{};
    while (!hangs_) {
      const ssize_t bytes = ::recv(from.get(), data.data(), data.size(), MSG_DONTWAIT);
      if (bytes <= 0) return;
      (void)::send(to.get(), data.data(), static_cast<std::size_t>(bytes), MSG_NOSIGNAL);
    }
  }

  const HostPort to_;
  const Fd listener_ = *listen_tcp({"127.0.0.1", 0});
  std::atomic<bool> over_ = false, hangs_ = false;
  std::thread thread_;
};

TEST_F(Etcd, KeeperFallsSilent_ExpectAnotherGoesOnAndTheOldOneCannotPublish) {
  auto first = open("10.0.0.1:1", std::chrono::seconds(10));
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
  const Deadline deadline(kPatience);
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

TEST_F(Etcd, AnEndpointHangs_ExpectTheNextAskedAndTheMandateKept) {
  Relay relay(url_);
  urls_ = {relay.url(), url_};
  auto one = open("10.0.0.1:1", std::chrono::seconds(300), kHangs);
  ASSERT_TRUE(one->campaign());
  auto store = one->store();
  ASSERT_TRUE(store->store(epoch(1)));
  const std::int64_t term = one->elected();
  const std::uint64_t mandate = one->mandate_ns();
  relay.hang();
  ASSERT_TRUE(one->keep_alive());
  EXPECT_EQ(one->elected(), term);
  EXPECT_GT(one->mandate_ns(), mandate);
  ASSERT_TRUE(store->store(epoch(2)));
  EXPECT_EQ((*open("10.0.0.2:2", std::chrono::seconds(300), kHangs)->store()->load())->epoch, 2U)
      << "one that comes since";
}

TEST_F(Etcd, Standby_ExpectItToWatchWithoutAWriteAndToFollowAtOnce) {
  httplib::Client etcd(url_);
  const auto field = [](const httplib::Result& answer, const char* key) {
    return answer ? nlohmann::json::parse(answer->body)[key].get<std::string>() : std::string();
  };
  // A new etcd writes its cluster version once, without a request.
  const Deadline deadline(kPatience);
  while (field(etcd.Get("/version"), "etcdcluster") == "not_decided" && !deadline.passed())
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  // The size of etcd's log. Every campaign writes to it, even a lost one, because it asks for a lease.
  const auto written = [&] {
    return field(etcd.Post("/v3/maintenance/status", "{}", "application/json"), "raftIndex");
  };
  auto first = open("10.0.0.1:1");
  auto second = open("10.0.0.2:2");
  ASSERT_TRUE(first->campaign());
  const std::string before = written();
  ASSERT_FALSE(before.empty());
  std::atomic<bool> stop = false;
  std::thread standby([&] { second->run(stop); });
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  EXPECT_EQ(written(), before);
  EXPECT_EQ(second->elected(), 0);
  EXPECT_TRUE(first->resign());
  while (second->elected() == 0 && !deadline.passed()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_NE(second->elected(), 0);
  EXPECT_GT(second->mandate_ns(), boot_ns());
  EXPECT_EQ(*first->leader(), "10.0.0.2:2");
  EXPECT_NE(written(), before);
  stop = true;
  standby.join();
  EXPECT_EQ(second->elected(), 0);
  EXPECT_EQ(*first->leader(), "") << "it resigned";
}

TEST_F(Etcd, EtcdStandsStill_ExpectTheMandateReadableMeanwhileAndThenOver) {
  auto one = open("10.0.0.1:1", std::chrono::seconds(2), kHangs);
  std::atomic<bool> stop = false;
  std::thread thread([&] { one->run(stop); });
  Deadline deadline(kPatience);
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
  // The same keeper continues if etcd did not let its lease expire meanwhile, or if it is elected again.
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

TEST_F(EtcdThatAsksForCertificates, KeeperWithoutOneOrOfAnotherAuthority_ExpectItRefusedAndItsOwnServed) {
  auto keeper = open("10.0.0.1:1");
  ASSERT_TRUE(keeper->campaign());
  ASSERT_TRUE(keeper->store()->store(epoch(1)));
  ASSERT_TRUE(keeper->resign());
  own_ = certificates_.files("another", "stranger", "IP:127.0.0.1");
  EXPECT_EQ(open("10.0.0.2:2")->campaign().code(), StatusCode::kUnavailable);
  own_ = {};
  EXPECT_EQ(open("10.0.0.2:2")->campaign().code(), StatusCode::kUnavailable);
  EXPECT_EQ(*keeper->leader(), "");
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
