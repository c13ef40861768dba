// SPDX-License-Identifier: Apache-2.0
// For tests: NICs with the registers of their datasheets (82574, 82576 / I210, 82599), and enough behind them to move a
// frame in loopback. Written from the datasheets, not from Wherry's drivers. Forbidden accesses count as faults: to a
// missing register or bit, to the ring of a running queue, or during a reset. So do a tail write to a queue that is
// off, and MDIC without the semaphore.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "bypass/nic/nic.hpp"

namespace wherry::bypass::testing_support {

/// The bus as the NIC sees it. False: no device answers.
struct Bus {
  std::function<bool(std::uint64_t, std::span<std::byte>)> read = [](std::uint64_t, std::span<std::byte>) {
    return false;
  };
  std::function<bool(std::uint64_t, std::span<const std::byte>)> write = [](std::uint64_t, std::span<const std::byte>) {
    return false;
  };
};

class RegisterModel : public Registers {
 public:
  explicit RegisterModel(const Personality& personality) : nic_(personality) {}

  [[nodiscard]] std::uint32_t read(std::uint32_t offset) final;
  void write(std::uint32_t offset, std::uint32_t value) final;
  void pause(std::chrono::microseconds time) final;

  // What a test sets.
  Bus bus;
  bool bus_master = true;
  bool removed = false;
  bool stuck_reset = false;   ///< CTRL.RST never clears
  bool stuck_master = false;  ///< requests never come to an end
  bool stuck_queue = false;   ///< a queue never says that it runs
  bool cable = true;
  bool phy_off = false;         ///< as the kernel's driver leaves it
  bool loses_loopback = false;  ///< a fault of the NIC: what is sent does not come back
  /// Called for each frame that is sent outside loopback, without FCS.
  std::function<void(const std::vector<std::byte>&)> on_wire = [](const std::vector<std::byte>&) {};
  /// Delivers a frame from the wire, without FCS, that fits one buffer. Without a descriptor it is lost.
  void arrive(const std::vector<std::byte>& frame) { receive(frame); }

  // What a test asks.
  std::vector<std::string> faults;
  std::uint64_t now_us = 0;
  int resets = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> writes;  ///< in order
  [[nodiscard]] std::uint32_t value(std::uint32_t offset) const;
  [[nodiscard]] bool moves() const { return receiving() || transmitting(); }
  [[nodiscard]] bool rx_runs() const { return receiving() && queue_on(nic_.rx_ring_offset); }
  [[nodiscard]] bool tx_runs() const { return transmitting() && queue_on(nic_.tx_ring_offset); }
  /// True if exactly the pairs below `count` run.
  [[nodiscard]] bool only_pairs_run(std::uint32_t count) const;

 protected:
  struct Register {
    std::uint32_t reset = 0, writable = 0;
    bool clears_on_read = false;
  };
  /// Defines `count` registers, `stride` bytes apart.
  void define(std::uint32_t offset, std::uint32_t reset, std::uint32_t writable, std::uint32_t count = 1,
              std::uint32_t stride = 4);
  void define_counter(std::uint32_t offset);
  void reset_all();
  void fault(const std::string& what) { faults.push_back(what); }
  [[nodiscard]] std::uint32_t& at(std::uint32_t offset) { return values_[offset]; }

  virtual void on_write(std::uint32_t offset, std::uint32_t before, std::uint32_t value) = 0;
  /// Returns the value of registers that depend on time or state.
  virtual std::uint32_t on_read(std::uint32_t offset, std::uint32_t value) = 0;
  [[nodiscard]] virtual bool receiving() const = 0;
  [[nodiscard]] virtual bool transmitting() const = 0;
  [[nodiscard]] virtual bool looping() const = 0;
  [[nodiscard]] virtual std::uint32_t buffer_bytes() const = 0;
  [[nodiscard]] bool queue_on(std::uint32_t ring) const;
  [[nodiscard]] std::uint32_t pairs() const;
  [[nodiscard]] std::uint32_t rx_ring(std::uint32_t pair) const { return nic_.rx_ring_offset + 0x40 * pair; }
  [[nodiscard]] std::uint32_t tx_ring(std::uint32_t pair) const { return nic_.tx_ring_offset + 0x40 * pair; }
  /// Registers RETA, RSSRK, MRQC. DPDK e1000/igb_rxtx.c igb_hw_rss_hash_set, ixgbe/ixgbe_rxtx.c ixgbe_hw_rss_hash_set.
  void define_rings();
  void define_spreading();
  void check_spreading(std::uint32_t offset, std::uint32_t value);
  /// Checks the rules of a ring. They are the same in all three datasheets.
  void check_ring(std::uint32_t ring, bool unit_on, std::uint32_t offset, std::uint32_t value);
  void run();
  void start_reset(std::uint64_t microseconds, bool silent);

  const Personality& nic_;
  std::uint64_t reset_until_ = 0;
  bool silent_reset_ = false;  ///< no access until the reset is over
  std::map<std::uint32_t, std::uint64_t> enabled_at_;

 private:
  bool send_one();
  void receive(const std::vector<std::byte>& frame);
  std::map<std::uint32_t, Register> registers_;
  std::map<std::uint32_t, std::uint32_t> values_;
};

/// A model of the 82574, or of 82576 and I210; the personality decides.
class GigabitModel final : public RegisterModel {
 public:
  explicit GigabitModel(const Personality& personality);
  std::uint16_t phy_control = 0x1140;
  bool firmware_has_phy = false;

 private:
  void on_write(std::uint32_t offset, std::uint32_t before, std::uint32_t value) override;
  std::uint32_t on_read(std::uint32_t offset, std::uint32_t value) override;
  [[nodiscard]] bool receiving() const override;
  [[nodiscard]] bool transmitting() const override;
  [[nodiscard]] bool looping() const override;
  [[nodiscard]] std::uint32_t buffer_bytes() const override;
  [[nodiscard]] bool advanced() const { return nic_.rx_buffer_offset != 0; }
  [[nodiscard]] bool link_up() const;
  std::uint64_t mdi_ready_ = 0, link_since_ = 0;
};

class TenGigabitModel final : public RegisterModel {
 public:
  explicit TenGigabitModel(const Personality& personality);

 private:
  void on_write(std::uint32_t offset, std::uint32_t before, std::uint32_t value) override;
  std::uint32_t on_read(std::uint32_t offset, std::uint32_t value) override;
  [[nodiscard]] bool receiving() const override;
  [[nodiscard]] bool transmitting() const override;
  [[nodiscard]] bool looping() const override;
  [[nodiscard]] std::uint32_t buffer_bytes() const override;
  [[nodiscard]] bool link_up() const;
};

}  // namespace wherry::bypass::testing_support
