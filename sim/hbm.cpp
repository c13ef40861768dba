// SPDX-License-Identifier: Apache-2.0
#include "sim/hbm.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace wherry::kv::rtl {
namespace {

constexpr std::uint32_t kBeat = 1000;  ///< of the bus

std::size_t index_of(std::uint64_t address) { return address % kHbmPage / kHbmBeatBytes; }

}  // namespace

HbmBeat HbmContent::untouched(std::uint64_t address) const {
  HbmBeat beat{};
  if (rubbish_ == 0) return beat;
  sim::Random random(rubbish_ ^ address);
  for (std::uint32_t& word : beat) word = static_cast<std::uint32_t>(random.next());
  return beat;
}

HbmBeat HbmContent::read(std::uint64_t address) const {
  const auto found = pages_.find(address / kHbmPage);
  return found == pages_.end() ? untouched(address) : (*found->second)[index_of(address)];
}

void HbmContent::write(std::uint64_t address, const HbmBeat& beat, std::uint32_t strobes) {
  std::unique_ptr<Page>& page = pages_[address / kHbmPage];
  if (page == nullptr) {
    page = std::make_unique<Page>();
    const std::uint64_t start = address / kHbmPage * kHbmPage;
    for (std::size_t i = 0; i < page->size(); ++i) (*page)[i] = untouched(start + i * kHbmBeatBytes);
  }
  HbmBeat& there = (*page)[index_of(address)];
  for (std::size_t i = 0; i < beat.size(); ++i) {
    std::uint32_t mask = 0;
    for (unsigned byte = 0; byte < 4; ++byte)
      if ((strobes >> (4 * i + byte) & 1) != 0) mask |= 0xffU << 8 * byte;
    there[i] = (there[i] & ~mask) | (beat[i] & mask);
  }
}

HbmPort::HbmPort(HbmContent& content, const HbmTiming& timing, std::uint64_t seed)
    : content_(content), timing_(timing), random_(seed) {
  present();
}

void HbmPort::violate(std::string text) {
  if (violation_.empty()) violation_ = fmt::format("AXI3, cycle {}: {}", now_, text);
}

/// A3.2.1: offered values must not change until they are taken.
void HbmPort::check_held(const AxiRequest& in) {
  const AxiRequest& was = before_;
  if (was.ar_valid && (!in.ar_valid || in.ar_address != was.ar_address || in.ar_length != was.ar_length))
    violate(fmt::format("the read of {:#x} was offered, not taken, and changed", was.ar_address));
  if (was.aw_valid && (!in.aw_valid || in.aw_address != was.aw_address || in.aw_length != was.aw_length))
    violate(fmt::format("the write to {:#x} was offered, not taken, and changed", was.aw_address));
  if (was.w_valid &&
      (!in.w_valid || in.w_last != was.w_last || in.w_strobes != was.w_strobes || in.w_data != was.w_data))
    violate("a beat of data was offered, not taken, and changed");
  before_ = in;
  before_.ar_valid = in.ar_valid && !out_.ar_ready;
  before_.aw_valid = in.aw_valid && !out_.aw_ready;
  before_.w_valid = in.w_valid && !out_.w_ready;
}

/// Checks Checks A3.4.1, and the range of the card's memory.
void HbmPort::check_burst(std::string_view channel, std::uint64_t address, std::uint32_t length) {
  const std::uint64_t end = address + (length + 1) * kHbmBeatBytes;
  if (length >= kHbmBurst) violate(fmt::format("{} at {:#x}: {} beats, at most 16", channel, address, length + 1));
  if (address % kHbmBeatBytes != 0) violate(fmt::format("{} at {:#x}: not a multiple of 32", channel, address));
  if (address / kHbmPage != (end - 1) / kHbmPage)
    violate(fmt::format("{} at {:#x}, {} beats: crosses a 4 KiB boundary", channel, address, length + 1));
  if (end > kHbmBytes) violate(fmt::format("{} at {:#x}: outside of 16 GiB", channel, address));
}

Cycles HbmPort::later(std::uint32_t latency) {
  return now_ + latency + (timing_.jitter != 0 ? random_.below(timing_.jitter + 1) : 0);
}

void HbmPort::step(const AxiRequest& in) {
  check_held(in);
  take_read(in);
  take_write(in);
  ++now_;
  bus_ = std::min(bus_ + timing_.bus, 4 * kBeat);  // less would waste what is left of a beat
  present();
}

void HbmPort::take_read(const AxiRequest& in) {
  if (out_.r_valid && in.r_ready) {
    times_.last_data = now_;
    out_.r_valid = false;
    if (++reads_.front().done == reads_.front().beats) reads_.pop_front();
  }
  if (!in.ar_valid || !out_.ar_ready) return;
  check_burst("read", in.ar_address, in.ar_length);
  times_.first_address = std::min(times_.first_address, now_);
  ++counts_.read_bursts;
  counts_.read_beats += in.ar_length + 1;
  Burst burst{in.ar_address, in.ar_length + 1, 0, later(timing_.read), random_.below(2) == 0, {}, {}};
  if (burst.early)
    for (std::uint32_t i = 0; i < burst.beats; ++i)
      burst.data.push_back(content_.read(burst.address + i * kHbmBeatBytes));
  reads_.push_back(std::move(burst));
}

void HbmPort::take_write(const AxiRequest& in) {
  if (out_.b_valid && in.b_ready) {
    times_.last_answer = now_;
    out_.b_valid = false;
    answers_.pop_front();
  }
  if (in.aw_valid && out_.aw_ready) {
    check_burst("write", in.aw_address, in.aw_length);
    times_.first_write = std::min(times_.first_write, now_);
    ++counts_.write_bursts;
    addresses_.push_back({in.aw_address, in.aw_length + 1, 0, 0, random_.below(2) == 0, {}, {}});
  }
  if (in.w_valid && out_.w_ready) {
    times_.first_write = std::min(times_.first_write, now_);
    times_.last_write = now_;
    ++counts_.write_beats;
    bus_ -= kBeat;
    beats_.push_back({in.w_data, in.w_strobes, in.w_last});
  }
  while (!beats_.empty() && !addresses_.empty()) {
    const Data data = beats_.front();
    beats_.pop_front();
    write_beat(data);
  }
  if (beats_.size() > kHbmBurst) violate("17 beats of data, and no address for them");
}

void HbmPort::put(const Burst& burst) {
  for (std::uint32_t i = 0; i < burst.beats; ++i)
    content_.write(burst.address + i * kHbmBeatBytes, burst.data[i], burst.strobes[i]);
}

void HbmPort::write_beat(const Data& data) {
  Burst& burst = addresses_.front();
  const bool ends = burst.done + 1 == burst.beats;
  if (data.last != ends)
    violate(fmt::format("write to {:#x}: WLAST is {} with beat {} of {}", burst.address, data.last ? 1 : 0,
                        burst.done + 1, burst.beats));
  burst.data.push_back(data.beat);
  burst.strobes.push_back(data.strobes);
  ++burst.done;
  if (!ends) return;
  if (burst.early) {
    // Not before earlier writes with the same identifier (A5.3).
    for (Burst& before : answers_)
      if (!std::exchange(before.early, true)) put(before);
    put(burst);
  }
  burst.due = later(timing_.write);
  answers_.push_back(std::move(burst));
  addresses_.pop_front();
}

/// Drives the outputs of the cycle that begins.
void HbmPort::present() {
  const bool refresh = refreshing();
  if (!out_.r_valid && !reads_.empty() && reads_.front().due <= now_ && bus_ >= kBeat && !refresh) {
    const Burst& burst = reads_.front();
    out_.r_valid = true;
    out_.r_last = burst.done + 1 == burst.beats;
    out_.r_data = burst.early ? burst.data[burst.done] : content_.read(burst.address + burst.done * kHbmBeatBytes);
    bus_ -= kBeat;
  }
  if (!out_.b_valid && !answers_.empty() && answers_.front().due <= now_) {
    const Burst& burst = answers_.front();
    if (!burst.early) put(burst);
    out_.b_valid = true;
  }
  out_.ar_ready = reads_.size() < timing_.reads;
  out_.aw_ready = addresses_.size() + answers_.size() < timing_.writes;
  out_.w_ready = bus_ >= kBeat && !refresh;
}

}  // namespace wherry::kv::rtl
