// SPDX-License-Identifier: Apache-2.0
// Tests the routes of requests and completions: BAR windows, host memory, ACS, IOMMU, root complexes that break
// peer-to-peer traffic.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/pcie/testing.hpp"

namespace wherry::sim::pcie {
namespace {

using testing_support::Hierarchy;
using testing_support::kBarBytes;
using testing_support::MemoryDevice;
using testing_support::pattern;

std::uint64_t tlps(const LinkCounters& link) { return link.tlps[0] + link.tlps[1] + link.tlps[2]; }

/// Device 0 reads that many bytes from an address. Returns the status, and the data in `into`.
CompletionStatus read(Hierarchy& system, std::uint64_t address, std::span<std::byte> into) {
  system[0].done.clear();
  system[0].port->post_read(
      {.address = address, .bytes = static_cast<std::uint32_t>(into.size()), .into = into.data(), .token = 77});
  system.queue.run();
  EXPECT_EQ(system[0].done.size(), 1U);
  return system[0].done.empty() ? CompletionStatus::kTimeout : system[0].done.front().second;
}

TEST(Enumeration, NestedSwitchesAndBothWindows_ExpectDisjointAlignedBarsAndIds) {
  EventQueue queue;
  Fabric fabric(queue, {});
  const NodeId outer = fabric.add_switch(kRoot, {}).value();
  const NodeId inner = fabric.add_switch(outer, {}).value();
  std::vector<std::unique_ptr<MemoryDevice>> devices;
  for (const NodeId above : {inner, outer, kRoot, inner}) {
    const NodeId node = fabric.add_endpoint(above, {}).value();
    for (int function = 0; function < 3; ++function) {
      devices.push_back(std::make_unique<MemoryDevice>(queue));
      FunctionOptions options;
      options.bars[0] = {.bytes = std::uint64_t{1} << 14};
      options.bars[2] = {.bytes = std::uint64_t{1} << 23, .prefetchable = true};
      options.bars[4] = {.bytes = 128};
      devices.back()->port = fabric.add_function(node, *devices.back(), options).value();
    }
  }
  ASSERT_TRUE(fabric.enumerate().ok());
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  std::vector<FunctionId> ids;
  for (const auto& device : devices) {
    ids.push_back(device->port->id());
    for (const auto& [bar, bytes] : {std::pair{0U, 1U << 14}, std::pair{2U, 1U << 23}, std::pair{4U, 128U}}) {
      const std::uint64_t begin = device->port->bar_address(bar);
      EXPECT_EQ(begin % bytes, 0U);
      EXPECT_EQ(begin >> 32 != 0, bar == 2);
      ranges.emplace_back(begin, begin + bytes);
    }
    EXPECT_EQ(device->port->bar_address(1), 0U);
  }
  std::sort(ranges.begin(), ranges.end());
  for (std::size_t i = 1; i < ranges.size(); ++i) EXPECT_LE(ranges[i - 1].second, ranges[i].first);
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::unique(ids.begin(), ids.end()), ids.end());
  // Each device reaches each other one, and no third device gets the TLP.
  for (const auto& device : devices) device->port->set_bus_master(true);
  for (const auto& from : devices) {
    for (const auto& to : devices) {
      if (bus_of(from->port->id()) == bus_of(to->port->id())) continue;  // not modelled: within one device
      to->writes.clear();
      const std::uint64_t before = to->bytes_written;
      from->port->post_write(to->port->bar_address(2) + 40, pattern(8));
      queue.run();
      EXPECT_EQ(to->bytes_written, before + 8) << "from " << from->port->id() << " to " << to->port->id();
    }
  }
  EXPECT_EQ(fabric.counters().unsupported_writes, 0U);
}

TEST(Enumeration, TooMuchBelowFourGigabytes_ExpectAnErrorThatNamesTheBar) {
  EventQueue queue;
  Fabric fabric(queue, {});
  MemoryDevice device(queue);
  const NodeId node = fabric.add_endpoint(kRoot, {}).value();
  ASSERT_TRUE(
      fabric.add_function(node, device, {.name = "big", .bars = {BarOptions{.bytes = std::uint64_t{1} << 30}}}).ok());
  const Status status = fabric.enumerate();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("BAR 0 of big"), std::string::npos);
}

TEST(Building, WhatPcieDoesNotHave_ExpectAnErrorThatSaysSo) {
  EventQueue queue;
  Fabric fabric(queue, {});
  MemoryDevice device(queue);
  EXPECT_EQ(fabric.add_endpoint(7, {}).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(fabric.add_endpoint(kRoot, {.generation = 6}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(fabric.add_endpoint(kRoot, {.lanes = 3}).status().code(), StatusCode::kInvalidArgument);
  const NodeId node = fabric.add_endpoint(kRoot, {}).value();
  EXPECT_EQ(fabric.add_switch(node, {}).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(fabric.add_function(kRoot, device, {}).status().code(), StatusCode::kNotFound);
  EXPECT_FALSE(fabric.add_function(node, device, {.bars = {BarOptions{.bytes = 100}}}).ok());
  EXPECT_FALSE(fabric.add_function(node, device, {.tags = 2000}).ok());
  EXPECT_FALSE(fabric.add_endpoint(kRoot, {}, {.buffer = {.posted = {1, 8}}}).ok());  // 128 bytes, MPS 256
  Fabric odd(queue, {.mps = 300});
  EXPECT_FALSE(odd.enumerate().ok());
}

TEST(Routing, PeersBelowOneSwitch_ExpectTheRootToSeeNothing) {
  Hierarchy system({});
  const auto data = pattern(5000);
  system[0].port->post_write(system.bar(1) + 100, data);
  std::vector<std::byte> back(5000);
  EXPECT_EQ(read(system, system.bar(1) + 100, back), CompletionStatus::kSuccess);
  EXPECT_EQ(back, data);
  EXPECT_EQ(tlps(system.fabric.link_counters(system.switch_node, true)), 0U);
  EXPECT_EQ(tlps(system.fabric.link_counters(system.switch_node, false)), 0U);
}

TEST(Routing, HostMemory_ExpectWritesToArriveAndReadsToFindThem) {
  Hierarchy system({});
  const auto data = pattern(9000);
  system[0].port->post_write(0x12345, data);
  std::vector<std::byte> back(9000);
  EXPECT_EQ(read(system, 0x12345, back), CompletionStatus::kSuccess);  // B2a: the read pushes the writes
  EXPECT_EQ(back, data);
  EXPECT_EQ(system.fabric.memory_counters().write_bytes_received, 9000U);
  EXPECT_EQ(system.fabric.memory_counters().completion_bytes_sent, 9000U);
}

TEST(Routing, InterruptRange_ExpectTheWatcherToSeeTheWrite) {
  struct Watcher final : MemoryWatcher {
    void on_memory_write(std::uint64_t address, std::uint32_t bytes) override { seen.emplace_back(address, bytes); }
    std::vector<std::pair<std::uint64_t, std::uint32_t>> seen;
  } watcher;
  Hierarchy system({});
  system.fabric.memory().watch(0xfee00000, 0x100000, watcher);
  system[0].port->post_write(0xfee01000, pattern(4));  // MSI-X is just a write
  system.queue.run();
  EXPECT_EQ(watcher.seen, (std::vector<std::pair<std::uint64_t, std::uint32_t>>{{0xfee01000, 4}}));
}

TEST(Routing, HostReadsAndWritesADevice_ExpectItsMemory) {
  Hierarchy system({});
  const auto data = pattern(64);
  std::vector<std::byte> back(64);
  system.host->port->post_write(system.bar(1) + 8, data);
  system.host->port->post_read({.address = system.bar(1) + 8, .bytes = 64, .into = back.data(), .token = 3});
  system.queue.run();
  ASSERT_EQ(system.host->done.size(), 1U);
  EXPECT_EQ(system.host->done[0], (std::pair<Token, CompletionStatus>{3, CompletionStatus::kSuccess}));
  EXPECT_EQ(back, data);
}

TEST(Routing, AddressOfNobody_ExpectUnsupportedRequestAndCounters) {
  Hierarchy system({});
  std::vector<std::byte> back(8);
  // Addresses between the BARs of the switch; beyond everything; in the hole below 4 GiB; past the end of memory.
  for (const std::uint64_t address :
       {system.bar(1) + 5 * kBarBytes, std::uint64_t{1} << 60, std::uint64_t{0xf0000000}, std::uint64_t{6} << 30}) {
    EXPECT_EQ(read(system, address, back), CompletionStatus::kUnsupportedRequest) << std::hex << address;
    system[0].port->post_write(address, pattern(8));
  }
  system.queue.run();
  EXPECT_EQ(system.fabric.counters().unsupported_reads, 4U);
  EXPECT_EQ(system.fabric.counters().unsupported_writes, 4U);
  EXPECT_EQ(system.fabric.in_flight(), 0U);
}

TEST(Routing, FlushRead_ExpectSuccessAfterTheWritesBeforeIt) {
  Hierarchy system({});
  system[0].port->post_write(system.bar(1), pattern(256));
  system[0].port->post_read({.address = system.bar(1), .bytes = 0, .token = 5});
  system.queue.run();
  ASSERT_EQ(system[0].done.size(), 1U);
  EXPECT_EQ(system[0].done[0].second, CompletionStatus::kSuccess);
  EXPECT_EQ(system[1].bytes_written, 256U);
}

TEST(Acs, RequestRedirect_ExpectTheWayUpAndDown) {
  Hierarchy system({});
  system.fabric.set_acs(system.nodes[0], {.request_redirect = true});
  const auto data = pattern(300);
  system[0].port->post_write(system.bar(1), data);
  std::vector<std::byte> back(300);
  EXPECT_EQ(read(system, system.bar(1), back), CompletionStatus::kSuccess);
  EXPECT_EQ(back, data);
  EXPECT_EQ(system.fabric.link_counters(system.switch_node, true).tlps[0], 2U);
  EXPECT_EQ(system.fabric.link_counters(system.switch_node, false).tlps[0], 2U);
  EXPECT_EQ(system.fabric.link_counters(system.switch_node, true).tlps[2], 0U);  // completions go straight
  system.fabric.set_acs(system.nodes[1], {.completion_redirect = true});
  EXPECT_EQ(read(system, system.bar(1), back), CompletionStatus::kSuccess);
  EXPECT_EQ(back, data);
  EXPECT_EQ(system.fabric.link_counters(system.switch_node, true).tlps[2], 2U);
}

TEST(Acs, RedirectBelowANestedSwitch_ExpectUpstreamForwardingToDecide) {
  for (const bool forwarding : {false, true}) {
    EventQueue queue;
    Fabric fabric(queue, {});
    const NodeId outer = fabric.add_switch(kRoot, {}).value();
    const NodeId inner = fabric.add_switch(outer, {}).value();
    MemoryDevice from(queue), to(queue);
    const NodeId from_node = fabric.add_endpoint(inner, {}).value();
    from.port = fabric.add_function(from_node, from, {}).value();
    to.port = fabric
                  .add_function(fabric.add_endpoint(inner, {}).value(), to,
                                {.bars = {BarOptions{.bytes = 4096, .prefetchable = true}}})
                  .value();
    ASSERT_TRUE(fabric.enumerate().ok());
    fabric.set_acs(from_node, {.request_redirect = true});
    fabric.set_acs(inner, {.upstream_forwarding = forwarding});
    from.port->set_bus_master(true);
    from.port->post_write(to.port->bar_address(0), pattern(16));
    queue.run();
    EXPECT_EQ(to.bytes_written, forwarding ? 16U : 0U);
    EXPECT_EQ(fabric.counters().acs_violations, forwarding ? 0U : 1U);
  }
}

TEST(Acs, SourceValidation_ExpectHonestRequestersToPass) {
  Hierarchy system({});
  system.fabric.set_acs(system.nodes[0], {.source_validation = true});
  std::vector<std::byte> back(4);
  EXPECT_EQ(read(system, system.bar(1), back), CompletionStatus::kSuccess);
  EXPECT_EQ(system.fabric.counters().acs_violations, 0U);
}

TEST(IommuOn, MappedPages_ExpectTheTargetAndFaultsElsewhere) {
  Hierarchy system({});
  Iommu& iommu = system.fabric.iommu();
  iommu.enable(true);
  std::vector<std::byte> back(64);
  EXPECT_EQ(read(system, 0x10000, back), CompletionStatus::kUnsupportedRequest);
  EXPECT_EQ(iommu.counters().faults_no_domain, 1U);
  const Iommu::Domain domain = iommu.add_domain();
  iommu.attach(system[0].port->id(), domain);
  ASSERT_TRUE(iommu.map(domain, 0x7000000000, 0x10000, 0x2000).ok());
  ASSERT_TRUE(iommu.map(domain, 0x7000002000, 0x20000, 0x1000, {.read = true, .write = false}).ok());
  const auto data = pattern(64);
  system[0].port->post_write(0x7000000fe0, data);  // over a page
  EXPECT_EQ(read(system, 0x7000000fe0, back), CompletionStatus::kSuccess);
  EXPECT_EQ(back, data);
  std::vector<std::byte> memory(64);
  system.fabric.memory().read(0x10fe0, memory);
  EXPECT_EQ(memory, data);
  system[0].port->post_write(0x7000002000, data);
  EXPECT_EQ(read(system, 0x7000002000, back), CompletionStatus::kSuccess);
  EXPECT_EQ(back, std::vector<std::byte>(64));
  EXPECT_EQ(iommu.counters().faults_forbidden, 1U);
  iommu.unmap(domain, 0x7000000000, 0x2000);
  EXPECT_EQ(read(system, 0x7000000fe0, back), CompletionStatus::kUnsupportedRequest);
  EXPECT_EQ(iommu.counters().faults_unmapped, 2U);  // a read over a page is two
  EXPECT_EQ(system.fabric.counters().iommu_writes, 1U);
  EXPECT_EQ(system.fabric.counters().iommu_reads, 3U);
}

TEST(IommuOn, MapMistakes_ExpectErrorsAndNothingMapped) {
  Hierarchy system({});
  Iommu& iommu = system.fabric.iommu();
  const Iommu::Domain domain = iommu.add_domain();
  EXPECT_EQ(iommu.map(domain + 1, 0, 0, 4096).code(), StatusCode::kNotFound);
  EXPECT_EQ(iommu.map(domain, 0x100, 0, 4096).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(iommu.map(domain, 0xfedff000, 0, 0x2000).code(), StatusCode::kInvalidArgument);  // interrupts
  ASSERT_TRUE(iommu.map(domain, 0x2000, 0, 0x1000).ok());
  EXPECT_EQ(iommu.map(domain, 0x1000, 0, 0x2000).code(), StatusCode::kAlreadyExists);
  EXPECT_TRUE(iommu.map(domain, 0x1000, 0, 0x1000).ok());
}

// research/bypass.md section 5: with IOVA = bus address, the same image works with redirect and without.
TEST(IommuOn, BarMappedAtItsBusAddress_ExpectPeersToWorkWithRedirectAndWithout) {
  for (const bool redirect : {false, true}) {
    Hierarchy system({});
    Iommu& iommu = system.fabric.iommu();
    iommu.enable(true);
    const Iommu::Domain domain = iommu.add_domain();
    iommu.attach(system[0].port->id(), domain);
    ASSERT_TRUE(iommu.map(domain, system.bar(1), system.bar(1), kBarBytes).ok());
    if (redirect) {
      for (const NodeId node : system.nodes) {
        system.fabric.set_acs(node, {.request_redirect = true, .completion_redirect = true});
      }
    }
    const auto data = pattern(700);
    std::vector<std::byte> back(700);
    system[0].port->post_write(system.bar(1) + 3, data);
    EXPECT_EQ(read(system, system.bar(1) + 3, back), CompletionStatus::kSuccess);
    EXPECT_EQ(back, data);
    EXPECT_EQ(iommu.counters().translated != 0, redirect);
  }
}

TEST(IommuOn, BarMappedElsewhere_ExpectPeersToWorkOverTheRootOnly) {
  Hierarchy system({});
  Iommu& iommu = system.fabric.iommu();
  iommu.enable(true);
  const Iommu::Domain domain = iommu.add_domain();
  iommu.attach(system[0].port->id(), domain);
  ASSERT_TRUE(iommu.map(domain, 0x40000000, system.bar(1), kBarBytes).ok());
  const auto data = pattern(700);
  system[0].port->post_write(0x40000000, data);
  system.queue.run();
  EXPECT_EQ(system[1].bytes_written, 700U);
  EXPECT_EQ(system.fabric.link_counters(system.switch_node, true).tlps[0], 3U);
}

// SIGCOMM 2018 section 6.5: within the reach of 64 entries there is no cost, and beyond it a page walk of 330 ns.
TEST(IommuOn, MorePagesThanCacheEntries_ExpectThePageWalkInEachRead) {
  for (const std::uint32_t pages : {32U, 128U}) {
    Hierarchy system({});
    Iommu& iommu = system.fabric.iommu();
    iommu.enable(true);
    const Iommu::Domain domain = iommu.add_domain();
    iommu.attach(system[0].port->id(), domain);
    ASSERT_TRUE(iommu.map(domain, 0, 0, 4096 * 128).ok());
    std::vector<std::byte> back(64);
    Time warm = 0;
    for (std::uint32_t i = 0; i < 3 * pages; ++i) {
      const Time begin = system.queue.now();
      EXPECT_EQ(read(system, i % pages * 4096, back), CompletionStatus::kSuccess);
      warm = system[0].last_done - begin;
    }
    Hierarchy plain({});
    EXPECT_EQ(read(plain, 0, back), CompletionStatus::kSuccess);
    EXPECT_NEAR(static_cast<double>(warm - plain[0].last_done), pages == 32 ? 0 : 330'000, 1000);
  }
}

TEST(PeerToPeer, ReadsVanish_ExpectWritesToPassAndReadsToTimeOut) {
  Hierarchy::Shape shape{.with_switch = false};
  shape.fabric.root.peer_to_peer = PeerToPeer::kReadsVanish;
  Hierarchy system(shape);
  std::vector<std::byte> back(64);
  system[0].port->post_write(system.bar(1), pattern(64));
  EXPECT_EQ(read(system, system.bar(1), back), CompletionStatus::kTimeout);
  EXPECT_EQ(system[1].bytes_written, 64U);
  EXPECT_EQ(system.fabric.counters().peer_reads_vanished, 1U);
  EXPECT_EQ(read(system, 0x1000, back), CompletionStatus::kSuccess);  // host memory is well
}

TEST(PeerToPeer, ReadsWrong_ExpectSuccessWithEveryByteWrong) {
  Hierarchy::Shape shape{.with_switch = false};
  shape.fabric.root.peer_to_peer = PeerToPeer::kReadsWrong;
  Hierarchy system(shape);
  system[1].memory = pattern(kBarBytes);
  std::vector<std::byte> back(500);
  EXPECT_EQ(read(system, system.bar(1), back), CompletionStatus::kSuccess);
  for (std::size_t i = 0; i < back.size(); ++i) EXPECT_NE(back[i], system[1].memory[i]);
}

TEST(PeerToPeer, Refused_ExpectUnsupportedRequests) {
  Hierarchy::Shape shape{.with_switch = false};
  shape.fabric.root.peer_to_peer = PeerToPeer::kRefused;
  Hierarchy system(shape);
  std::vector<std::byte> back(4);
  EXPECT_EQ(read(system, system.bar(1), back), CompletionStatus::kUnsupportedRequest);
  system[0].port->post_write(system.bar(1), pattern(4));
  system.queue.run();
  EXPECT_EQ(system[1].bytes_written, 0U);
  EXPECT_EQ(system.fabric.counters().peer_refused, 2U);
}

TEST(PeerToPeer, CutAtSixtyFourBytes_ExpectThePiecesAndTheWholeAtTheRequester) {
  Hierarchy::Shape shape{.fabric = {.root = intel_xeon_4110(), .mps = 512}, .with_switch = false};
  Hierarchy system(shape);
  system[1].memory = pattern(kBarBytes);
  system[1].latency = 50 * kNanosecond;
  std::vector<std::byte> back(500);
  EXPECT_EQ(read(system, system.bar(1) + 10, back), CompletionStatus::kSuccess);
  EXPECT_TRUE(std::equal(back.begin(), back.end(), system[1].memory.begin() + 10));
  EXPECT_EQ(system[1].reads, 8U);  // 10 to 509: eight lines
  system[0].port->post_write(system.bar(1), pattern(300, 9));
  system.queue.run();
  ASSERT_EQ(system[1].writes.size(), 5U);
  for (const auto& write : system[1].writes) EXPECT_LE(write.bytes, 64U);
  for (std::size_t i = 1; i < 5; ++i)
    EXPECT_NEAR(static_cast<double>(system[1].writes[i].at - system[1].writes[i - 1].at), 19'000,
                3'000);  // the last is shorter
  EXPECT_EQ(system.fabric.counters().peer_requests, 13U);
  EXPECT_EQ(system.fabric.in_flight(), 0U);
}

}  // namespace
}  // namespace wherry::sim::pcie
