// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "sim/bypass/bench.hpp"
#include "sim/bypass/echo.hpp"
#include "sim/bypass/stream_functions.hpp"

namespace wherry::sim::bench {
namespace {

/// Least and most cycles between two events, over all packets.
struct Spread {
  std::uint64_t least = ~std::uint64_t{0}, most = 0, samples = 0;
  void add(std::uint64_t cycles) {
    least = std::min(least, cycles);
    most = std::max(most, cycles);
    ++samples;
  }
  [[nodiscard]] Json json() const { return {{"min", samples == 0 ? 0 : least}, {"max", most}, {"samples", samples}}; }
};

struct Spreads {
  Spread rx, tx, head, verdict, in_place;
};

/// Looks at the core's ports after each cycle. Only one packet is in flight, so the last event caused the next one.
class Watch final : public StreamFunction {
 public:
  explicit Watch(Spreads& spreads) : found_(spreads) {}
  std::uint64_t tx_tail = 0;  ///< its bus address

  pcie::Time turn(RtlCore& core, pcie::Time now) override {
    const pcie::Time next = echo_.turn(core, now);
    const RtlCore::Moments& m = core.moments();
    if (m.received != last_.received) found_.rx.add(m.received - m.written_back);
    if (m.head != last_.head) found_.head.add(m.head - m.written_back);
    if (m.tail != last_.tail && m.tail_address == tx_tail) {
      if (m.sent != told_sent_) found_.tx.add(m.tail - m.sent);
      if (m.verdict != told_verdict_) {
        found_.verdict.add(m.tail - m.verdict);
        found_.in_place.add(m.tail - m.verdict + m.head - m.written_back);
      }
      told_sent_ = m.sent;
      told_verdict_ = m.verdict;
    }
    last_ = m;
    return next;
  }

 private:
  Spreads& found_;
  EchoStream echo_;
  RtlCore::Moments last_{};
  std::uint64_t told_sent_ = 0, told_verdict_ = 0;
};

}  // namespace

Json measure_cycles(const Settings& settings) {
  // A frame of several descriptors takes one cycle more for each of them.
  Spreads one, several;
  InPlaceEcho echo;
  for (const bool in_place : {true, false})
    for (const bool longer : {false, true}) {
      Watch watch(longer ? several : one);
      Rig rig({.in_place = in_place, .seed = settings.seed}, &echo, &watch);
      watch.tx_tail = rig.nic.tx_tail_address(0);
      rig.queue.run(rig.queue.now() + 20 * pcie::kMicrosecond);
      // Only one packet is in flight, because the gap is longer than any packet's latency.
      const nic::Source source(rig.queue, rig.meter,
                               {.frames = settings.quick ? 40U : 400U,
                                .sizes = longer ? std::vector<std::uint32_t>{9000}
                                                : std::vector<std::uint32_t>{60, 300, 1514, 64, 2048, 128},
                                .load_per_mille = 3,
                                .start = rig.queue.now()});
      rig.queue.run();
    }
  const auto json = [](const Spreads& s) {
    return Json{{"rx", s.rx.json()},
                {"tx", s.tx.json()},
                {"inplace_head", s.head.json()},
                {"inplace_verdict", s.verdict.json()},
                {"inplace", s.in_place.json()}};
  };
  return {{"name", "cycles"}, {"group", "cycles"}, {"cycles", json(one)}, {"cycles_9000_bytes", json(several)}};
}

}  // namespace wherry::sim::bench
