// SPDX-License-Identifier: Apache-2.0
// Messages between a virtual function and the driver of its physical function, as far as a queue pair is handed over
// with them. Layout and numbers: DPDK drivers/net/intel/iavf/base/virtchnl.h (version 1.1; each struct there has a
// VIRTCHNL_CHECK_STRUCT_LEN). Pure functions; what the other side says is checked, not believed.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.hpp"
#include "wherry/status.hpp"

namespace wherry::bypass::virtchnl {

enum class Operation : std::uint32_t {
  kVersion = 1,
  kResetVf = 2,
  kGetVfResources = 3,
  kConfigVsiQueues = 6,
  kConfigIrqMap = 7,
  kEnableQueues = 8,
  kDisableQueues = 9,
  kAddEthernetAddress = 10,
  kConfigPromiscuous = 14,
  kEvent = 17,
};
std::string_view name_of(Operation operation) noexcept;

inline constexpr std::uint32_t kMajor = 1, kMinor = 1;
inline constexpr std::uint32_t kOffloadL2 = 1U << 0, kOffloadWriteBackOnItr = 1U << 5, kAdvancedLinkSpeed = 1U << 7;
inline constexpr std::uint16_t kUnicastPromiscuous = 1, kMulticastPromiscuous = 2;
/// Reset state of a VF (register VFGEN_RSTAT): enum virtchnl_vfr_states.
inline constexpr std::uint32_t kResetInProgress = 0, kResetCompleted = 1, kVfActive = 2;

struct Version {
  std::uint32_t major = 0, minor = 0;
};
/// The part of virtchnl_vf_resource that a queue pair needs.
struct Resources {
  std::uint16_t vsi = 0, queue_pairs = 0, vectors = 0, largest_mtu = 0;
  std::uint32_t capabilities = 0;
  std::array<std::uint8_t, 6> mac{};
};
struct QueuePair {
  std::uint16_t vsi = 0;
  std::uint64_t rx_ring = 0, tx_ring = 0;
  std::uint32_t rx_entries = 0;
  std::uint16_t tx_entries = 0;
  std::uint32_t slot_bytes = 0, frame_bytes = 0;
};
/// virtchnl_pf_event: event, severity and, of a link change, its fields.
struct Event {
  std::uint32_t event = 0;  ///< 1 link change, 2 reset impending, 3 PF driver closes
  std::uint32_t speed = 0;  ///< enum virtchnl_link_speed, or Mbit/s with kAdvancedLinkSpeed
  bool up = false;
};
inline constexpr std::uint32_t kLinkChange = 1, kResetImpending = 2;

Bytes version_message();
Bytes resources_request(std::uint32_t capabilities);
/// virtchnl_vsi_queue_config_info of one pair, queue 0, with the descriptors that need no negotiation.
Bytes queues_message(const QueuePair& pair);
/// virtchnl_irq_map_info: queue 0 to vector 1 (0 is the admin queue's); without a vector nothing is written back early.
Bytes vector_message(std::uint16_t vsi);
/// virtchnl_queue_select of queue 0.
Bytes select_message(std::uint16_t vsi);
Bytes promiscuous_message(std::uint16_t vsi, std::uint16_t flags);

/// kProtocol: too short, or a count that the message does not bear out.
Result<Version> parse_version(ByteView message);
Result<Resources> parse_resources(ByteView message);
Result<Event> parse_event(ByteView message);

}  // namespace wherry::bypass::virtchnl
