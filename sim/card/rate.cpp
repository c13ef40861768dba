// SPDX-License-Identifier: Apache-2.0
#include "sim/card/rate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>

#include "sim/dma/host_link.hpp"

namespace wherry::sim::card {
namespace {

using namespace std::chrono_literals;
namespace driver = wherry::dma;
using driver::Direction;

constexpr std::uint32_t kAlign = 64;
constexpr std::uint32_t kWarmUpShare = 4;            // the first quarter
constexpr std::size_t kSpan = std::size_t{1} << 20;  // bytes of a channel, of each side
constexpr auto kStandstill = 1ms;
constexpr std::uint32_t kCompletion = 256, kMps = 256;

struct Channel {
  driver::Ring* ring = nullptr;
  pci::DmaMemory memory;
  std::uint64_t card = 0;
  std::uint32_t posted = 0, told = 0, at_begin = 0;
  std::deque<pcie::Time> since;
};

/// The DLLPs' share of the link's time to the card: one ACK and one UpdateFC of non-posted credits per
/// pcie::dllp_latency().
double dllp_share() {
  const pcie::LinkOptions link = RigOptions{}.link;
  const double bytes = 2.0 * link.overhead.dllp * static_cast<double>(pcie::byte_time(link)) / (1 << 20);  // ps
  return bytes / static_cast<double>(pcie::dllp_latency(link, kMps));
}

unsigned bits_for(unsigned depth) {
  unsigned bits = 4;
  while ((1U << bits) < depth) ++bits;
  return bits;
}

RigOptions rig_options(const RateRun& run) {
  RigOptions options{.with_switch = false};
  options.card.memory = run.memory;
  options.card.timeout = 100;
  options.fabric.mps = kMps;
  options.fabric.seed = run.seed;
  options.fabric.root.completion_bytes = kCompletion;
  set_round_trip(options, static_cast<pcie::Time>(run.rtt_ns * pcie::kNanosecond));
  options.fabric.root.memory_jitter = static_cast<pcie::Time>(run.jitter_ns * pcie::kNanosecond);
  return options;
}

class Measurement {
 public:
  explicit Measurement(const RateRun& run)
      : run_(run),
        rig_(rig_options(run)),
        stride_((run.bytes + std::max(run.host_off, run.card_off) + kAlign - 1) / kAlign * kAlign),
        places_(std::max<std::size_t>(1, kSpan / stride_)) {}
  RateResult take();

 private:
  [[nodiscard]] bool to_card() const { return run_.direction == Direction::kToCard; }
  bool prepare();
  void post(Channel& channel);
  void look(Channel& channel);
  void begin();
  [[nodiscard]] std::uint64_t dllps(bool up) const;
  void observe();
  void report_stages();
  void verify();
  void finish();

  RateRun run_;
  Rig rig_;
  std::uint32_t stride_;
  std::size_t places_;
  std::unique_ptr<driver::Engine> engine_;
  std::vector<Channel> channels_;
  RateResult result_;
  bool measuring_ = false;
  pcie::Time begin_ = 0, latency_ = 0;
  std::uint64_t latencies_ = 0, writes_ = 0;
  pcie::Time up_ = 0, down_ = 0;
  std::uint64_t up_dllps_ = 0, down_dllps_ = 0;
  std::optional<Stages> stages_;
};

bool Measurement::prepare() {
  auto engine = driver::Engine::open(
      rig_.device, {.ring_bits = bits_for(run_.depth), .channels = run_.channels, .interrupts = run_.by_interrupt});
  if (!engine) {
    result_.error = engine.status().to_string();
    return false;
  }
  engine_ = *std::move(engine);
  if (run_.tuned) {
    if (const Status tuned = engine_->tune(); !tuned) result_.error = tuned.to_string();
  }
  SplitMix64 random(7);
  for (unsigned i = 0; i < run_.channels; ++i) {
    Channel& channel = channels_.emplace_back();
    channel.ring = &engine_->ring(run_.direction, i);
    channel.memory = rig_.device.allocate(places_ * stride_ + kAlign).value();
    channel.card = i * (std::uint64_t{2} << 20);
    std::vector<std::uint8_t> data(channel.memory.bytes.size());
    for (std::uint8_t& byte : data) byte = static_cast<std::uint8_t>(random());
    if (to_card())
      std::memcpy(channel.memory.bytes.data(), data.data(), data.size());
    else
      rig_.card.content().load(channel.card, data);
  }
  return true;
}

void Measurement::post(Channel& channel) {
  const auto outstanding = channel.posted - channel.told;
  const std::uint32_t room = std::min(run_.depth - outstanding, run_.transfers - channel.posted);
  if (room == 0 || (room < run_.batch && outstanding != 0 && channel.posted + room < run_.transfers)) return;
  for (std::uint32_t i = 0; i < room; ++i) {
    const std::uint64_t place = channel.posted % places_ * stride_;
    const Status posted = channel.ring->post({.host = channel.memory.iova + place + run_.host_off,
                                              .card = channel.card + place + run_.card_off,
                                              .bytes = run_.bytes,
                                              .cookie = channel.posted,
                                              .interrupt = run_.by_interrupt});
    if (!posted && result_.error.empty()) result_.error = posted.to_string();
    ++channel.posted;
    if (stages_) stages_->posted(rig_.queue.now());
    channel.since.push_back(rig_.queue.now());
  }
  if (run_.bell == driver::Bell::kTail && run_.in_time)
    channel.ring->ring_bell_in_time();
  else
    channel.ring->ring_bell(run_.bell);
}

void Measurement::look(Channel& channel) {
  driver::Done done[32];
  for (std::size_t count = channel.ring->poll(done); count != 0; count = channel.ring->poll(done)) {
    for (std::size_t i = 0; i < count; ++i) {
      if (done[i].error != driver::Error::kNone && result_.error.empty())
        result_.error = fmt::format("transfer {}: {}", done[i].cookie, driver::to_string(done[i].error));
      if (measuring_) {
        latency_ += rig_.queue.now() - channel.since.front();
        ++latencies_;
      }
      channel.since.pop_front();
      ++channel.told;
      if (stages_) stages_->told(rig_.queue.now());
    }
  }
}

void Measurement::begin() {
  measuring_ = true;
  begin_ = rig_.queue.now();
  for (Channel& channel : channels_) channel.at_begin = channel.told;
  up_ = rig_.fabric.link_counters(rig_.slot, true).busy;
  down_ = rig_.fabric.link_counters(rig_.slot, false).busy;
  writes_ = rig_.card.counters().writes;
  up_dllps_ = dllps(true);
  down_dllps_ = dllps(false);
  if (stages_) stages_->begin();
}

std::uint64_t Measurement::dllps(bool up) const {
  const pcie::LinkCounters& counters = rig_.fabric.link_counters(rig_.slot, up);
  return counters.acks + counters.credit_updates;
}

void Measurement::observe() {
  stages_.emplace(StageOptions{.bells = rig_.card.port().bar_address(driver::kBellBar),
                               .data = channels_[0].memory.iova,
                               .data_bytes = channels_[0].memory.bytes.size(),
                               .stride = stride_,
                               .places = places_,
                               .descriptors = 1U << bits_for(run_.depth)});
  rig_.fabric.observe(&*stages_);
}

void Measurement::report_stages() {
  const pcie::LinkOptions link = RigOptions{}.link;
  const auto time = static_cast<double>(rig_.queue.now() - begin_);
  const auto all = static_cast<std::uint64_t>(time * (1 << 20) / static_cast<double>(pcie::byte_time(link)));
  StageReport& report = result_.stages.emplace();
  report = {.mean_ns = stages_->mean_ns(),
            .per_bell = stages_->per_bell(),
            .per_fetch = stages_->per_fetch(),
            .down = stages_->down(),
            .up = stages_->up()};
  report.down.dllps = (dllps(false) - down_dllps_) * link.overhead.dllp;
  report.up.dllps = (dllps(true) - up_dllps_) * link.overhead.dllp;
  report.down.all = report.up.all = all;
}

void Measurement::verify() {
  std::vector<std::uint8_t> card(places_ * stride_ + kAlign);
  for (std::size_t i = 0; i < channels_.size() && result_.error.empty(); ++i) {
    rig_.card.content().dump(channels_[i].card, card);
    const std::size_t count = std::min<std::size_t>(places_, channels_[i].told);
    for (std::size_t place = 0; place < count; ++place)
      if (std::memcmp(card.data() + place * stride_ + run_.card_off,
                      channels_[i].memory.bytes.data() + place * stride_ + run_.host_off, run_.bytes) != 0)
        result_.error = fmt::format("channel {}: the bytes of place {} are wrong", i, place);
  }
  if (result_.error.empty()) result_.error = rig_.card.violation();
}

void Measurement::finish() {
  const auto time = static_cast<double>(rig_.queue.now() - begin_);  // ps
  double all = 0, most = 0, least = 1e30;
  for (const Channel& channel : channels_) {
    const double moved = channel.told - channel.at_begin;
    all += moved;
    most = std::max(most, moved);
    least = std::min(least, moved);
  }
  const double mean = all / static_cast<double>(channels_.size());
  result_.unfair = mean > 0 ? std::max(most / mean - 1, 1 - least / mean) : 0;
  result_.millions = all / time * 1e6;
  result_.gbytes = all * run_.bytes / time * 1e3;
  result_.latency_us = latencies_ == 0 ? 0 : static_cast<double>(latency_) / static_cast<double>(latencies_) / 1e6;
  result_.up_use = static_cast<double>(rig_.fabric.link_counters(rig_.slot, true).busy - up_) / time;
  result_.down_use = static_cast<double>(rig_.fabric.link_counters(rig_.slot, false).busy - down_) / time;
  const double payload_writes = to_card() ? 0 : (run_.bytes + kMps - 1) / kMps;
  result_.status_words = static_cast<double>(rig_.card.counters().writes - writes_) / all - payload_writes;
  result_.cycles = rig_.card.counters().cycles;
  const dma::LinkOptions link{.completion = kCompletion};
  result_.bound_gbytes = to_card() ? dma::read_bound(link, run_.bytes) : dma::write_bound(link, run_.bytes, kMps);
  result_.share = result_.gbytes / result_.bound_gbytes;
  result_.bound_with_dllps_gbytes = result_.bound_gbytes * (to_card() ? 1 - dllp_share() : 1);
  result_.share_with_dllps = result_.gbytes / result_.bound_with_dllps_gbytes;
}

RateResult Measurement::take() {
  if (!prepare()) return result_;
  if (run_.stages) observe();
  const auto look = std::chrono::nanoseconds(static_cast<std::int64_t>(run_.look_ns));
  auto moved = rig_.device.now();
  std::uint64_t before = 0;
  for (;;) {
    std::uint64_t told = 0;
    bool one_is_done = false;
    for (Channel& channel : channels_) {
      this->look(channel);
      post(channel);
      told += channel.told;
      one_is_done = one_is_done || channel.told == run_.transfers;
    }
    if (told != before) moved = rig_.device.now();
    before = told;
    if (!measuring_ && told >= std::uint64_t{run_.transfers} * run_.channels / kWarmUpShare) begin();
    // When one channel is done the others get more bandwidth, so the measurement ends here.
    if (one_is_done || !result_.error.empty()) break;
    if (rig_.device.now() - moved > kStandstill) {
      result_.error = "it stands still";
      break;
    }
    if (run_.by_interrupt)
      static_cast<void>(channels_[0].ring->wait(kStandstill, true));
    else
      rig_.device.pause(look);
  }
  finish();
  if (stages_) {
    report_stages();
    rig_.fabric.observe(nullptr);
    stages_.reset();
  }
  for (Channel& channel : channels_) {
    while (channel.posted != channel.told && result_.error.empty()) {
      if (!channel.ring->wait(kStandstill)) result_.error = "the last transfers do not end";
      this->look(channel);
    }
  }
  if (result_.error.empty()) verify();
  return result_;
}

}  // namespace

RateResult measure(const RateRun& run) { return Measurement(run).take(); }

double half_rate_bytes(const RateRun& run) {
  double before_bytes = 0, before_rate = 0;
  for (std::uint32_t bytes = 4096; bytes <= 1U << 20; bytes *= 2) {
    RateRun one = run;
    one.bytes = bytes;
    one.depth = 1;
    one.transfers = 24;
    const RateResult found = measure(one);
    if (!found.error.empty()) return 0;
    const double half = found.bound_gbytes / 2;
    if (found.gbytes >= half)
      return before_bytes + (bytes - before_bytes) * (half - before_rate) / (found.gbytes - before_rate);
    before_bytes = bytes;
    before_rate = found.gbytes;
  }
  return 0;
}

}  // namespace wherry::sim::card
