// SPDX-License-Identifier: Apache-2.0
#include "sim/shell/card_port.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "sim/shell/bursts.hpp"

namespace wherry::sim::shell {
namespace {
using namespace kv::rtl;
constexpr Time kCycle = kShellClock.cycles(1);
}  // namespace

CardPort::CardPort(pcie::EventQueue& queue, Trace& trace, HbmContent& content, const HbmTiming& timing,
                   std::uint32_t read_route, std::uint32_t write_route)
    : queue_(queue),
      trace_(trace),
      port_(content, timing, 1),
      read_route_(kShellClock.cycles(read_route)),
      write_route_(kShellClock.cycles(write_route)) {}

void CardPort::read(std::uint64_t address, std::uint32_t bytes, Data data) {
  trace_.card_reads.emplace_back();
  asked_.push_back(trace_.card_reads.size() - 1);
  readings_.push_back({bytes, 0, asked_.back(), std::move(data)});
  const Time at = kShellClock.edge(queue_.now()) + read_route_;
  cut_bursts(address, bytes, [&](auto from, auto beats, bool last) { asks_.push_back({from, beats, at, last}); });
  wake();
}

void CardPort::write(std::uint64_t address, std::uint32_t bytes, Done done) {
  writings_.push_back(std::move(done));
  cut_bursts(address, bytes, [&](auto from, auto beats, bool last) { addresses_.push_back({from, beats, 0, last}); });
}

void CardPort::write_data(std::span<const std::byte> data) {
  const Time at = kShellClock.edge(queue_.now()) + write_route_;
  for (std::size_t i = 0; i < data.size(); i += kHbmBeatBytes) {
    Word word{{}, at};
    std::memcpy(word.beat.data(), data.data() + i, kHbmBeatBytes);
    words_.push_back(word);
  }
  wake();
}

bool CardPort::idle() const noexcept { return asks_.empty() && words_.empty() && port_.quiet(); }

void CardPort::wake() {
  if (ticking_) return;
  ticking_ = true;
  const Time begin = kShellClock.edge(queue_.now());
  const auto cycle = static_cast<kv::Cycles>(begin / kCycle);
  if (port_.quiet() && cycle > port_.now()) port_.skip(cycle - port_.now());
  queue_.schedule(begin + kCycle, *this);
}

/// The clock edge at the end of a cycle.
void CardPort::on_event(std::uint64_t argument) {
  static_cast<void>(argument);
  const AxiAnswer answer = port_.answer();
  const AxiRequest request = offer(queue_.now() - kCycle, answer);
  port_.step(request);
  take(answer);
  ticking_ = !idle();
  if (ticking_) queue_.schedule(queue_.now() + kCycle, *this);
}

/// Decides what is driven in the cycle that began at `begin`, and what of it is taken.
AxiRequest CardPort::offer(Time begin, const AxiAnswer& answer) {
  AxiRequest request;
  request.r_ready = request.b_ready = true;
  if (!asks_.empty() && asks_.front().at <= begin) {
    request.ar_valid = true;
    request.ar_address = asks_.front().address;
    request.ar_length = asks_.front().beats - 1;
    if (answer.ar_ready) {
      Span& span = trace_.card_reads[asked_.front()];
      span.first = std::min(span.first, queue_.now() - read_route_);
      if (asks_.front().last) asked_.pop_front();
      asks_.pop_front();
    }
  }
  if (addresses_.empty() || words_.empty() || words_.front().at > begin) return request;
  Burst& burst = addresses_.front();
  request.aw_valid = !address_taken_;
  request.aw_address = burst.address;
  request.aw_length = burst.beats - 1;
  address_taken_ = address_taken_ || answer.aw_ready;
  request.w_valid = address_taken_;
  request.w_data = words_.front().beat;
  request.w_last = beats_ + 1 == burst.beats;
  if (!request.w_valid || !answer.w_ready) return request;
  trace_.see(Place::kCardWrite, queue_.now() - write_route_);
  words_.pop_front();
  if (++beats_ == burst.beats) {
    beats_ = 0;
    address_taken_ = false;
    answers_.push_back(burst.last);
    addresses_.pop_front();
  }
  return request;
}

void CardPort::take(const AxiAnswer& answer) {
  if (answer.b_valid) {
    trace_.see(Place::kCardWrite, queue_.now());
    const bool last = answers_.front();
    answers_.pop_front();
    if (last) {
      const Done done = std::move(writings_.front());
      writings_.pop_front();
      done();
    }
  }
  if (!answer.r_valid) return;
  Reading& reading = readings_.front();
  const std::uint32_t offset = reading.done;
  reading.done += kHbmBeatBytes;
  trace_.card_reads[reading.span].last = queue_.now();
  const Data data = reading.data;
  if (reading.done == reading.bytes) readings_.pop_front();
  data(offset, std::as_bytes(std::span(answer.r_data)));
}

}  // namespace wherry::sim::shell
