// SPDX-License-Identifier: Apache-2.0
// The kv core, Verilated, with its memory and its host's path to it (kv_card): registers, frames on both sides, and
// time that passes only on request. A violation (of one of the core's own assertions, or of AXI3) ends the process with
// a message.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kv/message.hpp"
#include "sim/hbm.hpp"
#include "sim/memory/axi.hpp"

namespace wherry::kv::rtl {

enum class Side : std::uint8_t { kNet, kHost };

/// How a stream is driven. Chances are in parts per million, per cycle.
struct StreamOptions {
  std::uint32_t gaps = 0;    ///< a beat for the core comes later, also within a frame
  std::uint32_t stalls = 0;  ///< the taker of the core's beats is not ready
  bool line_rate = false;    ///< the taker is a buffer of a few frames, emptied at 100 Gbit/s
};

/// Deliberate violations of the protocol, which a checker of histories must notice: each forces a wrong value into an
/// engine register in every cycle. They equal those of a software node (NodeFault).
struct CoreFaults {
  bool serve_pending_reads = false;
  bool commit_before_all = false;
  bool forget_unsettled = false;
  bool keep_lagging_versions = false;
  bool ignore_other_flights = false;
  bool ignore_other_versions = false;
};

struct CoreOptions {
  HbmTiming memory = kHbmHardware;
  std::uint64_t seed = 1;  ///< chance, and what memory holds at first
  StreamOptions net;
  StreamOptions host;
  CoreFaults faults;  ///< none, outside of tests
  std::string trace;  ///< an FST file, if it was built with WHERRY_RTL_TRACE
};

/// A frame that went in or came out, and the cycles of its first and last beat.
struct CoreFrame {
  std::vector<std::byte> bytes;
  std::uint64_t user = 0;
  Cycles first = 0;
  Cycles last = 0;
};

/// When kv_memory got its first job, delivered the last word of a value, and confirmed the last write. This is the
/// thesis's "memory": a controller and the parts behind it.
struct MemoryTimes {
  Cycles first_job = ~Cycles{0};
  Cycles last_word = 0;
  Cycles last_done = 0;
};

class Core final : public RegisterIo {
 public:
  static constexpr std::uint32_t kChannels = WHERRY_RTL_CHANNELS;

  /// Out of reset.
  explicit Core(const CoreOptions& options);
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  ~Core();

  void step(Cycles cycles = 1);
  /// The same, but idle cycles are skipped.
  void run(Cycles cycles);
  /// Since its reset ended.
  [[nodiscard]] Cycles now() const noexcept { return now_; }

  /// Each call is one transaction on its bus, and takes the cycles of that transaction.
  std::uint32_t read(std::uint32_t offset) override;
  void write(std::uint32_t offset, std::uint32_t value) override;

  /// Reads the memory's content through kv_host_path, as the card's host does. Address and size are multiples of 64. It
  /// takes the cycles of that path, and the core runs meanwhile.
  void read_memory(std::uint64_t address, std::span<std::byte> to);
  /// The same path for another manager: host_answer() is what kv_host_path drives in this cycle, and step_host() runs
  /// the cycle in which the manager drives `in`. Other calls leave this manager's answers alone. read_memory() first
  /// waits until nothing of this manager is in flight, even for ever.
  [[nodiscard]] wherry::sim::memory::AxiAnswer host_answer() const;
  void step_host(const wherry::sim::memory::AxiRequest& in);

  /// Queues a frame for the core, behind earlier frames and not before a cycle. `error`: the MAC marked it as bad.
  void put(Side side, ByteView frame, Cycles not_before = 0, bool error = false);
  [[nodiscard]] std::size_t waiting(Side side) const noexcept { return in_[index(side)].frames.size(); }
  /// The times of the last frame that went in; its bytes are not kept.
  [[nodiscard]] const CoreFrame& entered(Side side) const noexcept { return in_[index(side)].last; }
  /// The next frame that the core sent.
  std::optional<CoreFrame> take(Side side);

  /// Advances the clock register to `cycles`, without computing anything; it never goes back.
  void set_clock(Cycles cycles);
  /// Like Node::preset_versions, but only after the core has finished clearing. Precondition: the core is in no epoch,
  /// and the lines are at the base that its registers say.
  void preset_versions(const std::array<std::uint32_t, kWays>& versions);
  /// Nothing happens without input, except at the end of the repetition timer.
  [[nodiscard]] bool idle() const noexcept {
    return now_ - active_ > kSilence && waiting(Side::kNet) == 0 && waiting(Side::kHost) == 0;
  }
  /// Cycles that were skipped because the core was idle.
  [[nodiscard]] Cycles skipped() const noexcept { return skipped_; }

  [[nodiscard]] const HbmPort& memory(std::uint32_t channel) const { return ports_[channel]; }
  [[nodiscard]] const MemoryTimes& memory_times() const noexcept { return memory_times_; }
  void forget_memory_times() noexcept { memory_times_ = {}; }

 private:
  struct Pending {
    std::vector<std::byte> bytes;
    Cycles not_before;
    bool error;
  };
  struct In {
    std::deque<Pending> frames;
    std::size_t at = 0;  ///< bytes of the first that have passed
    bool offered = false;
    CoreFrame last;
  };
  struct Out {
    bool ready = false;
    std::size_t owed = 0;  ///< bytes that the link has still to carry
    CoreFrame frame;
    std::deque<CoreFrame> frames;
  };
  struct Pins;

  /// More cycles than any internal activity takes between two signs of it, at a port or in kv_recovery.
  static constexpr Cycles kSilence = 64;

  static constexpr std::size_t index(Side side) noexcept { return static_cast<std::size_t>(side); }
  void cycle(const wherry::sim::memory::AxiRequest* host = nullptr);
  void break_rules();
  [[nodiscard]] bool works() const;
  void note_memory_times();
  void drive_in(Side side);
  void drive_out(Side side);
  void sample_in(Side side);
  void sample_out(Side side);
  void sample_memory();
  void access(std::uint32_t offset, const char* what);
  [[noreturn]] void fail(const std::string& why);

  CoreOptions options_;
  sim::Random random_;
  HbmContent content_;
  std::deque<HbmPort> ports_;
  std::array<In, 2> in_;
  std::array<Out, 2> out_;
  Cycles now_ = 0;
  Cycles active_ = 0;  ///< when anything last passed at a port, or was under way
  Cycles skipped_ = 0;
  MemoryTimes memory_times_;
  std::unique_ptr<Pins> pins_;
};

}  // namespace wherry::kv::rtl
