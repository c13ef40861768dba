// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "bypass/card.hpp"
#include "bypass/generated/functions_registers.hpp"
#include "sim/demo/hardware.hpp"
#include "sim/demo/rtl_node.hpp"

namespace wherry::sim {
namespace {

namespace functions = bypass_functions::registers;

/// More cycles than any step between two events at the ports, in the bypass core (docs/design/bypass-core.md, The way
/// of a packet), and in kv core and echo, too (kv::rtl::Core::kSilence).
constexpr std::uint64_t kStill = 16, kSilent = 96;
constexpr std::uint64_t kShortestTick = 8, kLongestTick = 64;  ///< cycles

/// The bypass core's registers, for the project's own counter reader.
class Counters final : public bypass::CardAccess {
 public:
  explicit Counters(RtlNode& node) : node_(node) {}
  std::uint32_t read(std::uint32_t offset) override { return node_.read_register(offset); }
  void write(std::uint32_t offset, std::uint32_t value) override { node_.write_register(offset, value); }
  Status read_window(std::uint32_t, std::span<std::byte>) override { return no_window(); }
  Status write_window(std::uint32_t, std::span<const std::byte>) override { return no_window(); }
  void pause(std::chrono::microseconds) override {}

 private:
  static Status no_window() { return {StatusCode::kUnsupported, "the screen reads counters only"}; }
  RtlNode& node_;
};

class RtlHardware final : public DemoHardware {
 public:
  void write(std::uint32_t offset, std::span<const std::byte> data) override {
    node_.write(offset, data);
    accessed_ = true;
  }
  void read(std::uint32_t offset, std::span<std::byte> data) override {
    node_.read(offset, data);
    accessed_ = true;
  }
  std::optional<TailWrite> next_tail() override { return node_.take_tail(); }
  /// Runs one cycle after an access. Otherwise runs until all is idle, with a minimum so that timers advance.
  void tick() override {
    node_.cycle();
    if (std::exchange(accessed_, false)) return;
    for (std::uint64_t done = 1; done < kShortestTick || (done < kLongestTick && node_.still() < kStill); ++done)
      node_.cycle();
  }

  std::uint32_t read_register(std::uint32_t offset) override { return node_.read_register(offset); }
  void write_register(std::uint32_t offset, std::uint32_t value) override { node_.write_register(offset, value); }
  Status run(bool) override { return {StatusCode::kUnsupported, "this card is started by its registers"}; }
  bool turn() override { return node_.still() < kSilent; }
  HardwareReport report() override;

 private:
  [[nodiscard]] std::uint32_t function(std::uint32_t offset) {
    return node_.read_register(kFunctionRegisters + offset);
  }

  RtlNode node_;
  bool accessed_ = false;
};

HardwareReport RtlHardware::report() {
  HardwareReport report;
  Counters access(node_);
  auto card = bypass::Card::open(access);
  if (!card) node_.fail(card.status().message());
  const auto counters = card->counters();
  if (!counters) node_.fail(counters.status().message());
  std::uint64_t sent = 0;
  for (const bypass::Counter& one : *counters) {
    report.card.push_back({std::string(one.name), one.value});
    if (one.name == "rx_frames") report.frames_in = one.value;
    if (one.name == "tx_done") report.frames_out = one.value;
    if (one.name == "tx_in") sent = one.value;
  }
  report.arp = function(functions::kEchoArpOffset);
  report.icmp = function(functions::kEchoIcmpOffset);
  report.ignored = function(functions::kEchoOtherOffset) + function(functions::kEchoMalformedOffset);
  report.kv = sent - std::min(sent, report.arp + report.icmp);  // echo's frames pass through the kv core, too
  report.under_way = sent - report.frames_out;
  report.cycles = node_.now();
  return report;
}

}  // namespace

std::unique_ptr<DemoHardware> make_rtl_hardware() { return std::make_unique<RtlHardware>(); }

}  // namespace wherry::sim
