// SPDX-License-Identifier: Apache-2.0
// A PCIe link and the host's memory behind it, as a DMA engine's requester sees them, in cycles of 4 ns. Each direction
// is charged with the bytes of its TLPs, so that a rate is a share of the link's bound.
//
// Accounting (research of probe, section 3; PCI Express Base Specification 3.0, sections 2.2 and 4.2): each TLP has 8
// bytes of framing (STP with sequence number, LCRC) and a header of 16 bytes (request with a 64-bit address) or 12
// (completion). Every 370 blocks there is a SKP ordered set: 4 of 1,538 bytes. ACKs and credits travel in the opposite
// direction of their data, and are not charged.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "base/random.hpp"

namespace wherry::sim::dma {

inline constexpr double kCycleNs = 4;
/// The most that the transmitter queues: some lines.
inline constexpr double kQueueNs = 16;
inline constexpr double kFraming = 8, kRequestHeader = 16, kCompletionHeader = 12;

/// The numbers of dma_pkg::error_e.
enum class Error : std::uint8_t { kNone, kUnsupported, kAborted, kPoisoned, kTimeout, kMalformed, kMemory, kReset };

struct LinkOptions {
  double raw = 15.754 * (1 - 4.0 / 1538);  ///< bytes a ns: generation 3, 16 lanes
  double rtt_ns = 800;                     ///< from a read request to its first completion, but for its bytes
  double jitter_ns = 100;                  ///< at most so much more, for each request; requests overtake each other
  std::uint32_t completion = 256;          ///< bytes of a completion at most; they end at its multiples
  bool random_splits = false;              ///< they end at any multiple of 64, and mix with those of others
  double extra_down_per_read = 0;          ///< bytes that the link carries for something else beside each request
  std::uint32_t pauses = 0;                ///< chance, in a million, that a port stands still in a cycle
};

/// Chances, in a million, that a read request gets a bad answer.
struct LinkFaults {
  std::uint32_t unsupported = 0, aborted = 0, poisoned = 0, lost = 0, short_ = 0, long_ = 0;
};

struct ReadRequest {
  std::uint8_t tag = 0;
  std::uint32_t bytes = 0;
  std::uint64_t address = 0;
};

struct CompletionBeat {
  std::uint8_t tag = 0;
  bool first = false, last = false, final_ = false;
  Error error = Error::kNone;
  std::uint32_t bytes = 0;
  std::uint64_t address = 0;  ///< of the first byte; the caller has the data
};

class HostLink {
 public:
  HostLink(const LinkOptions& options, std::uint64_t seed) : options_(options), random_(seed) {}

  /// Whether the transmitter takes a request, or a write, in this cycle.
  [[nodiscard]] bool read_ready() const { return up_free_ <= now_ + kQueueNs && !paused_read_; }
  [[nodiscard]] bool write_ready() const { return up_free_ <= now_ + kQueueNs && !paused_write_; }

  /// Takes a request, and decides how it ends. on_fault reports an end with an error.
  void request(const ReadRequest& request);
  /// Sends this many bytes of a write, which begins or continues with them.
  void write(std::uint32_t bytes, bool first) { up((first ? kRequestHeader + kFraming : 0) + bytes); }

  /// The beat that is offered in this cycle. It stays until taken.
  [[nodiscard]] const CompletionBeat* completion() const { return offered_ ? &beats_.front() : nullptr; }
  void completion_taken();

  void cycle();
  void forget();

  [[nodiscard]] double now() const { return now_; }
  [[nodiscard]] std::size_t in_flight() const { return waiting_.size() + beats_.size(); }
  /// Whether the host stops answering.
  void silence(bool on) { silent_ = on; }

  LinkFaults faults;
  std::function<void(const ReadRequest&, Error)> on_fault;
  std::uint64_t reads = 0, peak_bytes = 0;
  double up_bytes = 0, down_bytes = 0;

 private:
  struct Waiting {
    double due = 0;
    ReadRequest request;
    std::uint32_t done = 0;
    Error error = Error::kNone;
    std::int32_t wrong_by = 0;  ///< bytes too many, or too few
  };

  void up(double bytes) {
    const double begin = up_free_ > now_ ? up_free_ : now_;
    up_free_ = begin + bytes / options_.raw;
    up_bytes += bytes;
  }
  [[nodiscard]] bool draw(std::uint32_t per_million) {
    return per_million != 0 && random_.below(1'000'000) < per_million;
  }
  void complete(Waiting& waiting);

  LinkOptions options_;
  SplitMix64 random_;
  double now_ = 0, up_free_ = 0, down_free_ = 0;
  std::vector<Waiting> waiting_;  ///< by due time
  struct Flying {
    double due;
    CompletionBeat beat;
  };
  std::deque<Flying> flying_;
  std::deque<CompletionBeat> beats_;
  bool offered_ = false, paused_read_ = false, paused_write_ = false, silent_ = false;
  std::uint64_t asked_ = 0;
};

/// The most data of reads, or of writes, that the link can carry, in GB/s.
[[nodiscard]] double read_bound(const LinkOptions& options, std::uint32_t bytes);
[[nodiscard]] double write_bound(const LinkOptions& options, std::uint32_t bytes, std::uint32_t mps);

}  // namespace wherry::sim::dma
