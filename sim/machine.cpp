// SPDX-License-Identifier: Apache-2.0
#include "sim/machine.hpp"

#include <fmt/core.h>

#include <cstdlib>
#include <utility>

#include "kv/net/datagram.hpp"
#include "kv/net/frame_io.hpp"

namespace wherry::kv::rtl {

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

std::vector<std::byte> frame_of(const sim::Packet& packet, sim::Random& random) {
  const auto message = unpack_datagram(packet.bytes);
  if (!message) return {};
  std::vector<std::byte> bytes(sim::kMaxFrame);
  bytes.resize(
      build(bytes, packet.from, packet.to, *message, random.below(2) == 0 ? UdpChecksum::kRight : UdpChecksum::kNone));
  return bytes;
}

void send_frame(sim::Network& network, sim::Port port, ByteView frame) {
  Received read;
  Endpoint to;
  if (frame.size() >= kHeaderBytes) to = destination_of(frame);
  const Parsed parsed = parse(frame, to, &read);
  const std::size_t whole = kHeaderBytes + read.message.value.size();
  if (parsed != Parsed::kOurs || whole != frame.size() || !(read.from == network.endpoint(port))) {
    fmt::print(stderr, "node {}: its core sent a frame of {} bytes that is wrong ({}), to {:012x} {:08x} {}\n", port,
               frame.size(), static_cast<int>(parsed), to.mac, to.ip, to.port);
    std::abort();
  }
  network.send(port, to, frame.subspan(kKvOffset));
}

RtlMachine::RtlMachine(sim::Network& network, sim::Port port, const sim::MachineOptions& options,
                       ToKeeperFunction to_keeper)
    : Machine(network, port, options, std::move(to_keeper)), core_(core_options(options)), caught_up_(local()) {
  drive(core_);
}

void RtlMachine::run(Cycles cycles) {
  core_.run(cycles);
  while (const auto frame = core_.take(Side::kNet)) send_frame(network_, port_, frame->bytes);
}

void RtlMachine::catch_up() {
  const Cycles now = local();
  run(now - caught_up_);
  caught_up_ = now;
}

Cycles RtlMachine::tick() { return core_.idle() ? ~Cycles{0} : local() + kLook; }

void RtlMachine::receive(Cycles, const sim::Packet& packet) {
  catch_up();
  const std::vector<std::byte> frame = frame_of(packet, random_);
  if (frame.empty()) return;
  core_.put(Side::kNet, frame);
  work();
}

sim::MachineFactory machine_factory() {
  return [](sim::Network& network, sim::Port port, const sim::MachineOptions& options,
            sim::Machine::ToKeeperFunction to_keeper) {
    return std::make_unique<RtlMachine>(network, port, options, std::move(to_keeper));
  };
}

}  // namespace wherry::kv::rtl
