// SPDX-License-Identifier: Apache-2.0
// The parts of an IPC stream that are known before its first frame. The metadata of a record batch or dictionary batch
// is a flatbuffer of fixed shape (Arrow format/Message.fbs). So this code lays it out once, by hand, and keeps the
// positions of its few numbers.
#include <arrow/buffer.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/dictionary.h>
#include <arrow/ipc/reader.h>
#include <arrow/ipc/writer.h>
#include <arrow/result.h>
#include <arrow/type.h>

#include <bit>
#include <cstring>
#include <initializer_list>
#include <string>

#include "base/try.hpp"
#include "move/arrow_schema.hpp"
#include "move/layout.hpp"

namespace wherry::move {
namespace {

/// Values from Message.fbs and Schema.fbs.
enum : std::uint16_t { kMetadataVersion5 = 4 };
enum : std::uint8_t { kHeaderDictionaryBatch = 2, kHeaderRecordBatch = 3 };

constexpr std::uint32_t kEntryBytes = 16;  ///< of a FieldNode, and of a Buffer

/// Writes a flatbuffer from front to back, and patches each offset when its target is known. Positions count from the
/// start of the encapsulated message, whose prefix of 8 bytes preserves the flatbuffer's alignment.
class FlatWriter {
 public:
  FlatWriter() {
    put(std::uint32_t{0xFFFFFFFF});
    put(std::uint32_t{0});  // metadata length: the layout's business
  }

  template <typename T>
  std::uint32_t put(T value) {
    const std::uint32_t at = position();
    bytes_.resize(bytes_.size() + sizeof value);
    std::memcpy(bytes_.data() + at, &value, sizeof value);
    return at;
  }

  /// Starts a table of `size` bytes and returns its position; the caller writes the fields. Field i lies `fields[i]`
  /// bytes from the table's start (0: absent, so its default is valid). The first int64 starts at byte `aligned`.
  std::uint32_t table(std::initializer_list<std::uint16_t> fields, std::uint16_t size, std::uint32_t aligned) {
    align(2, 0);
    const std::uint32_t vtable = put(static_cast<std::uint16_t>(2 * (fields.size() + 2)));
    put(size);
    for (const std::uint16_t field : fields) put(field);
    align(8, aligned);
    const std::uint32_t at = position();
    put(static_cast<std::int32_t>(at - vtable));
    return at;
  }

  /// Writes a vector of `count` structs of 16 zero bytes. Returns the position of the first one.
  std::uint32_t entries(std::uint32_t offset_at, std::uint32_t count) {
    align(8, sizeof(std::uint32_t));
    point(offset_at, put(count));
    const std::uint32_t first = position();
    bytes_.resize(bytes_.size() + std::size_t{count} * kEntryBytes);
    return first;
  }

  /// Sets the offset at `offset_at` to `target`, which must lie behind it.
  void point(std::uint32_t offset_at, std::uint32_t target) {
    const std::uint32_t distance = target - offset_at;
    std::memcpy(bytes_.data() + offset_at, &distance, sizeof distance);
  }

  std::vector<std::byte> take() && {
    align(8, 0);
    return std::move(bytes_);
  }

 private:
  [[nodiscard]] std::uint32_t position() const noexcept { return static_cast<std::uint32_t>(bytes_.size()); }
  /// Writes zeros until position + lead is a multiple of `alignment`.
  void align(std::size_t alignment, std::size_t lead) {
    while ((bytes_.size() + lead) % alignment != 0) bytes_.push_back(std::byte{0});
  }

  std::vector<std::byte> bytes_;
};

struct Positions {
  std::uint32_t rows, nodes, buffers, body_length;
};

Positions write_message(const Section& section, FlatWriter& out) {
  const bool dictionary = section.dictionary_id >= 0;
  Positions at{};

  const std::uint32_t root = out.put(std::uint32_t{0});
  // Message { version, header_type, header, bodyLength }
  out.point(root, out.table({4, 6, 16, 8}, 20, 8));
  out.put(std::uint16_t{kMetadataVersion5});
  out.put(dictionary ? std::uint8_t{kHeaderDictionaryBatch} : std::uint8_t{kHeaderRecordBatch});
  out.put(std::uint8_t{0});
  at.body_length = out.put(std::int64_t{0});
  std::uint32_t header = out.put(std::uint32_t{0});

  if (dictionary) {
    // DictionaryBatch { id, data, isDelta = false }
    out.point(header, out.table({4, 12}, 16, 4));
    out.put(section.dictionary_id);
    header = out.put(std::uint32_t{0});
  }
  // RecordBatch { length, nodes, buffers }
  out.point(header, out.table({4, 12, 16}, 20, 4));
  at.rows = out.put(std::int64_t{0});
  const std::uint32_t nodes = out.put(std::uint32_t{0});
  const std::uint32_t buffers = out.put(std::uint32_t{0});
  at.nodes = out.entries(nodes, section.node_count);
  at.buffers = out.entries(buffers, section.buffer_count);
  return at;
}

Status refused(const arrow::Status& status) {
  return {StatusCode::kInvalidArgument, "Arrow cannot write the schema: " + status.message()};
}

/// The schema as an encapsulated message, with dictionaries numbered as in the plan. Checks it with Arrow's
/// reader.
Result<std::vector<std::byte>> write_schema(const Schema& schema, const Plan& plan, const std::string& metadata) {
  WHERRY_ASSIGN(const std::shared_ptr<arrow::Schema> types, to_arrow(schema, metadata));
  arrow::Result<std::shared_ptr<arrow::Buffer>> message = arrow::ipc::SerializeSchema(*types);
  if (!message.ok()) return refused(message.status());

  arrow::ipc::DictionaryMemo memo;
  arrow::io::BufferReader reader(*message);
  if (const auto read = arrow::ipc::ReadSchema(&reader, &memo); !read.ok()) return refused(read.status());
  if (memo.fields().num_dicts() != static_cast<int>(plan.sections.size()) - 1) {
    return Status(StatusCode::kUnsupported,
                  "a dictionary inside an extension type that is itself a dictionary's values cannot be moved");
  }
  const auto* data = reinterpret_cast<const std::byte*>((*message)->data());
  return std::vector<std::byte>(data, data + (*message)->size());
}

}  // namespace

Result<std::shared_ptr<const IpcTemplate>> IpcTemplate::make(const Schema& schema, const Plan& plan,
                                                             std::uint32_t alignment,
                                                             const std::string& schema_metadata) {
  constexpr std::uint32_t kMostAlignment = 1u << 30;  // the metadata's length, padding included, is an int32
  if (!std::has_single_bit(alignment) || alignment < 8 || alignment > kMostAlignment) {
    return Status(StatusCode::kInvalidArgument,
                  "an alignment of " + std::to_string(alignment) + " is not a power of two from 8 to 2^30");
  }
  auto made = std::make_shared<IpcTemplate>();
  WHERRY_ASSIGN(made->schema_message_, write_schema(schema, plan, schema_metadata));
  made->plan_ = plan;
  made->alignment_ = alignment;
  for (const Section& section : plan.sections) {
    FlatWriter out;
    const Positions at = write_message(section, out);
    made->sections_.push_back({std::move(out).take(), at.rows, at.nodes, at.buffers, at.body_length});
  }
  return std::shared_ptr<const IpcTemplate>(std::move(made));
}

}  // namespace wherry::move
