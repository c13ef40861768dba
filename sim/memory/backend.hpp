// SPDX-License-Identifier: Apache-2.0
// A memory as its ports see it: it takes accesses of 64 bytes, and reports the cycle of each. It holds no data.
#pragma once

#include <cstdint>
#include <span>

namespace wherry::sim::memory {

/// Cycles of the memory's controller.
using Cycle = std::uint64_t;

/// One beat of 64 bytes.
struct Access {
  std::uint64_t address = 0;
  std::uint32_t port = 0;
  bool write = false;
  std::uint64_t tag = 0;  ///< the asker's own
};

/// An access that was performed.
struct Done {
  Access access;
  Cycle ready = 0;  ///< of a read: its data are at the port. Of a write: its data were taken.
};

/// Sequence of one cycle: offers of all ports, at most one per port and direction; then cycle(); then done().
/// done() reports accesses in the order in which they are performed. Two accesses to one address keep the order of
/// their offers, unless one reads and the other writes. A user that needs the order must wait until the first one
/// is done.
class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  /// Takes the access in this cycle. False: not now.
  [[nodiscard]] virtual bool offer(const Access& access) = 0;
  /// Decides this cycle's commands, and advances to the next cycle.
  virtual void cycle() = 0;
  /// The accesses that the last cycle() performed. Valid until the next.
  [[nodiscard]] virtual std::span<const Done> done() const noexcept = 0;
  /// The current cycle.
  [[nodiscard]] virtual Cycle now() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t bytes() const noexcept = 0;
  /// Length of a cycle, ps.
  [[nodiscard]] virtual std::uint64_t cycle_ps() const noexcept = 0;
};

}  // namespace wherry::sim::memory
