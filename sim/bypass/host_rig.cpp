// SPDX-License-Identifier: Apache-2.0
#include "sim/bypass/host_rig.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/try.hpp"

namespace wherry::sim {
namespace {

constexpr std::uint64_t kMemory = std::uint64_t{4} << 30;  ///< of the host: from there on its DMA memory lies

nic::NicOptions nic_options(const HostRigOptions& options) {
  nic::NicOptions nic;
  nic.nic = *bypass::find_personality(options.nic);
  nic.mbits = options.mbits;
  nic.seed = options.seed;
  nic.repeats_reads = false;
  return nic;
}

pcie::FabricOptions fabric_options(const HostRigOptions& options) {
  pcie::RootOptions root;  // memory with its latency, not the ideal root
  root.peer_to_peer = options.peer_to_peer;
  return {.root = root, .reordering = options.reordering, .seed = options.seed};
}

card::CardOptions engine_options(const HostRigOptions& options, WindowBus& window) {
  card::CardOptions card;
  card.memory_bytes = bypass::kWindowBytes;
  card.bus = &window;
  card.seed = options.seed;
  return card;
}

}  // namespace

HostRig::HostRig(const HostRigOptions& options, InPlaceFunction* in_place, StreamFunction* stream)
    : fabric(queue, fabric_options(options)),
      nic(queue, nic_options(options)),
      card(queue, {.core = {.seed = options.seed, .pauses = options.pauses, .trace = {}}}, in_place, stream),
      meter(queue, nic, true),
      window(card),
      options_(options),
      engine_card_(queue, engine_options(options, window)),
      device_(fabric, engine_card_, {.memory_from = kMemory}) {
  ready = build();
  if (ready) ready = start();
}

Status HostRig::build() {
  WHERRY_ASSIGN(nic_node, fabric.add_endpoint(pcie::kRoot, options_.nic_link));
  WHERRY_ASSIGN(card_node, fabric.add_endpoint(pcie::kRoot, options_.card_link,
                                               {.receive_latency = RtlFunction::kBridgeLatency,
                                                .send_latency = RtlFunction::kBridgeLatency}));
  WHERRY_ASSIGN(nic_port_, fabric.add_function(nic_node, nic, nic::Nic::function_options(nic.options())));
  WHERRY_ASSIGN(card_port_, fabric.add_function(card_node, card, RtlFunction::function_options()));
  WHERRY_ASSIGN(pcie::Port* const engine,
                fabric.add_function(card_node, engine_card_, card::CardFunction::function_options()));
  WHERRY_TRY(fabric.enumerate());
  nic.attach(*nic_port_);
  card.attach(*card_port_);
  engine_card_.attach(*engine);
  WHERRY_ASSIGN(engine_, wherry::dma::Engine::open(device_, {.channels = 1, .interrupts = false}));
  // The core's base must be a multiple of its window's size.
  WHERRY_ASSIGN(const pci::DmaMemory memory, device_.allocate(2 * bypass::kWindowBytes));
  const std::uint64_t first = (memory.iova + bypass::kWindowBytes - 1) / bypass::kWindowBytes * bypass::kWindowBytes;
  mirror_ = {.bytes = memory.bytes.subspan(first - memory.iova, bypass::kWindowBytes), .iova = first};
  WHERRY_ASSIGN(mailbox_, device_.allocate(bypass::kMailboxBytes));
  mover_ = std::make_unique<bypass::EngineMover>(*engine_, mirror_.iova);
  return {};
}

Status HostRig::start() {
  nic.set_bus_master(true);
  card_port_->set_bus_master(true);
  std::ranges::fill(mirror_.bytes, std::byte{0});
  std::ranges::fill(mailbox_.bytes, std::byte{0});
  WHERRY_ASSIGN(bypass::Card host, bypass::Card::open(card));
  host_.emplace(host);
  const bypass::Personality& personality = nic.options().nic;
  WHERRY_TRY(host_->configure(personality, {.window = mirror_.iova,
                                            .in_place = options_.in_place,
                                            .frame_bytes = options_.frame_bytes,
                                            .mailbox = mailbox_.iova}));
  const bypass::CardShape& shape = host_->shape();
  bypass::HostRingsAccess& access = *this;
  rings_ = std::make_unique<bypass::HostRings>(
      bypass::HostRingsSetup{.nic = &personality,
                             .rx_entries = shape.rx_entries,
                             .tx_entries = shape.tx_entries,
                             .mirror = mirror_.bytes,
                             .mirror_address = mirror_.iova,
                             .mailbox = mailbox_.bytes.first(bypass::kMailboxBytes)},
      *mover_, access);
  WHERRY_TRY(nic.start_rx(0, mirror_.iova + bypass::kRxRings, shape.rx_entries, bypass::kSlotBytes));
  WHERRY_TRY(nic.start_tx(0, mirror_.iova + bypass::kTxRings, shape.tx_entries));
  return host_->start();
}

Status HostRig::stop() {
  WHERRY_TRY(host_->stop());
  nic.stop_rx(0);
  nic.stop_tx(0);
  nic.reset();
  nic.set_bus_master(true);
  const pcie::Time end = queue.now() + pcie::kMillisecond;
  while (!rings_->idle() && queue.now() < end) run_until(queue.now() + options_.turn);
  if (!rings_->idle()) return {StatusCode::kDeadlineExceeded, "copies of the DMA engine do not end"};
  return health;
}

void HostRig::write_window(std::uint32_t offset, std::span<const std::byte> bytes) {
  device_.write_bus(card_port_->bar_address(bypass::kWindowBar) + offset, bytes);
}

void HostRig::write_tail(std::uint64_t address, std::uint32_t value) {
  std::array<std::byte, sizeof value> bytes;
  std::memcpy(bytes.data(), &value, sizeof value);
  device_.write_bus(address, bytes);
}

void HostRig::run_until(pcie::Time end) {
  while (queue.now() < end) {
    if (health) {
      if (const auto turned = rings_->turn(); !turned) health = turned.status();
    }
    queue.run(std::min(end, queue.now() + options_.turn));
  }
}

void HostRig::run_dry(pcie::Time quiet) {
  for (pcie::Time last = queue.now(); health && queue.now() - last < quiet;) {
    const bypass::HostRingsCounters before = rings_->counters();
    const std::uint64_t out = meter.checker().frames;
    run_until(queue.now() + 10 * options_.turn);
    const bypass::HostRingsCounters& after = rings_->counters();
    if (after.turns - before.turns != after.idle_turns - before.idle_turns || meter.checker().frames != out)
      last = queue.now();
  }
}

std::uint64_t HostRig::core_counter(std::string_view name) {
  const auto counters = host_->counters();
  if (!counters) return 0;
  for (const bypass::Counter& one : *counters)
    if (one.name == name) return one.value;
  return 0;
}

}  // namespace wherry::sim
