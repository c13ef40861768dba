// SPDX-License-Identifier: Apache-2.0
#include "probe/host/copy.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/try.hpp"
#include "probe/environment.hpp"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace wherry::probe {
namespace {

constexpr std::size_t kLine = 64;

void flush(std::span<std::byte> memory) noexcept {
#if defined(__x86_64__)
  for (std::size_t i = 0; i < memory.size(); i += kLine) _mm_clflush(memory.data() + i);
  _mm_mfence();
#else
  (void)memory;
#endif
}

bool can_flush() noexcept {
#if defined(__x86_64__)
  return true;
#else
  return false;
#endif
}

}  // namespace

Bound one_thread_bound() {
  constexpr double kBytesPerCycle = 64, kUnknownHz = 8e9;
  static const double hertz = [] {
    const auto text = environment()["frequency_max_mhz"];
    const double mhz = std::strtod(text.c_str(), nullptr);
    return mhz > 0 ? mhz * 1e6 : kUnknownHz;
  }();
  return {.bytes_per_s = kBytesPerCycle * hertz,
          .why = fmt::format("a thread stores at most 64 bytes a cycle, at {:.2g} GHz", hertz / 1e9)};
}

CopyPath::CopyPath(const char* id, const char* from, const char* to)
    : info_{.id = id, .group = "cpu", .from = from, .to = to} {}

Status CopyPath::accepts(const Shape& shape) const {
  const bool flushed = shape.cache == CacheState::kFlushed;
  if (shape.bytes == 0 || shape.depth != 1 || shape.channels != 1 || shape.pattern != Pattern::kSequential ||
      shape.flow != Flow::kH2C || shape.notice != Notice::kPolled || shape.align > 4096)
    return {StatusCode::kUnsupported, "a copy is of some bytes, one at a time, sequential, of one thread"};
  if (shape.cache == CacheState::kRemote)
    return {StatusCode::kUnsupported, "another core's lines are the path ipc.shm"};
  if (flushed && !can_flush()) return {StatusCode::kUnsupported, "this processor flushes no line for a program"};
  return ok_status();
}

Work CopyPath::work(const Shape& shape) const {
  Work work{.slots = 1, .bytes = shape.bytes, .footprint = 2 * shape.bytes};
  if (shape.cache != CacheState::kFlushed) return work;
  work.per_restore = static_cast<unsigned>(std::max<std::size_t>(1, kFlushedBytes / std::max(shape.bytes, kLine)));
  work.footprint = 2 * shape.bytes * work.per_restore;
  return work;
}

Result<Bound> CopyPath::open(const Shape& shape) {
  WHERRY_TRY(accepts(shape));
  cache_ = shape.cache;
  layout_ = {shape.bytes, std::max(1U, work(shape).per_restore), shape.align};
  WHERRY_ASSIGN(from_, Mapping::make(layout_.total(), Mapping::Kind::kPrivate));
  WHERRY_ASSIGN(to_, Mapping::make(layout_.total(), Mapping::Kind::kPrivate));
  WHERRY_TRY(place(from_.data(), to_.data()));
  return one_thread_bound();
}

void CopyPath::prepare(std::uint64_t seed) {
  fill_source(from_.data(), layout_, seed);
  fill_destination(to_.data(), layout_, seed);
  posted_ = 0;
}

void CopyPath::restore() {
  if (cache_ != CacheState::kFlushed) return;
  flush(from_.data());
  flush(to_.data());
}

bool CopyPath::try_post(unsigned /*slot*/) {
  const std::size_t at =
      layout_.slots == 1 ? layout_.offset(0) : layout_.offset(static_cast<unsigned>(posted_ % layout_.slots));
  ++posted_;
  copy(to_.data().data() + at, from_.data().data() + at, layout_.bytes);
  done_ = true;
  return true;
}

Result<unsigned> CopyPath::poll(std::span<unsigned> done) {
  if (!std::exchange(done_, false)) return 0U;
  done[0] = 0;
  return 1U;
}

Status CopyPath::verify(std::uint64_t seed) {
  const auto written = static_cast<unsigned>(std::min<std::uint64_t>(posted_, layout_.slots));
  return check_destination(to_.data(), layout_, seed, written);
}

void CopyPath::close() noexcept {
  from_.reset();
  to_.reset();
}

}  // namespace wherry::probe
