// SPDX-License-Identifier: Apache-2.0
// Inside sim/pcie: a device with its end of the link and its functions.
#pragma once

#include <memory>
#include <vector>

#include "sim/pcie/function_port.hpp"
#include "sim/pcie/transmitter.hpp"

namespace wherry::sim::pcie {

class Endpoint final : public Node, public Outlet, EventHandler {
 public:
  Endpoint(Context& context, NodeId id, const EndpointOptions& options);

  void set_upstream(Transmitter& out, std::uint8_t bus) {
    out_ = &out;
    bus_ = bus;
  }
  /// Call it after the functions have their addresses.
  void build_claims();
  std::vector<std::unique_ptr<FunctionPort>> functions;
  EndpointOptions options;

  void arrive(Packet* packet, std::uint32_t port) override;
  void link_down(std::uint32_t port) override;
  void issue(Packet* packet) override;
  void ready_changed() override;

 private:
  struct Claim {
    std::uint64_t begin, end;
    FunctionPort* function;
    std::uint32_t bar;
  };

  void on_event(std::uint64_t argument) override;
  void drain();
  [[nodiscard]] const Claim* claim_of(const Tlp& tlp);
  [[nodiscard]] bool taken(const Packet& packet);
  void deliver(Packet* packet);
  void answer_error(Packet* packet, CompletionStatus status);
  [[nodiscard]] FunctionId first_id() const noexcept { return static_cast<FunctionId>(bus_ << 8); }

  Context& context_;
  Transmitter* out_ = nullptr;
  std::uint8_t bus_ = 0;
  OrderedBuffer received_;  ///< what the functions have not taken
  bool drain_scheduled_ = false;
  std::vector<Claim> claims_;  ///< ascending
  std::size_t last_claim_ = 0;
};

}  // namespace wherry::sim::pcie
