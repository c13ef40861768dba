// SPDX-License-Identifier: Apache-2.0
// The driver of a virtual function against a model of a physical function (pf_model_testing.hpp). The model reads
// messages field by field, at the offsets of the structures of virtchnl.h.
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "bypass/nic/nic.hpp"
#include "bypass/nic/pf_model_testing.hpp"
#include "bypass/nic/virtchnl.hpp"

namespace wherry::bypass {
namespace {

using testing_support::field;
using testing_support::PfModel;
using testing_support::set;

struct Bench {
  std::vector<std::byte> memory = std::vector<std::byte>(kMessageMemory);
  PfModel pf;
  std::unique_ptr<Nic> nic;
  Bench() {
    pf.memory = memory;
    pf.address = 0x7'0010'0000;
    auto made = make_nic(*find_personality("iavf"), pf, {.bytes = memory, .address = pf.address});
    EXPECT_TRUE(made);
    if (made) nic = *std::move(made);
  }
  static NicSetup setup(std::uint32_t pairs = 1) {
    return {.rings = {.rx = 0x38'0000'0000, .tx = 0x38'0001'0000, .rx_entries = 256, .tx_entries = 512},
            .pairs = pairs,
            .ring_stride = pairs > 1 ? 0x2'0000U : 0U,
            .frame_bytes = 1522};
  }
  void expect_no_faults() const {
    for (const std::string& fault : pf.faults) ADD_FAILURE() << fault;
    for (const std::string& refusal : pf.refusals) ADD_FAILURE() << "refused: " << refusal;
  }
};

TEST(Iavf, Reset_ExpectVersionAndResourcesAsked) {
  Bench bench;
  const Status reset = bench.nic->reset();
  ASSERT_TRUE(reset) << reset.message();
  EXPECT_EQ(bench.pf.operations, (std::vector<std::uint32_t>{2, 1, 3}));
  EXPECT_EQ(text_of(bench.nic->mac()), "02:00:00:00:00:42");
  bench.expect_no_faults();
}

TEST(Iavf, Start_ExpectRingsInMessages) {
  Bench bench;
  ASSERT_TRUE(bench.nic->reset());
  const Status started = bench.nic->start(bench.setup());
  ASSERT_TRUE(started) << started.message();
  const auto& queues = bench.pf.last[6];
  // virtchnl_vsi_queue_config_info (LEGACY_SIZEOF 72, it ends in an array of one element), and one pair.
  ASSERT_EQ(queues.size(), 72U + 64U);
  EXPECT_EQ(field<std::uint16_t>(queues, 0), 7);
  EXPECT_EQ(field<std::uint16_t>(queues, 2), 1);
  EXPECT_EQ(field<std::uint16_t>(queues, 8), 7);     // txq: vsi_id
  EXPECT_EQ(field<std::uint16_t>(queues, 12), 512);  // ring_len
  EXPECT_EQ(field<std::uint16_t>(queues, 14), 0);    // headwb_enabled
  EXPECT_EQ(field<std::uint64_t>(queues, 16), 0x38'0001'0000U);
  EXPECT_EQ(field<std::uint16_t>(queues, 32), 7);      // rxq: vsi_id
  EXPECT_EQ(field<std::uint32_t>(queues, 36), 256U);   // ring_len
  EXPECT_EQ(field<std::uint32_t>(queues, 44), 2048U);  // databuffer_size
  EXPECT_EQ(field<std::uint32_t>(queues, 48), 1522U);  // max_pkt_size
  EXPECT_EQ(field<std::uint64_t>(queues, 56), 0x38'0000'0000U);
  const auto& vectors = bench.pf.last[7];
  ASSERT_EQ(vectors.size(), 14U + 12U);  // virtchnl_irq_map_info (LEGACY_SIZEOF 14) and one vector
  EXPECT_EQ(field<std::uint16_t>(vectors, 0), 1);
  EXPECT_EQ(field<std::uint16_t>(vectors, 2), 7);
  EXPECT_EQ(field<std::uint16_t>(vectors, 4), 1);
  EXPECT_EQ(field<std::uint16_t>(vectors, 6), 1);
  EXPECT_EQ(bench.pf.values[0x3800], 1U << 30 | 2U << 5);  // WB_ON_ITR, 4 us
  const auto& enable = bench.pf.last[8];
  ASSERT_EQ(enable.size(), 12U);  // virtchnl_queue_select
  EXPECT_EQ(field<std::uint32_t>(enable, 4), 1U);
  EXPECT_EQ(field<std::uint32_t>(enable, 8), 1U);
  EXPECT_FALSE(bench.pf.last.contains(14));
  bench.expect_no_faults();
}

TEST(Iavf, StartPromiscuous_ExpectItAsked) {
  Bench bench;
  ASSERT_TRUE(bench.nic->reset());
  NicSetup setup = bench.setup();
  setup.promiscuous = true;
  ASSERT_TRUE(bench.nic->start(setup));
  EXPECT_EQ(field<std::uint16_t>(bench.pf.last[14], 2), 3);
}

TEST(Iavf, StopAndStartManyTimes_ExpectTheQueueOfMessagesToWrap) {
  Bench bench;
  bench.pf.chatty = true;
  for (int round = 0; round < 10; ++round) {
    ASSERT_TRUE(bench.nic->reset()) << round;
    ASSERT_TRUE(bench.nic->start(bench.setup())) << round;
    EXPECT_TRUE(bench.nic->link().up);
    EXPECT_EQ(bench.nic->link().mbits, 25'000U);
    ASSERT_TRUE(bench.nic->stop()) << round;
    EXPECT_EQ(bench.pf.values[0x6800], 0U);
  }
  EXPECT_GE(bench.pf.resets, 20);
  bench.expect_no_faults();
}

TEST(Iavf, PfThatDoesNotAnswer_ExpectTheOperationNamed) {
  {
    Bench bench;
    bench.pf.silent = true;
    const Status reset = bench.nic->reset();
    EXPECT_EQ(reset.code(), StatusCode::kUnavailable);
    EXPECT_NE(reset.message().find("VERSION"), std::string::npos);
  }
  {
    Bench bench;
    bench.pf.dead = true;
    EXPECT_NE(bench.nic->reset().message().find("does not take message VERSION"), std::string::npos);
  }
  {
    Bench bench;
    bench.pf.removed = true;
    EXPECT_EQ(bench.nic->reset().code(), StatusCode::kUnavailable);
  }
}

TEST(Iavf, PfThatRefuses_ExpectTheStatus) {
  for (const std::uint32_t operation : {3U, 6U, 7U, 8U, 23U, 24U}) {
    Bench bench;
    bench.pf.refuse = operation;
    Status done = bench.nic->reset();
    if (done) done = bench.nic->start(bench.setup());
    EXPECT_EQ(done.code(), StatusCode::kUnavailable) << operation;
    EXPECT_NE(done.message().find("-5"), std::string::npos) << done.message();
  }
}

TEST(Iavf, PfOfAnotherVersionOrWithout_ExpectUnsupported) {
  {
    Bench bench;
    bench.pf.minor = 0;
    EXPECT_EQ(bench.nic->reset().code(), StatusCode::kUnsupported);
  }
  {
    Bench bench;
    bench.pf.lacks = 1U << 5;
    ASSERT_TRUE(bench.nic->reset());
    EXPECT_NE(bench.nic->start(bench.setup()).message().find("WB_ON_ITR"), std::string::npos);
  }
}

TEST(Iavf, PfThatCutsItsAnswer_ExpectProtocol) {
  for (const std::size_t cut : {1U, 16U, 51U, 52U}) {
    Bench bench;
    bench.pf.cut = cut;
    EXPECT_EQ(bench.nic->reset().code(), StatusCode::kProtocol) << cut;
  }
}

TEST(Iavf, StartWithWhatDoesNotFit_ExpectInvalidArgument) {
  Bench bench;
  ASSERT_TRUE(bench.nic->reset());
  std::vector<NicSetup> wrong(4, bench.setup());
  wrong[0].rings.rx_entries = 72;  // not a multiple of 32
  wrong[1].rings.tx += 64;
  wrong[2].frame_bytes = 9'728;  // above max_mtu
  wrong[3].loopback = true;
  for (std::size_t i = 0; i < wrong.size(); ++i)
    EXPECT_EQ(bench.nic->start(wrong[i]).code(), StatusCode::kInvalidArgument) << i;
}

// ---- several queue pairs

/// A Toeplitz hash, computed bit by bit as in Microsoft's definition of receive-side scaling.
std::uint32_t toeplitz(std::span<const std::uint8_t> key, std::span<const std::uint8_t> input) {
  const auto bit = [&](std::size_t i) { return static_cast<std::uint32_t>(key[i / 8] >> (7 - i % 8) & 1); };
  std::uint32_t hash = 0;
  for (std::size_t i = 0; i < 8 * input.size(); ++i) {
    if ((input[i / 8] >> (7 - i % 8) & 1) == 0) continue;
    std::uint32_t window = 0;
    for (std::size_t k = 0; k < 32; ++k) window = window << 1 | bit(i + k);
    hash ^= window;
  }
  return hash;
}

/// Source and destination address and port, in network order.
std::array<std::uint8_t, 12> flow(std::uint32_t from, std::uint32_t to, std::uint16_t from_port,
                                  std::uint16_t to_port) {
  std::array<std::uint8_t, 12> bytes{};
  for (unsigned i = 0; i < 4; ++i) {
    bytes[i] = static_cast<std::uint8_t>(from >> (24 - 8 * i));
    bytes[4 + i] = static_cast<std::uint8_t>(to >> (24 - 8 * i));
  }
  for (unsigned i = 0; i < 2; ++i) {
    bytes[8 + i] = static_cast<std::uint8_t>(from_port >> (8 - 8 * i));
    bytes[10 + i] = static_cast<std::uint8_t>(to_port >> (8 - 8 * i));
  }
  return bytes;
}

TEST(IavfPairs, TheHashOfThisTest_ExpectMicrosoftsExample) {
  constexpr std::array<std::uint8_t, 40> kKey{0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
                                              0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
                                              0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
                                              0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};
  EXPECT_EQ(toeplitz(kKey, flow(0x420995BB, 0xA18E6450, 2794, 1766)), 0x51CCC178U);
}

TEST(IavfPairs, Start_ExpectRingsVectorAndQueuesOfEach) {
  for (const std::uint32_t pairs : {1U, 2U, 4U, 16U}) {
    SCOPED_TRACE(pairs);
    Bench bench;
    bench.pf.granted = bench.pf.available = 16;
    ASSERT_TRUE(bench.nic->reset());
    const Status started = bench.nic->start(Bench::setup(pairs));
    ASSERT_TRUE(started) << started.message();
    ASSERT_EQ(bench.pf.queues.size(), 16U);
    for (std::uint32_t i = 0; i < 16; ++i) {
      const PfModel::Queue& queue = bench.pf.queues[i];
      EXPECT_EQ(queue.rx_on, i < pairs) << i;
      EXPECT_EQ(queue.tx_on, i < pairs) << i;
      if (i >= pairs) continue;
      EXPECT_EQ(queue.rx_ring, 0x38'0000'0000U + 0x2'0000U * i) << i;
      EXPECT_EQ(queue.tx_ring, 0x38'0001'0000U + 0x2'0000U * i) << i;
      EXPECT_EQ(queue.rx_entries, 256U);
      EXPECT_EQ(queue.tx_entries, 512U);
      EXPECT_TRUE(queue.has_vector) << i;
    }
    ASSERT_TRUE(bench.nic->stop());
    EXPECT_FALSE(bench.pf.moves());
    bench.expect_no_faults();
  }
}

TEST(IavfPairs, Flows_ExpectBothDirectionsOfOneInOnePairAndEveryPairUsed) {
  Bench bench;
  ASSERT_TRUE(bench.nic->reset());
  ASSERT_TRUE(bench.nic->start(Bench::setup(4)));
  ASSERT_EQ(bench.pf.key.size(), 52U);
  ASSERT_EQ(bench.pf.lut.size(), 64U);
  std::set<int> used;
  for (std::uint32_t i = 0; i < 200; ++i) {
    const std::uint32_t here = 0x0A000001, there = 0x0A010000 + i * 7;
    const auto port = static_cast<std::uint16_t>(1024 + i * 13);
    const int in = bench.pf.queue_of(toeplitz(bench.pf.key, flow(there, here, port, 7)));
    const int out = bench.pf.queue_of(toeplitz(bench.pf.key, flow(here, there, 7, port)));
    EXPECT_GE(in, 0) << "to a queue that is off";
    EXPECT_EQ(in, out);
    used.insert(in);
  }
  EXPECT_EQ(used.size(), 4U);
}

TEST(IavfPairs, OnePairOfFourGranted_ExpectEveryFrameInIt) {
  // ice's driver fills the table for all queues that it has granted.
  Bench bench;
  ASSERT_TRUE(bench.nic->reset());
  EXPECT_EQ(bench.pf.lut[1], 1U);
  ASSERT_TRUE(bench.nic->start(Bench::setup()));
  for (std::uint32_t hash = 0; hash < 64; ++hash) EXPECT_EQ(bench.pf.queue_of(hash), 0) << hash;
  bench.expect_no_faults();
}

TEST(IavfPairs, KeysAndTablesOfOtherSizes_ExpectThemFilled) {
  Bench bench;
  bench.pf.key_bytes = 40;
  bench.pf.lut_entries = 512;
  ASSERT_TRUE(bench.nic->reset());
  ASSERT_TRUE(bench.nic->start(Bench::setup(3)));
  EXPECT_EQ(bench.pf.key.size(), 40U);
  ASSERT_EQ(bench.pf.lut.size(), 512U);
  for (const std::uint8_t queue : bench.pf.lut) EXPECT_LT(queue, 3);
  bench.expect_no_faults();
}

TEST(IavfPairs, MoreThanGranted_ExpectThemAskedForAndHadAfterAReset) {
  for (const bool announces : {true, false}) {
    SCOPED_TRACE(announces);
    Bench bench;
    bench.pf.available = 8;
    bench.pf.announces = announces;
    ASSERT_TRUE(bench.nic->reset());
    const Status started = bench.nic->start(Bench::setup(8));
    ASSERT_TRUE(started) << started.message();
    EXPECT_EQ(bench.pf.granted, 8U);
    EXPECT_EQ(bench.pf.operations, (std::vector<std::uint32_t>{2, 1, 3, 29, 1, 3, 6, 7, 23, 24, 8}));
    for (const PfModel::Queue& queue : bench.pf.queues) EXPECT_TRUE(queue.rx_on && queue.tx_on);
    EXPECT_EQ(text_of(bench.nic->mac()), "02:00:00:00:00:42");
    bench.expect_no_faults();
  }
}

TEST(IavfPairs, MoreThanThePfHas_ExpectItsNumberNamedAndNothingHandedOver) {
  {
    Bench bench;
    bench.pf.available = 6;
    ASSERT_TRUE(bench.nic->reset());
    const Status started = bench.nic->start(Bench::setup(8));
    EXPECT_EQ(started.code(), StatusCode::kUnsupported);
    EXPECT_NE(started.message().find("8 queue pairs"), std::string::npos) << started.message();
    EXPECT_NE(started.message().find("grants this virtual function 6"), std::string::npos) << started.message();
    EXPECT_FALSE(bench.pf.moves());
    EXPECT_TRUE(bench.nic->start(Bench::setup(4))) << "it goes on with what it has";
    bench.expect_no_faults();
  }
  {
    Bench bench;  // a PF whose functions cannot ask
    bench.pf.lacks = 1U << 6;
    ASSERT_TRUE(bench.nic->reset());
    const Status started = bench.nic->start(Bench::setup(8));
    EXPECT_EQ(started.code(), StatusCode::kUnsupported);
    EXPECT_NE(started.message().find("grants this virtual function 4"), std::string::npos) << started.message();
    EXPECT_FALSE(bench.pf.last.contains(29));
    bench.expect_no_faults();
  }
}

TEST(IavfPairs, PfWithoutRss_ExpectOnePairAndNoMore) {
  Bench bench;
  bench.pf.lacks = 1U << 19;
  ASSERT_TRUE(bench.nic->reset());
  const Status started = bench.nic->start(Bench::setup(2));
  EXPECT_EQ(started.code(), StatusCode::kUnsupported);
  EXPECT_NE(started.message().find("RSS_PF"), std::string::npos) << started.message();
  EXPECT_FALSE(bench.pf.moves());
  ASSERT_TRUE(bench.nic->start(Bench::setup()));
  EXPECT_FALSE(bench.pf.last.contains(23));
  bench.expect_no_faults();
}

TEST(IavfPairs, ResetByThePfDuringAnyMessage_ExpectItNamedAndStartAgainAfterReset) {
  for (const bool announces : {true, false})
    for (const std::uint32_t operation : {3U, 6U, 7U, 23U, 24U, 8U}) {
      SCOPED_TRACE(operation);
      Bench bench;
      bench.pf.announces = announces;
      bench.pf.reset_at = operation;
      Status done = bench.nic->reset();
      if (done) done = bench.nic->start(Bench::setup(4));
      EXPECT_EQ(done.code(), StatusCode::kUnavailable);
      EXPECT_NE(done.message().find("reset the virtual function"), std::string::npos) << done.message();
      EXPECT_FALSE(bench.pf.moves());
      ASSERT_TRUE(bench.nic->reset());
      const Status again = bench.nic->start(Bench::setup(4));
      ASSERT_TRUE(again) << again.message();
      EXPECT_TRUE(bench.nic->stop());
      EXPECT_FALSE(bench.pf.moves());
      bench.expect_no_faults();
    }
}

TEST(IavfPairs, ResetByThePfWhileTheyRun_ExpectStopToWaitForItAndNoMessage) {
  for (const bool announces : {true, false}) {
    Bench bench;
    bench.pf.chatty = true;
    bench.pf.announces = announces;
    ASSERT_TRUE(bench.nic->reset());
    ASSERT_TRUE(bench.nic->start(Bench::setup(4)));
    EXPECT_TRUE(bench.nic->link().up);
    bench.pf.reset_function();
    EXPECT_FALSE(bench.nic->link().up);
    const std::size_t messages = bench.pf.operations.size();
    const Status stopped = bench.nic->stop();
    EXPECT_TRUE(stopped) << stopped.message();
    EXPECT_EQ(bench.pf.operations.size(), messages);
    EXPECT_EQ(bench.pf.read(0x8800), 2U) << "stop came back during the reset";
    ASSERT_TRUE(bench.nic->reset());
    ASSERT_TRUE(bench.nic->start(Bench::setup(4)));
    bench.expect_no_faults();
  }
}

TEST(IavfPairs, WhatDoesNotFit_ExpectInvalidArgument) {
  Bench bench;
  ASSERT_TRUE(bench.nic->reset());
  std::vector<NicSetup> wrong(4, Bench::setup(4));
  wrong[0].pairs = 0;
  wrong[1].pairs = 17;
  wrong[2].ring_stride = 0;
  wrong[3].ring_stride = 0x2'0040;
  for (std::size_t i = 0; i < wrong.size(); ++i)
    EXPECT_EQ(bench.nic->start(wrong[i]).code(), StatusCode::kInvalidArgument) << i;
}

TEST(Virtchnl, ParseWhatIsNone_ExpectProtocol) {
  EXPECT_EQ(virtchnl::parse_version({}).status().code(), StatusCode::kProtocol);
  EXPECT_EQ(virtchnl::parse_resources(std::vector<std::byte>(20)).status().code(), StatusCode::kProtocol);
  std::vector<std::byte> claims(20);
  set<std::uint16_t>(claims, 0, 0xFFFF);  // VSIs that are not there
  EXPECT_EQ(virtchnl::parse_resources(claims).status().code(), StatusCode::kProtocol);
  EXPECT_EQ(virtchnl::parse_event(std::vector<std::byte>(3)).status().code(), StatusCode::kProtocol);
  EXPECT_EQ(virtchnl::parse_request_queues(std::vector<std::byte>(1)).status().code(), StatusCode::kProtocol);
}

}  // namespace
}  // namespace wherry::bypass
