// SPDX-License-Identifier: Apache-2.0
// Inside sim/pcie: the root complex: host memory, IOMMU, the processor's port, traffic between the root ports.
#pragma once

#include <memory>
#include <vector>

#include "sim/pcie/function_port.hpp"
#include "sim/pcie/iommu.hpp"
#include "sim/pcie/memory.hpp"
#include "sim/pcie/peer_server.hpp"
#include "sim/pcie/split.hpp"

namespace wherry::sim::pcie {

/// The host's memory lies below this. From here to 4 GiB lie BARs and interrupts; the rest of memory is above.
inline constexpr std::uint64_t kLowMemoryEnd = 0xc0000000;
inline constexpr std::uint64_t kLowBarEnd = 0xfe000000;
inline constexpr std::uint64_t kInterruptBegin = 0xfee00000;
inline constexpr std::uint64_t kInterruptEnd = 0xfef00000;
inline constexpr std::uint64_t kHighMemoryBegin = std::uint64_t{1} << 32;
inline constexpr std::uint64_t kHighBarBegin = std::uint64_t{1} << 40;

class RootComplex final : public Node, public Outlet, EventHandler {
 public:
  explicit RootComplex(Context& context);

  std::vector<DownPort> down;  ///< root ports
  HostMemory memory;
  Iommu iommu;
  std::unique_ptr<FunctionPort> host;
  PortCounters counters;  ///< of memory

  void start();
  void arrive(Packet* packet, std::uint32_t port) override;
  void issue(Packet* packet) override;
  void ready_changed() override {}

 private:
  enum Stage : std::uint8_t { kDispatch, kReadMemory, kAnswerHost };
  struct Order {
    Time writes_until = 0;  ///< the last write of that port is through translation
  };

  void on_event(std::uint64_t argument) override;
  void later(Packet* packet, Stage stage, Time at);
  void request(Packet* packet);
  void dispatch(Packet* packet);
  void to_peer(Packet* packet, std::uint32_t target);
  void write_memory(Packet* packet);
  void read_memory(Packet* packet);
  void refuse(Packet* packet);
  void answer(Packet* completion, std::uint32_t port);
  [[nodiscard]] bool is_memory(const Tlp& tlp) const noexcept;
  [[nodiscard]] std::uint32_t find_address(std::uint64_t address) const noexcept;
  [[nodiscard]] std::uint32_t find_id(FunctionId id) const noexcept;

  static constexpr std::uint32_t kNoPort = ~std::uint32_t{0};
  static constexpr std::uint32_t kHostPort = kNoPort - 1;

  Context& context_;
  const RootOptions& options_;
  PeerServer peers_;
  CompletionSplitter splitter_;
  SplitMix64 random_;
  std::vector<Order> order_;
};

}  // namespace wherry::sim::pcie
