// SPDX-License-Identifier: Apache-2.0
//
// A path: one way between two memories, or between two threads. All are measured by the same runner through the same
// verbs (docs/guide/probe.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "wherry/status.hpp"

namespace wherry::probe {

/// The side that starts the transfer.
enum class Initiator : std::uint8_t { kHost, kDevice };
/// Direction, seen from the host: to the card (H2C), from it (C2H), or both at once.
enum class Flow : std::uint8_t { kH2C, kC2H, kBoth };
/// How the end of a transfer is learnt of.
enum class Notice : std::uint8_t { kPolled, kInterrupt, kBlocking };
/// The places of successive transfers in the buffers.
enum class Pattern : std::uint8_t { kSequential, kStrided, kRandom };
/// The source's state in the caches before a transfer: written last by this core, not cached, or written last by
/// another core.
enum class CacheState : std::uint8_t { kWarm, kFlushed, kRemote };
/// Whether a figure's time comes from a clock of this machine, a simulation, or a formula. They never share a row.
enum class Provenance : std::uint8_t { kMeasured, kSimulated, kModelled };

/// The requested shape of a transfer on a path.
struct Shape {
  std::size_t bytes = 4096;  // of one transfer
  unsigned depth = 1;        // transfers under way
  unsigned channels = 1;
  Pattern pattern = Pattern::kSequential;
  Flow flow = Flow::kH2C;
  Notice notice = Notice::kPolled;
  CacheState cache = CacheState::kWarm;
  unsigned align = 0;  // bytes behind a page boundary, both ends
};

/// The limit that no figure of the path can exceed, and its reason. 0: no bound is known.
struct Bound {
  double bytes_per_s = 0;
  double transfers_per_s = 0;
  std::string why;
};

struct PathInfo {
  std::string id;     // e.g. "cpu.memcpy", "xdma.h2c0"
  std::string group;  // e.g. "cpu", "ipc", "ucx", "wake", "pci", "xdma", "cuda", "verbs", "doca", "sim", "model"
  std::string from;   // e.g. "host memory"
  std::string to;
  Initiator initiator = Initiator::kHost;
  Provenance provenance = Provenance::kMeasured;
  std::string absent;  // why it cannot run here, and what to do; empty if it can
  std::string note;    // what else a reader of the figures must know, as "one-sided"; may be known after open() only
};

/// The work of a shape on a path.
struct Work {
  unsigned slots = 1;         // that try_post() takes: 0 to slots - 1
  unsigned units = 1;         // what one transfer counts for: figures are of one unit
  std::size_t bytes = 0;      // of one unit; 0: no rate of bytes is given
  unsigned per_restore = 0;   // transfers that may follow one restore(); 0: no limit
  std::size_t footprint = 0;  // bytes of memory that the shape takes, both ends; for the runner's own limit
};

/// One thread drives a path. Nothing is allocated between open() and close().
class Path {
 public:
  Path() = default;
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;
  virtual ~Path() = default;

  [[nodiscard]] virtual const PathInfo& info() const = 0;
  /// Whether the path can do this shape. If not, the Status says which part it cannot do.
  [[nodiscard]] virtual Status accepts(const Shape& shape) const = 0;
  /// The work of an accepted shape.
  [[nodiscard]] virtual Work work(const Shape& shape) const {
    return {.slots = shape.depth, .bytes = shape.bytes, .footprint = 2 * shape.bytes * shape.depth};
  }
  /// Makes, touches and pins the buffers, and whatever else the shape needs. Returns the path's bound.
  [[nodiscard]] virtual Result<Bound> open(const Shape& shape) = 0;
  /// Fills the source with the pattern of this seed. The pattern depends on seed and offset, so every transfer of a
  /// round differs. Fills the destination, with the guards around it, with poison. Outside the clock.
  virtual void prepare(std::uint64_t seed) = 0;
  /// Brings caches, and a sleeping other side, into the state that the shape names. Outside the clock, before each
  /// batch of at most Work::per_restore transfers.
  virtual void restore() {}
  /// Starts transfer `slot` (0 to depth - 1, free). false: not now, so call poll() first.
  [[nodiscard]] virtual bool try_post(unsigned slot) = 0;
  /// Makes progress, and writes the slots that have ended to `done` (room for depth). Returns how many. With
  /// Notice::kBlocking or kInterrupt it waits for one.
  [[nodiscard]] virtual Result<unsigned> poll(std::span<unsigned> done) = 0;
  /// Compares every byte of the destination and the guards with the pattern of this seed. Outside the clock.
  [[nodiscard]] virtual Status verify(std::uint64_t seed) = 0;
  /// The place of the transferred bytes in this process. A test flips one byte here, and verify() must notice it.
  /// Empty: they are not accessible, and spoil() flips one.
  [[nodiscard]] virtual std::span<std::byte> landing() { return {}; }
  /// For tests: changes byte `at` of the transferred data at the destination. false: the path cannot.
  [[nodiscard]] virtual bool spoil(std::uint64_t at) {
    const std::span<std::byte> there = landing();
    if (there.empty()) return false;
    there[at % there.size()] ^= std::byte{0x40};
    return true;
  }
  /// CPU time of the other side's threads and processes, ns, user and system. 0, 0 if there is none.
  struct CpuTime {
    std::uint64_t user_ns = 0, system_ns = 0;
  };
  [[nodiscard]] virtual CpuTime other_side() { return {}; }
  /// For a simulated or modelled path: its own time since open(), ns. A measured path's time is the runner's clock.
  [[nodiscard]] virtual std::uint64_t own_ns() { return 0; }
  virtual void close() noexcept = 0;
};

}  // namespace wherry::probe
