// SPDX-License-Identifier: Apache-2.0
#include "sim/designs/measure.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/random.hpp"
#include "sim/designs/rig.hpp"

namespace wherry::sim::designs {
namespace {

constexpr std::uint64_t kKiB = 1024, kMiB = kKiB * kKiB;
constexpr std::uint64_t kShift = 64;            ///< so far on begins the next call's source
constexpr std::uint64_t kOtherBank = 5 * 8192;  ///< of litedram's address map, with rows of 8 KiB
constexpr double kStandstillNs = 1e6;
constexpr double kStaggerNs = 1'500;  ///< between the first calls of two channels, unless they begin in step

std::uint32_t calls_of(std::uint64_t bytes) {
  if (bytes <= 64 * kKiB) return 8;
  return bytes <= kMiB ? 5 : 3;
}

/// One channel's blocking caller. Its first call is not measured.
struct Caller {
  std::uint64_t host = 0, card = 0;
  std::uint32_t calls = 0;  ///< that have ended
  bool waiting = false;
  Transfer last;
  double next_ns = 0, posted_ns = 0;
  double first_end_ns = 0, last_end_ns = 0, transfer_ns = 0;
};

class Run {
 public:
  explicit Run(const PointOptions& options)
      : options_(options),
        bytes_(std::min(options.bytes, options.preset.run_bytes)),
        calls_(options.calls != 0 ? options.calls : calls_of(bytes_)),
        source_((bytes_ + (calls_ + 1) * kShift)),
        stride_((source_ + kMiB - 1) / kMiB * kMiB),
        rig_(options.card, options.preset, options.flow, options.channels, options.channels * stride_,
             options.neighbour, options.seed),
        callers_(options.channels) {
    const bool in_rows = options.card.design != Design::kBram && options.placement == Placement::kOtherBanks;
    for (std::uint32_t i = 0; i < options.channels; ++i) {
      callers_[i].host = i * stride_;
      callers_[i].card = options.card.design == Design::kBram ? i * kBramRoom : i * stride_;
      if (in_rows) callers_[i].card += i * kOtherBank;
      callers_[i].next_ns = options.in_step ? 0 : i * kStaggerNs;
      fill(callers_[i]);
    }
  }

  Point operator()() {
    Point point;
    double moved_ns = 0;
    const double patience = kStandstillNs + static_cast<double>(bytes_ * options_.channels);
    while (point.error.empty() && !finished()) {
      if (advance()) moved_ns = rig_.engine().now_ns();
      rig_.tick();
      ++point.cycles;
      if (rig_.engine().now_ns() - moved_ns > patience) point.error = "it stands still";
    }
    for (const Caller& caller : callers_) {
      point.gbytes += static_cast<double>(calls_ * bytes_) / (caller.last_end_ns - caller.first_end_ns);
      point.transfer_ns += caller.transfer_ns / calls_ / options_.channels;
    }
    // Wait, because channels that finished early have begun other transfers meanwhile.
    while (point.error.empty() && !rig_.engine().quiet()) rig_.tick();
    if (point.error.empty()) point.error = check();
    return point;
  }

 private:
  static constexpr std::uint64_t kBramRoom = 2 * kMiB;  ///< of a channel, of 8 MiB

  [[nodiscard]] bool finished() const {
    return std::ranges::all_of(callers_, [this](const Caller& caller) { return caller.calls > calls_; });
  }

  /// Writes random words to the source, and leaves the destination as it is.
  void fill(const Caller& caller) {
    SplitMix64 random(options_.seed + caller.host);
    std::vector<std::uint8_t> words((source_ + 7) / 8 * 8);
    for (std::size_t at = 0; at < words.size(); at += 8) {
      const std::uint64_t word = random();
      std::memcpy(&words[at], &word, sizeof word);
    }
    if (options_.flow == Flow::kToCard)
      std::memcpy(&rig_.host()[caller.host], words.data(), source_);
    else
      rig_.card().content().load(caller.card, {words.data(), source_});
  }

  [[nodiscard]] Transfer next(const Caller& caller) const {
    const std::uint64_t shift = caller.calls % (calls_ + 2) * kShift;
    const bool to_card = options_.flow == Flow::kToCard;
    return {caller.host + (to_card ? shift : 0), caller.card + (to_card ? 0 : shift), bytes_};
  }

  /// Posts what is due. Returns true if a transfer began or ended.
  bool advance() {
    const double software =
        options_.notice == Notice::kInterrupt ? options_.preset.interrupt_ns : options_.preset.polled_ns;
    bool moved = false;
    for (std::uint32_t i = 0; i < callers_.size(); ++i) {
      Caller& caller = callers_[i];
      if (!rig_.engine().idle(i)) continue;
      if (caller.waiting) {
        const double end = rig_.engine().ended_ns(i);
        if (caller.calls == 0) caller.first_end_ns = end;
        if (caller.calls == calls_) caller.last_end_ns = end;
        if (caller.calls > 0 && caller.calls <= calls_) caller.transfer_ns += end - caller.posted_ns;
        ++caller.calls;
        caller.next_ns = end + software;
        caller.waiting = false;
        moved = true;
      }
      if (caller.next_ns > rig_.engine().now_ns()) continue;
      caller.last = next(caller);
      caller.posted_ns = rig_.engine().now_ns();
      rig_.engine().post(i, caller.last);
      caller.waiting = moved = true;
    }
    return moved;
  }

  [[nodiscard]] std::string check() {
    if (!rig_.card().violation().empty()) return rig_.card().violation();
    if (rig_.engine().failed()) return "the memory refused an access";
    for (const Caller& caller : callers_)
      if (const std::uint64_t wrong = rig_.differing(caller.last); wrong != 0)
        return fmt::format("{} of {} bytes are wrong", wrong, bytes_);
    return {};
  }

  PointOptions options_;
  std::uint64_t bytes_;
  std::uint32_t calls_;
  std::uint64_t source_, stride_;
  Rig rig_;
  std::vector<Caller> callers_;
};

}  // namespace

Point measure(const PointOptions& options) { return Run(options)(); }

}  // namespace wherry::sim::designs
