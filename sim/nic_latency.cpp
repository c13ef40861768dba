// SPDX-License-Identifier: Apache-2.0
#include "sim/nic_latency.hpp"

#include <fmt/core.h>

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "kv/control/configuration.hpp"
#include "kv/net/frame_io.hpp"
#include "kv/node/driver/driver.hpp"
#include "sim/nic_node.hpp"

namespace wherry::kv::rtl {
namespace {

constexpr unsigned kBucketBits = 8;
constexpr Cycles kTurn = 2000, kPatience = 200'000, kIdle = 5000;
constexpr std::uint64_t kKey = 42;
constexpr double kCycle = 4.0;         ///< ns
constexpr double kPicoseconds = 1e-3;  ///< ns
constexpr std::uint32_t kReads = 20;

Endpoint node() { return {.mac = 0x020000000000U, .ip = 0x0a000000U, .port = static_cast<std::uint16_t>(kUdpPort)}; }
Endpoint client() { return {.mac = 0x020000000064U, .ip = 0x0a000064U, .port = 40000}; }

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "kv_sim_bypass: {}\n", why);
  std::exit(EXIT_FAILURE);
}

class NoKeeper final : public DriverOutput {
 public:
  void send(const ToKeeper&) override {}
  std::uint64_t draw_boot() override { return 1; }
};

/// A store with one node, which serves.
class Store {
 public:
  explicit Store(std::string_view nic)
      : node_({.nic = nic, .core = {}}),
        driver_({.cluster = "latency",
                 .bucket_bits = kBucketBits,
                 .retry_cycles = 10'000'000,
                 .sources = {{}},
                 .busy_interval = 1000},
                node_.core(), output_, 0) {
    Configuration alone{.epoch = 1, .members = 1, .bucket_bits = kBucketBits};
    alone.serving = alone.members;
    alone.peers[0] = node();
    driver_.enter_static(alone, 0);
    for (Cycles now = 0; registers::kStateOpened.get(node_.core().read(registers::kStateOffset)) == 0;) {
      if (now > kPatience) give_up("the core does not serve");
      node_.run(kTurn);
      driver_.on_time(now += kTurn);
    }
    node_.run(kIdle);
  }

  /// Returns the answer, and adds its time to `sum`. The node is idle before and after.
  NicNode::Sent ask(Kind kind, std::uint32_t request, ByteView value, NicLatency& sum) {
    std::array<std::byte, kHeaderBytes + kMaxValueBytes> frame;
    const Kv header{.kind = static_cast<std::uint8_t>(kind), .epoch = 1, .client = 1, .request = request, .key = kKey};
    const std::size_t size = build(frame, client(), rtl::node(), {header, value}, UdpChecksum::kNone);
    const auto begin = node_.now();
    node_.put(ByteView(frame).first(size));
    for (Cycles waited = 0; waited < kPatience; ++waited) {
      node_.run(1);
      auto sent = node_.take();
      if (!sent) continue;
      sum.wire += static_cast<double>(sent->at - begin) * kPicoseconds;
      sum.core += static_cast<double>(node_.core_cycles()) * kCycle;
      node_.run(kIdle);
      return *std::move(sent);
    }
    give_up("nothing answers");
  }

 private:
  NicNode node_;
  NoKeeper output_;
  Driver driver_;
};

}  // namespace

NicLatency measure_nic_latency(std::string_view nic, std::size_t value_bytes, std::uint32_t reads) {
  Store store(nic);
  std::vector<std::byte> value(value_bytes);
  for (std::size_t i = 0; i < value_bytes; ++i) value[i] = static_cast<std::byte>(i * 7 + 1);
  NicLatency unused, sum;
  (void)store.ask(Kind::write, 1, value, unused);
  for (std::uint32_t i = 0; i < reads; ++i) {
    const NicNode::Sent sent = store.ask(Kind::read, 2 + i, {}, sum);
    Received read;
    if (parse(sent.bytes, client(), &read) != Parsed::kOurs || read.message.value.size() != value_bytes ||
        !std::equal(value.begin(), value.end(), read.message.value.begin()))
      give_up(fmt::format("a read of {} bytes gives something else", value_bytes));
  }
  return {.core = sum.core / reads, .wire = sum.wire / reads};
}

int print_nic_latency() {
  const char* separator = "[";
  for (const std::string_view nic : {"e1000e", "igb", "ixgbe", "i40e", "ice"})
    for (const std::size_t bytes : {std::size_t{64}, std::size_t{1024}}) {
      const NicLatency one = measure_nic_latency(nic, bytes, kReads);
      fmt::print("{}{{\"nic\":\"{}\",\"value_bytes\":{},\"core_ns\":{:.1f},\"wire_ns\":{:.1f}}}", separator, nic, bytes,
                 one.core, one.wire);
      separator = ",\n ";
    }
  fmt::print("]\n");
  return EXIT_SUCCESS;
}

}  // namespace wherry::kv::rtl
