// SPDX-License-Identifier: Apache-2.0
#include "sim/dma/rate.hpp"

#include <algorithm>
#include <deque>
#include <vector>

namespace wherry::sim::dma {
namespace {

constexpr std::uint32_t kWarmUpShare = 4;  // the first quarter
constexpr std::uint64_t kStandstill = 100'000;
constexpr std::uint32_t kAlign = 64;

}  // namespace

RateResult measure(const RateRun& run) {
  DataRig rig(run.rig);
  RateResult result;
  const std::uint32_t warm = run.transfers / kWarmUpShare;
  const std::uint32_t stride = (run.bytes + std::max(run.host_off, run.card_off) + kAlign - 1) / kAlign * kAlign;
  const bool to_card = run.way == Way::kToCard;
  const std::size_t span = (to_card ? rig.card_memory() : rig.host_memory()).size() / stride;
  std::deque<double> due(run.depth, 0.0);  // when the next transfers' turns come
  std::deque<double> posted;
  std::uint64_t next = 0, ended = 0, last_move = rig.now();
  double begin = 0, latency = 0, up = 0, down = 0;
  while (ended < run.transfers && rig.error().empty() && rig.now() - last_move < kStandstill) {
    const double now = static_cast<double>(rig.now()) * kCycleNs;
    while (next < run.transfers && !due.empty() && due.front() <= now) {
      due.pop_front();
      posted.push_back(now);
      const std::uint64_t place = next++ % span * stride;
      for (std::uint32_t at = 0; at < run.bytes; at += kTurnBytes) {
        Turn turn{.bytes = std::min(kTurnBytes, run.bytes - at), .last = at + kTurnBytes >= run.bytes};
        turn.host = (to_card ? std::uint64_t{1} << 44 : rig.host_memory().base()) + place + run.host_off + at;
        turn.card = (to_card ? rig.card_memory().base() : std::uint64_t{1} << 44) + place + run.card_off + at;
        rig.post(run.way, turn);
      }
    }
    rig.cycle();
    while (!rig.done(run.way).empty()) {
      last_move = rig.now();
      const bool last = rig.done(run.way).front().turn.last;
      rig.done(run.way).pop_front();
      if (!last) continue;
      const double then = static_cast<double>(rig.now()) * kCycleNs;
      if (ended == warm) {
        begin = then;
        up = rig.link().up_bytes;
        down = rig.link().down_bytes;
        result.bursts = rig.bursts;
      }
      if (ended > warm) latency += then - posted.front();
      posted.pop_front();
      due.push_back(then + run.think_ns);
      ++ended;
    }
  }
  result.error = rig.error();
  if (result.error.empty() && ended < run.transfers) result.error = "it stands still";
  const double time = static_cast<double>(rig.now()) * kCycleNs - begin;
  const double count = run.transfers - warm - 1;
  result.millions = count / time * 1e3;
  result.gbytes = count * run.bytes / time;
  result.latency_ns = latency / count;
  LinkOptions link = run.rig.link;
  link.completion = std::min(link.completion, 128U << run.rig.mrrs);
  result.bound_gbytes =
      to_card ? read_bound(link, run.bytes) : write_bound(run.rig.link, run.bytes, 128U << run.rig.mps);
  result.share = result.gbytes / result.bound_gbytes;
  result.up_use = (rig.link().up_bytes - up) / time / run.rig.link.raw;
  result.down_use = (rig.link().down_bytes - down) / time / run.rig.link.raw;
  result.cycles = rig.now();
  result.bursts = rig.bursts - result.bursts;
  return result;
}

}  // namespace wherry::sim::dma
