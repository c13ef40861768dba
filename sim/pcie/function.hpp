// SPDX-License-Identifier: Apache-2.0
// A PCIe function: what a device implements (Function) and what it uses (Port). Use it on one thread only, the thread
// of the event queue. A call of Port never calls back into a Function before it returns: callbacks come from events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "sim/pcie/tlp.hpp"

namespace wherry::sim::pcie {

class Port;

/// Identifies a read for its issuer; any value.
using Token = std::uint64_t;

struct InboundWrite {
  std::uint32_t bar;
  std::uint64_t offset;             ///< in the BAR
  std::span<const std::byte> data;  ///< never empty, never more than MPS, never beyond a page. Valid in the call
  bool poisoned;                    ///< the data are marked as wrong: do not use them (Spec 2.7.2)
  FunctionId requester;
  Attributes attributes;
};

/// A read that must be answered by Port::complete(), now or later, exactly once.
struct InboundRead {
  std::uint32_t bar;
  std::uint64_t offset;
  std::uint32_t bytes;  ///< up to MRRS; 0: a flush, to be completed with no data
  FunctionId requester;
  Attributes attributes;  ///< the completion takes them over
  std::uint64_t address;
  std::uint16_t tag;
  std::uint32_t reset_count;  ///< of this function: a completion of a read from before a reset is dropped and counted
};

/// Why all of a function's operations in flight are void.
enum class ResetKind : std::uint8_t {
  kFunctionLevel,  ///< FLR
  kHot,            ///< of the link
  kRemoved,        ///< the device is gone: nothing that it does has an effect until it is back
  kInserted,       ///< it is back; bus mastering is off, BARs are the old ones
};

/// What a device implements. Writes and reads arrive in an order that the ordering rules allow.
class Function {
 public:
  virtual void on_write(const InboundWrite& write) = 0;
  virtual void on_read(const InboundRead& read) = 0;

  /// Data of a read, in the order of the completions: ascending within one request of MRRS, in any order between
  /// requests. `data` are valid during the call. A read that has a destination for its data does not need this call.
  virtual void on_read_data(Token token, std::uint32_t offset, std::span<const std::byte> data) {
    static_cast<void>(token), static_cast<void>(offset), static_cast<void>(data);
  }
  /// The same for data that came marked as wrong (EP): on_read_done() will give kPoisoned. By default they are treated
  /// like other data.
  virtual void on_poisoned_data(Token token, std::uint32_t offset, std::span<const std::byte> data) {
    on_read_data(token, offset, data);
  }
  /// The end of a read, once for each accepted read: all data have arrived, or `status` is the first error (other parts
  /// may have arrived).
  virtual void on_read_done(Token token, CompletionStatus status) {
    static_cast<void>(token), static_cast<void>(status);
  }
  /// There is room again, after try_write() or try_read() returned false.
  virtual void on_room() {}
  /// All operations of this function in flight are void. Its reads ended with on_read_done(kAborted) before.
  virtual void on_reset(ResetKind kind) { static_cast<void>(kind); }

 protected:
  ~Function() = default;
};

struct ReadRequest {
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;  ///< any number: it is cut at pages and to MRRS, and each part takes a tag. 0: a flush
  std::byte* into =
      nullptr;  ///< data are put there as they come; the caller keeps it until on_read_done(). May be null
  Token token = 0;
  Attributes attributes{};
};

/// All count TLPs unless stated otherwise.
struct PortCounters {
  std::uint64_t writes_sent = 0, write_bytes_sent = 0;
  std::uint64_t reads_sent = 0, read_bytes_asked = 0;  ///< requests, after cutting
  std::uint64_t completions_sent = 0, completion_bytes_sent = 0;
  std::uint64_t writes_received = 0, write_bytes_received = 0;
  std::uint64_t reads_received = 0, read_bytes_wanted = 0;
  std::uint64_t completions_received = 0, completion_bytes_received = 0;
  std::uint64_t master_off = 0;    ///< writes and reads that bus mastering forbade
  std::uint64_t reads_failed = 0;  ///< requests that ended in an error of any kind
  std::uint64_t timeouts = 0;
  std::uint64_t unexpected_completions = 0;  ///< for no read, or for one that is over
  std::uint64_t poisoned_received = 0;
  std::uint64_t unsupported = 0;  ///< requests that no BAR claims, or while memory space is off
  /// The most bytes that were requested and not yet answered: what a completion buffer must hold (Spec 2.6.1)
  std::uint64_t most_bytes_awaited = 0;
  std::uint64_t stale_completes = 0;  ///< complete() for a read from before a reset
};

/// A function's access to the fabric. Fabric::add_function() makes it, and it lives as long as the fabric. All buffers
/// belong to the caller, and are copied before the call returns, except ReadRequest::into.
class Port {
 public:
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  /// A posted write of any length, cut at pages and to MPS. It is always accepted, in order after earlier ones. While
  /// bus mastering is off, it is dropped and counted. For doorbells and similar writes; bulk writers use try_write().
  virtual void post_write(std::uint64_t address, std::span<const std::byte> data, Attributes attributes = {}) = 0;
  /// Like post_write(), unless more than FunctionOptions::queue_bytes wait to be sent. Then it returns false without
  /// effect, and on_room() follows.
  [[nodiscard]] virtual bool try_write(std::uint64_t address, std::span<const std::byte> data,
                                       Attributes attributes = {}) = 0;
  /// Reads. False, without effect, if the queue is full or an earlier read still waits for tags; then on_room()
  /// follows. While bus mastering is off, a read is accepted and ends at once with kAborted.
  [[nodiscard]] virtual bool try_read(const ReadRequest& request) = 0;
  /// Like try_read(), but always accepted: its parts wait for tags as long as necessary.
  virtual void post_read(const ReadRequest& request) = 0;

  /// Answers a read. `data`: as many bytes as the read asked for; empty if `status` is an error (kUnsupportedRequest or
  /// kCompleterAbort). The answer is cut at RCB and to MPS.
  virtual void complete(const InboundRead& read, std::span<const std::byte> data,
                        CompletionStatus status = CompletionStatus::kSuccess) = 0;

  /// Which requests the device takes from its receive buffer now. Writes that it does not take keep their credits, and
  /// block reads and completions behind them, as the ordering rules demand. Both are on at first.
  virtual void set_ready(bool writes, bool reads) = 0;

  [[nodiscard]] virtual FunctionId id() const noexcept = 0;
  /// The bus address of a BAR; 0: no such BAR, or not enumerated yet.
  [[nodiscard]] virtual std::uint64_t bar_address(std::uint32_t bar) const noexcept = 0;
  [[nodiscard]] virtual std::uint32_t mps() const noexcept = 0;
  [[nodiscard]] virtual std::uint32_t mrrs() const noexcept = 0;
  /// Requests that wait for an answer.
  [[nodiscard]] virtual std::uint32_t reads_pending() const noexcept = 0;
  /// Link bytes (headers and payload) that wait to be sent.
  [[nodiscard]] virtual std::uint64_t bytes_queued() const noexcept = 0;
  [[nodiscard]] virtual bool bus_master() const noexcept = 0;
  [[nodiscard]] virtual const PortCounters& counters() const noexcept = 0;

  // The command register and similar settings, as the host writes them; at once, not by configuration requests.

  /// Off at first. When it is switched off, queued writes still leave, but reads that wait for tags end with kAborted.
  virtual void set_bus_master(bool on) = 0;
  /// On after enumeration. Off: BARs are not claimed.
  virtual void set_memory_space(bool on) = 0;
  virtual void set_mrrs(std::uint32_t bytes) = 0;  ///< 128 to 4096, a power of two
  virtual void set_completion_timeout(Time timeout) = 0;
  /// FLR: calls on_read_done(kAborted) for each read, then on_reset(). Tags stay in use until their completions came or
  /// timed out, so that a late completion does not meet a new read. Bus mastering is off afterwards.
  virtual void reset() = 0;

 protected:
  Port() = default;
  ~Port() = default;
};

}  // namespace wherry::sim::pcie
