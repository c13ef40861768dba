// SPDX-License-Identifier: Apache-2.0
#include "sim/memory/axi_memory.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace wherry::sim::memory {

void AxiPort::violate(std::string text) {
  if (violation_.empty()) violation_ = fmt::format("AXI4, port {}, cycle {}: {}", number_, backend_.now(), text);
}

/// A3.2.1: offered values must not change until they are taken.
void AxiPort::check(const AxiRequest& in) {
  const AxiRequest& was = before_;
  if (offered_) {
    if (was.ar_valid && (!in.ar_valid || in.ar != was.ar))
      violate(fmt::format("the read of {:#x} was offered, not taken, and changed", was.ar.address));
    if (was.aw_valid && (!in.aw_valid || in.aw != was.aw))
      violate(fmt::format("the write to {:#x} was offered, not taken, and changed", was.aw.address));
    if (was.w_valid &&
        (!in.w_valid || in.w_last != was.w_last || in.w_strobes != was.w_strobes || in.w_data != was.w_data))
      violate("a beat of data was offered, not taken, and changed");
  }
  const bool ar = in.ar_valid && !out_.ar_ready, aw = in.aw_valid && !out_.aw_ready, w = in.w_valid && !out_.w_ready;
  offered_ = ar || aw || w;
  if (!offered_) return;
  before_ = in;
  before_.ar_valid = ar;
  before_.aw_valid = aw;
  before_.w_valid = w;
}

/// Checks A3.4.1, and for bursts that this port does not support.
void AxiPort::check_burst(std::string_view channel, const AxiAddress& burst) {
  const std::uint64_t beat = std::uint64_t{1} << burst.size;
  const std::uint64_t first = burst.address / beat * beat, end = first + (burst.length + 1) * beat;
  if (burst.length >= kAxiBeats)
    violate(fmt::format("{} at {:#x}: {} beats, at most 256", channel, burst.address, burst.length + 1));
  if (burst.size > 6 || (burst.size < 6 && burst.length != 0))
    violate(fmt::format("{} at {:#x}: {} beats of {} bytes; several have 64 bytes here", channel, burst.address,
                        burst.length + 1, beat));
  if (first / kAxiBoundary != (end - 1) / kAxiBoundary)
    violate(fmt::format("{} at {:#x}, {} beats: crosses a 4 KiB boundary", channel, burst.address, burst.length + 1));
}

bool AxiPort::wants_read() const noexcept { return !reads_.empty() && incoming_.size() < settings_.read_beats; }

bool AxiPort::wants_write() const noexcept {
  return !writes_.empty() && data_offered_ < data_.size() && data_[data_offered_].usable <= backend_.now();
}

bool AxiPort::offer_read() {
  Burst& burst = reads_.front();
  const bool last = burst.offered == burst.address.length;
  const std::uint64_t at = (burst.address.address & ~(kBeatBytes - 1)) + burst.offered * kBeatBytes;
  ReadBeat beat{burst.address.id, last, burst.error};
  if (burst.error)
    beat.ready = backend_.now() + 1;
  else if (!backend_.offer({at, number_, false, first_incoming_ + incoming_.size()}))
    return false;
  incoming_.push_back(beat);
  ++burst.offered;
  if (last) reads_.pop_front();
  return last;
}

bool AxiPort::offer_write() {
  Burst& burst = writes_.front();
  const bool last = burst.offered == burst.address.length;
  const std::uint64_t at = (burst.address.address & ~(kBeatBytes - 1)) + burst.offered * kBeatBytes;
  WriteBeat& beat = data_[data_offered_];
  const Access access{at, number_, true, first_data_ + data_offered_};
  beat.answer = burst.number;
  if (!burst.error && !backend_.offer(access)) return false;
  ++data_offered_;
  ++burst.offered;
  if (last) writes_.pop_front();
  if (burst.error) performed({access, backend_.now() + 1});
  return last;
}

void AxiPort::offer() {
  const bool read = wants_read(), write = wants_write();
  if (!settings_.one_way) {
    if (write) (void)offer_write();
    if (read) (void)offer_read();
    return;
  }
  // The turn changes at the end of a burst, or when its owner has no request. This takes effect in the next cycle.
  const bool mine = write_turn_ ? write : read, other = write_turn_ ? read : write;
  const bool ended = mine && (write_turn_ ? offer_write() : offer_read());
  if ((ended || !mine) && other) write_turn_ = !write_turn_;
}

void AxiPort::performed(const Done& done) {
  if (!done.access.write) {
    ReadBeat& beat = incoming_[done.access.tag - first_incoming_];
    beat.data = content_.read(done.access.address);
    beat.ready = done.ready;
    return;
  }
  WriteBeat& beat = data_[done.access.tag - first_data_];
  Answer& answer = answers_[beat.answer - first_answer_];
  if (!answer.error) content_.write(done.access.address, beat.data, beat.strobes);
  beat.freed = done.ready;
  --answer.beats;
  answer.due = std::max(answer.due, done.ready + settings_.answer);
}

void AxiPort::present() {
  const Cycle now = backend_.now();
  while (!data_.empty() && data_.front().freed <= now) {
    data_.pop_front();
    ++first_data_;
    --data_offered_;
  }
  if (!reads_.empty() || !writes_.empty()) offer();
  if (!out_.r_valid && !incoming_.empty() && incoming_.front().ready <= now) {
    const ReadBeat& beat = incoming_.front();
    out_.r_valid = true;
    out_.r_last = beat.last;
    out_.r_error = beat.error;
    out_.r_id = beat.id;
    out_.r_data = beat.data;
  }
  if (!out_.b_valid && !answers_.empty() && answers_.front().beats == 0 && answers_.front().due <= now) {
    out_.b_valid = true;
    out_.b_error = answers_.front().error;
    out_.b_id = answers_.front().id;
  }
  out_.ar_ready = reads_.size() < settings_.addresses;
  out_.aw_ready = writes_.size() < settings_.addresses;
  out_.w_ready = data_.size() < settings_.write_beats;
}

void AxiPort::take_data(const AxiRequest& in) {
  data_.push_back({in.w_data, in.w_strobes, backend_.now()});
  ++beats_;
  if (!in.w_last) {
    if (beats_ >= kAxiBeats) violate("256 beats of data without WLAST");
    return;
  }
  expected_.push_back(beats_);
  beats_ = 0;
}

/// Called after the memory's cycle, so backend_.now() is the next cycle.
void AxiPort::take(const AxiRequest& in) {
  check(in);
  const auto outside = [this](const AxiAddress& burst) {
    return (burst.address & ~(kBeatBytes - 1)) + (burst.length + 1) * kBeatBytes > backend_.bytes();
  };
  if (out_.r_valid && in.r_ready) {
    out_.r_valid = false;
    incoming_.pop_front();
    ++first_incoming_;
  }
  if (out_.b_valid && in.b_ready) {
    out_.b_valid = false;
    answers_.pop_front();
    ++first_answer_;
  }
  if (in.ar_valid && out_.ar_ready) {
    check_burst("read", in.ar);
    reads_.push_back({in.ar, outside(in.ar)});
  }
  if (in.w_valid && out_.w_ready) take_data(in);
  if (in.aw_valid && out_.aw_ready) {
    check_burst("write", in.aw);
    writes_.push_back({in.aw, outside(in.aw), 0, first_answer_ + answers_.size()});
    answers_.push_back({in.aw.id, outside(in.aw), in.aw.length + 1, 0});
    lengths_.push_back(in.aw.length + 1);
  }
  while (!expected_.empty() && !lengths_.empty()) {
    if (expected_.front() != lengths_.front())
      violate(fmt::format("WLAST after {} beats of a burst of {}", expected_.front(), lengths_.front()));
    expected_.pop_front();
    lengths_.pop_front();
  }
}

AxiMemory::AxiMemory(Backend& backend, Content& content, std::uint32_t ports, const AxiPortSettings& settings)
    : backend_(backend) {
  for (std::uint32_t i = 0; i < ports; ++i) ports_.emplace_back(backend, content, i, settings);
  present();
}

void AxiMemory::present() {
  const auto count = static_cast<std::uint32_t>(ports_.size());
  for (std::uint32_t i = 0; i < count; ++i) ports_[(first_ + i) % count].present();
  first_ = (first_ + 1) % count;
}

void AxiMemory::step(std::span<const AxiRequest> in) {
  backend_.cycle();
  for (const Done& done : backend_.done()) ports_[done.access.port].performed(done);
  for (std::size_t i = 0; i < ports_.size(); ++i) ports_[i].take(in[i]);
  present();
}

std::string AxiMemory::violation() const {
  for (const AxiPort& port : ports_)
    if (!port.violation().empty()) return port.violation();
  return {};
}

bool AxiMemory::quiet() const {
  return std::all_of(ports_.begin(), ports_.end(), [](const AxiPort& port) { return port.quiet(); });
}

}  // namespace wherry::sim::memory
