// SPDX-License-Identifier: Apache-2.0
// The driver of a virtual function against a physical function that reads its messages with the structures of
// virtchnl.h (DPDK drivers/net/intel/iavf/base/virtchnl.h, iavf_adminq_cmd.h), field by field at their offsets.
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "bypass/nic/nic.hpp"
#include "bypass/nic/virtchnl.hpp"

namespace wherry::bypass {
namespace {

using namespace std::chrono_literals;

template <typename T>
T field(std::span<const std::byte> bytes, std::size_t offset) {
  T value{};
  if (offset + sizeof value <= bytes.size()) std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}
template <typename T>
void set(std::vector<std::byte>& bytes, std::size_t offset, T value) {
  if (bytes.size() < offset + sizeof value) bytes.resize(offset + sizeof value);
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

class PfModel final : public Registers {
 public:
  PfModel() : memory(kMessageMemory) {}
  static constexpr std::uint64_t kAddress = 0x7'0010'0000;
  std::vector<std::byte> memory;
  // What a test sets.
  bool silent = false;  ///< takes messages and does not answer
  bool dead = false;    ///< takes no message
  bool removed = false;
  bool no_write_back = false;  ///< without WB_ON_ITR
  std::uint32_t refuse = 0;    ///< operation that is refused
  std::uint32_t minor = 1;
  std::size_t cut = 0;  ///< bytes that its resources lack
  bool chatty = false;  ///< an event before each answer
  // What a test asks.
  std::vector<std::uint32_t> operations;
  std::map<std::uint32_t, std::vector<std::byte>> last;
  std::vector<std::string> faults;
  std::map<std::uint32_t, std::uint32_t> values;
  int resets = 0;

  std::uint32_t read(std::uint32_t offset) override {
    if (removed) return ~0U;
    if (offset == 0x8800) return now < active_at ? 0 : 2;  // VFGEN_RSTAT
    return values[offset];
  }
  void write(std::uint32_t offset, std::uint32_t value) override {
    if (removed) return;
    values[offset] = value;
    if (offset == 0x6800 || offset == 0x8000) {  // ATQLEN, ARQLEN
      if ((value & 1U << 31) != 0 && now < active_at) faults.emplace_back("a queue opens during a reset");
    }
    if (offset == 0x8400) take();
  }
  void pause(std::chrono::microseconds time) override { now += static_cast<std::uint64_t>(time.count()); }

  void send(std::uint32_t operation, std::int32_t status, const std::vector<std::byte>& bytes) {
    const std::uint32_t entries = values[0x8000] & 0x3FF;
    if ((values[0x8000] & 1U << 31) == 0 || entries == 0)
      return (void)faults.emplace_back("an answer, and no queue for it");
    const std::uint32_t head = values[0x7400];
    if (head == values[0x7000]) return (void)faults.emplace_back("no buffer for an answer");
    const std::size_t place = where(values[0x6C00] | std::uint64_t{values[0x6000]} << 32) + 32 * head;
    const auto flags = field<std::uint16_t>(memory, place);
    if ((flags & 0x1000) == 0) faults.emplace_back("a receive descriptor without a buffer");
    if (field<std::uint16_t>(memory, place + 4) > 512 && (flags & 0x200) == 0)
      faults.emplace_back("a large buffer without LB");
    const std::size_t buffer =
        where(field<std::uint32_t>(memory, place + 28) | std::uint64_t{field<std::uint32_t>(memory, place + 24)} << 32);
    std::ranges::copy(bytes, memory.begin() + static_cast<std::ptrdiff_t>(buffer));
    put16(place, static_cast<std::uint16_t>(flags | 1));
    put16(place + 2, 0x0802);
    put16(place + 4, static_cast<std::uint16_t>(bytes.size()));
    put32(place + 8, operation);
    put32(place + 12, static_cast<std::uint32_t>(status));
    values[0x7400] = (head + 1) % entries;
  }

 private:
  std::size_t where(std::uint64_t address) {
    if (address < kAddress || address >= kAddress + memory.size()) {
      faults.emplace_back("an address outside of the memory for messages");
      return 0;
    }
    return address - kAddress;
  }
  void put16(std::size_t offset, std::uint16_t value) { std::memcpy(memory.data() + offset, &value, 2); }
  void put32(std::size_t offset, std::uint32_t value) { std::memcpy(memory.data() + offset, &value, 4); }

  void take() {
    if (dead) return;
    const std::uint32_t entries = values[0x6800] & 0x3FF;
    if (values[0x6400] == values[0x8400]) return;
    if ((values[0x6800] & 1U << 31) == 0 || entries == 0)
      return (void)faults.emplace_back("a message, and the queue is off");
    while (values[0x6400] != values[0x8400]) {
      const std::size_t place = where(values[0x7C00] | std::uint64_t{values[0x7800]} << 32) + 32 * values[0x6400];
      const auto flags = field<std::uint16_t>(memory, place), opcode = field<std::uint16_t>(memory, place + 2),
                 length = field<std::uint16_t>(memory, place + 4);
      if (opcode != 0x0801) faults.emplace_back("not a message to the physical function");
      if (length != 0 && (flags & 0x1400) != 0x1400) faults.emplace_back("a message without BUF and RD");
      const std::size_t buffer = length == 0 ? 0
                                             : where(field<std::uint32_t>(memory, place + 28) |
                                                     std::uint64_t{field<std::uint32_t>(memory, place + 24)} << 32);
      std::vector<std::byte> message(memory.begin() + static_cast<std::ptrdiff_t>(buffer),
                                     memory.begin() + static_cast<std::ptrdiff_t>(buffer + length));
      const auto operation = field<std::uint32_t>(memory, place + 8);
      values[0x6400] = (values[0x6400] + 1) % entries;
      operations.push_back(operation);
      last[operation] = message;
      answer(operation, message);
    }
  }

  void answer(std::uint32_t operation, const std::vector<std::byte>& message) {
    if (operation == 2) {  // RESET_VF has no answer
      ++resets;
      values.clear();
      active_at = now + 10'000;
      return;
    }
    if (silent) return;
    if (chatty) {
      std::vector<std::byte> event;
      set<std::int32_t>(event, 0, 1);        // link change
      set<std::uint32_t>(event, 4, 25'000);  // Mbit/s
      set<std::uint8_t>(event, 8, 1);
      set<std::int32_t>(event, 12, 0);
      send(17, 0, event);
    }
    if (operation == refuse) return send(operation, -5, {});
    std::vector<std::byte> reply;
    if (operation == 1) {
      EXPECT_EQ(message.size(), 8U);
      set<std::uint32_t>(reply, 0, 1);
      set<std::uint32_t>(reply, 4, minor);
    }
    if (operation == 3) {
      EXPECT_EQ(message.size(), 4U);
      set<std::uint16_t>(reply, 0, 2);     // num_vsis
      set<std::uint16_t>(reply, 2, 4);     // num_queue_pairs
      set<std::uint16_t>(reply, 4, 5);     // max_vectors
      set<std::uint16_t>(reply, 6, 9702);  // max_mtu
      set<std::uint32_t>(reply, 8, field<std::uint32_t>(message, 0) & ~(no_write_back ? 1U << 5 : 0U));
      set<std::uint32_t>(reply, 12, 52);
      set<std::uint32_t>(reply, 16, 64);
      set<std::uint16_t>(reply, 20, 9);  // another VSI first: not the LAN's
      set<std::uint16_t>(reply, 22, 1);
      set<std::int32_t>(reply, 24, 3);
      set<std::uint16_t>(reply, 36, 7);  // vsi_id
      set<std::uint16_t>(reply, 38, 4);
      set<std::int32_t>(reply, 40, 6);  // VIRTCHNL_VSI_SRIOV
      set<std::uint16_t>(reply, 44, 0);
      const std::array<std::uint8_t, 6> mac{2, 0, 0, 0, 0, 0x42};
      for (std::size_t i = 0; i < 6; ++i) set<std::uint8_t>(reply, 46 + i, mac[i]);
      reply.resize(reply.size() - cut);
    }
    send(operation, 0, reply);
  }

  std::uint64_t now = 0, active_at = 0;
};

struct Bench {
  PfModel pf;
  std::unique_ptr<Nic> nic;
  Bench() {
    auto made = make_nic(*find_personality("iavf"), pf, {.bytes = pf.memory, .address = PfModel::kAddress});
    EXPECT_TRUE(made);
    if (made) nic = *std::move(made);
  }
  static NicSetup setup() {
    return {.rings = {.rx = 0x38'0000'0000, .tx = 0x38'0001'0000, .rx_entries = 256, .tx_entries = 512},
            .frame_bytes = 1522};
  }
  void expect_no_faults() const {
    for (const std::string& fault : pf.faults) ADD_FAILURE() << fault;
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
  ASSERT_EQ(queues.size(), 72U);  // virtchnl_vsi_queue_config_info
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
  ASSERT_EQ(vectors.size(), 14U);  // virtchnl_irq_map_info
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
  for (const std::uint32_t operation : {3U, 6U, 7U, 8U}) {
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
    bench.pf.no_write_back = true;
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

TEST(Virtchnl, ParseWhatIsNone_ExpectProtocol) {
  EXPECT_EQ(virtchnl::parse_version({}).status().code(), StatusCode::kProtocol);
  EXPECT_EQ(virtchnl::parse_resources(std::vector<std::byte>(20)).status().code(), StatusCode::kProtocol);
  std::vector<std::byte> claims(20);
  set<std::uint16_t>(claims, 0, 0xFFFF);  // VSIs that are not there
  EXPECT_EQ(virtchnl::parse_resources(claims).status().code(), StatusCode::kProtocol);
  EXPECT_EQ(virtchnl::parse_event(std::vector<std::byte>(3)).status().code(), StatusCode::kProtocol);
}

}  // namespace
}  // namespace wherry::bypass
