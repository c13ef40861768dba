// SPDX-License-Identifier: Apache-2.0
// The bytes of a snapshot file (docs/guide/kv-snapshot.md). The caller provides their source and destination.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "wherry/status.hpp"

namespace wherry::kv {

inline constexpr std::uint16_t kSnapshotSchema = 1;
inline constexpr std::size_t kSnapshotHeadBytes = 128;
inline constexpr std::size_t kSnapshotTailBytes = 40;
inline constexpr std::size_t kSnapshotBlockHeadBytes = 16;
inline constexpr std::size_t kSnapshotRecordHeadBytes = 14;
inline constexpr std::size_t kMaxSnapshotName = 64;
/// The most bytes of records in a block. A writer ends a block well before.
inline constexpr std::uint32_t kMaxSnapshotBlockBytes = 1U << 20;

/// Where the list of keys came from.
enum class SnapshotSource : std::uint8_t { software = 0, hardware = 1 };

struct SnapshotHead {
  std::uint64_t began_ns = 0;  ///< Unix time
  std::uint32_t epoch = 0;     ///< of the cluster, then
  std::uint8_t node = 0;       ///< whose keys were listed
  SnapshotSource source = SnapshotSource::software;
  std::uint8_t bucket_bits = 0;  ///< of the table that they come from
  std::string cluster;           ///< its name; at most kMaxSnapshotName bytes are kept
};

struct SnapshotRecord {
  std::uint64_t key = 0;
  std::uint32_t version = 0;
  ByteView value;  ///< at most kMaxValueBytes
};

struct SnapshotTail {
  std::uint64_t records = 0;
  std::uint64_t value_bytes = 0;
  std::uint64_t ended_ns = 0;  ///< Unix time
};

/// Writes records in the order of their keys, then finish(). After an error, no more calls are allowed.
class SnapshotWriter {
 public:
  using Sink = std::function<wherry::Status(ByteView)>;
  explicit SnapshotWriter(Sink sink) : sink_(std::move(sink)) {}

  wherry::Status begin(const SnapshotHead& head);
  /// Precondition: the key is greater than the one before, and the value fits.
  wherry::Status add(const SnapshotRecord& record);
  wherry::Status finish(std::uint64_t ended_ns);
  [[nodiscard]] const SnapshotTail& tail() const noexcept { return tail_; }

 private:
  wherry::Status end_block();

  Sink sink_;
  Bytes block_;
  std::uint32_t in_block_ = 0;
  std::uint32_t sum_ = 0;  ///< of all blocks
  SnapshotTail tail_;
};

/// Reads a file from any source. Checks everything, and holds one block at a time.
class SnapshotReader {
 public:
  /// Fills its argument as far as possible and returns the number of bytes: 0 at the end; an error if reading fails.
  using Source = std::function<Result<std::size_t>(std::span<std::byte>)>;

  /// kInvalidArgument: the bytes are not a snapshot, or have another schema. kProtocol: the head is damaged.
  static Result<SnapshotReader> open(Source source);
  [[nodiscard]] const SnapshotHead& head() const noexcept { return head_; }
  /// The next records, valid until the next call. Returns no records at the end of a file that was complete and
  /// correct. kProtocol: the message gives the place of the error.
  Result<std::span<const SnapshotRecord>> next();
  /// Valid after next() has returned no more records.
  [[nodiscard]] const SnapshotTail& tail() const noexcept { return tail_; }
  /// The number of bytes read from the file.
  [[nodiscard]] std::uint64_t at() const noexcept { return at_; }

 private:
  explicit SnapshotReader(Source source) : source_(std::move(source)) {}
  wherry::Status fill(std::span<std::byte> to, const char* what);
  wherry::Status parse_head(ByteView bytes);
  wherry::Status parse_block(std::uint32_t records);
  wherry::Status parse_tail(ByteView first);
  [[nodiscard]] wherry::Status damaged(const std::string& why) const;

  Source source_;
  SnapshotHead head_;
  SnapshotTail tail_;
  Bytes block_;
  std::vector<SnapshotRecord> records_;
  std::uint64_t at_ = 0;
  std::uint64_t blocks_ = 0;
  std::uint64_t read_records_ = 0;
  std::uint64_t read_bytes_ = 0;
  std::uint64_t last_key_ = 0;
  std::uint32_t sum_ = 0;
  bool ended_ = false;
};

}  // namespace wherry::kv
