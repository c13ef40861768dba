// SPDX-License-Identifier: Apache-2.0
#include "fabric/arena.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

// Added in Linux 5.1 and 5.14; older C libraries do not define them.
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace wherry {
namespace {

constexpr std::size_t kPage = 4096;

Status os_error(const std::string& what) { return {StatusCode::kUnavailable, what + ": " + std::strerror(errno)}; }

}  // namespace

Extent::Extent(Extent&& other) noexcept
    : arena_(std::move(other.arena_)),
      data_(std::exchange(other.data_, nullptr)),
      offset_(std::exchange(other.offset_, 0)),
      size_(std::exchange(other.size_, 0)),
      stamp_(std::exchange(other.stamp_, 0)) {}

Extent& Extent::operator=(Extent&& other) noexcept {
  Extent(std::move(other)).swap(*this);
  return *this;
}

void Extent::swap(Extent& other) noexcept {
  std::swap(arena_, other.arena_);
  std::swap(data_, other.data_);
  std::swap(offset_, other.offset_);
  std::swap(size_, other.size_);
  std::swap(stamp_, other.stamp_);
}

Extent::~Extent() {
  if (data_ != nullptr) arena_->release({offset_, stamp_}, size_);
}

Result<std::shared_ptr<Arena>> Arena::create(std::size_t budget_bytes) {
  if (budget_bytes == 0 || budget_bytes > (std::size_t{1} << 46)) {
    return Status(StatusCode::kInvalidArgument,
                  "a memory budget is 1 byte to 64 TiB, not " + std::to_string(budget_bytes));
  }
  std::shared_ptr<Arena> arena(new Arena());
  const std::size_t bytes = (budget_bytes + kPage - 1) / kPage * kPage;
  arena->fd_ = ::memfd_create("wherry-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (arena->fd_ < 0) return os_error("memfd_create");
  if (::ftruncate(arena->fd_, static_cast<off_t>(bytes)) != 0)
    return os_error("a memory budget of that size: ftruncate");
  void* base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, arena->fd_, 0);
  if (base == MAP_FAILED) return os_error("a memory budget of " + std::to_string(bytes) + " bytes: mmap");
  arena->base_ = static_cast<std::byte*>(base);
  arena->capacity_ = bytes;
  if (::fcntl(arena->fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) return os_error("sealing the arena");
  // A reader could reopen its read-only descriptor through /proc for writing. If the kernel supports it, only the
  // mapping above may write.
  (void)::fcntl(arena->fd_, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL);
  arena->read_only_fd_ = ::open(("/proc/self/fd/" + std::to_string(arena->fd_)).c_str(), O_RDONLY | O_CLOEXEC);
  if (arena->read_only_fd_ < 0) return os_error("reopening the arena read-only through /proc/self/fd");
  return arena;
}

Arena::~Arena() {
  if (base_ != nullptr) ::munmap(base_, capacity_);
  if (read_only_fd_ >= 0) ::close(read_only_fd_);
  if (fd_ >= 0) ::close(fd_);
}

std::size_t Arena::class_size(std::size_t bytes) noexcept {
  if (bytes > std::numeric_limits<std::size_t>::max() / 2)
    return std::numeric_limits<std::size_t>::max() / kPage * kPage;
  const std::size_t pages = std::max<std::size_t>(1, (bytes + kPage - 1) / kPage);
  if (pages <= 4) return pages * kPage;
  // The interval (2^k, 2^(k+1)] has four size classes.
  const std::size_t step = std::max<std::size_t>(1, std::bit_floor(pages - 1) / 4);
  return (pages + step - 1) / step * step * kPage;
}

Result<Extent> Arena::try_allocate(std::size_t bytes) {
  if (bytes > capacity_) {
    return Status(StatusCode::kResourceExhausted, std::to_string(bytes) +
                                                      " bytes are more than the whole memory budget of " +
                                                      std::to_string(capacity_) + " bytes");
  }
  std::size_t size = std::min(class_size(bytes), capacity_);
  Extent extent;
  const std::lock_guard lock(mutex_);
  const std::optional<Free> found = take(size);
  if (!found) return Status::would_block();
  in_use_ += size;
  high_water_ = std::max(high_water_, in_use_);
  extent.arena_ = shared_from_this();
  extent.data_ = base_ + found->offset;
  extent.offset_ = found->offset;
  extent.stamp_ = found->stamp;
  extent.size_ = size;
  return extent;
}

/// `size`: on entry the wanted size, on return the size that was found.
std::optional<Arena::Free> Arena::take(std::size_t& size) {
  if (size > capacity_ - in_use_) return std::nullopt;  // so that a full arena is not coalesced again and again
  for (auto warm = free_by_class_.lower_bound(size); warm != free_by_class_.end() && warm->first <= size + size / 2;
       ++warm) {
    if (warm->second.empty()) continue;
    const Free found = warm->second.back();
    warm->second.pop_back();
    size = warm->first;
    return found;
  }
  if (size <= capacity_ - fresh_) return Free{std::exchange(fresh_, fresh_ + size), 0};
  auto offset = take_best_fit(size);
  if (!offset) {
    coalesce();
    offset = take_best_fit(size);
  }
  if (!offset) return std::nullopt;
  return Free{*offset, 0};
}

std::optional<std::uint64_t> Arena::take_best_fit(std::size_t size) {
  auto best = free_extents_.end();
  for (auto it = free_extents_.begin(); it != free_extents_.end(); ++it) {
    if (it->second >= size && (best == free_extents_.end() || it->second < best->second)) best = it;
  }
  if (best != free_extents_.end()) {
    const auto [offset, found] = *best;
    free_extents_.erase(best);
    if (found > size) free_extents_.emplace(offset + size, found - size);
    return offset;
  }
  // Merges the last free extent with the fresh space behind it.
  if (free_extents_.empty()) return std::nullopt;
  const auto last = std::prev(free_extents_.end());
  const std::uint64_t offset = last->first;
  if (offset + last->second != fresh_ || size > capacity_ - offset) return std::nullopt;
  free_extents_.erase(last);
  fresh_ = offset + size;
  return offset;
}

void Arena::coalesce() {
  for (auto& [size, offsets] : free_by_class_) {
    for (const Free& free : offsets) free_extents_.emplace(free.offset, size);
    offsets.clear();
  }
  for (auto it = free_extents_.begin(); it != free_extents_.end();) {
    const auto next = std::next(it);
    if (next != free_extents_.end() && it->first + it->second == next->first) {
      it->second += next->second;
      free_extents_.erase(next);
    } else {
      it = next;
    }
  }
}

void Arena::release(const Free& extent, std::size_t size) noexcept {
  const std::lock_guard lock(mutex_);
  free_by_class_[size].push_back(extent);
  in_use_ -= size;
}

void Arena::touch(std::span<std::byte> bytes) noexcept {
  if (::madvise(bytes.data(), bytes.size(), MADV_POPULATE_WRITE) == 0) return;
  for (std::size_t at = 0; at < bytes.size(); at += kPage) {
    auto* const byte = static_cast<volatile std::byte*>(bytes.data() + at);
    *byte = *byte;
  }
}

std::size_t Arena::in_use() const noexcept {
  const std::lock_guard lock(mutex_);
  return in_use_;
}

std::size_t Arena::high_water() const noexcept {
  const std::lock_guard lock(mutex_);
  return high_water_;
}

std::size_t Arena::touched() const noexcept {
  const std::lock_guard lock(mutex_);
  return fresh_;
}

}  // namespace wherry
