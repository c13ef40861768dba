// SPDX-License-Identifier: Apache-2.0
#include "probe/driver.hpp"

#include <fmt/core.h>
#include <sched.h>

#include <cmath>

#include "base/cpu.hpp"
#include "base/try.hpp"
#include "probe/cores.hpp"

namespace wherry::probe {
namespace {

constexpr std::uint64_t kPicoseconds = 1000;

/// Number of unsuccessful polls before the thread yields. It is low if both sides must share one core.
std::uint64_t polls_before_yield() { return cores().count > 1 ? 4096 : 16; }

}  // namespace

Driver::Driver(Clock& clock, Path& path, const Work& work, const std::atomic<bool>& stop)
    : clock_(clock),
      path_(path),
      stop_(stop),
      own_time_(path.info().provenance != Provenance::kMeasured),
      units_(work.units),
      done_(work.slots),
      begun_ns_(work.slots),
      busy_(work.slots),
      yield_every_(polls_before_yield()) {
  free_.reserve(work.slots);
  for (unsigned slot = work.slots; slot-- > 0;) free_.push_back(slot);
}

bool Driver::post(std::uint64_t begun_ns) {
  const unsigned slot = free_.back();
  begun_ns_[slot] = begun_ns;
  if (!path_.try_post(slot)) return false;
  busy_[slot] = 1;
  free_.pop_back();
  return true;
}

Status Driver::take(Histogram* each) {
  WHERRY_ASSIGN(const unsigned count, path_.poll(done_));
  if (count == 0) return idle();
  if (count > done_.size())
    return {StatusCode::kInternal,
            fmt::format("path {} says that {} of {} transfers have ended", path_.info().id, count, done_.size())};
  empty_polls_ = 0;
  const std::uint64_t now = each != nullptr ? now_ns() : 0;
  for (unsigned i = 0; i < count; ++i) {
    const unsigned slot = done_[i];
    if (slot >= busy_.size() || busy_[slot] == 0)
      return {StatusCode::kInternal,
              fmt::format("path {} says that transfer {} has ended, which is not under way", path_.info().id, slot)};
    busy_[slot] = 0;
    free_.push_back(slot);
    if (each != nullptr) each->add((now - begun_ns_[slot]) * kPicoseconds / units_);
  }
  ended_ += count;
  return ok_status();
}

Status Driver::idle() {
  if (++empty_polls_ % yield_every_ != 0) {
    cpu_relax();
    return ok_status();
  }
  if (stop_.load(std::memory_order_relaxed)) return {StatusCode::kCancelled, "stopped"};
  const std::uint64_t now = clock_.now_ns();
  if (empty_polls_ == yield_every_) waiting_since_ns_ = now;
  if (now - waiting_since_ns_ > kPatienceNs)
    return {StatusCode::kDeadlineExceeded,
            fmt::format("path {}: no transfer has ended for {} s", path_.info().id, kPatienceNs / 1'000'000'000)};
  sched_yield();
  return ok_status();
}

Result<std::uint64_t> Driver::closed_loop(std::uint64_t transfers, Histogram* each) {
  ended_ = 0;
  std::uint64_t posted = 0;
  const std::uint64_t begin = now_ns();
  std::uint64_t now = begin;
  while (ended_ < transfers) {
    while (posted < transfers && !free_.empty()) {
      if (each != nullptr) now = now_ns();
      if (!post(now)) break;
      ++posted;
    }
    WHERRY_TRY(take(each));
  }
  return now_ns() - begin;
}

Result<std::uint64_t> Driver::open_loop(std::uint64_t transfers, double interval_ns, Histogram& each) {
  ended_ = 0;
  std::uint64_t posted = 0;
  const std::uint64_t begin = now_ns();
  while (ended_ < transfers) {
    while (posted < transfers && !free_.empty()) {
      const auto meant = begin + static_cast<std::uint64_t>(std::llround(static_cast<double>(posted) * interval_ns));
      if (now_ns() < meant || !post(meant)) break;
      ++posted;
    }
    if (ended_ < posted || own_time_) WHERRY_TRY(take(&each));
    if (stop_.load(std::memory_order_relaxed)) return Status(StatusCode::kCancelled, "stopped");
  }
  return now_ns() - begin;
}

}  // namespace wherry::probe
