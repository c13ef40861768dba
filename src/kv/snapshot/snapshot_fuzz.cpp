// SPDX-License-Identifier: Apache-2.0
// Uses arbitrary bytes as a snapshot file and as a node's list of keys. A snapshot that can be read is written again,
// and must then read as the same.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "kv/generated/frame.hpp"
#include "kv/snapshot/key_stream.hpp"
#include "kv/snapshot/snapshot_file.hpp"

using namespace wherry::kv;

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

SnapshotReader::Source source_of(wherry::ByteView bytes) {
  return [bytes](std::span<std::byte> to) mutable -> wherry::Result<std::size_t> {
    const std::size_t count = std::min<std::size_t>({to.size(), bytes.size(), 100});
    std::copy_n(bytes.begin(), count, to.begin());
    bytes = bytes.subspan(count);
    return count;
  };
}

/// Reads a snapshot and writes it again. Empty: the bytes are not a snapshot.
std::vector<std::byte> copied(wherry::ByteView bytes) {
  auto reader = SnapshotReader::open(source_of(bytes));
  if (!reader) return {};
  std::vector<std::byte> out;
  SnapshotWriter writer([&out](wherry::ByteView more) {
    out.insert(out.end(), more.begin(), more.end());
    return wherry::ok_status();
  });
  check(writer.begin(reader->head()).ok());
  std::uint64_t last = 0, count = 0;
  for (;;) {
    const auto records = reader->next();
    if (!records) return {};
    if (records->empty()) break;
    for (const SnapshotRecord& one : *records) {
      check(one.value.size() <= kMaxValueBytes && (count == 0 || one.key > last));
      last = one.key;
      ++count;
      check(writer.add(one).ok());
    }
  }
  check(count == reader->tail().records);
  check(writer.finish(reader->tail().ended_ns).ok());
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  // A separate allocation, so that AddressSanitizer detects an access beyond its last byte.
  const auto copy = std::make_unique<std::byte[]>(size - 1);
  std::copy_n(reinterpret_cast<const std::byte*>(data) + 1, size - 1, copy.get());
  const wherry::ByteView bytes(copy.get(), size - 1);
  if (data[0] % 2 == 0) {
    const std::vector<std::byte> once = copied(bytes);
    if (!once.empty()) check(copied(once) == once);
    return 0;
  }
  KeyStreamParser parser;
  const std::size_t half = bytes.size() / 2;
  if (parser.feed(bytes.first(half)).ok()) (void)parser.feed(bytes.subspan(half));
  check(parser.keys().size() <= parser.buckets() * kWays);
  return 0;
}
