// SPDX-License-Identifier: Apache-2.0
#include "kv/snapshot/snapshot_file.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include "base/crc32.hpp"
#include "base/random.hpp"
#include "kv/generated/frame.hpp"

namespace wherry::kv {
namespace {

using Records = std::map<std::uint64_t, std::pair<std::uint32_t, Bytes>>;

Bytes written(const Records& records, const SnapshotHead& head = {.began_ns = 7, .node = 2, .bucket_bits = 12}) {
  Bytes out;
  SnapshotWriter writer([&out](ByteView bytes) {
    out.insert(out.end(), bytes.begin(), bytes.end());
    return ok_status();
  });
  EXPECT_TRUE(writer.begin(head));
  for (const auto& [key, content] : records)
    EXPECT_TRUE(writer.add({.key = key, .version = content.first, .value = content.second}));
  EXPECT_TRUE(writer.finish(9));
  return out;
}

/// A source that gives at most `piece` bytes at a time.
SnapshotReader::Source source_of(ByteView bytes, std::size_t piece = 1000) {
  return [bytes, piece](std::span<std::byte> to) mutable -> Result<std::size_t> {
    const std::size_t count = std::min({to.size(), bytes.size(), piece});
    std::ranges::copy(bytes.first(count), to.begin());
    bytes = bytes.subspan(count);
    return count;
  };
}

Result<Records> read_back(ByteView bytes) {
  auto reader = SnapshotReader::open(source_of(bytes));
  if (!reader) return reader.status();
  Records found;
  for (;;) {
    const auto records = reader->next();
    if (!records) return records.status();
    if (records->empty()) return found;
    for (const SnapshotRecord& one : *records)
      found[one.key] = {one.version, Bytes(one.value.begin(), one.value.end())};
  }
}

Records some(std::size_t count, std::uint64_t seed) {
  SplitMix64 random(seed);
  Records records;
  while (records.size() < count) {
    Bytes value(random.below(kMaxValueBytes + 1));
    for (std::byte& byte : value) byte = static_cast<std::byte>(random());
    records[random()] = {static_cast<std::uint32_t>(random()), std::move(value)};
  }
  return records;
}

/// The check value of CRC-32/ISO-HDLC from the catalogue of parametrised CRC algorithms (G. Cook).
TEST(Crc32, CheckValue_ExpectThatOfTheCatalogue) {
  const std::string text = "123456789";
  const ByteView bytes = std::as_bytes(std::span(text.data(), text.size()));
  EXPECT_EQ(crc32(bytes), 0xcbf43926U);
  for (std::size_t cut = 0; cut <= text.size(); ++cut)
    EXPECT_EQ(crc32(bytes.subspan(cut), crc32(bytes.first(cut))), 0xcbf43926U) << cut;
}

TEST(KvSnapshotFile, RecordsOfManyBlocks_ExpectThemBack) {
  for (const std::size_t count : {0U, 1U, 1500U}) {
    const Records records = some(count, count + 1);
    const auto found = read_back(written(records));
    ASSERT_TRUE(found) << found.status().message();
    EXPECT_EQ(*found, records);
  }
}

TEST(KvSnapshotFile, Head_ExpectWhatWasSaid) {
  const Bytes bytes = written({}, {.began_ns = 5,
                                   .epoch = 70000,
                                   .node = 7,
                                   .source = SnapshotSource::hardware,
                                   .bucket_bits = 21,
                                   .cluster = std::string(100, 'x')});
  auto reader = SnapshotReader::open(source_of(bytes, 1));
  ASSERT_TRUE(reader) << reader.status().message();
  EXPECT_EQ(reader->head().began_ns, 5U);
  EXPECT_EQ(reader->head().epoch, 70000U);
  EXPECT_EQ(reader->head().node, 7);
  EXPECT_EQ(reader->head().source, SnapshotSource::hardware);
  EXPECT_EQ(reader->head().bucket_bits, 21);
  EXPECT_EQ(reader->head().cluster, std::string(kMaxSnapshotName, 'x'));
  ASSERT_TRUE(reader->next());
  EXPECT_EQ(reader->tail().ended_ns, 9U);
}

TEST(KvSnapshotFile, AnyByteChanged_ExpectNoticed) {
  const Bytes whole = written(some(3, 4));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    Bytes changed = whole;
    changed[at] ^= std::byte{0x10};
    EXPECT_FALSE(read_back(changed)) << at;
  }
}

TEST(KvSnapshotFile, Truncated_ExpectNoticedAtAnyLength) {
  const Bytes whole = written(some(3, 5));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const auto found = read_back(ByteView(whole).first(length));
    ASSERT_FALSE(found) << length;
    const bool has_magic = length >= 8;
    EXPECT_EQ(found.status().message().find("truncated") != std::string::npos, has_magic) << length;
  }
  Bytes longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(read_back(longer));
}

/// A block from another file, a repeated block or a missing block. Each block by itself is right.
TEST(KvSnapshotFile, BlocksOfOtherFiles_ExpectNoticed) {
  const Bytes whole = written(some(1, 6)), other = written(some(1, 7));
  const auto block = [](const Bytes& file) {
    return Bytes(file.begin() + kSnapshotHeadBytes, file.end() - kSnapshotTailBytes);
  };
  const auto joined = [&](std::initializer_list<Bytes> blocks) {
    Bytes file(whole.begin(), whole.begin() + kSnapshotHeadBytes);
    for (const Bytes& one : blocks) file.insert(file.end(), one.begin(), one.end());
    file.insert(file.end(), whole.end() - kSnapshotTailBytes, whole.end());
    return file;
  };
  EXPECT_TRUE(read_back(joined({block(whole)})));
  EXPECT_FALSE(read_back(joined({block(other)})));
  EXPECT_FALSE(read_back(joined({block(whole), block(whole)})));
  EXPECT_FALSE(read_back(joined({})));
}

TEST(KvSnapshotFile, SomethingElse_ExpectInvalidArgumentAndOtherSchemasNamed) {
  const std::string text =
      "# a text, longer than the head of a snapshot, so that its length says nothing of what it is"
      " ............................................";
  EXPECT_EQ(read_back(std::as_bytes(std::span(text.data(), text.size()))).status().code(),
            StatusCode::kInvalidArgument);
  Bytes newer = written({});
  newer[8] = std::byte{2};
  const auto found = read_back(newer);
  EXPECT_EQ(found.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(found.status().message().find("schema 2"), std::string::npos) << found.status().message();
}

TEST(KvSnapshotFile, DiskFull_ExpectItsError) {
  SnapshotWriter writer([](ByteView) { return wherry::Status(StatusCode::kUnavailable, "no space"); });
  EXPECT_EQ(writer.begin({}).message(), "no space");
}

}  // namespace
}  // namespace wherry::kv
