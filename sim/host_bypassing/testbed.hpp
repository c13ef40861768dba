// SPDX-License-Identifier: Apache-2.0
// The testbed of paper 002 (IV-A, Fig. 6) in simulation: its NIC (82599) and its FPGA at a switch or at a root complex,
// traffic of numbered frames, and a meter of loss, order and latency. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/host_bypassing/core.hpp"
#include "sim/nic/traffic.hpp"
#include "sim/pcie/fabric.hpp"

namespace wherry::sim::host_bypassing {

/// Where NIC and FPGA are attached (IV-C).
enum class Topology : std::uint8_t { kSwitch, kIntel, kAmd };
[[nodiscard]] const char* name_of(Topology topology) noexcept;

[[nodiscard]] pcie::RootOptions root_of(Topology topology);
/// Latency of the FPGA's hard block and bridge, in each direction. chosen: research, section 4.
inline constexpr pcie::Time kBridge = 130 * pcie::kNanosecond;

/// The latencies in a span of time.
struct Slice {
  std::uint64_t frames = 0;
  std::uint64_t reordered = 0;
  double sum_us = 0, squares = 0, least_us = 0, most_us = 0;
  void add(double us) noexcept;
  [[nodiscard]] double mean_us() const noexcept { return frames == 0 ? 0 : sum_us / static_cast<double>(frames); }
  [[nodiscard]] double deviation_ns() const noexcept;
};

/// Stands between the traffic and the device under test: it records when each frame's last bit goes in, and measures
/// when it comes out. Frames come from nic::make_frame() and belong to one flow.
class Meter final : public nic::WireEnd {
 public:
  /// `slice`: the length of each of slices(); 0: no slices.
  Meter(pcie::EventQueue& queue, nic::WireEnd& device, pcie::Time slice = 0)
      : queue_(queue), device_(device), slice_(slice) {}
  void on_frame(std::span<const std::byte> frame, bool fcs_good) override;
  /// The receiver of the device's frames.
  [[nodiscard]] nic::WireEnd& out() noexcept { return out_; }
  /// Restarts total(), which then covers frames that leave from now on.
  void measure_from_now() noexcept { total_ = {}; }
  [[nodiscard]] std::uint64_t received() const noexcept { return in_.size(); }
  [[nodiscard]] const nic::Checker& checker() const noexcept { return checker_; }
  [[nodiscard]] const Slice& total() const noexcept { return total_; }
  [[nodiscard]] const std::vector<Slice>& slices() const noexcept { return slices_; }

 private:
  struct Out final : nic::WireEnd {
    explicit Out(Meter& owner) : meter(owner) {}
    void on_frame(std::span<const std::byte> frame, bool fcs_good) override { meter.left(frame, fcs_good); }
    Meter& meter;
  };
  void left(std::span<const std::byte> frame, bool fcs_good);

  pcie::EventQueue& queue_;
  nic::WireEnd& device_;
  pcie::Time slice_;
  std::vector<pcie::Time> in_;
  nic::Checker checker_;
  Slice total_;
  std::vector<Slice> slices_;
  Out out_{*this};
};

/// The path that frames take (Fig. 5).
enum class Scenario : std::uint8_t { kBoth, kReceive, kTransmit };  ///< 3; 4: out, in by the FPGA's Ethernet port

struct TestbedOptions {
  Topology topology = Topology::kSwitch;
  Scenario scenario = Scenario::kBoth;
  CoreOptions core{};
  nic::NicOptions nic{};  ///< the 82599
  pcie::Time slice = 0;
};

/// Counts of an interval.
struct Interval {
  std::uint64_t received = 0, dropped = 0, out = 0, reordered = 0, requests = 0;
  std::uint64_t rx_fetches = 0, tx_fetches = 0;
  [[nodiscard]] double loss_percent() const noexcept;
};

/// Sends `warm_up` frames into `meter`, then `frames` more, of `bytes` without FCS, at 10 Gbit/s. Returns what
/// `counted` counts from the first to the last of the latter.
Interval measure(pcie::EventQueue& queue, Meter& meter, std::uint64_t warm_up, std::uint64_t frames,
                 std::uint32_t bytes, std::uint32_t load_per_mille, const std::function<Interval()>& counted);

/// NIC, FPGA and the parts between them.
class Testbed {
 public:
  explicit Testbed(const TestbedOptions& options);
  [[nodiscard]] bool ready() const noexcept { return ready_; }
  /// Sends Sends `warm_up` frames, then `frames` measured ones, of `bytes` without FCS. At the end it does not wait for
  /// packets that are still inside.
  Interval run(std::uint64_t warm_up, std::uint64_t frames, std::uint32_t bytes, std::uint32_t load_per_mille);

  pcie::EventQueue queue;
  pcie::Fabric fabric;
  nic::Nic nic;
  Core core;
  Meter meter;

 private:
  [[nodiscard]] Interval counted() const;
  bool ready_ = false;
};

}  // namespace wherry::sim::host_bypassing
