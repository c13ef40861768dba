// SPDX-License-Identifier: Apache-2.0
#include "move/service/loans.hpp"

#include <fmt/core.h>

namespace wherry::move {
namespace {

constexpr std::uint64_t kSpareShare = 8;  ///< of the limit: results that no frames in readers' hands keep out

/// The arena bytes that the frame occupies. Extents are larger than the requested size (Arena::try_allocate).
std::uint64_t taken_by(const Frame& frame) { return frame.step_memory(); }

}  // namespace

void Loans::limit(std::uint64_t limit, std::uint64_t budget) {
  const std::lock_guard lock(mutex_);
  limit_ = limit;
  budget_ = budget;
}

Status Loans::lend(const Frame& frame, Borrower& who) {
  const std::uint64_t size = taken_by(frame);
  const std::lock_guard lock(mutex_);
  const auto held = holders_.find(&frame);
  if (held == holders_.end() && bytes_ + size > limit_) {
    const bool others = bytes_ > who.bytes;
    if (who.frames > 1 || (others && bytes_ + 2 * size > budget_)) {
      return {
          StatusCode::kResourceExhausted,
          fmt::format(
              "readers hold frames that take {} bytes of the budget, this one {} that take {}: with the next frame, "
              "which takes {}, it would be more than the {} that they may hold (agent.reader_budget); release frames, "
              "copy what "
              "is to be kept, or raise that setting",
              bytes_, who.frames, who.bytes, size, limit_)};
    }
  }
  if (held != holders_.end()) {
    ++held->second;
  } else {
    holders_.emplace(&frame, 1);
    bytes_ += size;
  }
  ++who.frames;
  who.bytes += size;
  return ok_status();
}

void Loans::give_back(const Frame& frame, Borrower& who) {
  const std::uint64_t size = taken_by(frame);
  const std::lock_guard lock(mutex_);
  --who.frames;
  who.bytes -= size;
  const auto held = holders_.find(&frame);
  if (--held->second != 0) return;
  holders_.erase(held);
  bytes_ -= size;
}

bool Loans::take_bytes(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const bool fits = bytes <= limit_ && bytes_ <= limit_ - bytes;
  const std::uint64_t spare = limit_ / kSpareShare;
  if (!fits && (bytes > spare || results_ > spare - bytes)) return false;
  bytes_ += bytes;
  results_ += bytes;
  return true;
}

void Loans::return_bytes(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_ -= bytes;
  results_ -= bytes;
}

std::uint64_t Loans::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace wherry::move
