// SPDX-License-Identifier: Apache-2.0
// Inside sim/pcie: a switch. Port 0 is the upstream port.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/pcie/node.hpp"
#include "sim/pcie/transmitter.hpp"

namespace wherry::sim::pcie {

/// A downstream port of a switch or of the root complex, with what lies below it according to its bridge registers.
struct DownPort {
  Transmitter* out = nullptr;
  Acs acs{};
  std::uint8_t first_bus = 0, last_bus = 0;
  std::uint64_t low_begin = 0, low_end = 0;    ///< window below 4 GiB
  std::uint64_t high_begin = 0, high_end = 0;  ///< prefetchable window

  [[nodiscard]] bool claims(std::uint64_t address) const noexcept {
    return (address >= low_begin && address < low_end) || (address >= high_begin && address < high_end);
  }
  [[nodiscard]] bool leads_to(FunctionId id) const noexcept {
    return bus_of(id) >= first_bus && bus_of(id) <= last_bus;
  }
};

class Switch final : public Node {
 public:
  Switch(Context& context, NodeId id, const SwitchOptions& options);

  void set_upstream(Transmitter& out, FunctionId id) {
    up_ = &out;
    id_ = id;
  }
  /// A port's number is its index plus 1.
  std::vector<DownPort> down;
  SwitchOptions options;

  void arrive(Packet* packet, std::uint32_t port) override;

 private:
  [[nodiscard]] DownPort* find_address(std::uint64_t address) noexcept;
  [[nodiscard]] DownPort* find_id(FunctionId id) noexcept;
  [[nodiscard]] Transmitter& out_of(std::uint32_t port) noexcept { return port == 0 ? *up_ : *down[port - 1].out; }
  void request(Packet* packet, std::uint32_t port);
  void completion(Packet* packet, std::uint32_t port);
  void refuse(Packet* packet, std::uint32_t port);
  void pass(Packet* packet, Transmitter& out, std::uint32_t port);

  Context& context_;
  Transmitter* up_ = nullptr;
  FunctionId id_ = 0;
};

}  // namespace wherry::sim::pcie
