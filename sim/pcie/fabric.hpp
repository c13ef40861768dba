// SPDX-License-Identifier: Apache-2.0
// A PCIe hierarchy: a root complex with host memory and IOMMU, switches, endpoints with functions, links between them.
// Build it (add_...), enumerate() it, then run the event queue. One thread. Deterministic by FabricOptions::seed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/pcie/event_queue.hpp"
#include "sim/pcie/faults.hpp"
#include "sim/pcie/function.hpp"
#include "sim/pcie/iommu.hpp"
#include "sim/pcie/memory.hpp"
#include "sim/pcie/parameters.hpp"
#include "wherry/status.hpp"

namespace wherry::sim::pcie {

/// Access control services of the switch port or root port above a node (Spec 6.12): what happens to requests and
/// completions that come from below and would go to a peer.
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
  /// The least that was ever left: never below 0 if the model is right. Unlimited credits are not in it.
  std::int64_t lowest_headers[kFlowClasses]{};
  std::int64_t lowest_data[kFlowClasses]{};
};

/// TLPs that ended on their way, by cause. What was sent is what was received and these.
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

/// Where an observer sees a TLP.
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

class Fabric {
 public:
  Fabric(EventQueue& queue, const FabricOptions& options);
  ~Fabric();
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  // Building, before enumerate(). `above`: kRoot or a switch; the link leads there. Errors: an unknown or wrong node, a
  // generation, lane count or size that PCIe does not have.
  Result<NodeId> add_switch(NodeId above, const LinkOptions& link, const SwitchOptions& options = {});
  Result<NodeId> add_endpoint(NodeId above, const LinkOptions& link, const EndpointOptions& options = {});
  /// Up to 256 functions an endpoint (ARI), the first is function 0. `function` must outlive the fabric.
  Result<Port*> add_function(NodeId endpoint, Function& function, const FunctionOptions& options);
  /// The processor's own way to the devices: `host` gets the data of its reads; nobody writes to it. At most one. Its
  /// bus mastering is always on.
  Result<Port*> add_host(Function& host, const FunctionOptions& options = {});
  /// Numbers buses, places BARs, opens windows: as firmware does, depth first, in the order of adding. Fails if BARs do
  /// not fit (below 4 GiB: from 0xc0000000 to 0xfe000000; prefetchable ones: 1 TiB and up).
  Status enumerate();

  [[nodiscard]] EventQueue& queue() noexcept;
  [[nodiscard]] HostMemory& memory() noexcept;
  [[nodiscard]] Iommu& iommu() noexcept;

  // While it runs.
  /// Of the port above `node`. Default: all off.
  void set_acs(NodeId node, const Acs& acs);
  [[nodiscard]] Acs acs(NodeId node) const;
  void add_fault(const Fault& fault);
  void clear_faults();
  /// Surprise removal of an endpoint, or of a switch and all below: what is on its way there is lost and counted, reads
  /// that come later are answered with UR by the port above. Functions get on_reset(kRemoved).
  void remove(NodeId node);
  /// Puts it back. Functions get on_reset(kInserted).
  void insert(NodeId node);
  /// Hot reset: as remove() and insert() in one instant, with on_reset(kHot).
  void hot_reset(NodeId node);

  // Looking.
  /// The direction of the link above `node`: `up` is towards the root.
  [[nodiscard]] const LinkCounters& link_counters(NodeId node, bool up) const;
  [[nodiscard]] const FabricCounters& counters() const noexcept;
  /// Writes and bytes that reached host memory, reads that it answered.
  [[nodiscard]] const PortCounters& memory_counters() const noexcept;
  /// TLPs that are in the fabric or in a function's queue.
  [[nodiscard]] std::uint64_t in_flight() const noexcept;
  /// At most one; null: none.
  void observe(Observer* observer) noexcept;

 private:
  struct Core;
  std::unique_ptr<Core> core_;
};

}  // namespace wherry::sim::pcie
