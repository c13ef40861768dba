// SPDX-License-Identifier: Apache-2.0
// A PCIe hierarchy: a root complex with host memory and IOMMU, switches, endpoints with functions, links between them.
// Build it (add_...), enumerate() it, then run the event queue. One thread. Deterministic by FabricOptions::seed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/pcie/counters.hpp"
#include "sim/pcie/event_queue.hpp"
#include "sim/pcie/faults.hpp"
#include "sim/pcie/function.hpp"
#include "sim/pcie/iommu.hpp"
#include "sim/pcie/memory.hpp"
#include "sim/pcie/parameters.hpp"
#include "wherry/status.hpp"

namespace wherry::sim::pcie {

/// The queue must outlive the fabric, and must not run after the fabric's end. A NodeId argument must come from this
/// fabric. If it names a link, it is not kRoot.
class Fabric {
 public:
  Fabric(EventQueue& queue, const FabricOptions& options);
  ~Fabric();
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  // Building, before enumerate(). `above`: kRoot or a switch, to which the link leads. Errors: an unknown or wrong
  // node; a generation, lane count or size that PCIe does not have.
  Result<NodeId> add_switch(NodeId above, const LinkOptions& link, const SwitchOptions& options = {});
  Result<NodeId> add_endpoint(NodeId above, const LinkOptions& link, const EndpointOptions& options = {});
  /// Up to 256 functions per endpoint (ARI); the first is function 0. `function` must outlive the fabric.
  Result<Port*> add_function(NodeId endpoint, Function& function, const FunctionOptions& options);
  /// The processor's own path to the devices: `host` gets the data of its reads, and devices do not write to it. At
  /// most one. Its bus mastering is always on.
  Result<Port*> add_host(Function& host, const FunctionOptions& options = {});
  /// Numbers buses, places BARs and opens windows like firmware: depth first, in the order of adding. Fails if BARs do
  /// not fit (below 4 GiB: from 0xc0000000 to 0xfe000000; prefetchable ones: 1 TiB and up).
  Status enumerate();

  [[nodiscard]] EventQueue& queue() noexcept;
  [[nodiscard]] HostMemory& memory() noexcept;
  [[nodiscard]] Iommu& iommu() noexcept;

  // While it runs.
  /// The settings of the port above `node`. Default: all off.
  void set_acs(NodeId node, const Acs& acs);
  [[nodiscard]] Acs acs(NodeId node) const;
  void add_fault(const Fault& fault);
  void clear_faults();
  /// Surprise removal of an endpoint, or of a switch with everything below it. TLPs on their way to it are lost and
  /// counted, and the port above answers later reads with UR. Functions get on_reset(kRemoved).
  void remove(NodeId node);
  /// Puts it back. Functions get on_reset(kInserted).
  void insert(NodeId node);
  /// Hot reset: like remove() and insert() in one instant, with on_reset(kHot).
  void hot_reset(NodeId node);

  // Looking.
  /// Counters of one direction of the link above `node`; `up` is towards the root.
  [[nodiscard]] const LinkCounters& link_counters(NodeId node, bool up) const;
  [[nodiscard]] const FabricCounters& counters() const noexcept;
  /// Writes and bytes that reached host memory, and reads that it answered.
  [[nodiscard]] const PortCounters& memory_counters() const noexcept;
  /// TLPs that are in the fabric or in a function's queue.
  [[nodiscard]] std::uint64_t in_flight() const noexcept;
  /// At most one observer; null removes it.
  void observe(Observer* observer) noexcept;

 private:
  struct Core;
  std::unique_ptr<Core> core_;
};

}  // namespace wherry::sim::pcie
