// SPDX-License-Identifier: Apache-2.0
#include "sim/host_bypassing/testbed.hpp"

#include <algorithm>
#include <cmath>

namespace wherry::sim::host_bypassing {
namespace {

constexpr std::uint32_t kMbits = 10'000;                             // IV-A
constexpr pcie::Time kSettle = 20 * pcie::kMicrosecond;              // the first tail write and its fetches
constexpr pcie::LinkOptions kNicLink{.generation = 2, .lanes = 8};   // 82599 datasheet, 1.2
constexpr pcie::LinkOptions kFpgaLink{.generation = 3, .lanes = 8};  // III-A

}  // namespace

const char* name_of(Topology topology) noexcept {
  return topology == Topology::kSwitch ? "switch" : topology == Topology::kIntel ? "intel" : "amd";
}

pcie::RootOptions root_of(Topology topology) {
  if (topology == Topology::kAmd) return pcie::amd_epyc_7402();
  return topology == Topology::kIntel ? pcie::intel_xeon_4110() : pcie::ideal_root();
}

void Slice::add(double us) noexcept {
  least_us = frames == 0 ? us : std::min(least_us, us);
  most_us = std::max(most_us, us);
  ++frames;
  sum_us += us;
  squares += us * us;
}
double Slice::deviation_ns() const noexcept {
  if (frames == 0) return 0;
  const double mean = mean_us();
  return 1000 * std::sqrt(std::max(0.0, squares / static_cast<double>(frames) - mean * mean));
}

void Meter::on_frame(std::span<const std::byte> frame, bool fcs_good) {
  in_.push_back(queue_.now());
  device_.on_frame(frame, fcs_good);
}

void Meter::left(std::span<const std::byte> frame, bool fcs_good) {
  const std::uint64_t reordered = checker_.reordered;
  checker_.on_frame(frame, fcs_good);
  const std::uint64_t number = nic::number_of(frame);
  if (number >= in_.size()) return;  // a slot that was overwritten while it was read may tell any number
  const double us = static_cast<double>(queue_.now() - in_[number]) / pcie::kMicrosecond;
  total_.add(us);
  if (slice_ == 0) return;
  const auto at = static_cast<std::size_t>(queue_.now() / slice_);
  if (at >= slices_.size()) slices_.resize(at + 1);
  slices_[at].add(us);
  slices_[at].reordered += checker_.reordered - reordered;
}

double Interval::loss_percent() const noexcept {
  return received == 0 ? 0 : 100 * static_cast<double>(dropped) / static_cast<double>(received);
}

Testbed::Testbed(const TestbedOptions& options)
    : fabric(queue, {.root = root_of(options.topology)}),
      nic(queue, options.nic),
      core(queue, options.core),
      meter(
          queue,
          options.scenario == Scenario::kTransmit ? static_cast<nic::WireEnd&>(core) : static_cast<nic::WireEnd&>(nic),
          options.slice) {
  pcie::NodeId above = pcie::kRoot;
  if (options.topology == Topology::kSwitch) {
    above = fabric.add_switch(pcie::kRoot, {.generation = 3, .lanes = 16}).value();
  }
  const pcie::NodeId card = fabric.add_endpoint(above, kNicLink).value();
  const pcie::NodeId fpga =
      fabric.add_endpoint(above, kFpgaLink, {.receive_latency = kBridge, .send_latency = kBridge}).value();
  pcie::Port* nic_port = fabric.add_function(card, nic, nic::Nic::function_options(options.nic)).value();
  pcie::Port* core_port = fabric.add_function(fpga, core, Core::function_options()).value();
  ready_ = fabric.enumerate().ok();
  nic.attach(*nic_port);
  core.attach(*core_port);
  nic.connect(&meter.out());
  if (options.scenario != Scenario::kBoth) core.connect(meter.out(), kMbits);
  nic.set_bus_master(true);
  core_port->set_bus_master(true);
  ready_ = ready_ && core.start(nic).ok();
  queue.run(kSettle);
}

Interval Testbed::counted() const {
  const nic::NicCounters& c = nic.counters();
  return {.received = meter.received(),
          .dropped = c.rx_dropped_all() + core.counters().port_dropped,
          .out = meter.checker().frames,
          .reordered = meter.checker().reordered,
          .requests = fabric.counters().peer_requests,
          .rx_fetches = c.rx_fetches,
          .tx_fetches = c.tx_fetches};
}

Interval Testbed::run(std::uint64_t warm_up, std::uint64_t frames, std::uint32_t bytes, std::uint32_t load_per_mille) {
  return measure(queue, meter, warm_up, frames, bytes, load_per_mille, [this] { return counted(); });
}

Interval measure(pcie::EventQueue& queue, Meter& meter, std::uint64_t warm_up, std::uint64_t frames,
                 std::uint32_t bytes, std::uint32_t load_per_mille, const std::function<Interval()>& counted) {
  const pcie::Time start = queue.now();
  const pcie::Time slot = nic::slot_time(bytes, kMbits) * 1000 / pcie::Time{load_per_mille};
  const nic::Source source(queue, meter,
                           {.mbits = kMbits,
                            .frames = warm_up + frames,
                            .sizes = {bytes},
                            .load_per_mille = load_per_mille,
                            .start = start});
  queue.run(start + static_cast<pcie::Time>(warm_up) * slot);
  meter.measure_from_now();
  const Interval before = counted();
  queue.run(start + static_cast<pcie::Time>(warm_up + frames) * slot);
  const Interval after = counted();
  return {.received = after.received - before.received,
          .dropped = after.dropped - before.dropped,
          .out = after.out - before.out,
          .reordered = after.reordered - before.reordered,
          .requests = after.requests - before.requests,
          .rx_fetches = after.rx_fetches - before.rx_fetches,
          .tx_fetches = after.tx_fetches - before.tx_fetches};
}

}  // namespace wherry::sim::host_bypassing
