// SPDX-License-Identifier: Apache-2.0
// Inside sim/pcie: the parts at the ends of links, and their common state.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "sim/pcie/counters.hpp"
#include "sim/pcie/event_queue.hpp"
#include "sim/pcie/faults.hpp"
#include "sim/pcie/packet.hpp"
#include "sim/pcie/parameters.hpp"

namespace wherry::sim::pcie {

/// The state that all parts of a fabric share.
struct Context {
  explicit Context(EventQueue& q, const FabricOptions& o) : queue(q), options(o) {}

  EventQueue& queue;
  FabricOptions options;
  PacketPool pool;
  FabricCounters counters;
  Observer* observer = nullptr;
  std::uint32_t places = 0;  ///< buffers that have a number

  struct ActiveFault {
    Fault fault;
    std::uint64_t matched = 0;
    std::uint64_t struck = 0;
  };
  std::vector<ActiveFault> faults;
  SplitMix64 fault_random{0};

  void see(Point point, std::uint32_t place, const Tlp& tlp) const {
    if (observer != nullptr) [[unlikely]]
      observer->on_tlp(point, place, tlp, queue.now());
  }
  /// Ends a packet that does not reach a function: returns its credits, and informs the observer. The caller counts it.
  void drop(Packet* packet);
  /// The fault that strikes this TLP at that node, if any. `delay`: only kDelay, or only the other kinds.
  [[nodiscard]] const Fault* strike(const Tlp& tlp, NodeId at, bool delay);
};

class Node {
 public:
  explicit Node(NodeId id) : node_id(id) {}
  virtual ~Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// A packet arrived at that port. It holds credits of the transmitter that sent it.
  virtual void arrive(Packet* packet, std::uint32_t port) = 0;
  /// The link of that port went down, so the node's data from that port are lost.
  virtual void link_down(std::uint32_t port) { static_cast<void>(port); }

  /// Delay from the link to arrive(): after the last bit, or after the first if `cut_through`.
  Time arrival_latency = 0;
  bool cut_through = false;
  const NodeId node_id;
};

/// Makes the error completion for a read, from the node that found the error. The request ends here.
[[nodiscard]] Packet* error_completion(Context& context, Packet* request, CompletionStatus status,
                                       FunctionId completer);

}  // namespace wherry::sim::pcie
