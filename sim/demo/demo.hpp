// SPDX-License-Identifier: Apache-2.0
// The demonstration: a TAP device, QEMU's NIC on it, the card that drives the NIC, and the function behind the card.
// The host's part sets everything up, and then gets no more processor time.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "sim/demo/hardware.hpp"
#include "sim/demo/host_link.hpp"
#include "sim/demo/tap.hpp"
#include "sim/qemu/machine.hpp"
#include "wherry/status.hpp"

namespace wherry::sim {

struct DemoOptions {
  MachineOptions machine;
  TapSetup tap;
  std::string cluster;                   ///< file, in mode static, of one node: its address and MAC are the NIC's
  bool twin = false;                     ///< the card is the core's software twin
  bool suspend = true;                   ///< the host's part is stopped (SIGSTOP) while the card works
  bool loopback = false;                 ///< switch the loopback device on
  std::chrono::milliseconds every{500};  ///< between reports
};

/// What the screen shows.
struct DemoReport {
  std::string qemu;  ///< its version
  bool ready = false;
  double seconds = 0;  ///< since everything was set up
  HardwareReport hardware;
  std::uint64_t dma_reads = 0, dma_writes = 0;  ///< messages: accesses of the NIC to the card
  std::uint64_t tail_writes = 0;
  std::uint64_t cpu_ns = 0, qemu_cpu_ns = 0;  ///< of the simulation, and of QEMU
  pid_t host = 0, qemu_process = 0;
  ProcessUse host_use;
  std::uint64_t host_setup_ns = 0;        ///< processor time of the host's part when it was ready
  std::uint64_t host_setup_accesses = 0;  ///< to registers, until then
  std::uint64_t host_accesses = 0;        ///< and all
};

using DemoObserver = std::function<void(const DemoReport&)>;

/// Runs until `stop`, then releases everything. `self`: this program's path, with which the host's part is started.
Status run_demo(const DemoOptions& options, const std::string& self, const std::atomic<bool>& stop,
                const DemoObserver& observer);

}  // namespace wherry::sim
