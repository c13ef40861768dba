// SPDX-License-Identifier: Apache-2.0
// A NIC model and the Verilated bypass core in one PCIe fabric, set up by the host's own code (src/bypass/card.cpp).
// The wire measures frames. For the benchmark and for tests.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bypass/card.hpp"
#include "sim/bypass/rtl_function.hpp"
#include "sim/nic/nic.hpp"
#include "sim/nic/traffic.hpp"
#include "sim/pcie/fabric.hpp"

namespace wherry::sim {

enum class Topology : std::uint8_t {
  kSwitch,  ///< both below one switch (PEX 8747), as the paper recommends
  kIntel,   ///< both at root ports of an Intel Xeon 4110
  kAmd,
};
[[nodiscard]] std::string_view name_of(Topology topology) noexcept;

struct RigOptions {
  std::string_view nic = "ixgbe";  ///< personality
  std::uint32_t mbits = 10'000;
  /// The most descriptors that the NIC holds or has requested in each direction, instead of the personality's caches
  /// and thresholds. 0: the personality's own. At most 192.
  std::uint32_t nic_prefetch = 0;
  std::uint32_t nic_writeback = 0;  ///< receive descriptors that it writes back together; 0: the personality's own
  pcie::LinkOptions nic_link{.generation = 2, .lanes = 8};   ///< 82599
  pcie::LinkOptions card_link{.generation = 3, .lanes = 8};  ///< paper, III-A: Alveo U50
  Topology topology = Topology::kSwitch;
  bool in_place = true;
  std::uint64_t seed = 1;
  std::uint32_t pauses = 0;  ///< of the core's ports: RtlOptions
  pcie::Reordering reordering{};
  nic::Hostile hostile{};
  /// The NIC repeats reads that time out, and the core is set up for this. By default it does not repeat them, as the
  /// host's program sets NICs up.
  bool repeats_reads = false;
  std::uint32_t frame_bytes = 9022;               ///< longest, with FCS
  std::optional<std::uint32_t> tx_credits{};      ///< instead of the personality's
  std::optional<std::uint32_t> rx_batch{};        ///< instead of the register's reset value
  std::optional<std::uint32_t> doorbell_timer{};  ///< cycles; the same
  pcie::Time completion_timeout = 0;              ///< of the NIC; 0: the model's
};

/// Measures each frame from its last bit in to its last bit out, and compares its bytes.
class Meter final : public nic::WireEnd {
 public:
  /// `echoed`: outgoing frames are echoes.
  Meter(pcie::EventQueue& queue, nic::Nic& nic, bool echoed) : queue_(queue), nic_(nic), echoed_(echoed), out_(*this) {
    nic.connect(&out_);
  }
  void on_frame(std::span<const std::byte> frame, bool fcs_good) override;
  [[nodiscard]] nic::Checker& checker() noexcept { return checker_; }
  [[nodiscard]] const std::vector<pcie::Time>& latencies() const noexcept { return latencies_; }
  /// Number of outgoing frames that are warm-up. The values below cover only later frames.
  std::uint64_t warm_up = 0;
  /// When the last bit of the first and of the last of those frames left.
  [[nodiscard]] pcie::Time first_out() const noexcept { return first_out_; }
  [[nodiscard]] pcie::Time last_out() const noexcept { return last_out_; }
  [[nodiscard]] std::uint64_t measured_out() const noexcept { return measured_; }

 private:
  struct Out final : nic::WireEnd {
    explicit Out(Meter& owner) : meter(owner) {}
    void on_frame(std::span<const std::byte> frame, bool fcs_good) override { meter.left(frame, fcs_good); }
    Meter& meter;
  };
  void left(std::span<const std::byte> frame, bool fcs_good);

  pcie::EventQueue& queue_;
  nic::Nic& nic_;
  bool echoed_;
  Out out_;
  nic::Checker checker_;
  std::vector<pcie::Time> in_, latencies_;
  std::vector<std::byte> frame_;
  pcie::Time first_out_ = 0, last_out_ = 0;
  std::uint64_t measured_ = 0;
};

class Rig {
 public:
  /// Enumerates the fabric and sets up the rig; `ready` is the result. Functions: as for RtlFunction.
  Rig(const RigOptions& options, InPlaceFunction* in_place, StreamFunction* stream, bool echoed = true);
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  /// Hands the NIC's rings over again, and starts the core's queue pair. `ready` is the first result.
  Status start();
  /// A counter of the core. Nothing may be in flight. Precondition: the card is present.
  [[nodiscard]] std::uint64_t core_counter(std::string_view name);
  [[nodiscard]] const RigOptions& options() const noexcept { return options_; }
  [[nodiscard]] bypass::Card& host() noexcept { return *host_; }

  pcie::EventQueue queue;
  pcie::Fabric fabric;
  nic::Nic nic;
  RtlFunction card;
  Meter meter;
  pcie::NodeId nic_node = 0, card_node = 0;
  pcie::Port* nic_port = nullptr;
  pcie::Port* card_port = nullptr;
  Status ready;

 private:
  Status build();
  RigOptions options_;
  std::optional<bypass::Card> host_;
};

}  // namespace wherry::sim
