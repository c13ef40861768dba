// SPDX-License-Identifier: Apache-2.0
// Tests faults one by one: the requester's result, the counters, and that nothing remains.
#include <gtest/gtest.h>

#include "sim/pcie/testing.hpp"

namespace wherry::sim::pcie {
namespace {

using testing_support::Hierarchy;
using testing_support::kBarBytes;
using testing_support::MemoryDevice;
using testing_support::pattern;
using enum CompletionStatus;

/// Device 0 reads 1000 bytes of device 1: the status, and the data that came.
struct Outcome {
  CompletionStatus status;
  std::vector<std::byte> data;
};
Outcome read(Hierarchy& system, std::uint32_t bytes = 1000, std::uint64_t offset = 0) {
  std::vector<std::byte> data(bytes);
  system[0].done.clear();
  system[0].port->post_read({.address = system.bar(1) + offset, .bytes = bytes, .into = data.data(), .token = 1});
  system.queue.run();
  EXPECT_EQ(system[0].done.size(), 1U);
  EXPECT_EQ(system[0].port->reads_pending(), 0U);
  EXPECT_EQ(system.fabric.in_flight(), 0U);
  return {system[0].done.empty() ? kAborted : system[0].done[0].second, data};
}
Hierarchy prepared(std::uint64_t seed = 1) {
  Hierarchy::Shape shape;
  shape.fabric.seed = seed;
  return Hierarchy(shape);
}
const std::uint64_t& count(Hierarchy& system, FaultKind kind) {
  return system.fabric.counters().faults[static_cast<std::size_t>(kind)];
}

TEST(Fault, ReadVanishes_ExpectATimeoutAfterTheTimeThatWasSet) {
  Hierarchy system({});
  system.fabric.add_fault({.kind = FaultKind::kVanish, .at = system.nodes[1], .tlp = TlpKind::kRead, .count = 1});
  system[0].port->set_completion_timeout(70 * kMicrosecond);
  EXPECT_EQ(read(system).status, kTimeout);
  EXPECT_EQ(system[0].last_done, 70 * kMicrosecond);
  EXPECT_EQ(system[0].port->counters().timeouts, 1U);
  EXPECT_EQ(count(system, FaultKind::kVanish), 1U);
  EXPECT_EQ(read(system).status, kSuccess);
}

TEST(Fault, CompletionVanishes_ExpectATimeoutAndLaterReadsUnharmed) {
  Hierarchy system({});
  system[1].memory = pattern(kBarBytes);
  system.fabric.add_fault({.kind = FaultKind::kVanish, .at = system.nodes[0], .tlp = TlpKind::kCompletion, .count = 1});
  EXPECT_EQ(read(system).status, kTimeout);
  // The completions after the gap have a wrong byte count, so they do not belong to this read.
  EXPECT_GE(system[0].port->counters().unexpected_completions, 1U);
  const Outcome second = read(system);
  EXPECT_EQ(second.status, kSuccess);
  EXPECT_TRUE(std::equal(second.data.begin(), second.data.end(), system[1].memory.begin()));
}

TEST(Fault, WriteVanishes_ExpectOthersToArrive) {
  Hierarchy system({});
  system.fabric.add_fault(
      {.kind = FaultKind::kVanish, .at = system.nodes[1], .tlp = TlpKind::kWrite, .skip = 2, .count = 1});
  for (int i = 0; i < 5; ++i)
    system[0].port->post_write(system.bar(1) + static_cast<std::uint64_t>(i) * 64, pattern(64));
  system.queue.run();
  EXPECT_EQ(system[1].writes.size(), 4U);
  EXPECT_EQ(system.fabric.in_flight(), 0U);
}

TEST(Fault, UnsupportedRequest_ExpectTheStatusAndNoDataAtTheDevice) {
  Hierarchy system({});
  system.fabric.add_fault({.kind = FaultKind::kUnsupportedRequest, .at = system.nodes[1], .count = 2});
  EXPECT_EQ(read(system, 100).status, kUnsupportedRequest);
  system[0].port->post_write(system.bar(1), pattern(4));
  system.queue.run();
  EXPECT_EQ(system[1].reads, 0U);
  EXPECT_EQ(system[1].bytes_written, 0U);
  EXPECT_EQ(system.fabric.counters().unsupported_reads, 1U);
  EXPECT_EQ(system.fabric.counters().unsupported_writes, 1U);
  EXPECT_EQ(system[0].port->counters().reads_failed, 1U);
}

TEST(Fault, CompleterAbortInjected_ExpectTheStatus) {
  Hierarchy system({});
  system.fabric.add_fault(
      {.kind = FaultKind::kCompleterAbort, .at = system.switch_node, .tlp = TlpKind::kRead, .count = 1});
  EXPECT_EQ(read(system, 100).status, kCompleterAbort);
}

TEST(Fault, CompletionBecomesAnAbort_ExpectTheStatusAndTheRestUnexpected) {
  Hierarchy system({});
  system.fabric.add_fault(
      {.kind = FaultKind::kCompleterAbort, .at = system.nodes[0], .tlp = TlpKind::kCompletion, .count = 1});
  EXPECT_EQ(read(system, 512).status, kCompleterAbort);
  EXPECT_EQ(system[0].port->counters().unexpected_completions, 1U);
}

TEST(Device, AnswersWithErrors_ExpectThemAtTheRequester) {
  for (const CompletionStatus status : {kCompleterAbort, kUnsupportedRequest}) {
    Hierarchy system({});
    system[1].answers = status;
    EXPECT_EQ(read(system, 100).status, status);
  }
}

TEST(Device, ReadOfWhichOnePartFails_ExpectTheOtherPartsAndTheFirstError) {
  Hierarchy system({});
  system[1].memory = pattern(kBarBytes);
  // 2000 bytes are four requests of 512; the second is refused.
  system.fabric.add_fault(
      {.kind = FaultKind::kUnsupportedRequest, .at = system.nodes[1], .tlp = TlpKind::kRead, .skip = 1, .count = 1});
  const Outcome outcome = read(system, 2000);
  EXPECT_EQ(outcome.status, kUnsupportedRequest);
  EXPECT_TRUE(std::equal(outcome.data.begin(), outcome.data.begin() + 512, system[1].memory.begin()));
  EXPECT_TRUE(std::equal(outcome.data.begin() + 1024, outcome.data.end(), system[1].memory.begin() + 1024));
}

TEST(Fault, PoisonedCompletion_ExpectDataAndTheStatus) {
  Hierarchy system({});
  system[1].memory = pattern(kBarBytes);
  system.fabric.add_fault(
      {.kind = FaultKind::kPoison, .at = system.nodes[0], .tlp = TlpKind::kCompletion, .skip = 1, .count = 1});
  const Outcome outcome = read(system, 768);
  EXPECT_EQ(outcome.status, kPoisoned);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < 768; ++i) wrong += outcome.data[i] != system[1].memory[i] ? 1 : 0;
  EXPECT_EQ(wrong, 1U);
  EXPECT_EQ(system[0].port->counters().poisoned_received, 1U);
}

TEST(Fault, PoisonedWrite_ExpectTheMarkAtTheDevice) {
  Hierarchy system({});
  system.fabric.add_fault({.kind = FaultKind::kPoison, .at = system.nodes[1], .count = 1});
  system[0].port->post_write(system.bar(1), pattern(600));
  system.queue.run();
  ASSERT_EQ(system[1].writes.size(), 3U);
  EXPECT_TRUE(system[1].writes[0].poisoned);
  EXPECT_FALSE(system[1].writes[1].poisoned);
  EXPECT_EQ(system[1].port->counters().poisoned_received, 1U);
}

TEST(Fault, DelayedRead_ExpectLaterOnesToPass) {
  Hierarchy system({});
  system.fabric.add_fault({.kind = FaultKind::kDelay,
                           .at = system.switch_node,
                           .tlp = TlpKind::kRead,
                           .count = 1,
                           .delay = 5 * kMicrosecond});
  system[0].port->post_read({.address = system.bar(1), .bytes = 64, .token = 1});
  system[0].port->post_read({.address = system.bar(1), .bytes = 64, .token = 2});
  system.queue.run();
  ASSERT_EQ(system[0].done.size(), 2U);
  EXPECT_EQ(system[0].done[0].first, 2U);
  EXPECT_GE(system[0].last_done, 5 * kMicrosecond);
}

TEST(Fault, DelayedWrite_ExpectReadsAndWritesBehindToWait) {
  Hierarchy system({});
  system.fabric.add_fault({.kind = FaultKind::kDelay,
                           .at = system.switch_node,
                           .tlp = TlpKind::kWrite,
                           .count = 1,
                           .delay = 5 * kMicrosecond});
  system[0].port->post_write(system.bar(1), pattern(64));
  system[0].port->post_write(system.bar(1) + 64, pattern(64));
  system[0].port->post_read({.address = system.bar(1), .bytes = 64, .token = 2});
  system.queue.run();
  EXPECT_EQ(system[1].writes[0].offset, 0U);
  EXPECT_GE(system[1].writes[0].at, 5 * kMicrosecond);
  EXPECT_GT(system[0].last_done, system[1].writes[1].at);
}

TEST(Fault, ByAddressAndRequester_ExpectOthersUnharmed) {
  Hierarchy system({});
  Fault fault{.kind = FaultKind::kVanish, .tlp = TlpKind::kWrite, .requester = system[0].port->id()};
  fault.address = system.bar(1) + 0x100;
  fault.bytes = 0x100;
  system.fabric.add_fault(fault);
  for (std::uint64_t i = 0; i < 4; ++i) system[0].port->post_write(system.bar(1) + i * 0x100, pattern(0x100));
  system[1].port->post_write(system.bar(0) + 0x100, pattern(8));
  system.queue.run();
  ASSERT_EQ(system[1].writes.size(), 3U);
  EXPECT_EQ(system[1].writes[1].offset, 0x200U);
  EXPECT_EQ(system[0].bytes_written, 8U);
}

TEST(Fault, OneInTen_ExpectAboutATenthAndTheSameBySeed) {
  const auto lost = [](std::uint64_t seed) {
    Hierarchy system = prepared(seed);
    system.fabric.add_fault({.kind = FaultKind::kVanish, .at = system.nodes[1], .one_in = 10});
    for (std::uint64_t i = 0; i < 2000; ++i) system[0].port->post_write(system.bar(1) + i * 16, pattern(16));
    system.queue.run();
    EXPECT_EQ(system[1].writes.size() + count(system, FaultKind::kVanish), 2000U);
    return count(system, FaultKind::kVanish);
  };
  EXPECT_NEAR(static_cast<double>(lost(3)), 200, 60);
  EXPECT_EQ(lost(3), lost(3));
  EXPECT_NE(lost(3), lost(4));
}

TEST(BusMaster, Off_ExpectNothingToLeaveAndReadsToBeAborted) {
  Hierarchy system({});
  system[0].port->set_bus_master(false);
  system[0].port->post_write(system.bar(1), pattern(64));
  EXPECT_EQ(read(system, 64).status, kAborted);
  EXPECT_EQ(system[1].bytes_written, 0U);
  EXPECT_EQ(system[0].port->counters().master_off, 2U);
  // It still answers.
  system[1].port->post_read({.address = system.bar(0), .bytes = 4, .token = 8});
  system.queue.run();
  ASSERT_EQ(system[1].done.size(), 1U);
  EXPECT_EQ(system[1].done[0].second, kSuccess);
  system[0].port->set_bus_master(true);
  EXPECT_EQ(read(system, 64).status, kSuccess);
}

TEST(BusMaster, OffWhileReadsWaitForTags_ExpectThoseAbortedAndTheOthersDone) {
  Hierarchy::Shape shape;
  shape.function.tags = 2;
  Hierarchy system(shape);
  system[1].latency = kMicrosecond;
  for (Token token = 0; token < 4; ++token)
    system[0].port->post_read({.address = system.bar(1), .bytes = 512, .token = token});
  system.queue.call(500 * kNanosecond, [&] { system[0].port->set_bus_master(false); });
  system.queue.run();
  ASSERT_EQ(system[0].done.size(), 4U);
  int aborted = 0;
  for (const auto& [token, status] : system[0].done) {
    EXPECT_EQ(status, token < 2 ? kSuccess : kAborted) << token;
    aborted += status == kAborted ? 1 : 0;
  }
  EXPECT_EQ(aborted, 2);
}

TEST(MemorySpace, Off_ExpectUnsupportedRequests) {
  Hierarchy system({});
  system[1].port->set_memory_space(false);
  EXPECT_EQ(read(system, 64).status, kUnsupportedRequest);
  EXPECT_EQ(system[1].port->counters().unsupported, 1U);
  system[1].port->set_memory_space(true);
  EXPECT_EQ(read(system, 64).status, kSuccess);
}

TEST(Tags, FewerThanRequests_ExpectAllToBeServedWithNoMoreThanTags) {
  Hierarchy::Shape shape;
  shape.function.tags = 3;
  Hierarchy system(shape);
  system[1].memory = pattern(kBarBytes);
  system[1].latency = kMicrosecond;
  std::vector<std::byte> data(8192);
  ASSERT_TRUE(system[0].port->try_read({.address = system.bar(1), .bytes = 8192, .into = data.data(), .token = 1}));
  EXPECT_FALSE(
      system[0].port->try_read({.address = system.bar(1), .bytes = 4, .token = 2}));  // the first waits for tags
  std::uint32_t most = 0;
  while (system.queue.step()) most = std::max(most, system[0].port->reads_pending());
  EXPECT_EQ(most, 3U);
  EXPECT_EQ(system[0].rooms, 1U);
  EXPECT_TRUE(std::equal(data.begin(), data.end(), system[1].memory.begin()));
}

}  // namespace
}  // namespace wherry::sim::pcie
