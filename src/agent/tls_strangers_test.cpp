// SPDX-License-Identifier: Apache-2.0
// Tests the cost of strangers for an agent that uses TLS: some send their handshake slowly, others make the agent
// compute.
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "agent/process_testing.hpp"
#include "base/socket.hpp"
#include "base/testing.hpp"
#include "fabric/tls_testing.hpp"

namespace wherry {
namespace {

using testing_support::AgentProcess;
using testing_support::client_hello;
using testing_support::expect_alive;
using testing_support::kPatience;
using namespace std::chrono_literals;

class TlsStrangers : public testing::Test {
 protected:
  TlsStrangers() : agent_({"--listen", "127.0.0.1:0", "--tls-certificate", tls_.certificate, "--tls-key", tls_.key}) {
    const auto file = read_session_file(agent_.file());
    at_ = {file->host, file->port};
    remote_.agent = at_.to_string();
    remote_.token = file->token;
    remote_.tls.ca = tls_.ca;
  }
  testing_support::Certificates made_;
  const fabric::TlsFiles tls_ = made_.files("authority", "agent", "IP:127.0.0.1");
  AgentProcess agent_;
  HostPort at_;
  SessionOptions remote_;  ///< as a client of another machine
};

TEST_F(TlsStrangers, HandshakeTrickles_ExpectItEndedAndOthersServedMeanwhile) {
  const std::vector<char> hello = client_hello();
  const auto slow = connect_tcp(at_, Deadline(kPatience));
  ASSERT_TRUE(slow) << slow.status().message();
  // At one byte each 300 ms, the hello alone takes more than a minute.
  ASSERT_GT(hello.size() * 300ms, 60s);
  bool ended = false;
  for (std::size_t i = 0; i < hello.size() && !ended; ++i) {
    ended = ::send(slow->get(), &hello[i], 1, MSG_NOSIGNAL) != 1;
    if (i == 2) expect_alive(remote_);
    std::this_thread::sleep_for(300ms);
    char answer = 0;
    ended = ended || ::recv(slow->get(), &answer, 1, MSG_DONTWAIT) == 0;
  }
  EXPECT_TRUE(ended) << "after a minute it may still go on";
  expect_alive(remote_);
}

TEST_F(TlsStrangers, FloodOfHandshakes_ExpectSessionsToGoOn) {
  const std::vector<char> hello = client_hello();
  auto session = Session::open(agent_.options());  // of this machine: its door is another one
  ASSERT_TRUE(session) << session.status().message();
  auto stream = Stream::open(*session, {.name = "x"}, {field<double>("x")});
  ASSERT_TRUE(stream) << stream.status().message();
  std::atomic<bool> over{false};
  std::vector<std::thread> flood;
  for (int i = 0; i < 2; ++i) {
    flood.emplace_back([&] {
      while (!over) {
        std::vector<Fd> at_once;
        for (int n = 0; n < 64; ++n) {
          auto one = connect_tcp(at_, Deadline(kPatience));
          if (!one) break;
          (void)!::send(one->get(), hello.data(), hello.size(), MSG_NOSIGNAL);
          at_once.push_back(*std::move(one));
        }
        char answer = 0;  // of the last one: the agent has worked for those before it
        const timeval patience{0, 100'000};
        if (at_once.empty()) continue;
        ::setsockopt(at_once.back().get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        (void)!::recv(at_once.back().get(), &answer, 1, 0);
      }
    });
  }
  const std::vector<double> x(1000, 1.0);
  const auto start = std::chrono::steady_clock::now();
  for (int offloads = 0; offloads < 20 || std::chrono::steady_clock::now() - start < 2s; ++offloads) {
    const Status s = stream->post({Column(x)})->wait(kPatience);
    ASSERT_TRUE(s) << s.message();
    std::this_thread::sleep_for(50ms);
  }
  over = true;
  for (std::thread& one : flood) one.join();
  expect_alive(agent_.options());
}

}  // namespace
}  // namespace wherry
