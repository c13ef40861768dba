// SPDX-License-Identifier: Apache-2.0
// Random traffic through random hierarchies: no byte may be lost, doubled or changed, whatever is reordered.
#include <gtest/gtest.h>

#include "sim/pcie/testing.hpp"

namespace wherry::sim::pcie {
namespace {

using testing_support::MemoryDevice;
using testing_support::pattern;
using testing_support::seeds;

/// A tree of switches with devices at random places.
struct Tree {
  explicit Tree(std::uint64_t seed) : random(seed), fabric(queue, options(seed)) {
    std::vector<NodeId> above{kRoot};
    for (std::uint32_t i = random.below(4); i != 0; --i) {
      SwitchOptions switch_options{.latency = random.below(300) * kNanosecond, .cut_through = random.below(2) == 0};
      if (random.below(2) == 0)
        switch_options.buffer = {.posted = {8, 64}, .non_posted = {4, 4}, .completion = {8, 64}};
      above.push_back(
          fabric.add_switch(above[random.below(static_cast<std::uint32_t>(above.size()))], link(), switch_options)
              .value());
      switches.push_back(above.back());
    }
    const std::uint32_t count = 2 + random.below(4);
    for (std::uint32_t i = 0; i < count; ++i) {
      const NodeId node = fabric
                              .add_endpoint(above[random.below(static_cast<std::uint32_t>(above.size()))], link(),
                                            {.receive_latency = random.below(200) * kNanosecond,
                                             .send_latency = random.below(200) * kNanosecond})
                              .value();
      devices.push_back(std::make_unique<MemoryDevice>(queue));
      FunctionOptions function{.tags = 1 + random.below(64), .completion_timeout = kSecond};
      function.bars[0] = {.bytes = testing_support::kBarBytes, .prefetchable = random.below(2) == 0};
      devices.back()->port = fabric.add_function(node, *devices.back(), function).value();
      devices.back()->latency = random.below(3) * 100 * kNanosecond;
      devices.back()->keep_writes = false;
    }
    EXPECT_TRUE(fabric.enumerate().ok());
    for (auto& device : devices) device->port->set_bus_master(true);
  }
  FabricOptions options(std::uint64_t seed) {
    FabricOptions o;
    o.seed = seed;
    o.mps = 128U << random.below(3);
    o.mrrs = 128U << random.below(6);
    const std::uint32_t root = random.below(3);
    o.root = root == 0 ? ideal_root() : root == 1 ? intel_xeon_4110() : amd_epyc_7402();
    if (random.below(2) == 0) {
      o.reordering = {.per_mille = random.below(800), .longest_hold = kMicrosecond, .split_anywhere = true};
      o.root.memory_jitter = kMicrosecond;
    }
    return o;
  }
  LinkOptions link() {
    LinkOptions o{.generation = 1 + random.below(5), .lanes = 1U << random.below(5)};
    if (random.below(4) == 0) o.replay_one_in = 50;
    return o;
  }

  SplitMix64 random;
  EventQueue queue;
  Fabric fabric;
  std::vector<NodeId> switches;
  std::vector<std::unique_ptr<MemoryDevice>> devices;
};

/// Each device owns a part of each BAR and of host memory. It writes that part piece by piece, each byte once, and
/// reads the upper half, which no device writes. The check at the end finds misplaced bytes.
TEST(Traffic, RandomTrees_ExpectEveryByteOnceAndInItsPlace) {
  constexpr std::uint32_t kHalf = testing_support::kBarBytes / 2;
  for (std::uint64_t seed = 1; seed <= seeds(400); ++seed) {
    Tree tree(seed);
    const auto count = static_cast<std::uint32_t>(tree.devices.size());
    const std::uint32_t part = kHalf / count;
    const std::uint64_t memory = 0x40000000;
    std::vector<std::vector<std::byte>> expected(count + 1);
    for (std::uint32_t to = 0; to <= count; ++to) expected[to] = pattern(kHalf, seed * 10 + to);
    for (auto& device : tree.devices) {
      const auto upper = pattern(kHalf, 99);
      std::copy(upper.begin(), upper.end(), device->memory.begin() + kHalf);
    }
    tree.fabric.memory().write(memory + kHalf, pattern(kHalf, 99));
    const auto upper = pattern(kHalf, 99);

    std::uint64_t written = 0, asked = 0;
    std::vector<std::unique_ptr<std::vector<std::byte>>> places;
    std::vector<std::pair<std::vector<std::byte>*, std::uint32_t>> reads;  // where from in the upper half
    for (std::uint32_t from = 0; from < count; ++from) {
      for (std::uint32_t to = 0; to <= count; ++to) {
        if (to == from) continue;
        const std::uint64_t base = to == count ? memory : tree.devices[to]->port->bar_address(0);
        const std::uint32_t end = from * part + 1 + tree.random.below(part - 1);
        for (std::uint32_t at = from * part; at < end;) {
          const std::uint32_t bytes = std::min(end - at, 1 + tree.random.below(tree.random.below(3) == 0 ? 4096 : 100));
          tree.queue.call(tree.random.below(20'000) * kNanosecond, [&, from, to, base, at, bytes] {
            tree.devices[from]->port->post_write(base + at, std::span(expected[to]).subspan(at, bytes));
          });
          written += bytes;
          at += bytes;
          if (tree.random.below(2) == 0) continue;
          const std::uint32_t read_bytes = 1 + tree.random.below(3000);
          const std::uint32_t offset = tree.random.below(kHalf - read_bytes);
          places.push_back(std::make_unique<std::vector<std::byte>>(read_bytes));
          reads.emplace_back(places.back().get(), offset);
          asked += read_bytes;
          tree.queue.call(tree.random.below(20'000) * kNanosecond,
                          [&tree, from, base, offset, place = places.back().get()] {
                            tree.devices[from]->port->post_read({.address = base + kHalf + offset,
                                                                 .bytes = static_cast<std::uint32_t>(place->size()),
                                                                 .into = place->data(),
                                                                 .token = 1});
                          });
        }
        std::fill(expected[to].begin() + end, expected[to].begin() + (from + 1) * part, std::byte{});
      }
      std::fill(expected[from].begin() + from * part, expected[from].begin() + (from + 1) * part, std::byte{});
    }
    tree.queue.run();

    std::uint64_t received = tree.fabric.memory_counters().write_bytes_received, sent = 0, got = 0, done = 0;
    for (std::uint32_t to = 0; to < count; ++to) {
      MemoryDevice& device = *tree.devices[to];
      ASSERT_TRUE(std::equal(expected[to].begin(), expected[to].begin() + count * part, device.memory.begin()))
          << "seed " << seed << ", device " << to;
      received += device.port->counters().write_bytes_received;
      sent += device.port->counters().write_bytes_sent;
      got += device.port->counters().completion_bytes_received;
      done += device.done.size();
      for (const auto& [token, status] : device.done) ASSERT_EQ(status, CompletionStatus::kSuccess) << "seed " << seed;
      ASSERT_EQ(device.port->counters().unexpected_completions, 0U);
    }
    std::vector<std::byte> low(kHalf);
    tree.fabric.memory().read(memory, low);
    ASSERT_TRUE(std::equal(low.begin(), low.begin() + count * part, expected[count].begin())) << "seed " << seed;
    for (const auto& [place, offset] : reads) {
      ASSERT_TRUE(std::equal(place->begin(), place->end(), upper.begin() + offset)) << "seed " << seed;
    }
    ASSERT_EQ(sent, written) << "seed " << seed;
    ASSERT_EQ(received, written) << "seed " << seed;
    ASSERT_EQ(got, asked) << "seed " << seed;
    ASSERT_EQ(done, reads.size()) << "seed " << seed;
    ASSERT_EQ(tree.fabric.in_flight(), 0U) << "seed " << seed;
  }
}

}  // namespace
}  // namespace wherry::sim::pcie
