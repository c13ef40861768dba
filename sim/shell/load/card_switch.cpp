// SPDX-License-Identifier: Apache-2.0
#include "sim/shell/load/card_switch.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "sim/shell/bursts.hpp"

namespace wherry::sim::shell::load {
namespace {

using namespace kv::rtl;
constexpr Time kCycle = kShellClock.cycles(1);

}  // namespace

CardSwitch::CardSwitch(pcie::EventQueue& queue, HbmContent& content, const Parameters& p)
    : queue_(queue), port_(content, {.read = p.hbm_read, .write = p.hbm_write}, 1) {
  line(Master::kMover).read_route = kShellClock.cycles(p.mover_read_route);
  line(Master::kMover).write_route = 0;
  line(Master::kQdma).read_route = 0;
  line(Master::kQdma).write_route = kShellClock.cycles(p.qdma_write_route);
}

void CardSwitch::read(Master master, std::uint64_t address, std::uint32_t bytes, Data data) {
  Line& one = line(master);
  one.readings.push_back({bytes, 0, std::move(data)});
  const Time at = kShellClock.edge(queue_.now()) + one.read_route;
  cut_bursts(address, bytes, [&](auto from, auto beats, bool last) { one.asks.push_back({from, beats, at, last}); });
  wake();
}

void CardSwitch::write(Master master, std::uint64_t address, std::uint32_t bytes, Done done) {
  line(master).writings.push_back(std::move(done));
  std::deque<Burst>& to = line(master).addresses;
  cut_bursts(address, bytes, [&](auto from, auto beats, bool last) { to.push_back({from, beats, 0, last}); });
}

void CardSwitch::write_data(Master master, std::span<const std::byte> data) {
  const Time at = kShellClock.edge(queue_.now()) + line(master).write_route;
  for (std::size_t i = 0; i < data.size(); i += kHbmBeatBytes) {
    Word word{{}, at};
    std::memcpy(word.beat.data(), data.data() + i, kHbmBeatBytes);
    line(master).words.push_back(word);
  }
  wake();
}

bool CardSwitch::idle() const noexcept {
  return port_.quiet() &&
         std::ranges::all_of(lines_, [](const Line& one) { return one.asks.empty() && one.words.empty(); });
}

void CardSwitch::wake() {
  if (ticking_) return;
  ticking_ = true;
  const Time begin = kShellClock.edge(queue_.now());
  const auto cycle = static_cast<kv::Cycles>(begin / kCycle);
  if (port_.quiet() && cycle > port_.now()) port_.skip(cycle - port_.now());
  queue_.schedule(begin + kCycle, *this);
}

/// The clock edge at the end of a cycle.
void CardSwitch::on_event(std::uint64_t argument) {
  static_cast<void>(argument);
  const AxiAnswer answer = port_.answer();
  const AxiRequest request = offer(queue_.now() - kCycle, answer);
  port_.step(request);
  take(answer);
  ticking_ = !idle();
  if (ticking_) queue_.schedule(queue_.now() + kCycle, *this);
}

AxiRequest CardSwitch::offer(Time begin, const AxiAnswer& answer) {
  AxiRequest request;
  request.r_ready = request.b_ready = true;
  for (std::size_t step = 1; step <= kMasters && !reading_; ++step) {
    const std::size_t next = (reader_ + step) % kMasters;
    if (lines_[next].asks.empty() || lines_[next].asks.front().at > begin) continue;
    reader_ = next;
    reading_ = true;
  }
  if (reading_) {
    Line& one = lines_[reader_];
    const Burst& burst = one.asks.front();
    request.ar_valid = true;
    request.ar_address = burst.address;
    request.ar_length = burst.beats - 1;
    if (answer.ar_ready) {
      data_.push_back({reader_, burst.last, burst.beats});
      one.asks.pop_front();
      reading_ = false;
    }
  }
  offer_write(begin, answer, request);
  return request;
}

void CardSwitch::offer_write(Time begin, const AxiAnswer& answer, AxiRequest& request) {
  for (std::size_t step = 1; step <= kMasters && !writing_; ++step) {
    const std::size_t next = (writer_ + step) % kMasters;
    const Line& one = lines_[next];
    if (one.addresses.empty() || one.words.empty() || one.words.front().at > begin) continue;
    writer_ = next;
    writing_ = true;
  }
  if (!writing_) return;
  Line& one = lines_[writer_];
  const Burst& burst = one.addresses.front();
  request.aw_valid = !address_taken_;
  request.aw_address = burst.address;
  request.aw_length = burst.beats - 1;
  address_taken_ = address_taken_ || answer.aw_ready;
  request.w_valid = address_taken_ && !one.words.empty() && one.words.front().at <= begin;
  if (!request.w_valid) return;
  request.w_data = one.words.front().beat;
  request.w_last = beats_ + 1 == burst.beats;
  if (!answer.w_ready) return;
  one.words.pop_front();
  if (++beats_ == burst.beats) {
    beats_ = 0;
    address_taken_ = writing_ = false;
    answers_.push_back({writer_, burst.last, burst.beats});
    one.addresses.pop_front();
  }
  if (on_taken[writer_]) on_taken[writer_]();
}

void CardSwitch::take(const AxiAnswer& answer) {
  if (answer.b_valid) {
    const Owed owed = answers_.front();
    answers_.pop_front();
    if (owed.last) {
      std::deque<Done>& writings = lines_[owed.master].writings;
      const Done done = std::move(writings.front());
      writings.pop_front();
      done();
    }
  }
  if (!answer.r_valid) return;
  Owed& owed = data_.front();
  std::deque<Reading>& readings = lines_[owed.master].readings;
  Reading& reading = readings.front();
  const std::uint32_t offset = reading.done;
  reading.done += kHbmBeatBytes;
  const Data data = reading.data;
  if (reading.done == reading.bytes) readings.pop_front();
  if (--owed.beats == 0) data_.pop_front();
  data(offset, std::as_bytes(std::span(answer.r_data)));
}

}  // namespace wherry::sim::shell::load
