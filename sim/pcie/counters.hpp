// SPDX-License-Identifier: Apache-2.0
// A fabric's counters, an observer's view, and the access control of its ports.
#pragma once

#include <cstdint>

#include "sim/pcie/time.hpp"
#include "sim/pcie/tlp.hpp"

namespace wherry::sim::pcie {

/// Access control services of the switch port or root port above a node (Spec 6.12): how it treats requests and
/// completions from below to a peer.
struct Acs {
  bool source_validation = false;    ///< SV: a requester ID that is not below the port is an error
  bool request_redirect = false;     ///< RR: peer requests go up to the root
  bool completion_redirect = false;  ///< CR: so do completions without relaxed ordering
  bool upstream_forwarding = false;  ///< UF: what came down through the redirect may go back through the same port
};

/// One direction of a link.
struct LinkCounters {
  std::uint64_t tlps[kFlowClasses]{};
  std::uint64_t payload_bytes = 0;   ///< of TLPs, as sent, whole doublewords
  std::uint64_t header_bytes = 0;    ///< headers, framing, ECRC
  std::uint64_t acks = 0;            ///< DLLPs
  std::uint64_t credit_updates = 0;  ///< DLLPs
  std::uint64_t replays = 0;
  Time busy = 0;     ///< the wire carried TLPs or DLLPs
  Time blocked = 0;  ///< TLPs waited, the wire was free, credits were not
  /// The fewest credits that were ever left: never below 0 if the model is right. Unlimited credits are not included.
  std::int64_t lowest_headers[kFlowClasses]{};
  std::int64_t lowest_data[kFlowClasses]{};
};

/// TLPs that ended before their destination, by cause. The TLPs sent are the TLPs received plus these.
struct FabricCounters {
  std::uint64_t unsupported_writes = 0;  ///< no such address; read: answered by UR
  std::uint64_t unsupported_reads = 0;
  std::uint64_t iommu_writes = 0;  ///< the IOMMU refused them
  std::uint64_t iommu_reads = 0;
  std::uint64_t acs_violations = 0;       ///< source validation, or no way back up
  std::uint64_t link_down = 0;            ///< the link or the device was not there
  std::uint64_t peer_reads_vanished = 0;  ///< PeerToPeer::kReadsVanish
  std::uint64_t peer_refused = 0;
  std::uint64_t faults[5]{};           ///< struck, by FaultKind
  std::uint64_t lost_completions = 0;  ///< for a requester that nobody knows
  std::uint64_t peer_requests = 0;     ///< that the root complex forwarded, after cutting
};

/// The points at which an observer sees a TLP.
enum class Point : std::uint8_t {
  kIssued,   ///< `place` is the FunctionId that sends it, in the order of sending
  kEntered,  ///< an ordered buffer number `place`
  kLeft,
  kDelivered,  ///< `place` is the FunctionId; kHostId: host memory, or the host's own reads
  kDropped,    ///< ended in no function; counted in FabricCounters
};
class Observer {
 public:
  virtual void on_tlp(Point point, std::uint32_t place, const Tlp& tlp, Time now) = 0;

 protected:
  ~Observer() = default;
};

}  // namespace wherry::sim::pcie
