// SPDX-License-Identifier: Apache-2.0
#include "bypass/nic/pf_model_testing.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

namespace wherry::bypass::testing_support {
namespace {

// enum virtchnl_status_code.
constexpr std::int32_t kParameter = -5, kMismatch = -38;
// enum virtchnl_ops.
constexpr std::uint32_t kVersion = 1, kReset = 2, kResources = 3, kQueues = 6, kVectors = 7, kEnable = 8, kDisable = 9,
                        kPromiscuous = 14, kEvent = 17, kKey = 23, kLut = 24, kRequest = 29;
constexpr std::uint32_t kSendHigh = 0x7800, kSendLow = 0x7C00, kSendHead = 0x6400, kSendLength = 0x6800,
                        kSendTail = 0x8400, kReceiveHigh = 0x6000, kReceiveLow = 0x6C00, kReceiveHead = 0x7400,
                        kReceiveLength = 0x8000, kReceiveTail = 0x7000, kState = 0x8800;
constexpr std::uint32_t kOn = 1U << 31;
constexpr std::uint32_t kRequestQueuesBit = 1U << 6, kRssBit = 1U << 19;
constexpr std::uint32_t kMostQueues = 16;  // virtchnl.h: a VF has at most sixteen
constexpr std::uint64_t kResetTime = 10'000;

/// virtchnl_vc_validate_vf_msg: the length that a message must have, given the element count in the message.
/// LEGACY_SIZEOF includes one element. __vss_full adds all elements to it, __vss_byone all except one.
std::size_t length_of(std::uint32_t operation, std::span<const std::byte> message) {
  switch (operation) {
    case kVersion:
      return 8;
    case kResources:
      return 4;
    case kQueues:
      return message.size() < 72 ? 72 : 72 + 64 * std::size_t{field<std::uint16_t>(message, 2)};
    case kVectors:
      return message.size() < 14 ? 14 : 14 + 12 * std::size_t{field<std::uint16_t>(message, 0)};
    case kEnable:
    case kDisable:
      return 12;
    case kPromiscuous:
      return 4;
    case kKey:
    case kLut:
      return message.size() < 6 ? 6 : 4 + std::size_t{field<std::uint16_t>(message, 2)} + 1;
    case kRequest:
      return 2;
    default:
      return 0;
  }
}

}  // namespace

bool PfModel::moves() const {
  return std::ranges::any_of(queues, [](const Queue& queue) { return queue.rx_on || queue.tx_on; });
}

int PfModel::queue_of(std::uint32_t hash) const {
  const std::uint8_t queue = lut.empty() ? std::uint8_t{0} : lut[hash % lut.size()];
  return queue < queues.size() && queues[queue].rx_on ? queue : -1;
}

std::uint32_t PfModel::read(std::uint32_t offset) {
  if (removed) return ~0U;
  if (offset == kState) return now_ < active_at_ ? 0 : 2;
  return values[offset];
}

void PfModel::write(std::uint32_t offset, std::uint32_t value) {
  if (removed) return;
  values[offset] = value;
  if ((offset == kSendLength || offset == kReceiveLength) && (value & kOn) != 0 && now_ < active_at_)
    faults.emplace_back("a queue of messages opens during a reset");
  if (offset == kSendTail) take();
  if (offset < 4 * kMostQueues && !(offset / 4 < queues.size() && queues[offset / 4].tx_on))
    faults.push_back(fmt::format("a transmit tail of queue {}, which is off", offset / 4));
  if (offset >= 0x2000 && offset < 0x2000 + 4 * kMostQueues) {
    const std::size_t queue = (offset - 0x2000) / 4;
    if (queue >= queues.size() || !queues[queue].rx_on)
      faults.push_back(fmt::format("a receive tail of queue {}, which is off", queue));
  }
}

void PfModel::reset_function() {
  ++resets;
  if (announces && (values[kReceiveLength] & kOn) != 0) {
    std::vector<std::byte> event;
    set<std::int32_t>(event, 0, 2);  // VIRTCHNL_EVENT_RESET_IMPENDING
    set<std::int32_t>(event, 12, 255);
    send(kEvent, 0, event);
  }
  values.clear();
  queues.clear();
  key.clear();
  lut.clear();
  has_resources_ = false;
  active_at_ = now_ + kResetTime;
}

void PfModel::send(std::uint32_t operation, std::int32_t status, const std::vector<std::byte>& bytes) {
  const std::uint32_t entries = values[kReceiveLength] & 0x3FF;
  if ((values[kReceiveLength] & kOn) == 0 || entries == 0)
    return (void)faults.emplace_back("an answer, and no queue for it");
  const std::uint32_t head = values[kReceiveHead];
  if (head == values[kReceiveTail]) return (void)faults.emplace_back("no buffer for an answer");
  const std::size_t place = where(values[kReceiveLow] | std::uint64_t{values[kReceiveHigh]} << 32) + 32 * head;
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
  values[kReceiveHead] = (head + 1) % entries;
}

std::size_t PfModel::where(std::uint64_t bus) {
  if (bus < address || bus >= address + memory.size()) {
    faults.emplace_back("an address outside of the memory for messages");
    return 0;
  }
  return bus - address;
}

void PfModel::take() {
  if (dead) return;
  const std::uint32_t entries = values[kSendLength] & 0x3FF;
  if (values[kSendHead] == values[kSendTail]) return;
  if ((values[kSendLength] & kOn) == 0 || entries == 0)
    return (void)faults.emplace_back("a message, and the queue is off");
  while (values[kSendHead] != values[kSendTail]) {
    const std::size_t place = where(values[kSendLow] | std::uint64_t{values[kSendHigh]} << 32) + 32 * values[kSendHead];
    const auto flags = field<std::uint16_t>(memory, place), opcode = field<std::uint16_t>(memory, place + 2),
               length = field<std::uint16_t>(memory, place + 4);
    if (opcode != 0x0801) faults.emplace_back("not a message to the physical function");
    if (length != 0 && (flags & 0x1400) != 0x1400) faults.emplace_back("a message without BUF and RD");
    if (length > 512 && (flags & 0x200) == 0) faults.emplace_back("a large message without LB");
    const std::size_t buffer = length == 0 ? 0
                                           : where(field<std::uint32_t>(memory, place + 28) |
                                                   std::uint64_t{field<std::uint32_t>(memory, place + 24)} << 32);
    std::vector<std::byte> message(memory.begin() + static_cast<std::ptrdiff_t>(buffer),
                                   memory.begin() + static_cast<std::ptrdiff_t>(buffer + length));
    const auto operation = field<std::uint32_t>(memory, place + 8);
    values[kSendHead] = (values[kSendHead] + 1) % entries;
    operations.push_back(operation);
    last[operation] = message;
    answer(operation, message);
  }
}

void PfModel::answer(std::uint32_t operation, const std::vector<std::byte>& message) {
  if (operation == kReset) {  // no answer, no event
    const bool announced = std::exchange(announces, false);
    reset_function();
    announces = announced;
    return;
  }
  if (operation == reset_at) {
    reset_at = 0;
    return reset_function();
  }
  if (silent) return;
  if (chatty) {
    std::vector<std::byte> event;
    set<std::int32_t>(event, 0, 1);        // link change
    set<std::uint32_t>(event, 4, 25'000);  // Mbit/s
    set<std::uint8_t>(event, 8, 1);
    set<std::int32_t>(event, 12, 0);
    send(kEvent, 0, event);
  }
  if (operation == refuse) return send(operation, kParameter, {});
  if (const std::int32_t status = refused(operation, message); status != 0) return send(operation, status, {});
  std::vector<std::byte> reply;
  if (operation == kVersion) {
    set<std::uint32_t>(reply, 0, 1);
    set<std::uint32_t>(reply, 4, minor);
  }
  if (operation == kResources) reply = resources(field<std::uint32_t>(message, 0));
  if (operation == kRequest) {
    // i40e_vc_request_queues_msg answers with the possible number, or resets the function without an answer.
    const std::uint32_t wanted = field<std::uint16_t>(message, 0);
    if (wanted <= std::min(available, kMostQueues)) {
      granted = wanted;
      return reset_function();
    }
    set<std::uint16_t>(reply, 0, static_cast<std::uint16_t>(std::min(available, kMostQueues)));
  }
  send(operation, 0, reply);
}

std::vector<std::byte> PfModel::resources(std::uint32_t wanted) const {
  std::vector<std::byte> reply;
  set<std::uint16_t>(reply, 0, 2);  // num_vsis
  set<std::uint16_t>(reply, 2, static_cast<std::uint16_t>(granted));
  set<std::uint16_t>(reply, 4, 5);     // max_vectors
  set<std::uint16_t>(reply, 6, 9702);  // max_mtu
  set<std::uint32_t>(reply, 8, wanted & ~lacks);
  set<std::uint32_t>(reply, 12, key_bytes);
  set<std::uint32_t>(reply, 16, lut_entries);
  set<std::uint16_t>(reply, 20, 9);  // another VSI first: not the LAN's
  set<std::uint16_t>(reply, 22, 1);
  set<std::int32_t>(reply, 24, 3);
  set<std::uint16_t>(reply, 36, kVsi);
  set<std::uint16_t>(reply, 38, static_cast<std::uint16_t>(granted));
  set<std::int32_t>(reply, 40, 6);  // VIRTCHNL_VSI_SRIOV
  set<std::uint16_t>(reply, 44, 0);
  const std::array<std::uint8_t, 6> mac{2, 0, 0, 0, 0, 0x42};
  for (std::size_t i = 0; i < 6; ++i) set<std::uint8_t>(reply, 46 + i, mac[i]);
  reply.resize(reply.size() - cut);
  return reply;
}

std::int32_t PfModel::no(std::int32_t status, std::string why) {
  refusals.push_back(std::move(why));
  return status;
}

std::int32_t PfModel::refused(std::uint32_t operation, std::span<const std::byte> message) {
  if (const std::size_t want = length_of(operation, message); message.size() != want)
    return no(kMismatch, fmt::format("operation {} of {} bytes: want {}", operation, message.size(), want));
  if (operation == kResources) {
    has_resources_ = true;
    capabilities_ = field<std::uint32_t>(message, 0) & ~lacks;
    queues.assign(granted, {});
    // Linux ice_lib.c ice_vsi_cfg_rss_lut_key uses all queues of the VSI.
    lut.resize(lut_entries);
    for (std::size_t i = 0; i < lut.size(); ++i) lut[i] = static_cast<std::uint8_t>(i % granted);
    return 0;
  }
  if (operation == kVersion) return 0;
  if (!has_resources_) return no(kParameter, fmt::format("operation {} before GET_VF_RESOURCES", operation));
  if (operation == kRequest)
    return (capabilities_ & kRequestQueuesBit) != 0 ? 0 : no(kParameter, "REQUEST_QUEUES was not negotiated");
  const std::size_t vsi_at = operation == kVectors ? 2 : 0;
  if (field<std::uint16_t>(message, vsi_at) != kVsi)
    return no(kParameter, fmt::format("operation {} of another VSI", operation));
  switch (operation) {
    case kQueues:
      return configure_queues(message);
    case kVectors:
      return map_vectors(message);
    case kEnable:
    case kDisable:
      return select_queues(operation, message);
    case kKey:
      return set_key(message);
    case kLut:
      return set_lut(message);
    default:
      return 0;
  }
}

std::int32_t PfModel::configure_queues(std::span<const std::byte> message) {
  const std::uint32_t count = field<std::uint16_t>(message, 2);
  if (count == 0 || count > queues.size())
    return no(kParameter, fmt::format("{} queue pairs, of {}", count, queues.size()));
  std::vector<Queue> next = queues;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t tx = 8 + 64 * i, rx = tx + 24;
    const auto queue = field<std::uint16_t>(message, tx + 2);
    const auto tx_entries = field<std::uint16_t>(message, tx + 4);
    const auto rx_entries = field<std::uint32_t>(message, rx + 4), buffer = field<std::uint32_t>(message, rx + 12);
    // ice_vc_cfg_qs_msg requires equal ids, no head write-back, and lengths of 64 to 8160 that are multiples of 32.
    if (field<std::uint16_t>(message, tx) != kVsi || field<std::uint16_t>(message, rx) != kVsi ||
        field<std::uint16_t>(message, rx + 2) != queue || queue >= next.size())
      return no(kParameter, fmt::format("queue {} of pair {}", queue, i));
    if (field<std::uint16_t>(message, tx + 6) != 0) return no(kParameter, "head write-back");
    for (const std::uint32_t entries : {std::uint32_t{tx_entries}, rx_entries})
      if (entries < 64 || entries > 8160 || entries % 32 != 0)
        return no(kParameter, fmt::format("a ring of {} descriptors", entries));
    if (buffer < 1024 || buffer > 16'256) return no(kParameter, fmt::format("buffers of {} bytes", buffer));
    Queue& into = next[queue];
    into = {.rx_ring = field<std::uint64_t>(message, rx + 24),
            .tx_ring = field<std::uint64_t>(message, tx + 8),
            .rx_entries = rx_entries,
            .tx_entries = tx_entries,
            .configured = true};
    if (into.rx_ring % 128 != 0 || into.tx_ring % 128 != 0)
      return no(kParameter, fmt::format("a ring of queue {} that is not at a multiple of 128 bytes", queue));
  }
  queues = std::move(next);
  return 0;
}

std::int32_t PfModel::map_vectors(std::span<const std::byte> message) {
  const std::uint32_t count = field<std::uint16_t>(message, 0);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = 2 + 12 * i;
    const auto vector = field<std::uint16_t>(message, at + 2), rx = field<std::uint16_t>(message, at + 4),
               tx = field<std::uint16_t>(message, at + 6);
    if (vector == 0 || vector >= 5) return no(kParameter, fmt::format("vector {} for traffic", vector));
    if ((rx | tx) >> queues.size() != 0) return no(kParameter, fmt::format("a vector for queues {:#x}", rx | tx));
    for (std::size_t queue = 0; queue < queues.size(); ++queue)
      if ((rx >> queue & 1) != 0) queues[queue].has_vector = true;
  }
  return 0;
}

std::int32_t PfModel::select_queues(std::uint32_t operation, std::span<const std::byte> message) {
  const auto rx = field<std::uint32_t>(message, 4), tx = field<std::uint32_t>(message, 8);
  // As i40e_vc_validate_vqs_bitmaps and ice_vc_validate_vqs_bitmaps.
  if ((rx == 0 && tx == 0) || (rx | tx) >> kMostQueues != 0 || std::uint64_t{rx | tx} >> queues.size() != 0)
    return no(kParameter, fmt::format("queues {:#x} and {:#x}, of {}", rx, tx, queues.size()));
  for (std::size_t i = 0; i < queues.size(); ++i) {
    Queue& queue = queues[i];
    const bool on = operation == kEnable;
    if (((rx | tx) >> i & 1) != 0 && on && !queue.configured)
      return no(kParameter, fmt::format("queue {} is enabled before its rings are known", i));
    if (((rx | tx) >> i & 1) != 0 && on && !queue.has_vector)
      faults.push_back(fmt::format("queue {} is enabled without a vector: it writes back full lines only", i));
    if ((rx >> i & 1) != 0) queue.rx_on = on;
    if ((tx >> i & 1) != 0) queue.tx_on = on;
  }
  return 0;
}

std::int32_t PfModel::set_key(std::span<const std::byte> message) {
  const std::uint32_t bytes = field<std::uint16_t>(message, 2);
  if ((capabilities_ & kRssBit) == 0) return no(kParameter, "RSS was not negotiated");
  if (bytes != key_bytes) return no(kParameter, fmt::format("a key of {} bytes", bytes));
  key.clear();
  for (std::size_t i = 0; i < bytes; ++i) key.push_back(field<std::uint8_t>(message, 4 + i));
  return 0;
}

std::int32_t PfModel::set_lut(std::span<const std::byte> message) {
  const std::uint32_t entries = field<std::uint16_t>(message, 2);
  if ((capabilities_ & kRssBit) == 0) return no(kParameter, "RSS was not negotiated");
  if (entries != lut_entries) return no(kParameter, fmt::format("a table of {} entries", entries));
  std::vector<std::uint8_t> next;
  for (std::size_t i = 0; i < entries; ++i) next.push_back(field<std::uint8_t>(message, 4 + i));
  for (const std::uint8_t queue : next)  // i40e_vc_config_rss_lut
    if (queue >= queues.size()) return no(kParameter, fmt::format("queue {} in the table", queue));
  lut = std::move(next);
  return 0;
}

}  // namespace wherry::bypass::testing_support
