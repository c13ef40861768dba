// SPDX-License-Identifier: Apache-2.0
// The progress of a returning node in fetching the table and the lanes.
#pragma once

#include <array>
#include <cstdint>

#include "kv/message.hpp"
#include "kv/node/table.hpp"

namespace wherry::kv {

/// Tags of fetch and lane frames: an index, and a generation that distinguishes its uses.
class Tags {
 public:
  static constexpr std::uint32_t kSync = 1U << 12;  ///< marks fetches that are not for a leftover
  [[nodiscard]] std::uint32_t make(std::uint32_t index) noexcept { return ++generation_ << 13 | index; }
  [[nodiscard]] static std::uint32_t index(std::uint32_t tag) noexcept { return tag & 0x1fff; }

 private:
  std::uint32_t generation_ = 0;
};

/// Fetches a range of buckets, eight buckets (32 locations) at a time.
struct BucketSync {
  /// A bucket that is being fetched.
  struct Fetch {
    std::uint32_t bucket = 0;
    std::uint32_t tag = 0;     ///< of way 0; the others follow
    std::uint8_t missing = 0;  ///< a bit for each way
    std::uint8_t tries = 0;    ///< how often it was asked for
    Cycles due = 0;
  };
  std::array<Fetch, 8> fetches{};
  std::uint32_t next = 0;
  std::uint32_t to_start = 0;
  std::uint32_t incomplete = 0;
};

/// Fetches the lanes from 0 on, 32 at a time, each from every serving node.
struct LaneSync {
  /// A lane whose record was requested.
  struct Fetch {
    std::uint16_t lane = 0;
    std::uint32_t tag = 0;
    std::uint8_t missing = 0;  ///< a bit for each node
    std::uint8_t tries = 0;    ///< how often it was asked for
    bool used = false;
    Cycles due = 0;
  };
  std::array<Fetch, 32> fetches{};
  std::uint32_t next = 0;
  std::uint32_t to_start = 0;
  std::uint32_t incomplete = 0;
};

}  // namespace wherry::kv
