// SPDX-License-Identifier: Apache-2.0
// A QEMU whose processor is halted: a root port, a switch, and behind it, side by side, a NIC model that is not ours,
// and our card. The NIC's DMA to the card is peer to peer, and reaches this process as messages.
//
// One thread, one loop, turn(): while QEMU waits for the card, this process never waits for QEMU. It makes no file, and
// leaves no process behind, however it ends.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "bypass/nic/registers.hpp"
#include "sim/bypass/card.hpp"
#include "sim/qemu/cable.hpp"
#include "sim/qemu/channel.hpp"
#include "sim/qemu/child_process.hpp"
#include "sim/qemu/monitor.hpp"
#include "sim/qemu/pci.hpp"
#include "sim/qemu/proxy_card.hpp"
#include "sim/qemu/proxy_link.hpp"
#include "sim/qemu/qtest.hpp"
#include "sim/qemu/wire.hpp"
#include "wherry/status.hpp"

namespace wherry::sim {

/// How much of the card this QEMU's NICs can map at once to send it. Buffers outside the machine's memory are copied
/// through bounce buffers. Before QEMU 9.1 there is one, of a page, for the whole machine (address_space_map() in
/// softmmu/physmem.c); since then it is an option.
struct SendLimits {
  std::uint32_t buffers = 1;
  std::uint32_t buffer_bytes = 4096;
};

struct MachineOptions {
  std::string qemu = "qemu-system-x86_64";  ///< a path, or a name on $PATH
  std::string nic = "e1000e";               ///< QEMU's device: e1000e or igb
  std::string mac = "52:54:00:12:34:56";    ///< the NIC's
  int tap = -1;  ///< a TAP device, which QEMU gets as the NIC's cable and which stays the caller's; -1: wire()
};

class Machine final : public Cable {
 public:
  /// The tree is enumerated, but the NIC is not set up. `card` must outlive the machine. kNotFound: there is no QEMU;
  /// kUnsupported: this QEMU lacks the NIC.
  static Result<std::unique_ptr<Machine>> start(const MachineOptions& options, DmaTarget& card);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  ~Machine() override;

  Status turn(int wait_ms) override;
  /// Extra work of each turn(). It must not call turn(). Empty: nothing.
  void set_background(std::function<Status()> work) { background_ = std::move(work); }
  /// Runs while `condition` is false. kDeadlineExceeded names `what`.
  template <typename Condition>
  Status turn_until(Condition condition, std::chrono::nanoseconds patience, const char* what) {
    for (const Deadline deadline(patience); !condition();) {
      if (deadline.passed()) return {StatusCode::kDeadlineExceeded, std::string("QEMU: time is over: ") + what};
      if (Status status = turn(1); !status) return status;
    }
    return {};
  }

  /// Precondition: the cable is not a TAP device.
  [[nodiscard]] Wire& wire() noexcept override { return *wire_; }
  /// Runs for that time, or a little longer.
  Status turn_for(std::chrono::nanoseconds time);

  /// For the host's own driver (bypass/nic/nic.hpp). An access has no status: nic_failure() has the first failure,
  /// after which all reads give all ones.
  [[nodiscard]] bypass::Registers& nic_registers() noexcept;
  [[nodiscard]] const Status& nic_failure() const noexcept;
  [[nodiscard]] std::uint64_t nic_bar() const noexcept { return nic_.bars[0].address; }
  [[nodiscard]] std::uint64_t card_bar() const noexcept { return card_function_.bars[kCardBar].address; }
  [[nodiscard]] const ProxyCard& proxy() const noexcept { return proxy_; }
  [[nodiscard]] const std::string& version() const noexcept { return version_; }
  [[nodiscard]] const SendLimits& send_limits() const noexcept { return limits_; }
  [[nodiscard]] pid_t pid() const noexcept { return process_.pid(); }
  /// Lets QEMU continue, if a process has stopped it.
  void resume() const noexcept { process_.resume(); }

  /// Plugs the NIC's cable in or out.
  Status set_link(bool up);
  /// Bus mastering of the NIC.
  Status set_nic_master(bool on) { return set_bus_master(*config_, nic_, on); }
  /// Surprise removal: the slot's power goes off. insert_nic() puts a new NIC into that slot, which must be set up.
  Status remove_nic();
  Status insert_nic();

 private:
  class NicRegisters;  ///< BAR 0
  class Config;        ///< by the memory-mapped window

  Machine(const MachineOptions& options, DmaTarget& card);
  Status ask_version();
  [[nodiscard]] std::uint64_t bounce_bytes() const noexcept;
  Status launch();
  Status find_functions();
  Status command(const std::string& name, const nlohmann::json& arguments);
  Result<std::uint32_t> read32(std::uint64_t address);
  Status write32(std::uint64_t address, std::uint32_t value);
  void post_tails();
  Status turn_channels(int wait_ms);
  Status explain(Status status);

  MachineOptions options_;
  DmaTarget& card_;
  ProxyCard proxy_;
  ProxyLink device_;
  std::string version_;
  SendLimits limits_;
  Fd firmware_;
  ChildProcess process_;
  std::unique_ptr<Qtest> qtest_;
  std::unique_ptr<Monitor> monitor_;
  std::unique_ptr<Wire> wire_;
  std::unique_ptr<NicRegisters> registers_;
  std::unique_ptr<ConfigSpace> config_;
  PciFunction nic_, card_function_;
  std::function<Status()> background_;
};

}  // namespace wherry::sim
