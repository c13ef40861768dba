// SPDX-License-Identifier: Apache-2.0
// For tests: a device with memory behind its BARs, and small hierarchies.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "base/random.hpp"
#include "sim/pcie/fabric.hpp"

namespace wherry::sim::pcie::testing_support {

inline constexpr std::uint64_t kBarBytes = std::uint64_t{1} << 16;

/// The number of seeds in a test: a tenth with a sanitizer, which makes a build some ten times slower.
constexpr std::uint64_t seeds(std::uint64_t all) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return all / 10;
#else
  return all;
#endif
}

/// BAR 0 is memory. It answers reads at once, or `latency` later.
class MemoryDevice final : public Function, EventHandler {
 public:
  explicit MemoryDevice(EventQueue& q) : queue(q), memory(kBarBytes) {}

  struct Written {
    std::uint64_t offset;
    std::uint32_t bytes;
    Time at;
    bool poisoned;
  };

  void on_write(const InboundWrite& write) override {
    if (!write.poisoned) std::memcpy(memory.data() + write.offset, write.data.data(), write.data.size());
    bytes_written += write.data.size();
    last_write = queue.now();
    if (first_write == 0) first_write = queue.now();
    if (keep_writes) {
      writes.push_back({write.offset, static_cast<std::uint32_t>(write.data.size()), queue.now(), write.poisoned});
    }
  }
  void on_read(const InboundRead& read) override {
    ++reads;
    if (mute) return;
    if (latency == 0) {
      answer(read);
      return;
    }
    waiting.emplace(next, read);
    queue.schedule(queue.now() + latency, *this, next++);
  }
  void on_read_done(Token token, CompletionStatus status) override {
    done.emplace_back(token, status);
    last_done = queue.now();
  }
  void on_room() override { ++rooms; }
  void on_reset(ResetKind kind) override { resets.push_back(kind); }
  void on_event(std::uint64_t argument) override {
    const InboundRead read = waiting.at(argument);
    waiting.erase(argument);
    answer(read);
  }
  void answer(const InboundRead& read) {
    if (answers == CompletionStatus::kSuccess) {
      port->complete(read, std::span(memory).subspan(read.offset, read.bytes));
    } else {
      port->complete(read, {}, answers);
    }
  }

  EventQueue& queue;
  Port* port = nullptr;
  std::vector<std::byte> memory;
  Time latency = 0;
  bool mute = false;  ///< never answers
  bool keep_writes = true;
  CompletionStatus answers = CompletionStatus::kSuccess;
  std::vector<Written> writes;
  std::uint64_t bytes_written = 0;
  Time first_write = 0, last_write = 0, last_done = 0;
  std::uint64_t reads = 0;
  std::vector<std::pair<Token, CompletionStatus>> done;
  std::vector<ResetKind> resets;
  std::uint32_t rooms = 0;
  std::map<std::uint64_t, InboundRead> waiting;
  std::uint64_t next = 0;
};

/// A root, with or without a switch, and a row of devices below it.
struct Hierarchy {
  struct Shape {
    FabricOptions fabric{};
    bool with_switch = true;
    LinkOptions link{};     ///< of the devices
    LinkOptions up_link{};  ///< of the switch
    SwitchOptions switch_options{};
    EndpointOptions endpoint{};
    FunctionOptions function{};  ///< its BAR 0 is given here if it has none
    std::uint32_t devices = 2;
  };

  explicit Hierarchy(Shape shape) : fabric(queue, shape.fabric) {
    NodeId above = kRoot;
    if (shape.with_switch) above = switch_node = fabric.add_switch(kRoot, shape.up_link, shape.switch_options).value();
    if (shape.function.bars[0].bytes == 0) shape.function.bars[0] = {.bytes = kBarBytes, .prefetchable = true};
    for (std::uint32_t i = 0; i < shape.devices; ++i) {
      nodes.push_back(fabric.add_endpoint(above, shape.link, shape.endpoint).value());
      devices.push_back(std::make_unique<MemoryDevice>(queue));
      devices.back()->port = fabric.add_function(nodes.back(), *devices.back(), shape.function).value();
    }
    host = std::make_unique<MemoryDevice>(queue);
    host->port = fabric.add_host(*host).value();
    const Status status = fabric.enumerate();
    EXPECT_TRUE(status.ok()) << status.to_string();
    for (const auto& device : devices) device->port->set_bus_master(true);
  }

  [[nodiscard]] MemoryDevice& operator[](std::size_t i) { return *devices[i]; }
  [[nodiscard]] std::uint64_t bar(std::size_t i) const { return devices[i]->port->bar_address(0); }

  EventQueue queue;
  Fabric fabric;
  NodeId switch_node = kRoot;
  std::vector<NodeId> nodes;
  std::vector<std::unique_ptr<MemoryDevice>> devices;
  std::unique_ptr<MemoryDevice> host;
};

/// Bytes that are different at different places.
inline std::vector<std::byte> pattern(std::size_t bytes, std::uint64_t seed = 1) {
  std::vector<std::byte> data(bytes);
  SplitMix64 random(seed);
  for (std::byte& byte : data) byte = static_cast<std::byte>(random());
  return data;
}

}  // namespace wherry::sim::pcie::testing_support
