// SPDX-License-Identifier: Apache-2.0
// The agent's destination memory: one page-aligned shared-memory arena whose size is the budget. It is registered once,
// and allocated in extents by size class (paper 004 section II-B, before step 1, and section IV-B).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "wherry/status.hpp"

namespace wherry {

class Arena;

/// A page-aligned piece of an Arena. Its destructor returns it, on any thread. Move-only. Keeps the arena alive.
class Extent {
 public:
  Extent() noexcept = default;
  Extent(Extent&& other) noexcept;
  Extent& operator=(Extent&& other) noexcept;
  Extent(const Extent&) = delete;
  Extent& operator=(const Extent&) = delete;
  ~Extent();

  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {data_, size_}; }
  /// A value that the last owner of exactly this memory left, to identify the old content. 0: none.
  [[nodiscard]] std::uint64_t stamp() const noexcept { return stamp_; }
  void set_stamp(std::uint64_t stamp) noexcept { stamp_ = stamp; }
  [[nodiscard]] std::uint64_t offset() const noexcept {
    return offset_;
  }  ///< from the start of the arena (of its file descriptor)
  explicit operator bool() const noexcept { return data_ != nullptr; }

 private:
  friend class Arena;
  void swap(Extent& other) noexcept;
  std::shared_ptr<Arena> arena_;
  std::byte* data_ = nullptr;
  std::uint64_t offset_ = 0;
  std::size_t size_ = 0;
  std::uint64_t stamp_ = 0;
};

/// Thread-safe. The memory is a memfd, so a process on the same machine can map it read-only through read_only_fd().
class Arena : public std::enable_shared_from_this<Arena> {
 public:
  static Result<std::shared_ptr<Arena>> create(std::size_t budget_bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// kWouldBlock if it does not fit now, kResourceExhausted if it can never fit. bytes() of the extent is rounded up to
  /// a class (four per doubling, whole pages) or, above the last class that fits, to the capacity. If no extent of the
  /// class is free, a free extent of up to 1.5 times the size is preferred to untouched memory, because its pages are
  /// resident. Contents are undefined.
  Result<Extent> try_allocate(std::size_t bytes);
  /// Makes pages of an extent resident, so that its next owner has no page faults. Does not overwrite resident pages.
  /// Takes about 100 us per MiB.
  static void touch(std::span<std::byte> bytes) noexcept;

  [[nodiscard]] std::span<std::byte> memory() const noexcept { return {base_, capacity_}; }
  [[nodiscard]] int read_only_fd() const noexcept { return read_only_fd_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::size_t in_use() const noexcept;
  [[nodiscard]] std::size_t high_water() const noexcept;  ///< bytes handed out at once at most, ever
  [[nodiscard]] std::size_t touched() const noexcept;  ///< bytes from the start of the arena that were ever handed out

  static std::size_t class_size(std::size_t bytes) noexcept;

 private:
  friend class Extent;
  Arena() = default;
  struct Free {
    std::uint64_t offset;
    std::uint64_t stamp;
  };
  void release(const Free& extent, std::size_t size) noexcept;
  std::optional<Free> take(std::size_t& size);
  std::optional<std::uint64_t> take_best_fit(std::size_t size);
  void coalesce();

  std::byte* base_ = nullptr;
  std::size_t capacity_ = 0;
  int fd_ = -1;
  int read_only_fd_ = -1;

  mutable std::mutex mutex_;
  std::map<std::size_t, std::vector<Free>> free_by_class_;
  std::map<std::uint64_t, std::size_t> free_extents_;  ///< offset to size, coalesced; used when a class is empty
  std::uint64_t fresh_ = 0;                            ///< [fresh_, capacity_) was never handed out
  std::size_t in_use_ = 0;
  std::size_t high_water_ = 0;
};

}  // namespace wherry
