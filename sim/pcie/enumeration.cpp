// SPDX-License-Identifier: Apache-2.0
#include "sim/pcie/enumeration.hpp"

#include <fmt/format.h>

#include "base/try.hpp"

namespace wherry::sim::pcie {
namespace {

constexpr std::uint64_t kWindow = std::uint64_t{1} << 20;  // Spec 7.5.1.3: windows are whole MiB

constexpr std::uint64_t align(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

class Enumeration {
 public:
  explicit Enumeration(Topology& topology) : topology_(topology) {}

  Status branch(NodeId node) {
    DownPort& port = topology_.port_above(node);
    low_ = align(low_, kWindow);
    high_ = align(high_, kWindow);
    port.low_begin = low_;
    port.high_begin = high_;
    WHERRY_ASSIGN(const std::uint8_t bus, take_bus());
    port.first_bus = bus;
    if (Endpoint* const endpoint = topology_.endpoint(node)) {
      endpoint->set_upstream(topology_.transmitter(node, true), bus);
      WHERRY_TRY(place(*endpoint, bus));
    } else {
      topology_.as_switch(node)->set_upstream(topology_.transmitter(node, true), static_cast<FunctionId>(bus << 8));
      WHERRY_TRY(take_bus());  // the one inside, between its ports
      for (const NodeId child : topology_.below(node)) WHERRY_TRY(branch(child));
    }
    port.last_bus = static_cast<std::uint8_t>(next_bus_ - 1);
    low_ = align(low_, kWindow);
    high_ = align(high_, kWindow);
    port.low_end = low_;
    port.high_end = high_;
    return ok_status();
  }

 private:
  Result<std::uint8_t> take_bus() {
    if (next_bus_ > 255) return Status(StatusCode::kResourceExhausted, "more than 255 PCIe buses");
    return static_cast<std::uint8_t>(next_bus_++);
  }

  Status place(Endpoint& endpoint, std::uint8_t bus) {
    std::uint32_t number = 0;
    for (const auto& function : endpoint.functions) {
      std::array<std::uint64_t, kBars> bars{};
      for (std::uint32_t bar = 0; bar < kBars; ++bar) {
        const BarOptions& options = function->options().bars[bar];
        if (options.bytes == 0) continue;
        std::uint64_t& next = options.prefetchable ? high_ : low_;
        next = align(next, options.bytes);
        bars[bar] = next;
        next += options.bytes;
        if (!options.prefetchable && low_ > kLowBarEnd) {
          return {StatusCode::kResourceExhausted,
                  fmt::format("BAR {} of {} ({} bytes) does not fit below 4 GiB: make it prefetchable", bar,
                              function->options().name, options.bytes)};
        }
      }
      function->place(static_cast<FunctionId>(bus << 8 | number++), bars);
    }
    endpoint.build_claims();
    return ok_status();
  }

  Topology& topology_;
  std::uint32_t next_bus_ = 1;
  std::uint64_t low_ = kLowMemoryEnd;
  std::uint64_t high_ = kHighBarBegin;
};

}  // namespace

Status assign_addresses(Topology& topology) {
  Enumeration enumeration(topology);
  for (const NodeId node : topology.below(kRoot)) WHERRY_TRY(enumeration.branch(node));
  topology.root().start();
  return ok_status();
}

}  // namespace wherry::sim::pcie
