// SPDX-License-Identifier: Apache-2.0
// The Verilated hdl/bypass/bypass_core.sv: calls for its window, registers, streams and tails, and a clock that runs on
// request. A violation (of one of the core's own assertions, or of AXI) ends the process with a message.
//
// One thread. Cycles are of 4 ns.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "sim/bypass/card.hpp"
#include "sim/bypass/rtl_window.hpp"
#include "sim/bypass/tail_port.hpp"

namespace wherry::sim {

struct RtlOptions {
  std::uint64_t seed = 1;
  /// Chance at each port, in parts per million, that an input of the core comes a cycle later, or that its output is
  /// not taken in a cycle.
  std::uint32_t pauses = 0;
  std::string trace;  ///< an FST file, if it was built with WHERRY_RTL_TRACE
};

class RtlCore {
 public:
  static constexpr std::size_t kFramesToSend = 2;  ///< so many may wait before s_tx
  static constexpr std::size_t kFramesTaken = 4;   ///< so many frames wait at the end of m_rx, then it is not ready

  /// Out of reset. `function` gives the verdicts, and must outlive the core. Null: m_head is never ready.
  RtlCore(const RtlOptions& options, InPlaceFunction* function);
  RtlCore(const RtlCore&) = delete;
  RtlCore& operator=(const RtlCore&) = delete;
  ~RtlCore();

  void cycle();
  /// Runs until the core is idle: at least 7 cycles, so that its timers advance, and at most 63.
  void run_on();
  [[nodiscard]] std::uint64_t now() const noexcept { return now_; }
  /// Cycles since the last transfer at any port.
  [[nodiscard]] std::uint64_t still() const noexcept { return now_ - moved_; }

  /// s_axi, for callers with other work meanwhile: its bursts proceed while cycle() runs.
  [[nodiscard]] RtlWindow& window() noexcept { return window_; }
  /// Accesses exactly these bytes, within the window, with bursts at s_axi. A write ends when all beats are taken; its
  /// answer comes later. A read ends with its data; addresses without data give zeros. Precondition: no other read
  /// waits.
  void write(std::uint32_t offset, std::span<const std::byte> data);
  void read(std::uint32_t offset, std::span<std::byte> data);

  /// One transaction at s_axil; the clock runs until it is done.
  std::uint32_t read_register(std::uint32_t offset);
  void write_register(std::uint32_t offset, std::uint32_t value);
  /// Begins such a transaction, which cycle() completes. Only one at a time.
  void begin_register_read(std::uint32_t offset);
  void begin_register_write(std::uint32_t offset, std::uint32_t value);
  [[nodiscard]] bool register_access_ended() const noexcept;
  /// The result of the last read. Empty: the core answered with an error.
  [[nodiscard]] std::optional<std::uint32_t> register_data() const noexcept;

  /// At m_axil, in order.
  std::optional<TailWrite> take_tail() { return tails_.take(); }
  void forget_tails() { tails_.forget(); }

  /// At m_rx.
  std::optional<Frame> take_frame();
  [[nodiscard]] std::size_t frames_waiting() const noexcept { return frames_.size(); }
  /// Whether m_rx is always ready, even if the blocks behind it are not.
  void drain(bool on) noexcept { drain_ = on; }
  [[nodiscard]] bool frame_held_up() const noexcept { return held_up_; }
  /// Frames and heads that arrived completely.
  [[nodiscard]] std::uint64_t frames_seen() const noexcept { return frames_seen_; }

  /// For s_tx.
  void put_frame(Frame frame) {
    to_send_.push_back(std::move(frame));
    moved_ = now_;
  }
  [[nodiscard]] std::size_t frames_to_send() const noexcept { return to_send_.size(); }
  /// Drops queued frames that have not begun. Returns their number.
  std::size_t forget_frames_to_send();

  /// Verdicts that wait; forwarding verdicts that wait; and forwarding verdicts that the core has taken.
  [[nodiscard]] std::size_t verdicts_waiting() const noexcept { return verdicts_.size(); }
  [[nodiscard]] std::size_t forwards_waiting() const noexcept;
  [[nodiscard]] std::uint64_t forwarded() const noexcept { return forwarded_; }

  /// The cycle of the last event of each kind; 0: none yet.
  struct Moments {
    std::uint64_t written_back = 0;  ///< a beat that ends a write to a ring
    std::uint64_t received = 0;      ///< the first beat of a frame at m_rx
    std::uint64_t head = 0;          ///< at m_head
    std::uint64_t sent = 0;          ///< the last beat of a frame at s_tx
    std::uint64_t verdict = 0;       ///< at s_verdict
    std::uint64_t tail = 0;          ///< address and value of a tail at m_axil
    std::uint64_t tail_address = 0;
  };
  [[nodiscard]] const Moments& moments() const noexcept { return moments_; }

  /// Restores the state after power-up: nothing waits at any port.
  void reset();

  [[noreturn]] void fail(const std::string& why) const;

 private:
  using Line = std::array<std::byte, kLineBytes>;
  struct Verdict {
    bool forward = false, replace = false;
    Line line{};
  };
  struct Pins;

  void sample_window();
  void sample_tails();
  void drive_function();
  void drive_send();
  void drive_verdict();
  void sample_function();
  void sample_frame();
  void sample_head();
  void access(std::uint32_t offset, const char* what);
  void write_burst(const AxiBurst& burst, std::span<const std::byte> data);
  void read_burst(const AxiBurst& burst, std::span<std::byte> data);

  RtlOptions options_;
  InPlaceFunction* function_;
  Pauses pauses_;
  RtlWindow window_;
  Moments moments_;
  std::uint64_t now_ = 0, moved_ = 0;
  TailPort tails_;
  Frame frame_;  ///< as far as it has come
  std::deque<Frame> frames_;
  std::deque<Frame> to_send_;
  std::size_t sent_ = 0;  ///< bytes of the first
  bool send_offered_ = false, verdict_offered_ = false;
  std::deque<Verdict> verdicts_;
  std::uint64_t frames_seen_ = 0, forwarded_ = 0;
  bool drain_ = false, held_up_ = false;
  std::unique_ptr<Pins> pins_;
};

}  // namespace wherry::sim
