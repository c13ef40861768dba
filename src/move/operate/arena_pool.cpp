// SPDX-License-Identifier: Apache-2.0
#include "move/operate/arena_pool.hpp"

#include <arrow/status.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace wherry::move {
namespace {

constexpr std::int64_t kPage = 4096;
alignas(64) std::uint8_t no_bytes[1];  // NOLINT: the address of allocations of size 0, which Arrow does not write to

}  // namespace

std::shared_ptr<ArenaPool> ArenaPool::make(std::shared_ptr<Arena> arena, Rules rules) {
  return std::shared_ptr<ArenaPool>(new ArenaPool(std::move(arena), std::move(rules)));
}

arrow::Status ArenaPool::Allocate(std::int64_t size, std::int64_t alignment, std::uint8_t** out) {
  if (size < 0 || alignment > kPage) return arrow::Status::Invalid("an allocation of ", size, " bytes");
  if (size == 0) {
    *out = no_bytes;
    return arrow::Status::OK();
  }
  const auto wanted = static_cast<std::size_t>(size);
  const std::uint64_t taken = Arena::class_size(wanted);
  if (!rules_.take(taken)) {
    return arrow::Status::OutOfMemory(size,
                                      " bytes are needed for a result, and it may not have them now: readers hold "
                                      "all that they may (agent.reader_budget)");
  }
  auto extent = arena_->try_allocate(wanted);
  while (!extent && extent.status().is_would_block() && rules_.make_room()) extent = arena_->try_allocate(wanted);
  if (!extent) {
    rules_.give_back(taken);
    if (!extent.status().is_would_block()) return arrow::Status::CapacityError(extent.status().message());
    return arrow::Status::OutOfMemory(size, " bytes are needed for a result: the agent's budget is full");
  }
  extent->set_stamp(0);  // what stood there stands no more
  auto* const data = reinterpret_cast<std::uint8_t*>(extent->bytes().data());
  {
    const std::lock_guard lock(mutex_);
    if (live_.empty()) self_ = shared_from_this();
    live_.emplace(data, Live{*std::move(extent), taken});
  }
  stats_.DidAllocateBytes(static_cast<std::int64_t>(taken));
  *out = data;
  return arrow::Status::OK();
}

arrow::Status ArenaPool::Reallocate(std::int64_t old_size, std::int64_t new_size, std::int64_t alignment,
                                    std::uint8_t** ptr) {
  if (old_size > 0 && new_size > 0) {
    const std::lock_guard lock(mutex_);
    const std::size_t have = live_.at(*ptr).extent.bytes().size();
    const auto want = static_cast<std::size_t>(new_size);
    if (want <= have && want > have / 2) return arrow::Status::OK();
  }
  std::uint8_t* made = nullptr;
  ARROW_RETURN_NOT_OK(Allocate(new_size, alignment, &made));
  if (old_size > 0 && new_size > 0) std::memcpy(made, *ptr, static_cast<std::size_t>(std::min(old_size, new_size)));
  Free(*ptr, old_size, alignment);
  *ptr = made;
  return arrow::Status::OK();
}

void ArenaPool::Free(std::uint8_t* buffer, std::int64_t /*size*/, std::int64_t /*alignment*/) {
  if (buffer == no_bytes) return;
  std::shared_ptr<ArenaPool> last;  // goes after the lock
  Live gone;
  {
    const std::lock_guard lock(mutex_);
    gone = std::move(live_.extract(buffer).mapped());
    if (live_.empty()) last = std::move(self_);
  }
  gone.extent = Extent();
  stats_.DidFreeBytes(static_cast<std::int64_t>(gone.taken));
  rules_.give_back(gone.taken);
}

}  // namespace wherry::move
