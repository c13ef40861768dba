// SPDX-License-Identifier: Apache-2.0
// Tests outcomes in flight to a client whose memory is not mapped. Both ends run in one thread, so that the test
// controls when each makes progress.
#include "agent/client.hpp"
#include "base/testing.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <span>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "fabric/stream_worker.hpp"

namespace wherry {
namespace {

using session::CompletionRecord;
using testing_support::kPatience;
using namespace std::chrono_literals;

constexpr std::uint32_t kTickets = 128;

class Outcomes : public testing::Test {
 protected:
  void SetUp() override {
    (void)init_log("off", "");
    plane_.context = *fabric::Context::create(Transport::kTcp);
    plane_.worker = *fabric::Worker::create(plane_.context);
    context_ = *fabric::Context::create(Transport::kTcp);
    worker_ = *fabric::Worker::create(context_);
    memory_ = *context_->allocate(kTickets * sizeof(CompletionRecord));
    session::Attach attach;
    attach.completions = {reinterpret_cast<std::uint64_t>(memory_.data()), memory_.size(), {}};
    ASSERT_TRUE(memory_.pack_key(attach.completions.key));
    worker_->stream()->accept_puts(attach.completions.base, attach.completions.size);
    int pair[2] = {-1, -1};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    theirs_ = fabric::Endpoint::over(*worker_, plain_stream(Fd(pair[1])));
    client_ = std::make_unique<AgentClient>(nullptr, "a client");
    client_->data = plain_stream(Fd(pair[0]));
    client_->plane = &plane_;
    client_->state = AgentClient::State::kReady;  // no probes: they are history
    const Status s = client_->attach(attach);
    ASSERT_TRUE(s) << s.message();
  }
  void complete(std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t ticket = first; ticket <= last; ++ticket)
      client_->complete(ticket, StatusCode::kOk, {.transfer_ns = 7 * ticket, .sequence = ticket - 1});
  }
  void progress() {
    plane_.worker->progress();
    if (worker_) worker_->progress();
  }
  /// Whether every outcome up to `last` arrives within the time limit.
  bool all_arrive(std::uint64_t last) {
    const std::span records(reinterpret_cast<const CompletionRecord*>(memory_.data()), kTickets);
    const Deadline deadline(kPatience);
    for (std::uint64_t ticket = 1; ticket <= last;) {
      const CompletionRecord& record = records[ticket % kTickets];
      if (record.word == (ticket << 8) && record.transfer_ns == 7 * ticket && record.sequence == ticket - 1) {
        ++ticket;
        continue;
      }
      if (deadline.passed()) {
        ADD_FAILURE() << "ticket " << ticket << " never became ready";
        return false;
      }
      progress();
      const Status s = client_->tend();
      EXPECT_TRUE(s) << s.message();
    }
    return true;
  }

  session::Plane plane_;
  std::shared_ptr<fabric::Context> context_;
  std::unique_ptr<fabric::Worker> worker_;
  fabric::Endpoint theirs_;
  fabric::Region memory_;
  std::unique_ptr<AgentClient> client_;
};

TEST_F(Outcomes, Posted_ExpectThemToArriveAndToBeForgotten) {
  complete(1, 100);
  EXPECT_TRUE(client_->puts_pending());
  EXPECT_TRUE(all_arrive(100));
  const Deadline deadline(kPatience);
  while (client_->puts_pending() && !deadline.passed()) {
    progress();
    ASSERT_TRUE(client_->tend());
  }
  EXPECT_FALSE(client_->puts_pending());
}

TEST_F(Outcomes, OnTheirWayWhenTheConnectionGoes_ExpectEveryOneToArrive) {
  complete(1, 40);
  ASSERT_TRUE(client_->reconnect());  // before anything left: what a source fault does to the others
  complete(41, 80);
  for (int i = 0; i < 50; ++i) progress();  // some have left, some are there
  ASSERT_TRUE(client_->reconnect());
  complete(81, 100);
  EXPECT_TRUE(all_arrive(100));
}

TEST_F(Outcomes, ClientGone_ExpectTheSessionToEndInsteadOfWaitingForEver) {
  complete(1, 3);
  ASSERT_TRUE(all_arrive(3));
  theirs_ = {};
  worker_.reset();
  complete(4, 10);
  const Deadline deadline(kPatience);
  Status s;
  while (s && !deadline.passed()) {
    progress();
    s = client_->tend();
  }
  EXPECT_EQ(s.code(), StatusCode::kUnavailable);
  EXPECT_FALSE(s.message().empty());
  EXPECT_FALSE(client_->reconnect());
}

TEST_F(Outcomes, MessagesThatNoMailboxAnnounces_ExpectALimitAndTheSessionToEnd) {
  const Bytes message(std::size_t{1} << 20);
  for (int i = 0; i < 64; ++i) client_->defer(message);
  EXPECT_TRUE(client_->tend());
  client_->defer(message);
  EXPECT_EQ(client_->tend().code(), StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace wherry
