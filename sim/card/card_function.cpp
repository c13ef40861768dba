// SPDX-License-Identifier: Apache-2.0
#include "sim/card/card_function.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "dma/card.hpp"
#include "dma/generated/registers.hpp"
#include "sim/card/paced_backend.hpp"
#include "sim/memory/bram.hpp"
#include "sim/memory/ddr4.hpp"

namespace wherry::sim::card {
namespace {

namespace reg = wherry::dma::registers;
using wherry::dma::kBellBar;
using wherry::dma::kBellBytes;
using wherry::dma::kRegisterBar;

constexpr std::uint32_t kWord = 4;
/// More cycles than any step, except a timer, between two events at the ports, and than a reset's 540
/// (docs/design/dma.md).
constexpr std::uint64_t kQuiet = 1024;
constexpr std::uint64_t kTickCycles = 256;   ///< TickBits of the engine as it is Verilated
constexpr std::uint64_t kTimerCycles = 8;    ///< units of moderation.timer
constexpr std::size_t kAccesses = 64;        ///< chosen: then TLPs wait in the endpoint's receive buffer
constexpr std::uint32_t kQueueBytes = 4096;  ///< chosen: what the hard block has queued for the link, at most
/// A token's low bits are the tag; above it is a count of the tag's uses.
constexpr unsigned kTagBits = 8;

Error error_of(pcie::CompletionStatus status) {
  switch (status) {
    case pcie::CompletionStatus::kSuccess:
      return Error::kNone;
    case pcie::CompletionStatus::kUnsupportedRequest:
      return Error::kUnsupported;
    case pcie::CompletionStatus::kPoisoned:
      return Error::kPoisoned;
    case pcie::CompletionStatus::kTimeout:
      return Error::kTimeout;
    case pcie::CompletionStatus::kCompleterAbort:
    case pcie::CompletionStatus::kAborted:
      return Error::kAborted;
  }
  return Error::kAborted;
}

unsigned size_code(std::uint32_t bytes) { return static_cast<unsigned>(std::countr_zero(bytes / 128)); }

}  // namespace

CardFunction::CardFunction(pcie::EventQueue& queue, const CardOptions& options)
    : queue_(queue), options_(options), core_(options.seed), random_(options.seed ^ 0xCA4D) {
  power_on();
}

CardFunction::~CardFunction() = default;

void CardFunction::power_on() {
  // The engine's accesses end here. The memory keeps its content.
  if (options_.bus != nullptr) {
    options_.bus->managers_reset();
    core_.reset(*options_.bus);
  } else {
    make_memory();
    core_.reset(*memory_);
  }
  for (Request& request : requests_) request = {};
  open_ = 0;
  write_.clear();
  held_read_.reset();
  write_held_ = false;
  longest_timer_ = woken_ = 0;
}

void CardFunction::make_memory() {
  if (options_.memory == MemoryKind::kBram) {
    backend_ = std::make_unique<memory::Bram>(options_.memory_bytes);
  } else {
    backend_ = std::make_unique<memory::Ddr4>();
    paced_ = std::make_unique<PacedBackend>(*backend_, kCycle);
  }
  memory::Backend& backend = paced_ ? *paced_ : *backend_;
  memory_ = std::make_unique<memory::AxiMemory>(
      backend, content_, 1,
      options_.memory == MemoryKind::kBram ? memory::kBramPort : memory::AxiPortSettings{.addresses = 4});
}

pcie::FunctionOptions CardFunction::function_options() {
  pcie::FunctionOptions options{.name = "dma card"};
  options.bars[kRegisterBar] = {.bytes = reg::kBytes};
  options.bars[kBellBar] = {.bytes = kBellBytes, .prefetchable = true};
  options.queue_bytes = kQueueBytes;
  return options;
}

std::uint64_t CardFunction::memory_bytes() const noexcept {
  return backend_ ? backend_->bytes() : options_.memory_bytes;
}

std::string CardFunction::violation() const { return memory_ ? memory_->violation() : ""; }

void CardFunction::configuration_changed() { wake(); }

void CardFunction::wake() {
  woken_ = core_.now();
  if (edge_scheduled_ || gone_) return;
  edge_scheduled_ = true;
  queue_.schedule((queue_.now() + kCycle - 1) / kCycle * kCycle, *this, 0);
}

// ---- from the link

void CardFunction::on_write(const pcie::InboundWrite& write) {
  if (resetting()) {
    ++counters_.lost_in_reset;
    return;
  }
  if (write.poisoned) {
    ++counters_.poisoned;
    return;
  }
  const auto offset = static_cast<std::uint32_t>(write.offset);
  const auto bytes = static_cast<std::uint32_t>(write.data.size());
  if (write.bar == kBellBar) {
    for (std::uint32_t done = 0; done < bytes;) {
      BellWrite bell{.offset = static_cast<std::uint32_t>((offset + done) % (reg::kRingControlCount * dma::kLineBytes)),
                     .bytes = 0};
      bell.bytes = std::min(bytes - done, static_cast<std::uint32_t>(dma::kLineBytes - bell.offset % dma::kLineBytes));
      std::memcpy(bell.data.data(), write.data.data() + done, bell.bytes);
      done += bell.bytes;
      accesses_.push_back({.bell = bell, .value = {}, .reply = {}});
    }
  } else if (offset % kWord == 0 && bytes == kWord) {
    std::uint32_t value = 0;
    std::memcpy(&value, write.data.data(), kWord);
    accesses_.push_back({.bell = {}, .offset = offset, .value = value, .reply = {}});
  } else {
    ++counters_.refused;
  }
  set_ready();
  wake();
}

void CardFunction::on_read(const pcie::InboundRead& read) {
  if (resetting()) {  // memory space is off
    ++counters_.lost_in_reset;
    port_->complete(read, {}, pcie::CompletionStatus::kUnsupportedRequest);
    return;
  }
  const bool word = read.bar == kRegisterBar && read.offset % kWord == 0 && read.bytes == kWord;
  accesses_.push_back({.bell = {}, .offset = static_cast<std::uint32_t>(read.offset), .value = {}, .reply = read});
  if (!word) ++counters_.refused;
  set_ready();
  wake();
}

void CardFunction::set_ready() {
  const bool ready = accesses_.size() < kAccesses;
  if (ready == ready_) return;
  ready_ = ready;
  port_->set_ready(ready, ready);
}

void CardFunction::on_read_data(pcie::Token token, std::uint32_t offset, std::span<const std::byte> data) {
  complete(token, offset, data, Error::kNone);
}

void CardFunction::on_poisoned_data(pcie::Token token, std::uint32_t offset, std::span<const std::byte> data) {
  complete(token, offset, data, Error::kPoisoned);
}

void CardFunction::complete(pcie::Token token, std::uint32_t offset, std::span<const std::byte> data, Error error) {
  const auto tag = static_cast<std::uint8_t>(token);
  Request& request = requests_[tag];
  if (request.number != token >> kTagBits || !request.open) {
    ++counters_.late;
    return;
  }
  const bool final_ = offset + data.size() == request.bytes;
  for (std::size_t at = 0; at < data.size(); at += dma::kLineBytes) {
    CompletionBeat& beat = core_.completions.emplace_back();
    beat.tag = tag;
    beat.first = at == 0;
    beat.bytes = static_cast<std::uint32_t>(std::min(data.size() - at, dma::kLineBytes));
    beat.last = at + beat.bytes == data.size();
    beat.final_ = beat.last && final_;
    beat.error = error;
    std::memcpy(beat.data.data(), data.data() + at, beat.bytes);
  }
  counters_.most_lines = std::max<std::uint64_t>(counters_.most_lines, core_.completions.size());
  if (final_) {
    request.open = false;
    --open_;
  }
  wake();
}

void CardFunction::end(Request& request, std::uint8_t tag, Error error) {
  core_.completions.push_back(
      {.tag = tag, .first = true, .last = true, .final_ = true, .error = error, .bytes = 0, .data = {}});
  request.open = false;
  --open_;
  wake();
}

void CardFunction::on_read_done(pcie::Token token, pcie::CompletionStatus status) {
  if (status == pcie::CompletionStatus::kSuccess) return;  // its data said all
  const auto tag = static_cast<std::uint8_t>(token);
  Request& request = requests_[tag];
  if (request.number != token >> kTagBits || !request.open) {
    if (status != pcie::CompletionStatus::kPoisoned) ++counters_.late;
    return;
  }
  if (status == pcie::CompletionStatus::kAborted && options_.reads_at_reset == ReadsAtReset::kForgotten) return;
  end(request, tag, error_of(status));
}

void CardFunction::on_reset(pcie::ResetKind kind) {
  counters_.lost_in_reset += accesses_.size();
  accesses_.clear();
  access_begun_ = false;
  msix_enable = msix_mask = false;
  ready_ = true;
  port_->set_ready(true, true);
  if (kind == pcie::ResetKind::kFunctionLevel) {
    core_.settings.reset_function = true;
    return wake();
  }
  gone_ = kind == pcie::ResetKind::kRemoved;
  power_on();
  if (!gone_) wake();
}

void CardFunction::finish_reset() {
  core_.settings.reset_function = false;
  core_.packets.reset();
  longest_timer_ = 0;
}

// ---- the clock

void CardFunction::on_event(std::uint64_t argument) {
  static_cast<void>(argument);
  edge_scheduled_ = false;
  if (gone_) return;
  edge();
  if (!busy()) return;
  edge_scheduled_ = true;
  queue_.schedule(queue_.now() + kCycle, *this, 0);
}

void CardFunction::apply_settings() {
  EngineSettings& settings = core_.settings;
  settings.bus_master = port_->bus_master();
  settings.msix_enable = msix_enable;
  settings.msix_mask = msix_mask;
  settings.mrrs = size_code(port_->mrrs());
  settings.mps = size_code(port_->mps());
  settings.timeout = options_.timeout;
}

void CardFunction::edge() {
  const auto pause = [&] { return options_.pauses != 0 && random_.below(1'000'000) < options_.pauses; };
  apply_settings();
  // With bus mastering off, requests wait here. While the function is in reset, the engine's output is dropped.
  const bool passes = core_.settings.bus_master || resetting();
  if (held_read_ && passes) take_read(*held_read_);
  if (write_held_ && passes) take_beat({.first = false, .last = true, .bytes = 0, .address = 0, .data = {}});
  core_.take_reads = passes && !held_read_ && !pause();
  core_.take_writes = passes && !write_held_ && !pause();
  const EngineOutput& out = core_.cycle();
  ++counters_.cycles;
  if (out.read) take_read(*out.read);
  if (out.write) take_beat(*out.write);
  if (out.unexpected) ++counters_.unexpected;
  if (out.timed_out) ++counters_.timed_out;
  if (resetting() && out.reset_done) finish_reset();
  if (!resetting()) accesses();
  set_ready();
}

void CardFunction::accesses() {
  if (access_begun_ && core_.register_ended()) {
    const Access& done = accesses_.front();
    if (done.reply) {
      const auto data = core_.register_data();
      std::array<std::byte, kWord> bytes{};
      if (data) std::memcpy(bytes.data(), &*data, kWord);
      port_->complete(*done.reply, data ? std::span<const std::byte>(bytes) : std::span<const std::byte>{},
                      data ? pcie::CompletionStatus::kSuccess : pcie::CompletionStatus::kCompleterAbort);
    }
    accesses_.pop_front();
    access_begun_ = false;
  }
  while (!access_begun_ && !accesses_.empty()) {
    const Access& next = accesses_.front();
    if (next.bell) {
      core_.bells.push_back(*next.bell);
      ++counters_.bells;
      accesses_.pop_front();
      continue;
    }
    if (!core_.bells.empty()) return;  // in order
    if (next.value) {
      for (std::uint32_t ring = 0; ring < reg::kModerationCount; ++ring)
        if (next.offset == reg::moderation_offset(ring))
          longest_timer_ =
              std::max<std::uint64_t>(longest_timer_, reg::kModerationTimer.get(*next.value) * kTimerCycles);
      core_.begin_register_write(next.offset, *next.value);
    } else if (next.reply->bar == kRegisterBar && next.reply->bytes == kWord && next.offset % kWord == 0) {
      core_.begin_register_read(next.offset);
    } else if (next.reply->bytes == 0) {  // a flush
      port_->complete(*next.reply, {});
      accesses_.pop_front();
      continue;
    } else {
      port_->complete(*next.reply, {}, pcie::CompletionStatus::kCompleterAbort);
      accesses_.pop_front();
      continue;
    }
    access_begun_ = true;
  }
}

void CardFunction::take_read(ReadRequest read) {
  Request& request = requests_[read.tag];
  if (!held_read_) {
    if (request.open) --open_;  // the engine gave it up
    request = {.number = ++uses_, .bytes = read.bytes, .open = true};
    ++open_;
  }
  held_read_.reset();
  if (resetting()) {  // the hard block drops it
    ++counters_.lost_in_reset;
    if (options_.reads_at_reset == ReadsAtReset::kReported) end(request, read.tag, Error::kAborted);
    return;
  }
  if (!port_->try_read({.address = read.address, .bytes = read.bytes, .token = request.number << kTagBits | read.tag}))
    held_read_ = read;
  else
    ++counters_.reads;
}

void CardFunction::take_beat(const WriteBeat& beat) {
  if (!write_held_) {
    if (beat.first) {
      write_.clear();
      write_address_ = beat.address;
      write_bytes_ = beat.bytes;
    }
    write_.insert(write_.end(), beat.data.begin(), beat.data.end());
    if (!beat.last) return;
    write_.resize(write_bytes_);
  }
  write_held_ = false;
  if (resetting()) {
    ++counters_.lost_in_reset;
    return;
  }
  if (!port_->try_write(write_address_, write_))
    write_held_ = true;
  else
    ++counters_.writes;
}

bool CardFunction::busy() const {
  const bool may_ask = port_->bus_master() || resetting();
  if (held_read_ || write_held_) return may_ask;  // on_room() wakes as well
  if (!accesses_.empty() || resetting() || !core_.completions.empty() || !core_.bells.empty()) return true;
  std::uint64_t quiet = std::max(kQuiet, longest_timer_ + kQuiet);
  // The engine's time-out ends a lost request, at most one tick late, and another one frees its tag.
  if (open_ != 0 && options_.timeout != 0) quiet += 2 * (options_.timeout + 2) * kTickCycles;
  return std::min(core_.still(), core_.now() - woken_) <= quiet;
}

}  // namespace wherry::sim::card
