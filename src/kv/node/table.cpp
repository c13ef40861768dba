// SPDX-License-Identifier: Apache-2.0
#include "kv/node/table.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "kv/serial.hpp"

namespace wherry::kv {
namespace {

void* reserve(std::size_t bytes) noexcept {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace

Table::~Table() { release(); }

void Table::release() noexcept {
  if (lines_ != nullptr) munmap(lines_, line_bytes());
  if (values_ != nullptr) munmap(values_, value_bytes());
  lines_ = nullptr;
  values_ = nullptr;
}

bool Table::allocate(unsigned bits) noexcept {
  release();
  bits_ = bits;
  lines_ = static_cast<Line*>(reserve(line_bytes()));
  values_ = static_cast<std::byte*>(reserve(value_bytes()));
  if (lines_ == nullptr || values_ == nullptr) {
    release();
    return false;
  }
  // Huge pages only for lines. For values, a few scattered keys would use the memory of all keys.
  (void)madvise(lines_, line_bytes(), MADV_HUGEPAGE);
  return true;
}

void Table::clear() noexcept {
  if (lines_ == nullptr) return;
  (void)madvise(lines_, line_bytes(), MADV_DONTNEED);  // reads as zeros from now on
  (void)madvise(values_, value_bytes(), MADV_DONTNEED);
}

Location Table::free_way(std::uint32_t bucket, std::uint32_t first_way) const noexcept {
  // After the first way, any way would do. The order is fixed so that hardware and software choose the same way.
  if (lines_[bucket].ways[first_way].present == 0) return location_of(bucket, first_way);
  for (std::uint32_t w = 0; w < kWays; ++w)
    if (lines_[bucket].ways[w].present == 0) return location_of(bucket, w);
  return kNowhere;
}

std::uint32_t Table::next_version(std::uint32_t bucket) const noexcept {
  std::uint32_t highest = 0;
  for (const Way& w : lines_[bucket].ways)
    if (version_newer(w.version, highest)) highest = w.version;
  return version_after(highest);
}

Location Table::location_for(std::uint32_t hash) const noexcept {
  const std::uint32_t first = bucket_of(hash, bits_), way = first_way_of(hash);
  if (present(first) < kFirstBucketKeys) return free_way(first, way);
  constexpr std::uint32_t kGroup = 4;
  const std::uint32_t all = candidates(bits_);
  std::array<unsigned, 2> keys{};
  for (std::uint32_t i = 0; i < all; ++i) keys[i / kGroup] += present(bucket_at_index(hash, i, bits_));
  const std::uint32_t begin = all > kGroup && keys[1] < keys[0] ? kGroup : 0;
  for (std::uint32_t i = begin; i < std::min(all, begin + kGroup); ++i)
    if (const Location at = free_way(bucket_at_index(hash, i, bits_), way); at != kNowhere) return at;
  return kNowhere;
}

std::uint32_t Table::version_after_all(std::uint32_t hash, std::uint32_t bucket) const noexcept {
  const std::uint32_t base = next_version(bucket);
  std::uint32_t ahead = 0;
  for (std::uint32_t i = 0; i < candidates(bits_); ++i) {
    const std::uint32_t by = next_version(bucket_at_index(hash, i, bits_)) - base;
    if (by <= kVersionReach) ahead = std::max(ahead, by);
  }
  return base + ahead;
}

Location Table::lagging(std::uint32_t bucket) const noexcept {
  const auto& ways = lines_[bucket].ways;
  constexpr std::uint32_t kCompared = 7U << 29;
  std::uint32_t differ = 0;
  for (const Way& w : ways) differ |= w.version ^ ways[0].version;
  if ((differ & kCompared) == 0) return kNowhere;
  for (std::uint32_t i = 0; i < kWays; ++i)
    for (const Way& other : ways)
      if (version_lags(ways[i].version, other.version)) return location_of(bucket, i);
  return kNowhere;
}

void Table::store(Location at, std::uint64_t key, std::uint32_t version, bool present, ByteView value) noexcept {
  lines_[at / kWays].ways[at % kWays] = {.key = key,
                                         .version = version,
                                         .length = static_cast<std::uint16_t>(present ? value.size() : 0),
                                         .present = static_cast<std::uint8_t>(present)};
  if (present && !value.empty()) std::memcpy(values_ + at * kMaxValueBytes, value.data(), value.size());
}

}  // namespace wherry::kv
