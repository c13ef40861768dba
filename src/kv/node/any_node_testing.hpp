// SPDX-License-Identifier: Apache-2.0
// Nodes for tests and simulations: the delivered class or, if a test asks for faults, the same source compiled with
// faults (wherry_kv_faulty). This header names neither class, so a program may use both.
#pragma once

#include <array>
#include <memory>
#include <utility>

#include "kv/message.hpp"
#include "kv/node/configuration.hpp"
#include "kv/node/faults_testing.hpp"
#include "kv/node/table.hpp"
#include "kv/node_mask.hpp"

namespace wherry::kv::testing {

/// The functions of a Node that tests use. Each calls the Node's function of the same name.
class AnyNode : public RegisterIo {
 public:
  AnyNode(const AnyNode&) = delete;
  AnyNode& operator=(const AnyNode&) = delete;
  virtual ~AnyNode() = default;

  virtual void receive(const Endpoint& from, const Message& message, Cycles now) = 0;
  virtual Cycles tick(Cycles now) = 0;
  virtual void set_now(Cycles now) = 0;
  virtual void preset_versions(const std::array<std::uint32_t, kWays>& versions) = 0;
  virtual void count_dropped(NodeDrop why) = 0;
  virtual void count_passed_rx(std::uint32_t frames) = 0;
  virtual void count_passed_tx(std::uint32_t frames) = 0;
  [[nodiscard]] virtual NodeMask silent_members(Cycles time) = 0;
  [[nodiscard]] virtual const NodeCounters& counters() const = 0;
  [[nodiscard]] virtual const Table& table() const = 0;
  [[nodiscard]] virtual bool at_rest() const = 0;

 protected:
  AnyNode() = default;
};

template <typename NodeClass>
class AnyNodeOf final : public AnyNode {
 public:
  template <typename... Arguments>
  explicit AnyNodeOf(Arguments&&... arguments) : node_(std::forward<Arguments>(arguments)...) {}

  std::uint32_t read(std::uint32_t offset) override { return node_.read(offset); }
  void write(std::uint32_t offset, std::uint32_t value) override { node_.write(offset, value); }
  void receive(const Endpoint& from, const Message& message, Cycles now) override { node_.receive(from, message, now); }
  Cycles tick(Cycles now) override { return node_.tick(now); }
  void set_now(Cycles now) override { node_.set_now(now); }
  void preset_versions(const std::array<std::uint32_t, kWays>& versions) override { node_.preset_versions(versions); }
  void count_dropped(NodeDrop why) override { node_.count_dropped(why); }
  void count_passed_rx(std::uint32_t frames) override { node_.count_passed_rx(frames); }
  void count_passed_tx(std::uint32_t frames) override { node_.count_passed_tx(frames); }
  NodeMask silent_members(Cycles time) override { return node_.silent_members(time); }
  const NodeCounters& counters() const override { return node_.counters(); }
  const Table& table() const override { return node_.table(); }
  bool at_rest() const override { return node_.at_rest(); }

 private:
  NodeClass node_;
};

/// Makes the delivered node or, if faults are given, the node with faults. `output` must outlive it.
std::unique_ptr<AnyNode> make_node(const NodeOptions& options, Output& output, const NodeFaults& faults = {});
/// Used by make_node().
std::unique_ptr<AnyNode> make_faulty_node(const NodeOptions& options, Output& output, const NodeFaults& faults);

}  // namespace wherry::kv::testing
