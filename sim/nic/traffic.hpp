// SPDX-License-Identifier: Apache-2.0
// Test traffic: numbered UDP frames whose every byte follows from number and size, sent at a share of line rate, and a
// checker that finds missing, doubled, reordered and wrong frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "sim/nic/wire.hpp"
#include "sim/pcie/event_queue.hpp"

namespace wherry::sim::nic {

inline constexpr std::size_t kFrameHeader = 42;         ///< Ethernet, IPv4, UDP
inline constexpr std::size_t kNumberAt = kFrameHeader;  ///< 8 bytes, little endian
inline constexpr std::size_t kShortestNumbered = kNumberAt + 8;

/// Frame `number` of `flow`, whose number is in the source port. Precondition: out.size() >= kShortestNumbered.
void make_frame(std::span<std::byte> out, std::uint64_t number, std::uint32_t flow);
[[nodiscard]] std::uint64_t number_of(std::span<const std::byte> frame) noexcept;
/// Whether the bytes are those that make_frame() writes, with zeros as padding after them.
[[nodiscard]] bool frame_is_right(std::span<const std::byte> frame);

struct SourceOptions {
  std::uint32_t mbits = 10'000;
  std::uint64_t frames = 1000;
  std::vector<std::uint32_t> sizes{60};  ///< without FCS, in turn
  std::uint32_t flows = 1;               ///< in turn
  std::uint32_t load_per_mille = 1000;   ///< of line rate; the gap grows
  Time start = 0;
  std::uint32_t bad_fcs_one_in = 0;
};

/// Sends frames into a wire.
class Source final : pcie::EventHandler {
 public:
  Source(pcie::EventQueue& queue, WireEnd& end, const SourceOptions& options);
  [[nodiscard]] bool finished() const noexcept { return sent_ == options_.frames; }
  [[nodiscard]] std::uint64_t sent() const noexcept { return sent_; }
  [[nodiscard]] Time last() const noexcept { return last_; }

 private:
  void on_event(std::uint64_t argument) override;
  void schedule();
  pcie::EventQueue& queue_;
  WireEnd& end_;
  SourceOptions options_;
  std::vector<std::byte> frame_;
  std::uint64_t sent_ = 0;
  Time next_ = 0;  ///< first bit
  Time last_ = 0;
};

/// Checks frames of any number of flows.
class Checker final : public WireEnd {
 public:
  explicit Checker(std::uint32_t flows = 1) : next_(flows), flows_(flows) {}
  void on_frame(std::span<const std::byte> frame, bool fcs_good) override;
  std::uint64_t frames = 0, bytes = 0;
  std::uint64_t wrong = 0;      ///< bytes differ, or FCS
  std::uint64_t reordered = 0;  ///< within its flow, or twice
  std::uint64_t missing = 0;    ///< numbers left out, as far as later ones tell
 private:
  std::vector<std::uint64_t> next_;
  std::uint32_t flows_;
};

}  // namespace wherry::sim::nic
