// SPDX-License-Identifier: Apache-2.0
#include "sim/bypass/rtl_function.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "bypass/generated/registers.hpp"

namespace wherry::sim {
namespace {

namespace reg = bypass::registers;

constexpr std::uint32_t kDw = 4;
constexpr unsigned kDwSize = 2;  ///< AxSIZE
/// More cycles than any step, except a timer, between two events at the ports (docs/design/bypass-core.md). Enough for
/// counters, too.
constexpr std::uint64_t kQuiet = 64;
enum Event : std::uint64_t { kEdge, kWanted };

bool is_one_dw(std::uint64_t offset, std::uint32_t bytes) { return offset % kDw + bytes <= kDw; }

}  // namespace

RtlFunction::RtlFunction(pcie::EventQueue& queue, const RtlFunctionOptions& options, InPlaceFunction* in_place,
                         StreamFunction* stream)
    : queue_(queue),
      options_(options),
      core_(options.core, in_place),
      stream_(stream),
      still_limit_(reg::kDoorbellTimerReset + kQuiet) {}

pcie::FunctionOptions RtlFunction::function_options() {
  pcie::FunctionOptions options{.name = "bypass card"};
  options.bars[bypass::kRegisterBar] = {.bytes = reg::kBytes};
  options.bars[bypass::kWindowBar] = {.bytes = bypass::kWindowBytes, .prefetchable = true};
  return options;
}

void RtlFunction::wake() {
  if (edge_scheduled_ || gone_) return;
  edge_scheduled_ = true;
  queue_.schedule((queue_.now() + kCycle - 1) / kCycle * kCycle, *this, kEdge);
}

// ---- from the link

void RtlFunction::on_write(const pcie::InboundWrite& write) {
  if (write.poisoned) {
    ++counters_.poisoned;
    return;
  }
  const auto offset = static_cast<std::uint32_t>(write.offset);
  const auto bytes = static_cast<std::uint32_t>(write.data.size());
  if (write.bar == bypass::kWindowBar) {
    const bool narrow = is_one_dw(offset, bytes);
    core_.window().post_write({.offset = offset, .bytes = bytes, .size = narrow ? kDwSize : kLineSize}, write.data);
  } else if (offset % kDw == 0 && bytes == kDw) {
    std::uint32_t value = 0;
    std::memcpy(&value, write.data.data(), kDw);
    accesses_.push_back({.offset = offset, .value = value, .reply = {}});
  } else {
    ++counters_.writes_refused;
  }
  set_ready();
  wake();
}

void RtlFunction::on_read(const pcie::InboundRead& read) {
  if (read.bar == bypass::kWindowBar) {
    waiting_.push_back({.from = read, .after = core_.window().writes_posted()});
  } else if (read.offset % kDw == 0 && read.bytes == kDw) {
    accesses_.push_back({.offset = static_cast<std::uint32_t>(read.offset), .value = {}, .reply = read});
  } else {
    ++counters_.reads_refused;
    port_->complete(read, {}, pcie::CompletionStatus::kCompleterAbort);
  }
  set_ready();
  wake();
}

std::uint64_t RtlFunction::post_local_write(const AxiBurst& burst, std::span<const std::byte> data) {
  core_.window().post_write(burst, data);
  set_ready();
  wake();
  return core_.window().writes_posted();
}

void RtlFunction::post_local_read(const AxiBurst& burst) {
  core_.window().post_read(burst, 0);
  under_way_.push_back({.from = {}, .local = true});
  set_ready();
  wake();
}

void RtlFunction::set_ready() {
  const RtlWindow& window = core_.window();
  const bool writes = window.writes_posted() - window.writes_answered() < options_.writes;
  const bool reads = waiting_.size() + under_way_.size() < options_.reads;
  if (writes == writes_ready_ && reads == reads_ready_) return;
  writes_ready_ = writes;
  reads_ready_ = reads;
  port_->set_ready(writes, reads);
}

void RtlFunction::on_reset(pcie::ResetKind kind) {
  const RtlWindow& window = core_.window();
  counters_.lost_in_reset += window.writes_posted() - window.writes_answered() + waiting_.size() + under_way_.size();
  waiting_.clear();
  under_way_.clear();
  local_answers_.clear();
  accesses_.clear();
  access_begun_ = false;
  core_.reset();
  writes_failed_ = 0;
  still_limit_ = reg::kDoorbellTimerReset + kQuiet;
  if (stream_ != nullptr) stream_->reset();
  gone_ = kind == pcie::ResetKind::kRemoved;
  writes_ready_ = reads_ready_ = true;
  port_->set_ready(true, true);
  wake();
}

// ---- the clock

void RtlFunction::on_event(std::uint64_t argument) {
  if (argument == kWanted) {
    if (wanted_ == queue_.now()) wanted_ = pcie::kNever;
    return wake();
  }
  edge_scheduled_ = false;
  if (gone_) return;
  edge();
  if (busy()) {
    edge_scheduled_ = true;
    queue_.schedule(queue_.now() + kCycle, *this, kEdge);
  }
}

void RtlFunction::edge() {
  issue();
  core_.cycle();
  ++counters_.cycles;
  answer();
  registers();
  while (const auto tail = core_.take_tail()) {
    std::array<std::byte, sizeof tail->value> data;
    std::memcpy(data.data(), &tail->value, data.size());
    ++counters_.tails;
    port_->post_write(tail->address, data);
  }
  if (stream_ != nullptr) {
    const pcie::Time next = std::max(stream_->turn(core_, queue_.now()), queue_.now() + kCycle);
    if (next < wanted_) {
      wanted_ = next;
      queue_.schedule(next, *this, kWanted);
    }
  }
  set_ready();
}

void RtlFunction::issue() {
  RtlWindow& window = core_.window();
  for (; !waiting_.empty() && window.writes_answered() >= waiting_.front().after; waiting_.pop_front()) {
    const Read& read = waiting_.front();
    if (read.from.bytes == 0) {  // a flush
      port_->complete(read.from, {});
      continue;
    }
    const auto offset = static_cast<std::uint32_t>(read.from.offset);
    const bool narrow = is_one_dw(offset, read.from.bytes);
    window.post_read({.offset = offset, .bytes = read.from.bytes, .size = narrow ? kDwSize : kLineSize}, 0);
    under_way_.push_back(read);
  }
}

void RtlFunction::answer() {
  RtlWindow& window = core_.window();
  for (auto answer = window.answer(); answer; answer = window.answer()) {
    const Read& read = under_way_.front();
    if (read.local) {
      local_answers_.push_back({.failed = answer->failed, .data = {answer->data.begin(), answer->data.end()}});
      if (answer->failed) ++counters_.reads_refused;
      under_way_.pop_front();
      window.pop_answer();
      continue;
    }
    if (answer->failed) ++counters_.reads_refused;
    port_->complete(read.from, answer->failed ? std::span<const std::byte>{} : answer->data,
                    answer->failed ? pcie::CompletionStatus::kCompleterAbort : pcie::CompletionStatus::kSuccess);
    under_way_.pop_front();
    window.pop_answer();
  }
  counters_.writes_refused += window.writes_failed() - writes_failed_;
  writes_failed_ = window.writes_failed();
}

void RtlFunction::registers() {
  if (access_begun_ && core_.register_access_ended()) {
    const Access& done = accesses_.front();
    const auto data = core_.register_data();
    if (done.reply) {
      std::array<std::byte, kDw> bytes{};
      if (data) std::memcpy(bytes.data(), &*data, kDw);
      port_->complete(*done.reply, data ? std::span<const std::byte>(bytes) : std::span<const std::byte>{},
                      data ? pcie::CompletionStatus::kSuccess : pcie::CompletionStatus::kCompleterAbort);
    }
    host_data_ = data.value_or(~std::uint32_t{0});
    ++host_accesses_ended_;
    if (done.value && done.offset == reg::kDoorbellTimerOffset) still_limit_ = *done.value + kQuiet;
    accesses_.pop_front();
    access_begun_ = false;
  }
  if (access_begun_ || accesses_.empty()) return;
  const Access& next = accesses_.front();
  if (next.value)
    core_.begin_register_write(next.offset, *next.value);
  else
    core_.begin_register_read(next.offset);
  access_begun_ = true;
}

bool RtlFunction::busy() {
  // A frame that waits at s_tx or m_rx without a transfer waits for the NIC, which will wake the clock.
  return core_.still() <= still_limit_ || !core_.window().idle() || !waiting_.empty() || !accesses_.empty();
}

// ---- the host's program

std::uint32_t RtlFunction::access(const Access& access) {
  if (gone_) return ~std::uint32_t{0};
  accesses_.push_back(access);
  const std::uint64_t end = host_accesses_ended_ + accesses_.size();
  wake();
  while (host_accesses_ended_ < end && !accesses_.empty() && queue_.step()) {
  }
  return host_data_;
}

std::uint32_t RtlFunction::read(std::uint32_t offset) { return access({.offset = offset, .value = {}, .reply = {}}); }

void RtlFunction::write(std::uint32_t offset, std::uint32_t value) {
  access({.offset = offset, .value = value, .reply = {}});
}

Status RtlFunction::read_window(std::uint32_t offset, std::span<std::byte> into) {
  static_cast<void>(offset), static_cast<void>(into);
  return {StatusCode::kUnsupported, "the window of the simulated card is reached over PCIe"};
}

Status RtlFunction::write_window(std::uint32_t offset, std::span<const std::byte> from) {
  static_cast<void>(offset), static_cast<void>(from);
  return {StatusCode::kUnsupported, "the window of the simulated card is reached over PCIe"};
}

void RtlFunction::pause(std::chrono::microseconds time) {
  queue_.run(queue_.now() + time.count() * pcie::kMicrosecond);
}

}  // namespace wherry::sim
