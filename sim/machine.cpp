// SPDX-License-Identifier: Apache-2.0
#include "sim/machine.hpp"

#include <fmt/core.h>

#include <array>
#include <cstdlib>
#include <utility>

#include "kv/net/datagram.hpp"
#include "kv/net/frame_io.hpp"

namespace wherry::kv::rtl {
namespace {

/// Streams and memory as the seed says: some nodes have a smooth life, some do not.
CoreOptions core_options(const sim::MachineOptions& machine) {
  sim::Random random(machine.seed);
  CoreOptions options{.memory = random.below(2) == 0 ? kHbmHardware : kHbmSimulated, .seed = random.next()};
  options.memory.jitter = random.below(2) * 40;
  options.net.gaps = random.below(2) * 200'000;
  options.net.stalls = random.below(2) * 300'000;
  options.faults = {.serve_pending_reads = machine.faults.has(NodeFault::serve_pending_reads),
                    .commit_before_all = machine.faults.has(NodeFault::commit_before_all),
                    .forget_unsettled = machine.faults.has(NodeFault::forget_unsettled),
                    .keep_lagging_versions = machine.faults.has(NodeFault::keep_lagging_versions),
                    .ignore_other_flights = machine.faults.has(NodeFault::ignore_other_flights),
                    .ignore_other_versions = machine.faults.has(NodeFault::ignore_other_versions)};
  return options;
}

}  // namespace

RtlMachine::RtlMachine(sim::Network& network, sim::Port port, const sim::MachineOptions& options,
                       ToKeeperFunction to_keeper)
    : Machine(network, port, options, std::move(to_keeper)), core_(core_options(options)), caught_up_(local()) {
  drive(core_);
}

void RtlMachine::run(Cycles cycles) {
  core_.run(cycles);
  while (const auto frame = core_.take(Side::kNet)) send_frame(*frame);
}

void RtlMachine::catch_up() {
  const Cycles now = local();
  run(now - caught_up_);
  caught_up_ = now;
}

Cycles RtlMachine::tick() { return core_.idle() ? ~Cycles{0} : local() + kLook; }

void RtlMachine::receive(Cycles, const sim::Packet& packet) {
  catch_up();
  const auto message = unpack_datagram(packet.bytes);
  if (!message) return;
  std::array<std::byte, sim::kMaxFrame> bytes;
  const std::size_t size =
      build(bytes, packet.from, packet.to, *message, random_.below(2) == 0 ? UdpChecksum::kRight : UdpChecksum::kNone);
  core_.put(Side::kNet, ByteView(bytes).first(size));
  work();
}

/// As its receiver would read it, who must not find fault with it.
void RtlMachine::send_frame(const CoreFrame& frame) {
  Received read;
  Endpoint to;
  if (frame.bytes.size() >= kHeaderBytes) to = destination_of(frame.bytes);
  const Parsed parsed = parse(frame.bytes, to, &read);
  const std::size_t whole = kHeaderBytes + read.message.value.size();
  if (parsed != Parsed::kOurs || whole != frame.bytes.size() || !(read.from == network_.endpoint(port_))) {
    fmt::print(stderr, "node {}: its core sent a frame of {} bytes that is wrong ({}), to {:012x} {:08x} {}\n", port_,
               frame.bytes.size(), static_cast<int>(parsed), to.mac, to.ip, to.port);
    std::abort();
  }
  network_.send(port_, to, ByteView(frame.bytes).subspan(kKvOffset));
}

sim::MachineFactory machine_factory() {
  return [](sim::Network& network, sim::Port port, const sim::MachineOptions& options,
            sim::Machine::ToKeeperFunction to_keeper) {
    return std::make_unique<RtlMachine>(network, port, options, std::move(to_keeper));
  };
}

}  // namespace wherry::kv::rtl
