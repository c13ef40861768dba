// SPDX-License-Identifier: Apache-2.0
#include "sim/live_node.hpp"

#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <array>

#include "base/log.hpp"
#include "base/try.hpp"
#include "kv/node/driver/member_driver.hpp"
#include "sim/card_lister.hpp"
#include "sim/kv_card/engine_memory.hpp"

namespace wherry::kv::rtl {
namespace {

constexpr std::uint64_t kDriverTurnNs = 1'000'000;
constexpr int kSleepMs = 1;
constexpr Cycles kAtOnce = 2000;  ///< cycles between two looks at what has come

/// The core, and its connection to the network.
///
/// Time: computing a cycle takes microseconds. Before any input, the core's clock is set forward to the system's. So
/// its lease ends in time, even if the core is slow. The clock is never set back, so it may run ahead by the cycles of
/// register accesses, which ends the lease earlier. Timers count what was computed, or skipped when idle.
class Wire {
 public:
  Wire(Core& core, LiveLink& link) : core_(core), link_(link), last_(now_cycles()) {}

  std::size_t receive() { return link_.receive(core_); }

  /// Runs the core for the time since the last call, or for as much of it as is possible at once.
  void pass() {
    const Cycles now = now_cycles();
    core_.run(std::min(now - last_, kAtOnce));
    if (core_.idle() && now - last_ > kAtOnce) core_.run(now - last_ - kAtOnce);
    last_ = now;
    core_.set_clock(now);
    send();
  }

  void send() { link_.send(core_); }

  void sleep() const {
    std::array<pollfd, 2> ready{};
    const std::span<const int> fds = link_.fds();
    for (std::size_t i = 0; i < fds.size(); ++i) ready[i] = {.fd = fds[i], .events = POLLIN, .revents = 0};
    ::poll(ready.data(), fds.size(), kSleepMs);
  }

 private:
  Core& core_;
  LiveLink& link_;
  Cycles last_;
};

/// The core gets its peers' MACs only from the cluster file.
wherry::Status check_macs(const ClusterFile& cluster) {
  for (std::uint32_t i = 0; i < kMaxNodes; ++i)
    if (cluster.nodes[i].configured && cluster.nodes[i].endpoint.mac == 0)
      return {StatusCode::kInvalidArgument,
              fmt::format("cluster {}: node {} has no 'mac', which a core on a TAP device needs of every node",
                          cluster.name, i)};
  return {};
}

}  // namespace

wherry::Status run_live_node(const LiveNodeOptions& options, const std::atomic<bool>& stop) {
  const ClusterFile& cluster = options.cluster;
  WHERRY_TRY(check_number(options));
  const Endpoint self = cluster.nodes[options.number].endpoint;
  if (options.taps) WHERRY_TRY(check_macs(cluster));
  WHERRY_ASSIGN(auto link, options.taps ? open_tap_link(*options.taps, self) : open_socket_link(self));
  Core core(options.core);
  Wire wire(core, *link);
  core.set_clock(now_cycles());
  WHERRY_ASSIGN(MemberDriver driver, MemberDriver::open(options, driver_options(options), core));
  spdlog::info("kv node {} of cluster {} at {}: the core, simulated", options.number, cluster.name, link->describe());

  EngineMemory memory(core);
  CardLister lister(core, memory);
  auto keys = KeyWindow::open(options.keys, options.number, SnapshotSource::hardware, core, lister);
  if (!keys) spdlog::warn("kv node {}: no snapshots of it: {}", options.number, keys.status().message());

  const std::uint64_t start = boot_ns();
  std::uint64_t driver_due = 0;
  while (!stop.load(std::memory_order_relaxed)) {
    const std::size_t count = wire.receive();
    wire.pass();
    if (boot_ns() >= driver_due) {
      WHERRY_TRY(driver.turn(now_cycles()));
      if (keys) keys->turn();
      wire.send();
      driver_due = boot_ns() + kDriverTurnNs;
    }
    if (count != 0 || !core.idle()) continue;
    wire.sleep();
  }
  const Cycles computed = core.now() - core.skipped();
  spdlog::info("kv node {}: {} cycles computed in {:.1f} s, {} skipped, {} frames lost", options.number, computed,
               static_cast<double>(boot_ns() - start) * 1e-9, core.skipped(), link->lost());
  return {};
}

}  // namespace wherry::kv::rtl
