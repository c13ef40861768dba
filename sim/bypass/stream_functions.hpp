// SPDX-License-Identifier: Apache-2.0
// Network functions in C++ behind the streams of the Verilated core: an echo, and a generator with a checker. Frames
// are passed as a whole.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/bypass/rtl_function.hpp"
#include "sim/nic/traffic.hpp"

namespace wherry::sim {

/// Sends each frame back (echo.hpp), in order.
class EchoStream final : public StreamFunction {
 public:
  /// `interval`: minimum time between two frames, for a function that is slower than its input. 0: no limit.
  explicit EchoStream(pcie::Time interval = 0) : interval_(interval) {}
  pcie::Time turn(RtlCore& core, pcie::Time now) override;
  void reset() override { next_ = 0; }
  [[nodiscard]] std::uint64_t frames() const noexcept { return frames_; }

 private:
  pcie::Time interval_, next_ = 0;
  std::uint64_t frames_ = 0;
};

struct GeneratorOptions {
  std::uint64_t frames = 0;
  std::vector<std::uint32_t> sizes{60};  ///< without FCS, in turn
  std::uint32_t mbits = 0;               ///< of line rate; 0: as fast as the core takes them
  pcie::Time start = 0;
};

/// Sends numbered frames (nic/traffic.hpp), and checks the received frames.
class GeneratorStream final : public StreamFunction {
 public:
  explicit GeneratorStream(const GeneratorOptions& options) : options_(options), next_(options.start) {}
  pcie::Time turn(RtlCore& core, pcie::Time now) override;
  [[nodiscard]] std::uint64_t sent() const noexcept { return sent_; }
  nic::Checker received;

 private:
  GeneratorOptions options_;
  std::uint64_t sent_ = 0;
  pcie::Time next_;
};

}  // namespace wherry::sim
