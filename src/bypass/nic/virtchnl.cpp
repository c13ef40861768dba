// SPDX-License-Identifier: Apache-2.0
#include "bypass/nic/virtchnl.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace wherry::bypass::virtchnl {
namespace {

constexpr std::int32_t kLanVsi = 6;  // VIRTCHNL_VSI_SRIOV
constexpr std::size_t kMostVsis = 16;
// Size of the element that ends a message with a list (virtchnl.hpp, Lengths).
constexpr std::size_t kPairBytes = 64, kVectorMapBytes = 12;  // virtchnl_queue_pair_info, virtchnl_vector_map

void pad(Writer& out, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) out.put(std::uint8_t{0});
}

std::uint32_t first(std::uint32_t pairs) { return (1U << pairs) - 1; }  // pairs <= 16

Status malformed(std::string_view what) {
  return {StatusCode::kProtocol, fmt::format("the driver of the physical function answers {} wrongly", what)};
}

}  // namespace

std::string_view name_of(Operation operation) noexcept {
  switch (operation) {
    case Operation::kVersion:
      return "VERSION";
    case Operation::kResetVf:
      return "RESET_VF";
    case Operation::kGetVfResources:
      return "GET_VF_RESOURCES";
    case Operation::kConfigVsiQueues:
      return "CONFIG_VSI_QUEUES";
    case Operation::kConfigIrqMap:
      return "CONFIG_IRQ_MAP";
    case Operation::kEnableQueues:
      return "ENABLE_QUEUES";
    case Operation::kDisableQueues:
      return "DISABLE_QUEUES";
    case Operation::kAddEthernetAddress:
      return "ADD_ETH_ADDR";
    case Operation::kConfigPromiscuous:
      return "CONFIG_PROMISCUOUS_MODE";
    case Operation::kEvent:
      return "EVENT";
    case Operation::kConfigRssKey:
      return "CONFIG_RSS_KEY";
    case Operation::kConfigRssLut:
      return "CONFIG_RSS_LUT";
    case Operation::kRequestQueues:
      return "REQUEST_QUEUES";
  }
  return "?";
}

Bytes version_message() {
  Writer out;
  out.put(kMajor);
  out.put(kMinor);
  return std::move(out).take();
}

Bytes resources_request(std::uint32_t capabilities) {
  Writer out;
  out.put(capabilities);
  return std::move(out).take();
}

Bytes queues_message(const QueuePairs& queues) {
  Writer out;
  out.put(queues.vsi);
  out.put(queues.pairs);
  out.put(std::uint32_t{0});  // pad
  for (std::uint16_t queue = 0; queue < queues.pairs; ++queue) {
    // virtchnl_txq_info, 24 bytes
    out.put(queues.vsi);
    out.put(queue);
    out.put(queues.tx_entries);
    out.put(std::uint16_t{0});  // headwb_enabled
    out.put(queues.tx_ring + queue * queues.stride);
    out.put(std::uint64_t{0});  // dma_headwb_addr
    // virtchnl_rxq_info, 40 bytes
    out.put(queues.vsi);
    out.put(queue);
    out.put(queues.rx_entries);
    out.put(std::uint16_t{0});  // hdr_size
    out.put(std::uint16_t{0});  // splithdr_enabled
    out.put(queues.slot_bytes);
    out.put(queues.frame_bytes);
    out.put(std::uint8_t{0});  // crc_disable
    out.put(std::uint8_t{0});  // rxdid
    out.put(std::uint8_t{0});  // flags
    out.put(std::uint8_t{0});  // pad1
    out.put(queues.rx_ring + queue * queues.stride);
    out.put(std::int32_t{0});   // rx_split_pos
    out.put(std::uint32_t{0});  // pad2
  }
  pad(out, kPairBytes);
  return std::move(out).take();
}

Bytes vector_message(std::uint16_t vsi, std::uint32_t pairs) {
  Writer out;
  out.put(std::uint16_t{1});  // num_vectors
  out.put(vsi);
  out.put(std::uint16_t{1});                          // vector_id
  out.put(static_cast<std::uint16_t>(first(pairs)));  // rxq_map
  out.put(std::uint16_t{0});                          // txq_map
  out.put(std::uint16_t{0});                          // rxitr_idx
  out.put(std::uint16_t{0});                          // txitr_idx
  pad(out, kVectorMapBytes);
  return std::move(out).take();
}

Bytes select_message(std::uint16_t vsi, std::uint32_t pairs) {
  Writer out;
  out.put(vsi);
  out.put(std::uint16_t{0});  // pad
  out.put(first(pairs));      // rx_queues
  out.put(first(pairs));      // tx_queues
  return std::move(out).take();
}

Bytes key_message(std::uint16_t vsi, std::span<const std::uint8_t> key) {
  Writer out;
  out.put(vsi);
  out.put(static_cast<std::uint16_t>(key.size()));
  for (const std::uint8_t byte : key) out.put(byte);
  pad(out, 1);
  return std::move(out).take();
}

Bytes lut_message(std::uint16_t vsi, std::span<const std::uint8_t> queues) { return key_message(vsi, queues); }

Bytes request_queues_message(std::uint32_t pairs) {
  Writer out;
  out.put(static_cast<std::uint16_t>(pairs));
  return std::move(out).take();
}

Bytes promiscuous_message(std::uint16_t vsi, std::uint16_t flags) {
  Writer out;
  out.put(vsi);
  out.put(flags);
  return std::move(out).take();
}

Result<Version> parse_version(ByteView message) {
  Reader in(message);
  Version version;
  version.major = in.get<std::uint32_t>();
  version.minor = in.get<std::uint32_t>();
  if (!in.ok()) return malformed("VERSION");
  return version;
}

Result<Resources> parse_resources(ByteView message) {
  Reader in(message);
  Resources resources;
  const auto vsis = in.get<std::uint16_t>();
  (void)in.get<std::uint16_t>();  // num_queue_pairs of all
  resources.vectors = in.get<std::uint16_t>();
  resources.largest_mtu = in.get<std::uint16_t>();
  resources.capabilities = in.get<std::uint32_t>();
  resources.key_bytes = in.get<std::uint32_t>();
  resources.lut_entries = in.get<std::uint32_t>();
  bool found = false;
  for (std::size_t i = 0; i < std::min<std::size_t>(vsis, kMostVsis) && in.ok() && !found; ++i) {
    const auto vsi = in.get<std::uint16_t>(), pairs = in.get<std::uint16_t>();
    const auto type = in.get<std::int32_t>();
    (void)in.get<std::uint16_t>();  // qset_handle
    const ByteView mac = in.take(6);
    if (!in.ok() || type != kLanVsi) continue;
    resources.vsi = vsi;
    resources.queue_pairs = pairs;
    std::ranges::transform(mac, resources.mac.begin(),
                           [](std::byte byte) { return std::to_integer<std::uint8_t>(byte); });
    found = true;
  }
  if (!in.ok() || !found || resources.queue_pairs == 0) return malformed("GET_VF_RESOURCES");
  if ((resources.capabilities & kOffloadRssPf) != 0 &&
      (resources.key_bytes > kMostKeyBytes || resources.lut_entries > kMostLutEntries))
    return malformed("GET_VF_RESOURCES");
  return resources;
}

Result<std::uint32_t> parse_request_queues(ByteView message) {
  Reader in(message);
  const auto pairs = in.get<std::uint16_t>();
  if (!in.ok()) return malformed("REQUEST_QUEUES");
  return std::uint32_t{pairs};
}

Result<Event> parse_event(ByteView message) {
  Reader in(message);
  Event event;
  event.event = in.get<std::uint32_t>();
  if (!in.ok()) return malformed("EVENT");
  if (event.event == kLinkChange) {
    event.speed = in.get<std::uint32_t>();
    event.up = in.get<std::uint8_t>() != 0;
    if (!in.ok()) return malformed("EVENT");
  }
  return event;
}

}  // namespace wherry::bypass::virtchnl
