// SPDX-License-Identifier: Apache-2.0
#include "kv/snapshot/snapshot_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/crc32.hpp"
#include "base/try.hpp"
#include "kv/generated/frame.hpp"

namespace wherry::kv {
namespace {

constexpr std::string_view kMagic = "WHERRYKV";
constexpr std::uint32_t kBlockTag = 0x4b434c42;  // "BLCK"
constexpr std::uint32_t kTailTag = 0x21444e45;   // "END!"
constexpr std::size_t kBlockBytes = std::size_t{1} << 18;
static_assert(kBlockBytes + kSnapshotRecordHeadBytes + kMaxValueBytes <= kMaxSnapshotBlockBytes);

ByteView bytes_of(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

void append(Writer& to, ByteView bytes) {
  for (const std::byte byte : bytes) to.put(byte);
}

/// A block's checksum also covers its counts, so that a checksum covers every byte of the file.
std::uint32_t block_sum(std::uint32_t records, ByteView payload) {
  Writer counts;
  counts.put(records);
  counts.put(static_cast<std::uint32_t>(payload.size()));
  return crc32(payload, crc32(counts.bytes()));
}

std::uint32_t chained(std::uint32_t before, std::uint32_t sum) {
  Writer one;
  one.put(sum);
  return crc32(one.bytes(), before);
}

}  // namespace

wherry::Status SnapshotWriter::begin(const SnapshotHead& head) {
  Writer out;
  append(out, bytes_of(kMagic));
  out.put(kSnapshotSchema);
  out.put(static_cast<std::uint16_t>(kSnapshotHeadBytes));
  out.put(head.epoch);
  out.put(head.began_ns);
  out.put(head.node);
  out.put(head.source);
  out.put(head.bucket_bits);
  const std::string_view name = std::string_view(head.cluster).substr(0, kMaxSnapshotName);
  out.put(static_cast<std::uint8_t>(name.size()));
  append(out, bytes_of(name));
  Bytes bytes = std::move(out).take();
  bytes.resize(kSnapshotHeadBytes - sizeof(std::uint32_t));
  const std::uint32_t sum = crc32(bytes);
  const auto* of_sum = reinterpret_cast<const std::byte*>(&sum);
  bytes.insert(bytes.end(), of_sum, of_sum + sizeof sum);
  return sink_(bytes);
}

wherry::Status SnapshotWriter::add(const SnapshotRecord& record) {
  Writer out;
  out.put(record.key);
  out.put(record.version);
  out.put(static_cast<std::uint16_t>(record.value.size()));
  block_.insert(block_.end(), out.bytes().begin(), out.bytes().end());
  block_.insert(block_.end(), record.value.begin(), record.value.end());
  ++in_block_;
  ++tail_.records;
  tail_.value_bytes += record.value.size();
  return block_.size() < kBlockBytes ? ok_status() : end_block();
}

wherry::Status SnapshotWriter::end_block() {
  if (in_block_ == 0) return {};
  const std::uint32_t sum = block_sum(in_block_, block_);
  sum_ = chained(sum_, sum);
  Writer head;
  head.put(kBlockTag);
  head.put(in_block_);
  head.put(static_cast<std::uint32_t>(block_.size()));
  head.put(sum);
  WHERRY_TRY(sink_(head.bytes()));
  WHERRY_TRY(sink_(block_));
  block_.clear();
  in_block_ = 0;
  return {};
}

wherry::Status SnapshotWriter::finish(std::uint64_t ended_ns) {
  WHERRY_TRY(end_block());
  tail_.ended_ns = ended_ns;
  Writer out;
  out.put(kTailTag);
  out.put(sum_);
  out.put(tail_.records);
  out.put(tail_.value_bytes);
  out.put(tail_.ended_ns);
  out.put(std::uint32_t{0});
  out.put(crc32(out.bytes()));
  return sink_(out.bytes());
}

Result<SnapshotReader> SnapshotReader::open(Source source) {
  SnapshotReader reader(std::move(source));
  std::array<std::byte, kSnapshotHeadBytes> head{};
  std::size_t got = 0;
  while (got < head.size()) {
    WHERRY_ASSIGN(const std::size_t more, reader.source_(std::span(head).subspan(got)));
    if (more == 0) break;
    got += more;
  }
  reader.at_ = got;
  WHERRY_TRY(reader.parse_head(ByteView(head).first(got)));
  return reader;
}

wherry::Status SnapshotReader::parse_head(ByteView bytes) {
  const ByteView magic = bytes_of(kMagic);
  if (bytes.size() < magic.size() || !std::ranges::equal(bytes.first(magic.size()), magic))
    return {StatusCode::kInvalidArgument, "this is not a snapshot of wherry kv: its first bytes differ"};
  if (bytes.size() < kSnapshotHeadBytes) return damaged("the file ends within its head: it is truncated");
  Reader in(bytes.subspan(magic.size()));
  const auto schema = in.get<std::uint16_t>();
  const auto length = in.get<std::uint16_t>();
  // Checked before the checksum, because another schema may have its checksum in another place.
  if (schema != kSnapshotSchema)
    return {StatusCode::kInvalidArgument,
            fmt::format("a snapshot of schema {}: this program reads schema {}", schema, kSnapshotSchema)};
  const ByteView summed = bytes.first(kSnapshotHeadBytes - sizeof(std::uint32_t));
  if (Reader(bytes.subspan(summed.size())).get<std::uint32_t>() != crc32(summed) || length != kSnapshotHeadBytes)
    return damaged("the checksum of the head differs");
  head_.epoch = in.get<std::uint32_t>();
  head_.began_ns = in.get<std::uint64_t>();
  head_.node = in.get<std::uint8_t>();
  const auto source = in.get<std::uint8_t>();
  head_.bucket_bits = in.get<std::uint8_t>();
  const auto name = in.get<std::uint8_t>();
  if (source > static_cast<std::uint8_t>(SnapshotSource::hardware) || head_.node >= kMaxNodes ||
      head_.bucket_bits > kMaxBucketBits || name > kMaxSnapshotName)
    return damaged("the head says what cannot be");
  head_.source = static_cast<SnapshotSource>(source);
  const ByteView text = in.take(name);
  head_.cluster.assign(reinterpret_cast<const char*>(text.data()), text.size());
  return {};
}

wherry::Status SnapshotReader::damaged(const std::string& why) const {
  return {StatusCode::kProtocol, fmt::format("{} (byte {}, block {})", why, at_, blocks_)};
}

wherry::Status SnapshotReader::fill(std::span<std::byte> to, const char* what) {
  std::size_t got = 0;
  while (got < to.size()) {
    WHERRY_ASSIGN(const std::size_t more, source_(to.subspan(got)));
    if (more == 0) {
      at_ += got;
      return damaged(fmt::format("the file ends within {}: it is truncated", what));
    }
    got += more;
  }
  at_ += got;
  return {};
}

Result<std::span<const SnapshotRecord>> SnapshotReader::next() {
  records_.clear();
  if (ended_) return std::span<const SnapshotRecord>();
  std::array<std::byte, kSnapshotBlockHeadBytes> bytes{};
  WHERRY_TRY(fill(bytes, "the head of a block"));
  Reader in(bytes);
  const auto tag = in.get<std::uint32_t>();
  if (tag == kTailTag) {
    WHERRY_TRY(parse_tail(bytes));
    ended_ = true;
    return std::span<const SnapshotRecord>();
  }
  const auto records = in.get<std::uint32_t>();
  const auto length = in.get<std::uint32_t>();
  const auto sum = in.get<std::uint32_t>();
  if (tag != kBlockTag) return damaged("there is neither a block nor the end here");
  if (length > kMaxSnapshotBlockBytes || records == 0 || records > length / kSnapshotRecordHeadBytes)
    return damaged(fmt::format("a block of {} records in {} bytes", records, length));
  block_.resize(length);
  WHERRY_TRY(fill(block_, "a block"));
  if (block_sum(records, block_) != sum) return damaged("the checksum of a block differs");
  sum_ = chained(sum_, sum);
  WHERRY_TRY(parse_block(records));
  ++blocks_;
  return std::span<const SnapshotRecord>(records_);
}

wherry::Status SnapshotReader::parse_block(std::uint32_t records) {
  Reader in(block_);
  records_.reserve(records);
  for (std::uint32_t i = 0; i < records; ++i) {
    SnapshotRecord record;
    record.key = in.get<std::uint64_t>();
    record.version = in.get<std::uint32_t>();
    const auto length = in.get<std::uint16_t>();
    record.value = in.take(length);
    if (!in.ok()) return damaged("a block's last record goes beyond its end");
    if (length > kMaxValueBytes) return damaged(fmt::format("a value of {} bytes", length));
    if (read_records_ != 0 && record.key <= last_key_) return damaged("keys are not in their order");
    last_key_ = record.key;
    ++read_records_;
    read_bytes_ += length;
    records_.push_back(record);
  }
  return in.at_end() ? ok_status() : damaged("bytes follow a block's last record");
}

wherry::Status SnapshotReader::parse_tail(ByteView first) {
  std::array<std::byte, kSnapshotTailBytes> bytes{};
  std::ranges::copy(first, bytes.begin());
  WHERRY_TRY(fill(std::span(bytes).subspan(first.size()), "its end"));
  Reader in(ByteView(bytes).subspan(sizeof kTailTag));
  const auto sum = in.get<std::uint32_t>();
  tail_.records = in.get<std::uint64_t>();
  tail_.value_bytes = in.get<std::uint64_t>();
  tail_.ended_ns = in.get<std::uint64_t>();
  (void)in.get<std::uint32_t>();
  if (in.get<std::uint32_t>() != crc32(ByteView(bytes).first(kSnapshotTailBytes - sizeof(std::uint32_t))))
    return damaged("the checksum of the end differs");
  if (sum != sum_ || tail_.records != read_records_ || tail_.value_bytes != read_bytes_)
    return damaged(
        fmt::format("the end speaks of {} records, and {} are there, or of other ones", tail_.records, read_records_));
  std::array<std::byte, 1> beyond{};
  WHERRY_ASSIGN(const std::size_t more, source_(beyond));
  return more == 0 ? ok_status() : damaged("bytes follow the end");
}

}  // namespace wherry::kv
