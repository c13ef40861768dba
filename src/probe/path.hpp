// SPDX-License-Identifier: Apache-2.0
//
// A path: a way between two memories or two threads. The same runner
// measures all paths through the same functions (docs/guide/probe.md).
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
/// How the end of a transfer is detected.
enum class Notice : std::uint8_t { kPolled, kInterrupt, kBlocking };
/// The places of successive transfers in the buffers.
enum class Pattern : std::uint8_t { kSequential, kStrided, kRandom };
/// The source in the caches before a transfer: last written
/// by this core, not cached, or last written by another core.
enum class CacheState : std::uint8_t { kWarm, kFlushed, kRemote };
/// Where a figure's time comes from: a clock of this machine, a simulation, or a formula. Rows never mix them.
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

/// The highest figures that the path can reach, and the reason. 0: no bound is known.
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

/// Properties of a shape's transfers on a path.
struct Work {
  unsigned slots = 1;         // that try_post() takes: 0 to slots - 1
  unsigned units = 1;         // what one transfer counts for: figures are of one unit
  std::size_t bytes = 0;      // of one unit; 0: no rate of bytes is given
  unsigned per_restore = 0;   // transfers that may follow one restore(); 0: no limit
  std::size_t footprint = 0;  // bytes of memory that the shape takes, both ends; for the runner's own limit
};

/// One thread uses a path. No memory is allocated between open() and close().
class Path {
 public:
  Path() = default;
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;
  virtual ~Path() = default;

  [[nodiscard]] virtual const PathInfo& info() const = 0;
  /// Whether the path supports this shape. If not, the Status names the unsupported part.
  [[nodiscard]] virtual Status accepts(const Shape& shape) const = 0;
  /// The properties of an accepted shape's transfers.
  [[nodiscard]] virtual Work work(const Shape& shape) const {
    return {.slots = shape.depth, .bytes = shape.bytes, .footprint = 2 * shape.bytes * shape.depth};
  }
  /// Makes, touches and pins the buffers, and all else that the shape needs. Returns the path's bound.
  [[nodiscard]] virtual Result<Bound> open(const Shape& shape) = 0;
  /// Fills the source with the seed's pattern, and the destination and its guards with poison.
  /// Not timed. The pattern depends on seed and offset, so every transfer of a round differs.
  virtual void prepare(std::uint64_t seed) = 0;
  /// Restores the shape's state of the caches, and of a sleeping other side. Not
  /// timed. It is called before each batch of at most Work::per_restore transfers.
  virtual void restore() {}
  /// Starts transfer `slot`, a free one of 0 to depth - 1. Returns false if it cannot start before a poll().
  [[nodiscard]] virtual bool try_post(unsigned slot) = 0;
  /// Makes progress, and writes the ended slots to `done` (which has room for depth).
  /// Returns their number. With Notice::kBlocking or kInterrupt, it waits for at least one.
  [[nodiscard]] virtual Result<unsigned> poll(std::span<unsigned> done) = 0;
  /// Compares every byte of the destination and the guards with the seed's pattern. Not timed.
  [[nodiscard]] virtual Status verify(std::uint64_t seed) = 0;
  /// The transferred bytes in this process. A test flips one of them, and verify()
  /// must detect it. Empty: they are not accessible, so a test uses spoil().
  [[nodiscard]] virtual std::span<std::byte> landing() { return {}; }
  /// For tests: changes byte `at` of the transferred data at the destination. Returns false if the path cannot.
  [[nodiscard]] virtual bool spoil(std::uint64_t at) {
    const std::span<std::byte> there = landing();
    if (there.empty()) return false;
    there[at % there.size()] ^= std::byte{0x40};
    return true;
  }
  /// User and system CPU time of the other side's threads and processes, ns. 0, 0 if there are none.
  struct CpuTime {
    std::uint64_t user_ns = 0, system_ns = 0;
  };
  [[nodiscard]] virtual CpuTime other_side() { return {}; }
  /// For a simulated or modelled path: its time since open(), ns. The runner's clock times measured paths.
  [[nodiscard]] virtual std::uint64_t own_ns() { return 0; }
  virtual void close() noexcept = 0;
};

}  // namespace wherry::probe
