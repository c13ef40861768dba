// SPDX-License-Identifier: Apache-2.0
// The DMA card as a PCIe function: the Verilated engine with its memory, behind the hard block's requester and
// completer. BAR 0 holds the registers, BAR 2 the doorbells. docs/design/dma-card.md.
//
// Time: the engine's clock has a period of 4 ns, and its edges are events. The clock stops when nothing passes at any
// port of the engine, nothing is due and no timer runs. It continues with the next input.
//
// The part between TLPs and the engine's ports behaves like AMD's block (PG213, "Requester Interface" and "Completer
// Interface"):
//   a read request is one TLP with a tag of the engine's; completions come as they are, poisoned ones marked;
//   a write is one TLP, handed over when all its beats are there; requests wait while the queue to the link is full, or
//   bus mastering is off; accesses of the BARs take place in order: one that waits (a register takes 5 cycles) holds up
//   what is behind it; a write of the doorbells is cut at the 64 bytes of a ring; one of the registers that is not a
//   word is dropped, a read is aborted; poisoned writes are dropped.
// Use it on one thread only, the thread of the event queue.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/card/engine_core.hpp"
#include "sim/memory/axi_memory.hpp"
#include "sim/memory/backend.hpp"
#include "sim/memory/content.hpp"
#include "sim/pcie/event_queue.hpp"
#include "sim/pcie/function.hpp"
#include "sim/pcie/parameters.hpp"

namespace wherry::sim::card {

enum class MemoryKind : std::uint8_t { kBram, kDdr4 };

/// What happens to reads in flight when the function is reset.
enum class ReadsAtReset : std::uint8_t {
  kReported,  ///< the hard block ends them, with a completer abort
  kForgotten  ///< it says nothing: the engine finds out by its time-out
};

struct CardOptions {
  MemoryKind memory = MemoryKind::kBram;
  std::uint64_t memory_bytes = std::uint64_t{8} << 20;  ///< of kBram, and of `bus`
  /// If not null: the card's memory is behind port 0 of this bus, which has the engine's clock, instead of the card's
  /// own memory. `memory` is then ignored. It outlives the card.
  memory::AxiBus* bus = nullptr;
  unsigned timeout = 40;  ///< of the engine, ticks of 256 cycles
  ReadsAtReset reads_at_reset = ReadsAtReset::kReported;
  std::uint32_t pauses = 0;  ///< chance, in a million, that the host takes no read, or no write, in a cycle
  std::uint64_t seed = 1;
};

struct CardCounters {
  std::uint64_t cycles = 0;  ///< that were simulated
  std::uint64_t reads = 0, writes = 0, bells = 0;
  std::uint64_t poisoned = 0;       ///< writes to the BARs that were dropped
  std::uint64_t refused = 0;        ///< accesses of the BARs
  std::uint64_t lost_in_reset = 0;  ///< accesses, requests and writes that were here
  std::uint64_t timed_out = 0;      ///< by the engine
  std::uint64_t unexpected = 0;     ///< completions of no request, as the engine found
  std::uint64_t late = 0;           ///< answers of reads that the engine had given up
  std::uint64_t most_lines = 0;     ///< of completions that waited for the engine
};

class CardFunction final : public pcie::Function, pcie::EventHandler {
 public:
  static constexpr pcie::Time kCycle = 4 * pcie::kNanosecond;  ///< given: 250 MHz, the engine's clock
  /// fitted (research of host bypassing, section 4): an FPGA's hard block, each direction. For pcie::EndpointOptions.
  static constexpr pcie::Time kHardBlockLatency = 130 * pcie::kNanosecond;

  CardFunction(pcie::EventQueue& queue, const CardOptions& options);
  CardFunction(const CardFunction&) = delete;
  CardFunction& operator=(const CardFunction&) = delete;
  ~CardFunction();

  [[nodiscard]] static pcie::FunctionOptions function_options();
  void attach(pcie::Port& port) noexcept { port_ = &port; }
  [[nodiscard]] pcie::Port& port() noexcept { return *port_; }
  /// Call it after a change of the command register or of MSI-X message control: the engine gets it at the next edge.
  void configuration_changed();
  bool msix_enable = false, msix_mask = false;

  /// The content of the card's own memory.
  [[nodiscard]] memory::Content& content() noexcept { return content_; }
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept;
  [[nodiscard]] EngineCore& core() noexcept { return core_; }
  [[nodiscard]] const CardCounters& counters() const noexcept { return counters_; }
  [[nodiscard]] bool asleep() const noexcept { return !edge_scheduled_; }
  /// A reset of the function is in progress.
  [[nodiscard]] bool resetting() const noexcept { return core_.settings.reset_function; }
  /// The first AXI rule that the engine broke; empty: none. Only for the card's own memory. Another bus reports
  /// violations itself.
  [[nodiscard]] std::string violation() const;

  // pcie::Function.
  void on_write(const pcie::InboundWrite& write) override;
  void on_read(const pcie::InboundRead& read) override;
  void on_read_data(pcie::Token token, std::uint32_t offset, std::span<const std::byte> data) override;
  void on_poisoned_data(pcie::Token token, std::uint32_t offset, std::span<const std::byte> data) override;
  void on_read_done(pcie::Token token, pcie::CompletionStatus status) override;
  void on_room() override { wake(); }
  void on_reset(pcie::ResetKind kind) override;

 private:
  static constexpr std::size_t kTags = 256;
  /// An access to a BAR: a doorbell write, a register write or a register read.
  struct Access {
    std::optional<BellWrite> bell;
    std::uint32_t offset = 0;
    std::optional<std::uint32_t> value;
    std::optional<pcie::InboundRead> reply;
  };
  struct Request {
    std::uint64_t number = 0;  ///< counts the uses of the tag
    std::uint32_t bytes = 0;
    bool open = false;  ///< not answered; the engine may have given it up
  };

  void on_event(std::uint64_t argument) override;
  void wake();
  void edge();
  void apply_settings();
  void accesses();
  void take_read(ReadRequest read);
  void take_beat(const WriteBeat& beat);
  void complete(pcie::Token token, std::uint32_t offset, std::span<const std::byte> data, Error error);
  void end(Request& request, std::uint8_t tag, Error error);
  void finish_reset();
  void power_on();
  void make_memory();
  void set_ready();
  [[nodiscard]] bool busy() const;

  pcie::EventQueue& queue_;
  const CardOptions options_;
  memory::Content content_;
  std::unique_ptr<memory::Backend> backend_, paced_;
  std::unique_ptr<memory::AxiMemory> memory_;
  EngineCore core_;
  SplitMix64 random_;
  pcie::Port* port_ = nullptr;
  std::deque<Access> accesses_;
  bool access_begun_ = false;
  std::array<Request, kTags> requests_{};
  std::size_t open_ = 0;  ///< of requests_
  std::uint64_t uses_ = 0;
  std::vector<std::byte> write_;  ///< the beats so far
  std::uint64_t write_address_ = 0;
  std::uint32_t write_bytes_ = 0;
  std::optional<ReadRequest> held_read_;  ///< taken from the engine, not yet by the link
  bool write_held_ = false;
  std::uint64_t longest_timer_ = 0;  ///< cycles, of the moderation registers
  std::uint64_t woken_ = 0;          ///< cycle
  bool edge_scheduled_ = false, gone_ = false, ready_ = true;
  CardCounters counters_;
};

}  // namespace wherry::sim::card
