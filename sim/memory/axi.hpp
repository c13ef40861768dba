// SPDX-License-Identifier: Apache-2.0
// AXI4 of 512 bits in one cycle of its clock: what a manager and a subordinate drive. References: ARM IHI 0022E.
#pragma once

#include <cstdint>
#include <span>

#include "sim/memory/content.hpp"

namespace wherry::sim::memory {

inline constexpr std::uint32_t kAxiBeats = 256;      ///< of a burst, at most (A3.4.1)
inline constexpr std::uint64_t kAxiBoundary = 4096;  ///< that no burst crosses (A3.4.1)

/// AxADDR, AxLEN, AxSIZE, AxID. All bursts are INCR.
struct AxiAddress {
  std::uint64_t address = 0;
  std::uint32_t length = 0;  ///< beats less 1
  std::uint32_t size = 6;    ///< log2 of the bytes of a beat; less than 6 only with one beat
  std::uint32_t id = 0;
  friend bool operator==(const AxiAddress&, const AxiAddress&) = default;
};

/// The manager's outputs.
struct AxiRequest {
  bool ar_valid = false;
  AxiAddress ar;
  bool r_ready = false;
  bool aw_valid = false;
  AxiAddress aw;
  bool w_valid = false;
  bool w_last = false;
  Strobes w_strobes = kAllBytes;
  Beat w_data{};
  bool b_ready = false;
};

/// The subordinate's outputs.
struct AxiAnswer {
  bool ar_ready = false;
  bool r_valid = false;
  bool r_last = false;
  bool r_error = false;  ///< RRESP is DECERR
  std::uint32_t r_id = 0;
  Beat r_data{};
  bool aw_ready = false;
  bool w_ready = false;
  bool b_valid = false;
  bool b_error = false;  ///< BRESP is DECERR
  std::uint32_t b_id = 0;
};

/// Subordinate ports in one clock domain. A manager reads answer(), then drives its request; step() is the clock edge
/// that both see.
class AxiBus {
 public:
  AxiBus() = default;
  AxiBus(const AxiBus&) = delete;
  AxiBus& operator=(const AxiBus&) = delete;
  virtual ~AxiBus() = default;

  [[nodiscard]] virtual const AxiAnswer& answer(std::uint32_t port) const = 0;
  /// `in`: one request a port.
  virtual void step(std::span<const AxiRequest> in) = 0;
  /// Call it after a reset of the managers, which then await nothing. Returns when none of their requests is in flight.
  /// A bus that is made anew with its managers needs no action.
  virtual void managers_reset() {}
};

}  // namespace wherry::sim::memory
