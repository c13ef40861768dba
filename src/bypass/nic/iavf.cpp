// SPDX-License-Identifier: Apache-2.0
#include "bypass/nic/iavf.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <vector>

#include "base/try.hpp"

namespace wherry::bypass {
namespace {

using namespace std::chrono_literals;
using virtchnl::Operation;

// base/iavf_register.h. The send queue (ATQ) and the receive queue (ARQ) for messages.
constexpr std::uint32_t kSendHigh = 0x7800, kSendLow = 0x7C00, kSendHead = 0x6400, kSendLength = 0x6800,
                        kSendTail = 0x8400;
constexpr std::uint32_t kReceiveHigh = 0x6000, kReceiveLow = 0x6C00, kReceiveHead = 0x7400, kReceiveLength = 0x8000,
                        kReceiveTail = 0x7000;
constexpr std::uint32_t kResetState = 0x8800, kVector1 = 0x3800;                  // VFGEN_RSTAT, VFINT_DYN_CTLN1(0)
constexpr std::uint32_t kQueueOn = 1U << 31;                                      // ATQLEN.ENABLE, ARQLEN.ENABLE
constexpr std::uint32_t kWriteBackOnItr = 1U << 30, kFourMicroseconds = 2U << 5;  // VFINT_DYN_CTLN1: iavf_ethdev.c
// base/iavf_adminq_cmd.h: flags of a descriptor, and the operation "send to PF".
constexpr std::uint16_t kFlagRead = 0x400, kFlagBuffer = 0x1000, kFlagNoInterrupt = 0x2000, kFlagDone = 0x1,
                        kFlagError = 0x4;
constexpr std::uint16_t kSendToPf = 0x0801;
// Layout of the memory: two rings, one buffer per receive descriptor, and one buffer for sending.
constexpr std::uint32_t kEntries = 8, kDescriptor = 32, kBuffer = 4096;
constexpr std::size_t kSendRing = 0, kReceiveRing = 4096, kSendBuffer = 8192, kReceiveBuffers = 12'288;
static_assert(kReceiveBuffers + kEntries * kBuffer <= kMessageMemory);
constexpr std::uint16_t kLargeBuffer = 0x200;  // flag: more than 512 bytes
/// A key that repeats every 16 bits gives both directions of a flow the same hash (source: see ring_nic.cpp).
constexpr std::array<std::uint8_t, 2> kSymmetricKey{0x6D, 0x5A};
constexpr auto kAnswerLimit = 2s;  // iavf_vchnl.c: MAX_TRY_TIMES 2000, one a millisecond
constexpr auto kResetLimit = 2s;   // iavf_ethdev.c: IAVF_RESET_WAIT_CNT 100 of 20 ms

struct Message {
  std::uint16_t flags = 0, opcode = 0, bytes = 0, result = 0;
  std::uint32_t cookie_high = 0, cookie_low = 0, parameter0 = 0, parameter1 = 0, address_high = 0, address_low = 0;
};
static_assert(sizeof(Message) == kDescriptor);  // struct iavf_aq_desc

}  // namespace

Status Iavf::failed(std::string_view what) const {
  return {StatusCode::kUnavailable, fmt::format("NIC ({}): {}", personality_.name, what)};
}

Status Iavf::wait_active() {
  for (auto waited = 0ms; waited < kResetLimit; waited += 20ms) {
    const std::uint32_t state = registers_.read(kResetState);
    // All ones for a short time: the VF is in reset. All ones for long: the VF does not exist.
    if (state != ~std::uint32_t{0}) {
      const std::uint32_t now = state & 3;
      if (now == virtchnl::kVfActive || now == virtchnl::kResetCompleted) return {};
    }
    registers_.pause(20ms);
  }
  return failed("the virtual function does not come out of its reset: is the driver of the physical function loaded?");
}

void Iavf::post_receive(std::uint32_t index) {
  const std::uint64_t buffer = memory_.address + kReceiveBuffers + std::uint64_t{index} * kBuffer;
  const Message message{.flags = kFlagBuffer | kLargeBuffer,
                        .bytes = kBuffer,
                        .address_high = static_cast<std::uint32_t>(buffer >> 32),
                        .address_low = static_cast<std::uint32_t>(buffer)};
  std::memcpy(memory_.bytes.data() + kReceiveRing + std::size_t{index} * kDescriptor, &message, sizeof message);
}

Status Iavf::open_queues() {
  if (memory_.bytes.size() < kMessageMemory || memory_.address % 4096 != 0)
    return {StatusCode::kInvalidArgument, "a virtual function needs memory for messages"};
  std::ranges::fill(memory_.bytes, std::byte{0});
  for (std::uint32_t i = 0; i < kEntries; ++i) post_receive(i);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  send_next_ = receive_next_ = 0;
  const auto open = [&](std::uint32_t head, std::uint32_t tail, std::uint32_t length, std::uint32_t low,
                        std::uint32_t high, std::uint64_t ring) {
    registers_.write(length, 0);
    registers_.write(head, 0);
    registers_.write(tail, 0);
    registers_.write(low, static_cast<std::uint32_t>(ring));
    registers_.write(high, static_cast<std::uint32_t>(ring >> 32));
    registers_.write(length, kEntries | kQueueOn);
    return registers_.read(low) == static_cast<std::uint32_t>(ring);
  };
  if (!open(kSendHead, kSendTail, kSendLength, kSendLow, kSendHigh, memory_.address + kSendRing) ||
      !open(kReceiveHead, kReceiveTail, kReceiveLength, kReceiveLow, kReceiveHigh, memory_.address + kReceiveRing))
    return failed("its message queues do not take an address");
  registers_.write(kReceiveTail, kEntries - 1);
  open_ = true;
  return {};
}

void Iavf::post(Operation operation, ByteView bytes) {
  Message message{.flags = kFlagNoInterrupt,
                  .opcode = kSendToPf,
                  .bytes = static_cast<std::uint16_t>(bytes.size()),
                  .cookie_high = static_cast<std::uint32_t>(operation)};
  if (!bytes.empty()) {
    const std::uint64_t buffer = memory_.address + kSendBuffer;
    message.flags |= kFlagBuffer | kFlagRead;
    if (bytes.size() > 512) message.flags |= kLargeBuffer;
    message.address_high = static_cast<std::uint32_t>(buffer >> 32);
    message.address_low = static_cast<std::uint32_t>(buffer);
    std::memcpy(memory_.bytes.data() + kSendBuffer, bytes.data(), bytes.size());
  }
  std::memcpy(memory_.bytes.data() + kSendRing + std::size_t{send_next_} * kDescriptor, &message, sizeof message);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  send_next_ = (send_next_ + 1) % kEntries;
  registers_.write(kSendTail, send_next_);
}

Status Iavf::send(Operation operation, ByteView bytes) {
  if (bytes.size() > kBuffer) return {StatusCode::kInternal, "a message to the physical function is too long"};
  post(operation, bytes);
  // One message at a time: its buffer is free again when the head has advanced.
  if (!wait_for(registers_, kSendHead, 0x3FF, send_next_, 250ms, 50us))  // IAVF_ASQ_CMD_TIMEOUT
    return failed(fmt::format("it does not take message {}", virtchnl::name_of(operation)));
  return {};
}

bool Iavf::try_receive(Operation& operation, std::int32_t& status, Bytes& message) {
  const std::uint32_t head = registers_.read(kReceiveHead) & 0x3FF;
  if (head >= kEntries || head == receive_next_) return false;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  Message taken;
  std::memcpy(&taken, memory_.bytes.data() + kReceiveRing + std::size_t{receive_next_} * kDescriptor, sizeof taken);
  if ((taken.flags & kFlagDone) == 0) return false;  // a reset has set the head back
  const std::byte* buffer = memory_.bytes.data() + kReceiveBuffers + std::size_t{receive_next_} * kBuffer;
  const std::size_t bytes = (taken.flags & kFlagError) != 0 ? 0 : std::min<std::size_t>(taken.bytes, kBuffer);
  message.assign(buffer, buffer + bytes);
  operation = static_cast<Operation>(taken.cookie_high);
  status = static_cast<std::int32_t>(taken.cookie_low);
  post_receive(receive_next_);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  registers_.write(kReceiveTail, receive_next_);
  receive_next_ = (receive_next_ + 1) % kEntries;
  return true;
}

void Iavf::take_note(ByteView bytes) {
  const auto event = virtchnl::parse_event(bytes);
  if (!event) return;
  if (event->event == virtchnl::kResetImpending) lose();
  if (event->event != virtchnl::kLinkChange) return;
  const bool in_mbits = (resources_.capabilities & virtchnl::kAdvancedLinkSpeed) != 0;
  link_ = {.up = event->up, .mbits = in_mbits ? event->speed : 0};
}

void Iavf::lose() {
  open_ = false;
  being_reset_ = true;
  link_ = {};
}

bool Iavf::was_reset() {
  // A reset of the function, announced or not, also resets the message queues.
  if (open_ && (registers_.read(kReceiveLength) & kQueueOn) == 0) lose();
  return being_reset_;
}

Result<Bytes> Iavf::ask(Operation operation, ByteView bytes) {
  if (const Status sent = was_reset() ? Status() : send(operation, bytes); !sent && !was_reset()) return sent;
  for (auto waited = 0us; waited < kAnswerLimit && !being_reset_;) {
    Operation answered{};
    std::int32_t status = 0;
    Bytes message;
    if (!try_receive(answered, status, message)) {
      if (!was_reset()) registers_.pause(1ms);
      waited += 1ms;
      continue;
    }
    if (answered == Operation::kEvent) {
      take_note(message);
      continue;
    }
    if (answered != operation) continue;  // an answer that came too late
    if (status == 0) return message;
    return failed(fmt::format("the physical function refuses {}: virtchnl status {}{}", virtchnl::name_of(operation),
                              status,
                              status == -5    ? " (a parameter)"
                              : status == -38 ? " (the message's length)"
                              : status == -64 ? " (not supported)"
                                              : ""));
  }
  if (being_reset_)
    return failed(fmt::format("the physical function reset the virtual function during {}: try again",
                              virtchnl::name_of(operation)));
  return failed(fmt::format("the physical function does not answer {}", virtchnl::name_of(operation)));
}

Status Iavf::reset_function() {
  // No answer comes, because the reset also clears the message queues, perhaps before the head has moved.
  post(Operation::kResetVf, {});
  return come_back();
}

Status Iavf::come_back() {
  open_ = being_reset_ = false;
  resources_ = {};
  link_ = {};
  // Linux iavf_main.c iavf_reset_task detects the start of a reset by ARQLEN.ENABLE.
  (void)wait_for(registers_, kReceiveLength, kQueueOn, 0, 500ms, 5ms);
  registers_.pause(10ms);
  return wait_active();
}

Status Iavf::reset() {
  WHERRY_TRY(wait_active());
  if (!open_) WHERRY_TRY(open_queues());
  WHERRY_TRY(reset_function());  // whatever an earlier owner handed over is gone
  return greet();
}

Status Iavf::greet() {
  WHERRY_TRY(open_queues());
  WHERRY_ASSIGN(const Bytes hello, ask(Operation::kVersion, virtchnl::version_message()));
  WHERRY_ASSIGN(const auto version, virtchnl::parse_version(hello));
  if (version.major != virtchnl::kMajor || version.minor < virtchnl::kMinor)
    return {StatusCode::kUnsupported, fmt::format("the physical function speaks virtchnl {}.{}, want {}.{}",
                                                  version.major, version.minor, virtchnl::kMajor, virtchnl::kMinor)};
  constexpr std::uint32_t kWanted = virtchnl::kOffloadL2 | virtchnl::kOffloadWriteBackOnItr |
                                    virtchnl::kOffloadRequestQueues | virtchnl::kAdvancedLinkSpeed |
                                    virtchnl::kOffloadRssPf;
  WHERRY_ASSIGN(const Bytes answer, ask(Operation::kGetVfResources, virtchnl::resources_request(kWanted)));
  WHERRY_ASSIGN(resources_, virtchnl::parse_resources(answer));
  return {};
}

Status Iavf::request_pairs(std::uint32_t pairs) {
  const std::uint32_t had = resources_.queue_pairs;
  const auto too_few = [&](std::uint32_t granted) {
    return Status(StatusCode::kUnsupported,
                  fmt::format("{}: {} queue pairs: the driver of the physical function grants this virtual function {}",
                              personality_.name, pairs, granted));
  };
  if (!offers(virtchnl::kOffloadRequestQueues)) return too_few(had);
  const Result<Bytes> answer = ask(Operation::kRequestQueues, virtchnl::request_queues_message(pairs));
  if (answer) {
    WHERRY_ASSIGN(const std::uint32_t possible, virtchnl::parse_request_queues(*answer));
    return too_few(std::max(possible, had));
  }
  if (!being_reset_) return answer.status();
  WHERRY_TRY(come_back());
  WHERRY_TRY(greet());
  return resources_.queue_pairs < pairs ? too_few(resources_.queue_pairs) : Status();
}

Status Iavf::spread(std::uint32_t pairs) {
  if (!offers(virtchnl::kOffloadRssPf)) {
    if (pairs == 1) return {};
    return {StatusCode::kUnsupported,
            fmt::format("{}: {} queue pairs: the physical function does not let a virtual function spread frames "
                        "(RSS_PF)",
                        personality_.name, pairs)};
  }
  // The PF may have filled the table for all queues that it granted (Linux ice_lib.c ice_vsi_cfg_rss_lut_key), so even
  // a single pair needs its own. The hashed fields are not changed: all that the NIC knows (virtchnl.h, HENA).
  std::vector<std::uint8_t> key(resources_.key_bytes), lut(resources_.lut_entries);
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = kSymmetricKey[i % kSymmetricKey.size()];
  for (std::size_t i = 0; i < lut.size(); ++i) lut[i] = static_cast<std::uint8_t>(i % pairs);
  if (!key.empty()) WHERRY_TRY(ask(Operation::kConfigRssKey, virtchnl::key_message(resources_.vsi, key)));
  if (!lut.empty()) WHERRY_TRY(ask(Operation::kConfigRssLut, virtchnl::lut_message(resources_.vsi, lut)));
  return {};
}

Status Iavf::start(const NicSetup& setup) {
  const Personality& nic = personality_;
  if (setup.loopback) return {StatusCode::kInvalidArgument, "a virtual function has no loopback"};
  const std::uint32_t most = std::min<std::uint32_t>(kMostPairs, nic.queues);
  if (setup.pairs < 1 || setup.pairs > most)
    return {StatusCode::kInvalidArgument, fmt::format("{}: {} queue pairs: want 1 to {}", nic.name, setup.pairs, most)};
  if (setup.pairs > 1 && (setup.ring_stride == 0 || setup.ring_stride % nic.ring_align != 0))
    return {StatusCode::kInvalidArgument, fmt::format("{}: rings at a distance of {:#x}: want a multiple of {} bytes",
                                                      nic.name, setup.ring_stride, nic.ring_align)};
  if (setup.rings.rx % nic.ring_align != 0 || setup.rings.tx % nic.ring_align != 0 ||
      setup.rings.rx_entries % nic.rx_ring_multiple != 0 || setup.rings.tx_entries % nic.tx_ring_multiple != 0 ||
      setup.rings.rx_entries < nic.ring_min || setup.rings.tx_entries < nic.ring_min ||
      setup.rings.rx_entries > nic.ring_max || setup.rings.tx_entries > nic.ring_max)
    return {StatusCode::kInvalidArgument,
            fmt::format(
                "{}: rings of {} and {} descriptors: want {} to {}, multiples of {} and {}, at multiples of {} bytes",
                nic.name, setup.rings.rx_entries, setup.rings.tx_entries, nic.ring_min, nic.ring_max,
                nic.rx_ring_multiple, nic.tx_ring_multiple, nic.ring_align)};
  if (resources_.largest_mtu != 0 && setup.frame_bytes > resources_.largest_mtu)
    return {StatusCode::kInvalidArgument, fmt::format("{}: frames of {} bytes: the physical function allows {}",
                                                      nic.name, setup.frame_bytes, resources_.largest_mtu)};
  if (setup.pairs > resources_.queue_pairs) WHERRY_TRY(request_pairs(setup.pairs));
  const std::uint16_t vsi = resources_.vsi;
  WHERRY_TRY(ask(Operation::kConfigVsiQueues,
                 virtchnl::queues_message({.vsi = vsi,
                                           .pairs = static_cast<std::uint16_t>(setup.pairs),
                                           .rx_ring = setup.rings.rx,
                                           .tx_ring = setup.rings.tx,
                                           .stride = setup.ring_stride,
                                           .rx_entries = setup.rings.rx_entries,
                                           .tx_entries = static_cast<std::uint16_t>(setup.rings.tx_entries),
                                           .slot_bytes = setup.slot_bytes,
                                           .frame_bytes = setup.frame_bytes})));
  // Without a vector that triggers write-back, the NIC waits for a full line of descriptors, so software would not see
  // a single frame.
  if ((resources_.capabilities & virtchnl::kOffloadWriteBackOnItr) == 0)
    return {StatusCode::kUnsupported, "the physical function does not offer write-back without interrupts (WB_ON_ITR)"};
  registers_.write(kVector1, kWriteBackOnItr | kFourMicroseconds);
  // One vector writes back all queues, as in DPDK without interrupts (iavf_ethdev.c iavf_config_rx_queues_irqs).
  WHERRY_TRY(ask(Operation::kConfigIrqMap, virtchnl::vector_message(vsi, setup.pairs)));
  WHERRY_TRY(spread(setup.pairs));
  if (setup.promiscuous)
    WHERRY_TRY(
        ask(Operation::kConfigPromiscuous,
            virtchnl::promiscuous_message(vsi, virtchnl::kUnicastPromiscuous | virtchnl::kMulticastPromiscuous)));
  pairs_ = setup.pairs;
  // Up to 16 queues do not need ENABLE_QUEUES_V2, which is for functions with more (DPDK's LARGE_NUM_QPAIRS).
  return ask(Operation::kEnableQueues, virtchnl::select_message(vsi, setup.pairs)).status();
}

Status Iavf::stop() {
  if (!open_ && !being_reset_) return {};
  // After the queues are disabled, no request is in flight. The reset clears the rings.
  if (open_) (void)ask(Operation::kDisableQueues, virtchnl::select_message(resources_.vsi, pairs_));
  Status reset = being_reset_ ? come_back() : reset_function();
  registers_.write(kSendLength, 0);
  registers_.write(kReceiveLength, 0);
  return reset;
}

Link Iavf::link() {
  Operation operation{};
  std::int32_t status = 0;
  for (Bytes message; open_ && try_receive(operation, status, message);)
    if (operation == Operation::kEvent) take_note(message);
  (void)was_reset();
  return link_;
}

}  // namespace wherry::bypass
