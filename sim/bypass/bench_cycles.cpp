// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "sim/bypass/bench.hpp"
#include "sim/bypass/echo.hpp"
#include "sim/bypass/stream_functions.hpp"

namespace wherry::sim::bench {
namespace {

/// Cycles between two moments, of all packets.
struct Spread {
  std::uint64_t least = ~std::uint64_t{0}, most = 0, samples = 0;
  void add(std::uint64_t cycles) {
    least = std::min(least, cycles);
    most = std::max(most, cycles);
    ++samples;
  }
  [[nodiscard]] Json json() const { return {{"min", samples == 0 ? 0 : least}, {"max", most}, {"samples", samples}}; }
};

/// Looks at the core's ports after each cycle. Of one packet at a time: what came last caused what comes next.
class Watch final : public StreamFunction {
 public:
  Spread rx, tx, head, verdict, in_place;
  std::uint64_t tx_tail = 0;  ///< its bus address

  pcie::Time turn(RtlCore& core, pcie::Time now) override {
    const pcie::Time next = echo_.turn(core, now);
    const RtlCore::Moments& m = core.moments();
    if (m.received != last_.received) rx.add(m.received - m.written_back);
    if (m.head != last_.head) head.add(m.head - m.written_back);
    if (m.tail != last_.tail && m.tail_address == tx_tail) {
      if (m.sent != told_sent_) tx.add(m.tail - m.sent);
      if (m.verdict != told_verdict_) {
        verdict.add(m.tail - m.verdict);
        in_place.add(m.tail - m.verdict + m.head - m.written_back);
      }
      told_sent_ = m.sent;
      told_verdict_ = m.verdict;
    }
    last_ = m;
    return next;
  }

 private:
  EchoStream echo_;
  RtlCore::Moments last_{};
  std::uint64_t told_sent_ = 0, told_verdict_ = 0;
};

}  // namespace

Json measure_cycles(const Settings& settings) {
  Watch watch;  // of both ways
  InPlaceEcho echo;
  for (const bool in_place : {true, false}) {
    Rig rig({.in_place = in_place, .seed = settings.seed}, &echo, &watch);
    watch.tx_tail = rig.nic.tx_tail_address(0);
    rig.queue.run(rig.queue.now() + 20 * pcie::kMicrosecond);
    // One packet at a time: a gap of longer than any takes.
    const nic::Source source(rig.queue, rig.meter,
                             {.frames = settings.quick ? 40U : 400U,
                              .sizes = {60, 300, 1514, 64, 9000, 128},
                              .load_per_mille = 3,
                              .start = rig.queue.now()});
    rig.queue.run();
  }
  return {{"name", "cycles"},
          {"group", "cycles"},
          {"cycles",
           {{"rx", watch.rx.json()},
            {"tx", watch.tx.json()},
            {"inplace_head", watch.head.json()},
            {"inplace_verdict", watch.verdict.json()},
            {"inplace", watch.in_place.json()}}}};
}

}  // namespace wherry::sim::bench
