// SPDX-License-Identifier: Apache-2.0
// Messages between a virtual function and the driver of its physical function, limited to those that hand over queue
// pairs. Layout and numbers: DPDK drivers/net/intel/iavf/base/virtchnl.h and Linux include/linux/avf/virtchnl.h
// (version 1.1; each struct there has a VIRTCHNL_CHECK_STRUCT_LEN). Pure functions, which check all values from the
// other side.
//
// Lengths: these structs once ended in an array of one element, and a message was the struct plus its elements. PF
// drivers still require this length (virtchnl_vc_validate_vf_msg), so a list ends with one extra element of zeros.
#pragma once

#include <array>
#include <cstdint>
#include <span>

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
  kConfigRssKey = 23,
  kConfigRssLut = 24,
  kRequestQueues = 29,
};
std::string_view name_of(Operation operation) noexcept;

inline constexpr std::uint32_t kMajor = 1, kMinor = 1;
inline constexpr std::uint32_t kOffloadL2 = 1U << 0, kOffloadWriteBackOnItr = 1U << 5, kOffloadRequestQueues = 1U << 6,
                               kAdvancedLinkSpeed = 1U << 7, kOffloadRssPf = 1U << 19;
inline constexpr std::uint16_t kUnicastPromiscuous = 1, kMulticastPromiscuous = 2;
/// Reset state of a VF (register VFGEN_RSTAT): enum virtchnl_vfr_states.
inline constexpr std::uint32_t kResetInProgress = 0, kResetCompleted = 1, kVfActive = 2;

struct Version {
  std::uint32_t major = 0, minor = 0;
};
/// The part of virtchnl_vf_resource that queue pairs need.
struct Resources {
  std::uint16_t vsi = 0, queue_pairs = 0, vectors = 0, largest_mtu = 0;
  std::uint32_t capabilities = 0;
  std::uint32_t key_bytes = 0, lut_entries = 0;  ///< of RSS; valid with kOffloadRssPf
  std::array<std::uint8_t, 6> mac{};
};
/// More than any known NIC has: 52 bytes and 64 entries (i40e, ice); ice's PF has tables of up to 2048 entries.
inline constexpr std::uint32_t kMostKeyBytes = 256, kMostLutEntries = 2048;
/// Queues 0 to `pairs` - 1 of a VSI.
struct QueuePairs {
  std::uint16_t vsi = 0, pairs = 1;
  std::uint64_t rx_ring = 0, tx_ring = 0;  ///< of queue 0
  std::uint64_t stride = 0;                ///< from a ring to that of the next queue
  std::uint32_t rx_entries = 0;
  std::uint16_t tx_entries = 0;
  std::uint32_t slot_bytes = 0, frame_bytes = 0;
};
/// virtchnl_pf_event: event, severity and, for a link change, its fields.
struct Event {
  std::uint32_t event = 0;  ///< 1 link change, 2 reset impending, 3 PF driver closes
  std::uint32_t speed = 0;  ///< enum virtchnl_link_speed, or Mbit/s with kAdvancedLinkSpeed
  bool up = false;
};
inline constexpr std::uint32_t kLinkChange = 1, kResetImpending = 2;

Bytes version_message();
Bytes resources_request(std::uint32_t capabilities);
/// virtchnl_vsi_queue_config_info, with the descriptor formats that need no negotiation.
Bytes queues_message(const QueuePairs& queues);
/// virtchnl_irq_map_info: queues 0 to `pairs` - 1 use vector 1 (0 is for the admin queue). Without a vector, the NIC
/// does not write back early.
Bytes vector_message(std::uint16_t vsi, std::uint32_t pairs);
/// virtchnl_queue_select for queues 0 to `pairs` - 1.
Bytes select_message(std::uint16_t vsi, std::uint32_t pairs);
/// virtchnl_rss_key, virtchnl_rss_lut.
Bytes key_message(std::uint16_t vsi, std::span<const std::uint8_t> key);
Bytes lut_message(std::uint16_t vsi, std::span<const std::uint8_t> queues);
/// virtchnl_vf_res_request. The PF resets the function without an answer, or answers with the number it can grant.
Bytes request_queues_message(std::uint32_t pairs);
Bytes promiscuous_message(std::uint16_t vsi, std::uint16_t flags);

/// kProtocol: the message is too short, or a count does not match its size.
Result<Version> parse_version(ByteView message);
Result<Resources> parse_resources(ByteView message);
Result<std::uint32_t> parse_request_queues(ByteView message);
Result<Event> parse_event(ByteView message);

}  // namespace wherry::bypass::virtchnl
