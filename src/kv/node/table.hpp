// SPDX-License-Identifier: Apache-2.0
// A node's table: 2^b buckets of four ways, with the layout of docs/design/kv-protocol.md, section 12. A look-up costs
// one cache line of headers and the value.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.hpp"
#include "kv/generated/frame.hpp"

namespace wherry::kv {

/// A bucket and a way as 4 x bucket + way, the form that `fetch` uses.
using Location = std::uint64_t;

[[nodiscard]] constexpr Location location_of(std::uint32_t bucket, std::uint32_t way) noexcept {
  return Location{bucket} * kWays + way;
}
[[nodiscard]] constexpr std::uint32_t bucket_at(Location at) noexcept { return static_cast<std::uint32_t>(at / kWays); }
[[nodiscard]] constexpr std::uint32_t way_at(Location at) noexcept { return static_cast<std::uint32_t>(at % kWays); }

/// WayHeader in the machine's byte order. It keeps a deleted key, which a leader needs to replay the deletion.
struct Way {
  std::uint64_t key = 0;
  std::uint32_t version = 0;
  std::uint16_t length = 0;
  std::uint8_t present = 0;
  std::uint8_t unused = 0;
};

struct alignas(64) Line {
  std::array<Way, kWays> ways;
};
static_assert(sizeof(Way) == WayHeader::kBytes && sizeof(Line) == 64);

class Table {
 public:
  Table() = default;
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  ~Table();

  /// Reserves address space for 2^bits empty buckets. Memory is allocated at its first use. False: there is not enough
  /// address space.
  [[nodiscard]] bool allocate(unsigned bits) noexcept;
  void clear() noexcept;

  [[nodiscard]] bool allocated() const noexcept { return lines_ != nullptr; }
  [[nodiscard]] unsigned bits() const noexcept { return bits_; }
  [[nodiscard]] std::uint64_t buckets() const noexcept { return std::uint64_t{1} << bits_; }

  [[nodiscard]] const Line& line(std::uint32_t bucket) const noexcept { return lines_[bucket]; }
  [[nodiscard]] const Way& way(Location at) const noexcept { return lines_[at / kWays].ways[at % kWays]; }
  [[nodiscard]] ByteView value(Location at) const noexcept {
    const Way& w = way(at);
    return {values_ + at * kMaxValueBytes, w.present != 0 ? w.length : std::size_t{0}};
  }
  /// The location of a key; kNowhere if the key is not in the table.
  static constexpr Location kNowhere = ~Location{0};
  [[nodiscard]] Location find(std::uint32_t bucket, std::uint32_t first_way, std::uint64_t key) const noexcept {
    const Line& l = lines_[bucket];
    for (std::uint32_t i = 0; i < kWays; ++i) {
      const std::uint32_t w = (first_way + i) % kWays;
      if (l.ways[w].key == key && l.ways[w].present != 0) return location_of(bucket, w);
    }
    return kNowhere;
  }
  /// The location for a new key: the first way if free, else any free way; kNowhere if there is none.
  [[nodiscard]] Location free_way(std::uint32_t bucket, std::uint32_t first_way) const noexcept;
  /// The version of the next write in this bucket.
  [[nodiscard]] std::uint32_t next_version(std::uint32_t bucket) const noexcept;

  // A key's buckets: docs/design/kv-protocol.md, sections 2 and 5.

  /// Whether a key that is not in its first bucket may be in another candidate: only if the first bucket once held
  /// enough keys.
  [[nodiscard]] bool may_be_elsewhere(std::uint32_t first_bucket) const noexcept {
    unsigned written = 0;
    for (const Way& w : lines_[first_bucket].ways) written += w.version != 0 ? 1U : 0U;
    return written >= kFirstBucketKeys;
  }
  /// The location for a key that is not in the table; kNowhere if none of its buckets has a free way.
  [[nodiscard]] Location location_for(std::uint32_t hash) const noexcept;
  /// The version for a key that is put into `bucket`, although it may have been in another of its buckets before.
  [[nodiscard]] std::uint32_t version_after_all(std::uint32_t hash, std::uint32_t bucket) const noexcept;
  /// The number of the bucket of this key's location, as used in frames.
  [[nodiscard]] std::uint8_t candidate_at(std::uint32_t hash, Location at) const noexcept {
    return candidate_of(hash, bucket_at(at), bits_);
  }
  /// A location of the bucket whose version lags so far behind another that versions would soon stop comparing.
  /// kNowhere if there is none.
  [[nodiscard]] Location lagging(std::uint32_t bucket) const noexcept;

  void store(Location at, std::uint64_t key, std::uint32_t version, bool present, ByteView value) noexcept;
  /// Changes only the version; key and value stay.
  void set_version(Location at, std::uint32_t version) noexcept {
    lines_[at / kWays].ways[at % kWays].version = version;
  }

  /// Prefetches the lines of all candidate buckets except the first.
  void prefetch_others(std::uint32_t hash) const noexcept {
    for (std::uint32_t i = 1; i < candidates(bits_); ++i) __builtin_prefetch(lines_ + bucket_at_index(hash, i, bits_));
  }
  /// Prefetches the lines that a look-up will read.
  void prefetch(std::uint32_t bucket, std::uint32_t first_way) const noexcept {
    __builtin_prefetch(lines_ + bucket);
    __builtin_prefetch(values_ + location_of(bucket, first_way) * kMaxValueBytes);
  }

 private:
  void release() noexcept;
  [[nodiscard]] unsigned present(std::uint32_t bucket) const noexcept {
    unsigned keys = 0;
    for (const Way& w : lines_[bucket].ways) keys += w.present;
    return keys;
  }
  [[nodiscard]] std::size_t line_bytes() const noexcept { return sizeof(Line) << bits_; }
  [[nodiscard]] std::size_t value_bytes() const noexcept { return std::size_t{kWays} * kMaxValueBytes << bits_; }

  Line* lines_ = nullptr;
  std::byte* values_ = nullptr;
  unsigned bits_ = 0;
};

}  // namespace wherry::kv
