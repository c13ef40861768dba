// SPDX-License-Identifier: Apache-2.0
// Converts a schema to the flat list of nodes and buffers that an offload fills in. Client and agent build the same
// plan from the same schema, so an offload message needs only lengths and addresses.
//
// Order (Arrow columnar format, "Recordbatch message", and C data interface): sections first to last; in a section the
// nodes in pre-order, depth first; in a node validity, then offsets, then values/data. The last section is the record
// batch. The earlier sections are dictionaries, in the order of an IPC stream: an inner dictionary comes before the one
// that refers to it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/hot_memory.hpp"
#include "move/format.hpp"
#include "wherry/schema.hpp"

namespace wherry::move {

enum class BufferKind : std::uint8_t { kValidity, kBits, kFixed, kOffsets, kData };

struct NodeSpec {
  Kind kind = Kind::kNull;
  std::uint32_t width = 0;         ///< bytes: of a value (kFixed), of an offset (kBinary, kList)
  std::uint32_t list_size = 0;     ///< kFixedSizeList
  std::int32_t parent = -1;        ///< index into Plan::nodes; -1: a column, or the root of a dictionary
  std::uint32_t first_buffer = 0;  ///< index into Plan::buffers
  std::uint32_t buffer_count = 0;
  std::uint32_t section = 0;
  /// Index into Plan::sections: the section with this node's dictionary values. -1: the node has no dictionary.
  std::int32_t dictionary_section = -1;
  bool nullable = true;  ///< of the field; the root of a dictionary: true
};

struct BufferSpec {
  BufferKind kind = BufferKind::kValidity;
  std::uint32_t node = 0;
};

struct Section {
  std::uint32_t first_node = 0, node_count = 0;
  std::uint32_t first_buffer = 0, buffer_count = 0;
  /// -1: the record batch. Ids as Arrow C++ gives them on ImportSchema (pre-order, from 0).
  std::int64_t dictionary_id = -1;
};

struct Plan {
  HotVector<NodeSpec> nodes;
  HotVector<BufferSpec> buffers;
  HotVector<Section> sections;  ///< at least one
};

/// The limit of a node's rows and of a buffer's end. It is larger than any address space, and small enough that sums do
/// not overflow.
inline constexpr std::int64_t kMaxExtent = std::int64_t{1} << 48;

/// Limits of a schema, which both sides check.
inline constexpr std::size_t kMaxDepth = 32;
inline constexpr std::size_t kMaxNodes = 4096;

/// kUnsupported, with field and type: unions, views (utf8, binary, list) and run-end encoded fields. kInvalidArgument:
/// an unknown format string, a wrong number of children, an empty schema, or a schema over the limits.
Result<Plan> make_plan(const Schema& schema);

/// "x.item": the names from the column to plan.nodes[node], for messages. `plan` was made from
/// `schema`.
std::string node_path(const Schema& schema, const Plan& plan, std::uint32_t node);

/// Converts a Schema to bytes and back. decode_schema parses untrusted bytes; kProtocol: not a schema.
void encode_schema(const Schema& schema, Writer& out);
Result<Schema> decode_schema(Reader& in);

}  // namespace wherry::move
