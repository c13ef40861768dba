// SPDX-License-Identifier: Apache-2.0
#include "bypass/nic/virtchnl.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace wherry::bypass::virtchnl {
namespace {

constexpr std::int32_t kLanVsi = 6;  // VIRTCHNL_VSI_SRIOV
constexpr std::size_t kMostVsis = 16;

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

Bytes queues_message(const QueuePair& pair) {
  Writer out;
  out.put(pair.vsi);
  out.put(std::uint16_t{1});  // num_queue_pairs
  out.put(std::uint32_t{0});  // pad
  // virtchnl_txq_info, 24 bytes
  out.put(pair.vsi);
  out.put(std::uint16_t{0});  // queue_id
  out.put(pair.tx_entries);
  out.put(std::uint16_t{0});  // headwb_enabled
  out.put(pair.tx_ring);
  out.put(std::uint64_t{0});  // dma_headwb_addr
  // virtchnl_rxq_info, 40 bytes
  out.put(pair.vsi);
  out.put(std::uint16_t{0});  // queue_id
  out.put(pair.rx_entries);
  out.put(std::uint16_t{0});  // hdr_size
  out.put(std::uint16_t{0});  // splithdr_enabled
  out.put(pair.slot_bytes);
  out.put(pair.frame_bytes);
  out.put(std::uint8_t{0});  // crc_disable
  out.put(std::uint8_t{0});  // rxdid
  out.put(std::uint8_t{0});  // flags
  out.put(std::uint8_t{0});  // pad1
  out.put(pair.rx_ring);
  out.put(std::int32_t{0});   // rx_split_pos
  out.put(std::uint32_t{0});  // pad2
  return std::move(out).take();
}

Bytes vector_message(std::uint16_t vsi) {
  Writer out;
  out.put(std::uint16_t{1});  // num_vectors
  out.put(vsi);
  out.put(std::uint16_t{1});  // vector_id
  out.put(std::uint16_t{1});  // rxq_map: queue 0
  out.put(std::uint16_t{0});  // txq_map
  out.put(std::uint16_t{0});  // rxitr_idx
  out.put(std::uint16_t{0});  // txitr_idx
  return std::move(out).take();
}

Bytes select_message(std::uint16_t vsi) {
  Writer out;
  out.put(vsi);
  out.put(std::uint16_t{0});  // pad
  out.put(std::uint32_t{1});  // rx_queues
  out.put(std::uint32_t{1});  // tx_queues
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
  (void)in.get<std::uint32_t>();  // rss_key_size
  (void)in.get<std::uint32_t>();  // rss_lut_size
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
  return resources;
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
