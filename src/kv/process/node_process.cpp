// SPDX-License-Identifier: Apache-2.0
#include "kv/process/node_process.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <concepts>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/cpu.hpp"
#include "base/log.hpp"
#include "base/patiently.hpp"
#include "base/try.hpp"
#include "kv/clock.hpp"
#include "kv/control/allowed.hpp"
#include "kv/net/address.hpp"
#include "kv/net/neighbour.hpp"
#include "kv/net/udp_port.hpp"
#include "kv/net/xdp_interface.hpp"
#include "kv/net/xdp_ports.hpp"
#include "kv/node/driver/member_driver.hpp"
#include "kv/node/node.hpp"
#include "kv/node/table.hpp"
#include "kv/process/receive.hpp"
#include "kv/snapshot/key_window.hpp"
#include "kv/wait.hpp"

namespace wherry::kv {
namespace {

constexpr std::uint64_t kDriverTurnNs = 100'000;  // the keeper's messages are some tens of milliseconds apart
constexpr Cycles kSleep = kMillisecond;
constexpr Cycles kListingSleep = kMillisecond / 10;

/// Lists keys in the thread that owns the table, so every acknowledged write is in the list.
class NodeLister final : public TableLister {
 public:
  explicit NodeLister(const Node& node) : node_(node) {}
  void settle() override {}
  void list(std::uint32_t first, std::uint32_t buckets, std::vector<std::uint64_t>& keys) override {
    const Table& table = node_.table();
    for (std::uint32_t bucket = first; bucket < first + buckets; ++bucket)
      for (const Way& way : table.line(bucket).ways)
        if (way.version != 0) keys.push_back(way.key);
  }

 private:
  const Node& node_;
};

/// Tells the port about the other nodes. A MAC in the cluster file saves a look-up. If a node has several interfaces,
/// the file does not say which one leads to the node.
template <typename P>
wherry::Status keep_neighbours(P& port, const NodeProcessOptions& options) {
  for (std::uint32_t number = 0; number < kMaxNodes; ++number) {
    const ClusterNode& other = options.cluster.nodes[number];
    if (!other.configured || number == options.number) continue;
    wherry::Status status;
    if constexpr (std::same_as<P, XdpPort>)
      if (other.endpoint.mac != 0) status = port.add_neighbour(other.endpoint.ip, other.endpoint.mac);
    if (std::same_as<P, XdpPorts> || other.endpoint.mac == 0) status = port.keep_neighbour(other.endpoint.ip);
    WHERRY_TRY(status);
  }
  port.refresh(boot_ns());
  return {};
}

template <typename P>
void look_after(P& port, std::uint64_t now) {
  port.refresh(now);
}
void look_after(UdpPort& /*port*/, std::uint64_t /*now*/) {}  // the kernel does it

template <Port P>
wherry::Status serve(P& port, Node& node, MemberDriver& driver, std::optional<KeyWindow>& keys,
                     const NodeProcessOptions& options, const std::atomic<bool>& stop) {
  Subnets allowed = allowed_sources(options.cluster, local_subnets());
  std::uint64_t driver_due = 0;
  PortCounters counted;
  Spinner spinner(options.yield);
  Cycles due = 0;
  while (!stop.load(std::memory_order_relaxed)) {
    const std::size_t count = receive_all(port, node, allowed, lease_clock);
    // Send the requests before any other work.
    if (port.flush() != 0)
      spinner.done();
    else if (count != 0)
      spinner.restart();
    std::uint64_t now = boot_ns();
    if (count != 0 || now / kCycleNs >= due) {
      due = node.tick(now / kCycleNs);
      port.flush();
    }
    if (now >= driver_due) {
      count_drops(node, port.counters(), counted);
      WHERRY_TRY(driver.turn(now / kCycleNs));
      look_after(port, now);
      if (keys) keys->turn();
      due = node.tick(now / kCycleNs);  // registers may have been written
      port.flush();
      driver_due = now + kDriverTurnNs;
    }
    if (count != 0) continue;
    if (options.spin || options.yield) {
      spinner.pause(now);
      continue;
    }
    std::array ready{pollfd{.fd = port.fd(), .events = POLLIN, .revents = 0}};
    const Cycles before = lease_clock();
    const Cycles longest = keys && keys->busy() ? kListingSleep : kSleep;
    if (due > before) wait_for(ready, std::min(due - before, longest));
    driver_due = 0;  // after a sleep, a look at the keeper costs nothing that matters
  }
  return {};
}

/// Opens the socket that lists the keys. The node also serves if this fails.
std::optional<KeyWindow> open_keys(const NodeProcessOptions& options, Node& node, TableLister& lister) {
  if (options.keys.empty()) return std::nullopt;
  auto opened = KeyWindow::open(options.keys, options.number, SnapshotSource::software, node, lister);
  if (opened) return *std::move(opened);
  spdlog::warn("kv node {}: no snapshots of it: {}", options.number, opened.status().message());
  return std::nullopt;
}

template <Port P>
wherry::Status run_on(P& port, const std::string& where, const NodeProcessOptions& options,
                      const std::atomic<bool>& stop) {
  const ClusterFile& cluster = options.cluster;
  Node node({.lane_bits = static_cast<unsigned>(std::bit_width(cluster.lanes - 1))}, port);
  node.set_now(lease_clock());
  DriverOptions of_driver = driver_options(options);
  of_driver.silent_members = [&node](Cycles time) { return node.silent_members(time); };
  WHERRY_ASSIGN(MemberDriver driver, MemberDriver::open(options, std::move(of_driver), node));
  spdlog::info("kv node {} of cluster {} at UDP port {}, {}{}", options.number, cluster.name, port.local().port, where,
               options.yield  ? ", spinning and yielding"
               : options.spin ? ", spinning"
                              : "");
  NodeLister lister(node);
  std::optional<KeyWindow> keys = open_keys(options, node, lister);
  wherry::Status end = serve(port, node, driver, keys, options, stop);
  const PortCounters counters = port.counters();
  const std::uint32_t strangers = node.counters().dropped_source;
  spdlog::info(
      "kv node {}: {} frames, {} dropped: {} for their length, {} for their checksum, {} for their source; {} not sent",
      options.number, node.counters().frames_kv, counters.bad_length + counters.bad_checksum + strangers,
      counters.bad_length, counters.bad_checksum, strangers, counters.send_failed);
  return end;
}

template <typename P>
wherry::Status run_on_opened(Result<P> port, const NodeProcessOptions& options, const std::atomic<bool>& stop) {
  WHERRY_TRY(port);
  WHERRY_TRY(keep_neighbours(*port, options));
  wherry::Status status = run_on(*port, "AF_XDP on " + port->describe(), options, stop);
  if (const std::uint64_t lost = port->lost(); lost != 0)
    spdlog::warn("kv node {}: {} frames came while all of ours were full, and were lost", options.number, lost);
  return status;
}

wherry::Status run_on_xdp(const Endpoint& at, const std::string& text, const NodeProcessOptions& options,
                          const std::atomic<bool>& stop) {
  const auto interfaces = XdpInterface::parse_all(text);
  if (!interfaces) return {StatusCode::kInvalidArgument, fmt::format("'{}': {}", text, XdpInterface::kWanted)};
  std::vector<XdpPort::Options> each;
  for (const XdpInterface& one : *interfaces) {
    each.push_back({.interface = one.name,
                    .queue = one.queue,
                    .attach = options.attach,
                    .checksum = options.no_checksum ? UdpChecksum::kNone : UdpChecksum::kRight});
    if (const auto address = find_address(one.name); address && *address != at.ip)
      spdlog::warn("{} has the address {}, and node {} is {} in the cluster file: which of them is right?", one.name,
                   ip_to_string(*address), options.number, ip_to_string(at.ip));
  }
  if (each.size() == 1) return run_on_opened(patiently([&] { return XdpPort::open(at, each.front()); }), options, stop);
  return run_on_opened(patiently([&] { return XdpPorts::open(at, each); }), options, stop);
}

/// Checks for address space for the buckets. Without it the node would never begin to serve.
wherry::Status check_memory(const NodeProcessOptions& options) {
  const unsigned bits = options.cluster.bucket_bits;
  Table table;
  if (table.allocate(bits)) return {};
  const int error = errno;
  const std::uint64_t bytes = table.buckets() * (sizeof(Line) + std::uint64_t{kWays} * kMaxValueBytes);
  return {StatusCode::kResourceExhausted,
          fmt::format("node {}: no memory for 2^{} buckets ({}), which want {} bytes of address space: raise the limit "
                      "(ulimit -v), or choose smaller bucket_bits",
                      options.number, bits, std::strerror(error), bytes)};
}

}  // namespace

wherry::Status run_node(const NodeProcessOptions& options, const std::atomic<bool>& stop) {
  const ClusterFile& cluster = options.cluster;
  WHERRY_TRY(check_number(options));
  WHERRY_TRY(check_memory(options));
  const ClusterNode& self = cluster.nodes[options.number];
  const std::string& interface = options.xdp.empty() ? self.xdp : options.xdp;
  if (!interface.empty() && !options.udp) return run_on_xdp(self.endpoint, interface, options, stop);
  auto port = patiently([&] { return UdpPort::open(self.endpoint); });
  WHERRY_TRY(port);
  return run_on(*port, "a socket", options, stop);
}

}  // namespace wherry::kv
