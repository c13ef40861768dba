// SPDX-License-Identifier: Apache-2.0
// The Verilated bypass core as a PCIe function: registers in BAR 0, window in BAR 2, tails as posted writes. A model of
// a vendor's bridge connects TLPs and AXI. docs/design/bypass-rtl.md
//
// Time: the core's clock has a period of 4 ns, and its edges are events. The clock stops when no transfer has occurred
// at any port of the core for longer than its timers run, and continues with the next input. No relevant edge is
// skipped. (The core's own cycle counter stops meanwhile.) The hard block and the bridge's own pipeline are outside the
// AXI ports: their latency belongs to the endpoint, as kBridgeLatency for pcie::EndpointOptions in both directions.
//
// Bridge, after AMD's product guides (PG055 "Transaction Ordering for PCIe", PG194 "AXI Transactions for PCIe" and "AXI
// SLVERR Response", PG302 "Master Bridge"):
//   a write TLP becomes one burst of 64-byte beats with strobes; a read TLP of more than 4 bytes becomes one burst of
//   whole lines; a read does not pass earlier writes: its address is sent after all of these were answered; at most 32
//   writes and 32 reads are in flight on the AXI side, then TLPs wait in the endpoint's receive buffer; SLVERR becomes
//   a completer abort; a poisoned write is dropped.
// Use it on one thread only, the thread of the event queue.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "bypass/card.hpp"
#include "sim/bypass/rtl_core.hpp"
#include "sim/pcie/event_queue.hpp"
#include "sim/pcie/function.hpp"
#include "sim/pcie/parameters.hpp"

namespace wherry::sim {

/// A function that uses the core's streams m_rx and s_tx.
class StreamFunction {
 public:
  virtual ~StreamFunction() = default;
  /// Called after each cycle of the core. Returns the latest time of the next call, even if the core sleeps.
  virtual pcie::Time turn(RtlCore& core, pcie::Time now) = 0;
  /// The core was reset.
  virtual void reset() {}
};

struct RtlFunctionOptions {
  RtlOptions core{};
  std::uint32_t reads = 32;   ///< given: PG302 Master Bridge: active MemRd requests
  std::uint32_t writes = 32;  ///< given: PG302 Master Bridge: active MemWr requests with 512 bits
};

struct RtlFunctionCounters {
  std::uint64_t poisoned = 0;        ///< writes that were dropped
  std::uint64_t reads_refused = 0;   ///< SLVERR: answered with a completer abort
  std::uint64_t writes_refused = 0;  ///< SLVERR
  std::uint64_t lost_in_reset = 0;   ///< TLPs that were in the bridge
  std::uint64_t tails = 0;
  std::uint64_t cycles = 0;  ///< that were simulated
};

class RtlFunction final : public pcie::Function, public bypass::CardAccess, pcie::EventHandler {
 public:
  static constexpr pcie::Time kCycle = 4 * pcie::kNanosecond;  ///< given: 250 MHz, the core's clock
  /// fitted (research, section 4): an FPGA's hard block and bridge; with it a path through a switch takes 350 ns.
  static constexpr pcie::Time kBridgeLatency = 130 * pcie::kNanosecond;

  /// `in_place` and `stream` may be null, and must outlive the function.
  RtlFunction(pcie::EventQueue& queue, const RtlFunctionOptions& options, InPlaceFunction* in_place,
              StreamFunction* stream);
  RtlFunction(const RtlFunction&) = delete;
  RtlFunction& operator=(const RtlFunction&) = delete;

  [[nodiscard]] static pcie::FunctionOptions function_options();
  void attach(pcie::Port& port) noexcept { port_ = &port; }
  [[nodiscard]] pcie::Port& port() noexcept { return *port_; }
  /// Runs the clock, because a block behind the core has work.
  void wake();
  [[nodiscard]] RtlCore& core() noexcept { return core_; }
  [[nodiscard]] const RtlFunctionCounters& counters() const noexcept { return counters_; }
  [[nodiscard]] bool asleep() const noexcept { return !edge_scheduled_; }

  /// A second manager of the window on the card (as hdl/common/axi_mux.sv joins two): its bursts alternate with the
  /// bridge's. Returns the number of posted writes, this one included: it is answered when that many writes were.
  std::uint64_t post_local_write(const AxiBurst& burst, std::span<const std::byte> data);
  void post_local_read(const AxiBurst& burst);
  struct LocalAnswer {
    bool failed = false;
    std::vector<std::byte> data;
  };
  /// Answers to local reads, in order. The reader pops them.
  [[nodiscard]] std::deque<LocalAnswer>& local_answers() noexcept { return local_answers_; }

  // bypass::CardAccess, for the host's program: runs the event queue until the access is done. Not from within events.
  [[nodiscard]] std::uint32_t read(std::uint32_t offset) override;
  void write(std::uint32_t offset, std::uint32_t value) override;
  Status read_window(std::uint32_t offset, std::span<std::byte> into) override;
  Status write_window(std::uint32_t offset, std::span<const std::byte> from) override;
  void pause(std::chrono::microseconds time) override;

  // pcie::Function.
  void on_write(const pcie::InboundWrite& write) override;
  void on_read(const pcie::InboundRead& read) override;
  /// Resets the core. After a removal, the clock stops until the card is back.
  void on_reset(pcie::ResetKind kind) override;

 private:
  struct Read {
    pcie::InboundRead from;
    std::uint64_t after = 0;  ///< writes that must have been answered
    bool local = false;       ///< post_local_read()
  };
  /// An access to a register, from the host (no TLP) or by a read or write TLP.
  struct Access {
    std::uint32_t offset = 0;
    std::optional<std::uint32_t> value;      ///< of a write
    std::optional<pcie::InboundRead> reply;  ///< of a read TLP
  };

  void on_event(std::uint64_t argument) override;
  void edge();
  void issue();
  void answer();
  void registers();
  void set_ready();
  [[nodiscard]] bool busy();
  std::uint32_t access(const Access& access);

  pcie::EventQueue& queue_;
  const RtlFunctionOptions options_;
  RtlCore core_;
  StreamFunction* stream_;
  pcie::Port* port_ = nullptr;
  std::deque<Read> waiting_, under_way_;  ///< under_way_: in the order of the core's answers
  std::deque<LocalAnswer> local_answers_;
  std::deque<Access> accesses_;
  bool access_begun_ = false;
  std::uint32_t host_data_ = 0;
  std::uint64_t host_accesses_ended_ = 0;
  std::uint64_t still_limit_;  ///< cycles: longer than any timer of the core
  pcie::Time wanted_ = pcie::kNever;
  bool edge_scheduled_ = false, gone_ = false;
  bool writes_ready_ = true, reads_ready_ = true;
  std::uint64_t writes_failed_ = 0;
  RtlFunctionCounters counters_;
};

}  // namespace wherry::sim
