// SPDX-License-Identifier: Apache-2.0
// The Verilated hdl/dma/dma_engine.sv as an object, with its ports in cycles of 4 ns. Input from the host is queued
// here. The engine's output is read after each cycle. A memory of sim/memory is behind its AXI port.
//
// One thread. There is one clock domain. A violation of AXI by the engine, or of an assertion of the RTL, ends the
// process.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/card/packet_loop.hpp"
#include "sim/dma/bits.hpp"
#include "sim/dma/host_link.hpp"
#include "sim/memory/axi.hpp"

namespace wherry::sim::card {

using dma::Error;
using dma::ReadRequest;
using Line = std::array<std::byte, dma::kLineBytes>;

/// A beat of a completion (dma_pkg::completion_t).
struct CompletionBeat {
  std::uint8_t tag = 0;
  bool first = false, last = false, final_ = false;
  Error error = Error::kNone;
  std::uint32_t bytes = 0;
  Line data{};
};

/// A beat of a posted write (dma_pkg::write_t).
struct WriteBeat {
  bool first = false, last = false;
  std::uint32_t bytes = 0;    ///< of the write, with first
  std::uint64_t address = 0;  ///< with first
  Line data{};
};

/// A write to the doorbell window, within the 64 bytes of one ring.
struct BellWrite {
  std::uint32_t offset = 0, bytes = 0;
  Line data{};
};

/// The PCIe function's configuration (dma_control_pkg::function_t), and the other settings of the engine's pins.
struct EngineSettings {
  bool bus_master = false, msix_enable = false, msix_mask = false;
  unsigned mrrs = 2, mps = 1;  ///< 128 bytes << x
  unsigned timeout = 0;        ///< ticks of 256 cycles; 0: never
  bool reset_function = false;
};

/// The transfers in the last cycle.
struct EngineOutput {
  std::optional<ReadRequest> read;
  std::optional<WriteBeat> write;
  bool unexpected = false, timed_out = false, reset_done = false;
};

class EngineCore {
 public:
  explicit EngineCore(std::uint64_t seed);
  EngineCore(const EngineCore&) = delete;
  EngineCore& operator=(const EngineCore&) = delete;
  ~EngineCore();

  /// Asserts rst_i: the engine forgets everything. `memory` is connected to the AXI port (port 0), and must outlive the
  /// next reset.
  void reset(memory::AxiBus& memory);

  EngineSettings settings;
  /// Whether the host takes a read request, and a beat of a write, in the next cycle.
  bool take_reads = true, take_writes = true;
  std::deque<CompletionBeat> completions;
  std::deque<BellWrite> bells;
  /// The block behind the streams. The seed determines the pauses of its ports.
  PacketLoop packets;

  /// Begins a register access, one at a time. The answer is valid when register_ended() is true.
  void begin_register_read(std::uint32_t offset);
  void begin_register_write(std::uint32_t offset, std::uint32_t value);
  [[nodiscard]] bool register_ended() const noexcept { return access_.ended; }
  /// The result of the last access. Empty: it was refused (SLVERR).
  [[nodiscard]] std::optional<std::uint32_t> register_data() const noexcept {
    return access_.refused ? std::nullopt : std::optional(access_.data);
  }

  const EngineOutput& cycle();
  /// Since the last reset.
  [[nodiscard]] std::uint64_t now() const noexcept { return now_; }
  /// Cycles since the last transfer at any port.
  [[nodiscard]] std::uint64_t still() const noexcept { return now_ - moved_; }

 private:
  struct Pins;
  struct Access {
    bool write = false, address_offered = false, data_offered = false, ended = true, refused = false;
    std::uint32_t offset = 0, data = 0;
  };
  void drive();
  void sample();
  void drive_registers();
  void sample_registers();
  void drive_memory();
  [[nodiscard]] memory::AxiRequest sample_memory() const;
  void drive_packets();
  void sample_packets();

  std::unique_ptr<Pins> pins_;
  memory::AxiBus* memory_ = nullptr;
  Access access_;
  EngineOutput out_;
  std::uint64_t now_ = 0, moved_ = 0;
};

}  // namespace wherry::sim::card
