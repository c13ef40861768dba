// SPDX-License-Identifier: Apache-2.0
// The keys of a node's table, sent over a Unix socket to the process that makes a snapshot. Only the node sends:
//
//   greeting   u32 'WKVL', u16 1, u8 node, u8 source, u32 bucket_bits, u32 epoch, u32 serves (0: nothing follows)
//   pieces     u32 buckets (not 0), u32 keys, then the keys, u64 each
//   the end    u32 0, u32 1: that was all of them; 2: the node left the cluster meanwhile, so that they are not all
//
// Little-endian.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.hpp"
#include "kv/snapshot/snapshot_file.hpp"
#include "wherry/status.hpp"

namespace wherry::kv {

inline constexpr std::uint32_t kKeyStreamMagic = 0x4c564b57;
inline constexpr std::uint16_t kKeyStreamVersion = 1;
inline constexpr std::uint32_t kMaxPieceBuckets = 512;

struct KeyGreeting {
  std::uint8_t node = 0;
  SnapshotSource source = SnapshotSource::software;
  std::uint32_t bucket_bits = 0;
  std::uint32_t epoch = 0;
  bool serves = false;
};

[[nodiscard]] Bytes pack_greeting(const KeyGreeting& greeting);
[[nodiscard]] Bytes pack_keys(std::uint32_t buckets, const std::vector<std::uint64_t>& keys);
[[nodiscard]] Bytes pack_key_end(bool complete);

/// Parses the stream, in pieces of any size.
class KeyStreamParser {
 public:
  enum class State : std::uint8_t { greeting, listing, complete, not_serving, left };

  /// kProtocol: the bytes are not a stream of keys.
  wherry::Status feed(ByteView bytes);
  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] const KeyGreeting& greeting() const noexcept { return greeting_; }
  [[nodiscard]] std::uint64_t buckets() const noexcept { return buckets_; }
  /// The keys in the order of arrival. Some keys occur several times.
  [[nodiscard]] std::vector<std::uint64_t>& keys() noexcept { return keys_; }

 private:
  [[nodiscard]] wherry::Status take();

  Bytes waiting_;
  State state_ = State::greeting;
  KeyGreeting greeting_;
  std::uint64_t buckets_ = 0;
  std::vector<std::uint64_t> keys_;
};

}  // namespace wherry::kv
