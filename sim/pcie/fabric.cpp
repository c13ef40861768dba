// SPDX-License-Identifier: Apache-2.0
#include "sim/pcie/fabric.hpp"

#include <fmt/format.h>

#include <cassert>

#include "base/try.hpp"
#include "sim/pcie/endpoint.hpp"
#include "sim/pcie/enumeration.hpp"
#include "sim/pcie/root_complex.hpp"
#include "sim/pcie/topology.hpp"

namespace wherry::sim::pcie {
namespace {

bool power_of_two(std::uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }

Status check_size(const char* name, std::uint32_t bytes) {
  if (power_of_two(bytes) && bytes >= 128 && bytes <= 4096) return ok_status();
  return {StatusCode::kInvalidArgument,
          fmt::format("{} of {} bytes: PCIe has 128, 256, 512, 1024, 2048 and 4096", name, bytes)};
}

Status check_link(const LinkOptions& link) {
  if (link.generation < 1 || link.generation > 5) {
    return {StatusCode::kInvalidArgument, fmt::format("PCIe generation {}: the model has 1 to 5", link.generation)};
  }
  for (const std::uint32_t lanes : {1, 2, 4, 8, 12, 16, 32}) {
    if (link.lanes == lanes) return ok_status();
  }
  return {StatusCode::kInvalidArgument,
          fmt::format("a link of {} lanes: PCIe has 1, 2, 4, 8, 12, 16 and 32", link.lanes)};
}

/// Spec 2.6.1: a receiver must hold at least one TLP of the largest size.
Status check_buffer(const ReceiveBuffer& buffer, std::uint32_t mps) {
  const std::uint32_t least = mps / kCreditBytes;
  for (const Credits& credits : {buffer.posted, buffer.completion}) {
    if (credits.data != kInfinite && credits.data < least) {
      return {StatusCode::kInvalidArgument,
              fmt::format("a receive buffer of {} data credits cannot hold a payload of {} bytes: {} are needed",
                          credits.data, mps, least)};
    }
  }
  return ok_status();
}

}  // namespace

struct Fabric::Core {
  Core(EventQueue& queue, const FabricOptions& options) : context(queue, options), topology(context) {
    context.fault_random = SplitMix64(splitmix64(options.seed, std::uint64_t{4} << 32));
  }
  Context context;
  Topology topology;
};

Fabric::Fabric(EventQueue& queue, const FabricOptions& options) : core_(std::make_unique<Core>(queue, options)) {}
Fabric::~Fabric() = default;

Result<NodeId> Fabric::add_switch(NodeId above, const LinkOptions& link, const SwitchOptions& options) {
  WHERRY_TRY(core_->topology.check_above(above));
  WHERRY_TRY(check_link(link));
  WHERRY_TRY(check_buffer(options.buffer, core_->context.options.mps));
  return core_->topology.add_switch(above, link, options);
}

Result<NodeId> Fabric::add_endpoint(NodeId above, const LinkOptions& link, const EndpointOptions& options) {
  WHERRY_TRY(core_->topology.check_above(above));
  WHERRY_TRY(check_link(link));
  WHERRY_TRY(check_buffer(options.buffer, core_->context.options.mps));
  return core_->topology.add_endpoint(above, link, options);
}

Result<Port*> Fabric::add_function(NodeId endpoint, Function& function, const FunctionOptions& options) {
  Endpoint* const device = core_->topology.endpoint(endpoint);
  if (device == nullptr) {
    return Status(StatusCode::kNotFound, fmt::format("node {} is not an endpoint", endpoint));
  }
  if (device->functions.size() == 256) {
    return Status(StatusCode::kResourceExhausted, fmt::format("endpoint {} has 256 functions already", endpoint));
  }
  if (options.mrrs != 0) WHERRY_TRY(check_size("MRRS", options.mrrs));
  if (options.tags == 0 || options.tags > 1024) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("function {} with {} tags: 1 to 1024 are possible", options.name, options.tags));
  }
  if (options.completion_bytes % kEndpointRcb != 0) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("function {} ends completions at multiples of {} bytes: only multiples of {} are allowed",
                              options.name, options.completion_bytes, kEndpointRcb));
  }
  for (const BarOptions& bar : options.bars) {
    if (bar.bytes == 0 || (power_of_two(bar.bytes) && bar.bytes >= 128)) continue;
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("function {} has a BAR of {} bytes: powers of two from 128 on are possible", options.name,
                              bar.bytes));
  }
  Context& context = core_->context;
  device->functions.push_back(std::make_unique<FunctionPort>(context, *device, function, options, kEndpointRcb));
  return device->functions.back().get();
}

Result<Port*> Fabric::add_host(Function& host, const FunctionOptions& options) {
  RootComplex& root = core_->topology.root();
  if (root.host != nullptr) return Status(StatusCode::kAlreadyExists, "the fabric has a host already");
  root.host = std::make_unique<FunctionPort>(core_->context, root, host, options, core_->context.options.root.rcb);
  root.host->place(kHostId, {});
  root.host->set_bus_master(true);
  return root.host.get();
}

Status Fabric::enumerate() {
  const FabricOptions& options = core_->context.options;
  WHERRY_TRY(check_size("MPS", options.mps));
  WHERRY_TRY(check_size("MRRS", options.mrrs));
  WHERRY_TRY(check_buffer(options.root.buffer, options.mps));
  const auto splits = [](std::uint32_t bytes) { return bytes >= 64 && bytes % 64 == 0; };
  if ((options.root.rcb != 64 && options.root.rcb != 128) || !splits(options.root.completion_bytes) ||
      options.root.completion_bytes % options.root.rcb != 0) {
    return {
        StatusCode::kInvalidArgument,
        fmt::format("root complex with RCB {} and completions of {} bytes: RCB is 64 or 128, completions a multiple",
                    options.root.rcb, options.root.completion_bytes)};
  }
  return assign_addresses(core_->topology);
}

EventQueue& Fabric::queue() noexcept { return core_->context.queue; }
HostMemory& Fabric::memory() noexcept { return core_->topology.root().memory; }
Iommu& Fabric::iommu() noexcept { return core_->topology.root().iommu; }

void Fabric::set_acs(NodeId node, const Acs& acs) { core_->topology.port_above(node).acs = acs; }
Acs Fabric::acs(NodeId node) const { return core_->topology.port_above(node).acs; }

void Fabric::add_fault(const Fault& fault) { core_->context.faults.push_back({.fault = fault}); }
void Fabric::clear_faults() { core_->context.faults.clear(); }

void Fabric::remove(NodeId node) { core_->topology.remove(node); }
void Fabric::insert(NodeId node) { core_->topology.insert(node); }
void Fabric::hot_reset(NodeId node) { core_->topology.hot_reset(node); }

const LinkCounters& Fabric::link_counters(NodeId node, bool up) const {
  return core_->topology.transmitter(node, up).counters();
}
const FabricCounters& Fabric::counters() const noexcept { return core_->context.counters; }
const PortCounters& Fabric::memory_counters() const noexcept { return core_->topology.root().counters; }
std::uint64_t Fabric::in_flight() const noexcept { return core_->context.pool.live(); }
void Fabric::observe(Observer* observer) noexcept { core_->context.observer = observer; }

}  // namespace wherry::sim::pcie
