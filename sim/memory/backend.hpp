// SPDX-License-Identifier: Apache-2.0
// A memory as its ports see it: accesses of 64 bytes in, and the cycles in which each happens out. It holds no data.
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

/// One cycle is: offers of all ports, at most one of each direction a port, then cycle(), then done(). The order in
/// which accesses are performed is that in which done() tells them. Two accesses to one address are performed in the
/// order of their offers unless one reads and the other writes. A user that needs that order waits for the first to be
/// done.
class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  /// Takes the access in this cycle, or says not now.
  [[nodiscard]] virtual bool offer(const Access& access) = 0;
  /// Decides this cycle's commands and goes to the next.
  virtual void cycle() = 0;
  /// The operations of the last cycle(). Valid until the next.
  [[nodiscard]] virtual std::span<const Done> done() const noexcept = 0;
  /// The cycle that is going on.
  [[nodiscard]] virtual Cycle now() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t bytes() const noexcept = 0;
  /// Length of a cycle, ps.
  [[nodiscard]] virtual std::uint64_t cycle_ps() const noexcept = 0;
};

}  // namespace wherry::sim::memory
