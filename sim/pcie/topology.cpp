// SPDX-License-Identifier: Apache-2.0
#include "sim/pcie/topology.hpp"

#include <fmt/format.h>

#include <cassert>
#include <utility>

namespace wherry::sim::pcie {

Topology::Topology(Context& context) : context_(context), root_(context) { branches_.emplace_back(); }

Status Topology::check_above(NodeId above) const {
  if (above == kRoot || (above < branches_.size() && branches_[above].as_switch != nullptr)) return ok_status();
  return {StatusCode::kNotFound, fmt::format("node {} is neither the root complex nor a switch: nothing can be "
                                             "connected below it",
                                             above)};
}

NodeId Topology::attach(NodeId above, const LinkOptions& link, const ReceiveBuffer& buffer, Branch branch) {
  const auto id = static_cast<NodeId>(branches_.size());
  Switch* const parent = branches_[above].as_switch;
  std::vector<DownPort>& ports = parent != nullptr ? parent->down : root_.down;
  Node& far = parent != nullptr ? static_cast<Node&>(*parent) : root_;
  branch.above = above;
  branch.port = static_cast<std::uint32_t>(ports.size());
  const std::uint32_t far_port = parent != nullptr ? branch.port + 1 : branch.port;
  const ReceiveBuffer& far_buffer = parent != nullptr ? parent->options.buffer : context_.options.root.buffer;
  branch.up = std::make_unique<Transmitter>(context_, link, far_buffer, far, far_port);
  branch.down = std::make_unique<Transmitter>(context_, link, buffer, *branch.node, 0);
  branch.up->pair(*branch.down);
  branch.down->pair(*branch.up);
  ports.push_back({.out = branch.down.get()});
  branches_.push_back(std::move(branch));
  branches_[above].below.push_back(id);
  return id;
}

NodeId Topology::add_switch(NodeId above, const LinkOptions& link, const SwitchOptions& options) {
  auto node = std::make_unique<Switch>(context_, static_cast<NodeId>(branches_.size()), options);
  Branch branch;
  branch.as_switch = node.get();
  branch.node = std::move(node);
  return attach(above, link, options.buffer, std::move(branch));
}

NodeId Topology::add_endpoint(NodeId above, const LinkOptions& link, const EndpointOptions& options) {
  auto node = std::make_unique<Endpoint>(context_, static_cast<NodeId>(branches_.size()), options);
  Branch branch;
  branch.endpoint = node.get();
  branch.node = std::move(node);
  return attach(above, link, options.buffer, std::move(branch));
}

DownPort& Topology::port_above(NodeId node) noexcept {
  assert(node != kRoot && node < branches_.size());
  const Branch& branch = branches_[node];
  Switch* const parent = branches_[branch.above].as_switch;
  return (parent != nullptr ? parent->down : root_.down)[branch.port];
}

/// Takes the links down first: their losses return credits and room, and nothing may then be sent over them.
void Topology::take_down(NodeId node) {
  Branch& branch = branches_[node];
  branch.up->go_down();
  branch.down->go_down();
  branch.node->link_down(0);
  for (const NodeId child : branch.below) {
    if (!branches_[child].removed) take_down(child);
  }
}

void Topology::bring_up(NodeId node) {
  Branch& branch = branches_[node];
  branch.up->go_up();
  branch.down->go_up();
  for (const NodeId child : branch.below) {
    if (!branches_[child].removed) bring_up(child);
  }
}

namespace {
/// Calls `act` for each function of a branch.
template <typename Act>
void each_function(Topology& topology, NodeId node, Act&& act) {
  if (Endpoint* const endpoint = topology.endpoint(node)) {
    for (const auto& function : endpoint->functions) act(*function);
  }
  for (const NodeId child : topology.below(node)) each_function(topology, child, act);
}
}  // namespace

void Topology::remove(NodeId node) {
  if (branches_[node].removed) return;
  take_down(node);
  branches_[node].removed = true;
  each_function(*this, node, [](FunctionPort& function) { function.removed(); });
}

void Topology::insert(NodeId node) {
  if (!branches_[node].removed) return;
  branches_[node].removed = false;
  bring_up(node);
  each_function(*this, node, [](FunctionPort& function) { function.inserted(); });
}

void Topology::hot_reset(NodeId node) {
  if (branches_[node].removed) return;
  take_down(node);
  bring_up(node);
  each_function(*this, node, [](FunctionPort& function) { function.hot_reset(); });
}

}  // namespace wherry::sim::pcie
