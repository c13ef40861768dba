// SPDX-License-Identifier: Apache-2.0
#include "sim/live_node.hpp"

#include <fmt/core.h>
#include <poll.h>

#include <algorithm>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "kv/frame_io.hpp"
#include "kv/keeper/driver_client.hpp"
#include "kv/udp_port.hpp"

namespace wherry::kv::rtl {
namespace {

constexpr std::uint64_t kDriverTurnNs = 1'000'000;
constexpr int kSleepMs = 1;
constexpr Cycles kAtOnce = 2000;  ///< cycles between two looks at the socket
constexpr std::uint64_t kPeerMac = 0x020000000000;

/// The core, and what is between it and the socket.
///
/// Time: a computed cycle takes microseconds. The core's clock is set forward to the system's before anything is
/// given to it, so that its lease ends as any other's, however slow it is; never back, so that it may run ahead by the
/// cycles of register accesses, which ends the lease earlier. Timers count what was computed, or skipped when idle.
class Wire {
 public:
  Wire(Core& core, UdpPort& port, const Endpoint& self) : core_(core), port_(port), self_(self), last_(now_cycles()) {}

  [[nodiscard]] static Cycles now_cycles() { return boot_ns() / kCycleNs; }

  std::size_t receive() {
    bool first = true;
    return port_.poll([&](const Endpoint& from, const Message& message) {
      if (first) core_.set_clock(now_cycles());
      first = false;
      // The socket tells no MAC address; the core only ever sends it back.
      const Endpoint sender{.mac = kPeerMac | from.ip, .ip = from.ip, .port = from.port};
      std::array<std::byte, kHeaderBytes + kMaxValueBytes> frame;
      const std::size_t size = build(frame, sender, self_, message, UdpChecksum::kNone);
      if (size != 0) core_.put(Side::kNet, ByteView(frame).first(size));
    });
  }

  /// What time has passed since the last call, or as much of it as can be computed at once.
  void pass() {
    const Cycles now = now_cycles();
    core_.run(std::min(now - last_, kAtOnce));
    if (core_.idle() && now - last_ > kAtOnce) core_.run(now - last_ - kAtOnce);
    last_ = now;
    core_.set_clock(now);
    send();
  }

  void send() {
    while (const auto frame = core_.take(Side::kNet)) {
      if (frame->bytes.size() < kHeaderBytes) continue;
      const Headers headers = Headers::unpack(ByteView(frame->bytes).first<kHeaderBytes>());
      const Endpoint to{
          .mac = headers.ethernet.destination, .ip = headers.ipv4.destination, .port = headers.udp.destination_port};
      Received read;
      if (parse(frame->bytes, to, &read) != Parsed::kOurs) {
        ++wrong_;  // a receiver's kernel would drop it, too
        continue;
      }
      port_.send(to, read.message);
    }
    port_.flush();
  }
  [[nodiscard]] std::uint64_t wrong() const noexcept { return wrong_; }

 private:
  Core& core_;
  UdpPort& port_;
  Endpoint self_;
  Cycles last_;
  std::uint64_t wrong_ = 0;
};

}  // namespace

wherry::Status run_live_node(const LiveNodeOptions& options, const std::atomic<bool>& stop) {
  const ClusterFile& cluster = options.cluster;
  if (options.number >= kMaxNodes || !cluster.nodes[options.number].configured)
    return {StatusCode::kInvalidArgument, fmt::format("cluster {} has no node {}", cluster.name, options.number)};
  const Endpoint self = cluster.nodes[options.number].endpoint;
  auto port = UdpPort::open(self);
  if (!port) return port.status();
  Core core(options.core);
  Wire wire(core, *port, self);
  core.set_clock(Wire::now_cycles());
  DriverClient driver(options.keepers,
                      {.cluster = cluster.name,
                       .node = options.number,
                       .bucket_bits = cluster.bucket_bits,
                       .lanes = cluster.lanes,
                       .retry_cycles = cluster.retry_cycles,
                       .accept = options.accept},
                      core);
  if (cluster.mode == ClusterMode::fixed)
    driver.driver().enter_static(static_configuration(cluster), boot_ns() / kCycleNs);
  spdlog::info("kv node {} of cluster {} at UDP port {}: the core, simulated", options.number, cluster.name,
               port->local().port);

  const std::uint64_t start = boot_ns();
  std::uint64_t driver_due = 0;
  while (!stop.load(std::memory_order_relaxed)) {
    const std::size_t count = wire.receive();
    wire.pass();
    if (boot_ns() >= driver_due) {
      driver.turn();
      wire.send();
      driver_due = boot_ns() + kDriverTurnNs;
    }
    if (count != 0 || !core.idle()) continue;
    pollfd ready{.fd = port->fd(), .events = POLLIN, .revents = 0};
    ::poll(&ready, 1, kSleepMs);
  }
  const Cycles computed = core.now() - core.skipped();
  spdlog::info("kv node {}: {} cycles computed in {:.1f} s, {} skipped, {} wrong frames", options.number, computed,
               static_cast<double>(boot_ns() - start) * 1e-9, core.skipped(), wire.wrong());
  return {};
}

}  // namespace wherry::kv::rtl
