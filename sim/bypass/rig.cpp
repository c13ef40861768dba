// SPDX-License-Identifier: Apache-2.0
#include "sim/bypass/rig.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/try.hpp"
#include "bypass/generated/registers.hpp"
#include "sim/bypass/echo.hpp"
#include "sim/bypass/layout.hpp"

namespace wherry::sim {
namespace {

namespace reg = bypass::registers;

// Fetch limits of a NIC that does not limit the rate (RigOptions::nic_prefetch).
constexpr std::uint32_t kDeepFetch = 63;
constexpr std::uint8_t kDeepReads = 255;
constexpr std::uint32_t kLineTimer = 2000;  ///< ns, as i40e's

nic::NicOptions nic_options(const RigOptions& options) {
  nic::NicOptions nic;
  nic.nic = *bypass::find_personality(options.nic);
  nic.mbits = options.mbits;
  if (options.nic_prefetch != 0) {
    const auto below = static_cast<std::uint8_t>(options.nic_prefetch);
    const auto cache = static_cast<std::uint8_t>(options.nic_prefetch + kDeepFetch);
    nic.nic.rx_prefetch_below = nic.nic.tx_prefetch_below = below;
    nic.nic.rx_cache = nic.nic.tx_cache = cache;
    nic.nic.reads_outstanding = kDeepReads;
  }
  if (options.nic_writeback != 0) {
    nic.nic.rx_writeback = static_cast<std::uint8_t>(options.nic_writeback);
    nic.nic.writeback_timer_ns = kLineTimer;
  }
  nic.seed = options.seed;
  nic.hostile = options.hostile;
  nic.repeats_reads = options.repeats_reads;
  return nic;
}

pcie::FabricOptions fabric_options(const RigOptions& options) {
  return {.root = options.topology == Topology::kIntel ? pcie::intel_xeon_4110()
                  : options.topology == Topology::kAmd ? pcie::amd_epyc_7402()
                                                       : pcie::ideal_root(),
          .reordering = options.reordering,
          .seed = options.seed};
}

RtlFunctionOptions card_options(const RigOptions& options) {
  return {.core = {.seed = options.seed, .pauses = options.pauses, .trace = {}}};
}

}  // namespace

std::string_view name_of(Topology topology) noexcept {
  switch (topology) {
    case Topology::kSwitch:
      return "switch";
    case Topology::kIntel:
      return "intel_xeon_4110";
    case Topology::kAmd:
      return "amd_epyc_7402";
  }
  return "";
}

void Meter::on_frame(std::span<const std::byte> frame, bool fcs_good) {
  in_.push_back(queue_.now());
  nic_.on_frame(frame, fcs_good);
}

void Meter::left(std::span<const std::byte> frame, bool fcs_good) {
  frame_.assign(frame.begin(), frame.end());
  if (echoed_) echo(std::span(frame_).first(std::min<std::size_t>(frame_.size(), kLineBytes)));  // its own inverse
  checker_.on_frame(frame_, fcs_good);
  if (checker_.frames <= warm_up) return;
  last_out_ = queue_.now();
  if (measured_++ == 0) first_out_ = last_out_;
  const std::uint64_t number = nic::number_of(frame_);
  if (number < in_.size()) latencies_.push_back(last_out_ - in_[number]);  // a spoilt frame may have any number
}

Rig::Rig(const RigOptions& options, InPlaceFunction* in_place, StreamFunction* stream, bool echoed)
    : fabric(queue, fabric_options(options)),
      nic(queue, nic_options(options)),
      card(queue, card_options(options), in_place, stream),
      meter(queue, nic, echoed),
      options_(options) {
  ready = build();
  if (ready) ready = start();
}

Status Rig::build() {
  pcie::NodeId above = pcie::kRoot;
  if (options_.topology == Topology::kSwitch) {
    WHERRY_ASSIGN(above, fabric.add_switch(pcie::kRoot, {.generation = 3, .lanes = 16}));
  }
  WHERRY_ASSIGN(nic_node, fabric.add_endpoint(above, options_.nic_link));
  WHERRY_ASSIGN(card_node, fabric.add_endpoint(above, options_.card_link,
                                               {.receive_latency = RtlFunction::kBridgeLatency,
                                                .send_latency = RtlFunction::kBridgeLatency}));
  WHERRY_ASSIGN(nic_port, fabric.add_function(nic_node, nic, nic::Nic::function_options(nic.options())));
  WHERRY_ASSIGN(card_port, fabric.add_function(card_node, card, RtlFunction::function_options()));
  WHERRY_TRY(fabric.enumerate());
  nic.attach(*nic_port);
  card.attach(*card_port);
  if (options_.completion_timeout != 0) nic_port->set_completion_timeout(options_.completion_timeout);
  return {};
}

Status Rig::start() {
  nic.set_bus_master(true);
  card_port->set_bus_master(true);
  WHERRY_ASSIGN(bypass::Card host, bypass::Card::open(card));
  host_.emplace(host);
  const std::uint64_t window = card_port->bar_address(bypass::kWindowBar);
  WHERRY_TRY(host_->configure(nic.options().nic, {.window = window,
                                                  .nic = nic_port->bar_address(0),
                                                  .in_place = options_.in_place,
                                                  .frame_bytes = options_.frame_bytes,
                                                  .through_root = options_.topology != Topology::kSwitch,
                                                  .repeats_reads = options_.repeats_reads}));
  if (options_.tx_credits || options_.rx_batch) {
    std::uint32_t doorbells = card.read(reg::kDoorbellsOffset);
    if (options_.tx_credits) doorbells = reg::kDoorbellsTxCredits.set(doorbells, *options_.tx_credits);
    if (options_.rx_batch) doorbells = reg::kDoorbellsRxBatch.set(doorbells, *options_.rx_batch);
    card.write(reg::kDoorbellsOffset, doorbells);
  }
  if (options_.doorbell_timer) card.write(reg::kDoorbellTimerOffset, *options_.doorbell_timer);
  WHERRY_TRY(nic.start_rx(0, window + bypass::kRxRings, host_->shape().rx_entries, bypass::kSlotBytes));
  WHERRY_TRY(nic.start_tx(0, window + bypass::kTxRings, host_->shape().tx_entries));
  return host_->start();
}

std::uint64_t Rig::core_counter(std::string_view name) {
  const auto counters = host_->counters();
  if (!counters) return 0;
  for (const bypass::Counter& one : *counters)
    if (one.name == name) return one.value;
  return 0;
}

}  // namespace wherry::sim
