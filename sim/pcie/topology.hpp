// SPDX-License-Identifier: Apache-2.0
// Inside sim/pcie: the tree of nodes and links, and events of whole branches.
#pragma once

#include <memory>
#include <vector>

#include "sim/pcie/endpoint.hpp"
#include "sim/pcie/root_complex.hpp"
#include "sim/pcie/switch.hpp"

namespace wherry::sim::pcie {

inline constexpr std::uint32_t kEndpointRcb = 128;  ///< Spec 2.3.1.1: of all completers but root complexes

/// Node 0 is the root complex. Every other node has one link, which leads to the node above.
class Topology {
 public:
  explicit Topology(Context& context);

  Status check_above(NodeId above) const;
  NodeId add_switch(NodeId above, const LinkOptions& link, const SwitchOptions& options);
  NodeId add_endpoint(NodeId above, const LinkOptions& link, const EndpointOptions& options);

  [[nodiscard]] RootComplex& root() noexcept { return root_; }
  /// Null if the node is not an endpoint.
  [[nodiscard]] Endpoint* endpoint(NodeId node) noexcept {
    return node < branches_.size() ? branches_[node].endpoint : nullptr;
  }
  [[nodiscard]] Switch* as_switch(NodeId node) noexcept { return branches_[node].as_switch; }
  [[nodiscard]] Transmitter& transmitter(NodeId node, bool up) noexcept {
    return up ? *branches_[node].up : *branches_[node].down;
  }
  [[nodiscard]] DownPort& port_above(NodeId node) noexcept;
  [[nodiscard]] const std::vector<NodeId>& below(NodeId node) const noexcept { return branches_[node].below; }

  void remove(NodeId node);
  void insert(NodeId node);
  void hot_reset(NodeId node);

 private:
  /// A node, with the link above it.
  struct Branch {
    NodeId above = kRoot;
    std::uint32_t port = 0;  ///< index among the ports of the node above that lead down
    std::unique_ptr<Node> node;
    Endpoint* endpoint = nullptr;
    Switch* as_switch = nullptr;
    std::unique_ptr<Transmitter> up, down;
    std::vector<NodeId> below;
    bool removed = false;
  };

  NodeId attach(NodeId above, const LinkOptions& link, const ReceiveBuffer& buffer, Branch branch);
  void take_down(NodeId node);
  void bring_up(NodeId node);

  Context& context_;
  RootComplex root_;
  std::vector<Branch> branches_;
};

}  // namespace wherry::sim::pcie
