// SPDX-License-Identifier: Apache-2.0
#include "sim/memory/traffic.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace wherry::sim::memory {

std::uint32_t pattern_word(std::uint64_t address) noexcept {
  return static_cast<std::uint32_t>(mix64(address / 4 + 1));
}

TrafficManager::TrafficManager(const Load& load) : load_(load), random_(load.seed), offsets_(load.streams) {
  present();
}

std::uint64_t TrafficManager::next(std::uint64_t& sequential) {
  const std::uint64_t bytes = load_.beats * kBeatBytes;
  if (load_.streams > 1) {
    std::uint64_t& offset = offsets_[turn_];
    const std::uint64_t address = load_.base + turn_ * load_.stride + offset;
    offset = (offset + bytes) % (load_.stride / bytes * bytes);
    turn_ = (turn_ + 1) % load_.streams;
    return address;
  }
  if (load_.random) return load_.base + random_.below(static_cast<std::uint32_t>(load_.region / bytes)) * bytes;
  const std::uint64_t address = load_.base + sequential;
  sequential = (sequential + bytes) % load_.region;
  return address;
}

/// Drives its outputs of the cycle that begins.
void TrafficManager::present() {
  const std::uint32_t length = load_.beats - 1;
  out_.r_ready = out_.b_ready = true;
  if (!stopped_ && load_.reads && !out_.ar_valid && reads_.size() < load_.outstanding) {
    out_.ar_valid = true;
    out_.ar = {next(next_read_), length};
  }
  if (!stopped_ && load_.writes && !out_.aw_valid && writes_ < load_.outstanding && addresses_.size() < 4) {
    out_.aw_valid = true;
    out_.aw = {next(next_write_), length};
  }
  out_.w_valid = !addresses_.empty();
  if (!out_.w_valid || filled_) return;
  filled_ = true;
  out_.w_last = sent_ == length;
  const std::uint64_t at = addresses_.front() + sent_ * kBeatBytes;
  for (std::size_t i = 0; i < out_.w_data.size(); ++i) out_.w_data[i] = pattern_word(at + 4 * i);
}

void TrafficManager::step(const AxiAnswer& in) {
  if (out_.ar_valid && in.ar_ready) {
    reads_.push_back({out_.ar.address, now_});
    out_.ar_valid = false;
  }
  if (in.r_valid) {
    Read& read = reads_.front();
    if (verify_) {
      const std::uint64_t at = read.address + read.done * kBeatBytes;
      for (std::size_t i = 0; i < in.r_data.size(); ++i)
        if (in.r_data[i] != pattern_word(at + 4 * i)) {
          ++wrong_;
          break;
        }
    }
    ++read.done;
    read_bytes_ += kBeatBytes;
    if (in.r_last) {
      latencies_.push_back(now_ - read.asked);
      reads_.pop_front();
    }
  }
  if (out_.w_valid && in.w_ready) {
    written_bytes_ += kBeatBytes;
    filled_ = false;
    if (++sent_ == load_.beats) {
      sent_ = 0;
      addresses_.pop_front();
    }
  }
  if (out_.aw_valid && in.aw_ready) {
    addresses_.push_back(out_.aw.address);
    ++writes_;
    out_.aw_valid = false;
  }
  if (in.b_valid) --writes_;
  ++now_;
  present();
}

std::uint64_t TrafficManager::median_latency() const {
  if (latencies_.empty()) return 0;
  std::vector<std::uint64_t> sorted = latencies_;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2), sorted.end());
  return sorted[sorted.size() / 2];
}

void TrafficManager::forget() {
  read_bytes_ = written_bytes_ = 0;
  latencies_.clear();
}

std::vector<Cell> comparison_table() {
  std::vector<Cell> cells;
  const auto add = [&cells](std::string name, const Load& load) { cells.push_back({std::move(name), load, {}}); };
  for (const bool write : {false, true}) {
    const char* verb = write ? "write" : "read";
    const Load load{.reads = !write, .writes = write};
    for (const std::uint32_t beats : {1U, 8U, 16U, 64U})
      for (const bool random : {false, true}) {
        Load one = load;
        one.beats = beats;
        one.random = random;
        add(fmt::format("{} {} B {}", verb, beats * kBeatBytes, random ? "random" : "stream"), one);
      }
    for (const std::uint32_t beats : {8U, 16U, 64U})
      for (const bool same : {true, false}) {
        Load one = load;
        one.beats = beats;
        one.streams = 4;
        // With rows of 8 KiB and 16 banks, 1 MiB further is another row of the same bank, 40 KiB more is another bank.
        one.stride = (1 << 20) + (same ? 0 : 5 * 8192);
        add(fmt::format("{} {} B 4 streams, {}", verb, beats * kBeatBytes, same ? "same bank" : "other banks"), one);
      }
  }
  add("both 1024 B", {.reads = true, .writes = true});
  const Load core{.reads = true, .beats = 1, .random = true, .outstanding = 1, .base = 4 << 20};
  cells.push_back({"read 1024 B beside a core", {.reads = true}, core});
  cells.push_back({"write 1024 B beside a core", {.writes = true}, core});
  return cells;
}

Rates measure(AxiBus& bus, const Cell& cell, std::uint64_t cycle_ps) {
  constexpr std::uint64_t kWarmUp = 4'000, kCounted = 24'000, kLimit = 100'000;
  TrafficManager first(cell.first), second(cell.second.value_or(Load{}));
  const auto step = [&] {
    const std::array<AxiRequest, 2> requests{first.request(), second.request()};
    const AxiAnswer a = bus.answer(0), b = bus.answer(1);
    bus.step(requests);
    first.step(a);
    second.step(b);
  };
  for (std::uint64_t i = 0; i < kWarmUp; ++i) step();
  first.forget();
  second.forget();
  for (std::uint64_t i = 0; i < kCounted; ++i) step();
  const double ns = static_cast<double>(kCounted * cycle_ps) / 1e3;
  const auto rate = [ns](std::uint64_t bytes) { return static_cast<double>(bytes) / ns; };
  const Rates rates{rate(first.read_bytes()),     rate(first.written_bytes()), rate(second.read_bytes()),
                    rate(second.written_bytes()), first.median_latency(),      second.median_latency()};
  first.stop();
  second.stop();
  for (std::uint64_t i = 0; i < kLimit && !(first.quiet() && second.quiet()); ++i) step();
  return rates;
}

}  // namespace wherry::sim::memory
