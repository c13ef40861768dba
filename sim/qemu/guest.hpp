// SPDX-License-Identifier: Apache-2.0
// A QEMU with a Linux guest and an IOMMU: a root port, a switch, and behind it QEMU's e1000e and our card side by side.
// The guest's own programs set both up. This class has the cable, the card, and the guest's serial line.
//
// One thread, one loop: turn(). No process remains, however this one ends.
//
// **When the card may be accessed.**** A thread of QEMU that waits for the card's answer releases QEMU's global lock.
// The guest's processor is one such thread. The NIC is another one, when the cable or a tail write of the card wakes
// it. QEMU refuses a BAR access during another one as re-entrant (softmmu/memory.c, access_with_adjusted_size), and the
// guest reads a wrong value. An access to the configuration space may deadlock two threads (hw/remote/mpqemu-link.c,
// io_mutex). So frames are sent and tails are written only while the guest's programs do not access the card:
// hold_tails(), settle().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/fd.hpp"
#include "sim/bypass/card.hpp"
#include "sim/qemu/cable.hpp"
#include "sim/qemu/channel.hpp"
#include "sim/qemu/child_process.hpp"
#include "sim/qemu/proxy_card.hpp"
#include "sim/qemu/proxy_link.hpp"
#include "sim/qemu/qtest.hpp"
#include "sim/qemu/vtd.hpp"
#include "wherry/status.hpp"

namespace wherry::sim {

struct GuestOptions {
  std::string qemu = "qemu-system-x86_64";  ///< a path, or a name on $PATH
  std::string kernel, initrd;               ///< files
};

class Guest final : public Cable {
 public:
  /// The guest boots. `card` and `registers` are one card, and must outlive the guest. kNotFound: there is no QEMU.
  static Result<std::unique_ptr<Guest>> start(const GuestOptions& options, DmaTarget& card, RegisterTarget& registers);
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;

  Status turn(int wait_ms) override;
  [[nodiscard]] Wire& wire() noexcept override { return *wire_; }

  /// The next line of the guest's console, without its end.
  [[nodiscard]] std::optional<std::string> take_line();
  /// Sends a line to the program that reads the console.
  void say(const std::string& line) { serial_.put(line + "\n"); }

  /// From now on, the card's tail writes have this identifier and pass the IOMMU, by the guest's tables at the time of
  /// the write. Before, none is made. kFailedPrecondition: the IOMMU is off.
  Status attach(std::uint16_t source);
  /// The address to which a write of the card to `address` would go now. Empty: the IOMMU does not map it.
  [[nodiscard]] std::optional<std::uint64_t> translate(std::uint64_t address) const;
  /// Holds the card's tail writes back from now on, or lets them continue.
  void hold_tails(bool on) noexcept { held_ = on; }
  /// Runs until the NIC has no more work with the card: no message for a while, and all tails written.
  Status settle();

  [[nodiscard]] const ProxyCard& proxy() const noexcept { return proxy_; }
  [[nodiscard]] std::uint64_t tails() const noexcept { return tails_; }
  /// Tails that were not written: the card's bus mastering was off, or the IOMMU did not map the address.
  [[nodiscard]] std::uint64_t tails_refused() const noexcept { return tails_refused_; }
  [[nodiscard]] std::uint64_t tails_faulted() const noexcept { return tails_faulted_; }
  /// The last tail that was written.
  [[nodiscard]] std::uint64_t last_tail() const noexcept { return last_tail_; }
  /// Empty while QEMU runs; then its exit status.
  [[nodiscard]] std::optional<int> ended();
  [[nodiscard]] std::string said() const { return process_.said(); }

 private:
  Guest(DmaTarget& card, RegisterTarget& registers) : card_(card), proxy_(card, registers), device_(proxy_, card) {}
  Status launch(const GuestOptions& options);
  Result<std::uint32_t> read32(std::uint64_t address);
  void post_tails();
  Status turn_channels(int wait_ms);

  /// The guest's memory, which QEMU has as a file.
  class Memory {
   public:
    Memory() = default;
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory();
    Status make(std::size_t bytes);
    [[nodiscard]] int fd() const noexcept { return file_.get(); }
    [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

   private:
    Fd file_;
    std::span<const std::byte> bytes_;
  };

  DmaTarget& card_;
  ProxyCard proxy_;
  ProxyLink device_;
  ChildProcess process_;
  Channel serial_;
  std::unique_ptr<Qtest> qtest_;
  std::unique_ptr<Wire> wire_;
  Memory memory_;
  std::optional<VtdTables> tables_;
  std::uint16_t source_ = 0;
  bool held_ = false;
  std::uint64_t tails_ = 0, tails_refused_ = 0, tails_faulted_ = 0, last_tail_ = 0;
};

}  // namespace wherry::sim
