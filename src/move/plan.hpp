// SPDX-License-Identifier: Apache-2.0
// A schema turned into the flat list of nodes and buffers that an offload fills in. Client and agent build the same
// plan from the same schema, so that an offload message needs to carry only lengths and addresses.
//
// Order (Arrow columnar format, "Recordbatch message", and C data interface): sections first to last; in a section the
// nodes in pre-order, depth first; in a node validity, then offsets, then values/data. The last section is the record
// batch; those before it are dictionaries, an inner dictionary before the one that refers to it, in the order in which
// an IPC stream must hold them.
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
  /// Index into Plan::sections: the section with the values of these indices; -1: these are not indices.
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

/// Limit of the rows of a node and of the end of a buffer: beyond any address space, and so small that their sums do
/// not overflow.
inline constexpr std::int64_t kMaxExtent = std::int64_t{1} << 48;

/// Limits that a schema must keep, checked on both sides.
inline constexpr std::size_t kMaxDepth = 32;
inline constexpr std::size_t kMaxNodes = 4096;

/// kUnsupported, naming field and type, for unions, views (utf8, binary, list) and run-end encoded fields;
/// kInvalidArgument for an unknown format string, a wrong number of children, an empty schema, or one over the limits.
Result<Plan> make_plan(const Schema& schema);

/// "x.item": the names from the column down to plan.nodes[node], for messages. `schema` is the one from which `plan`
/// was made.
std::string node_path(const Schema& schema, const Plan& plan, std::uint32_t node);

/// Schema to and from bytes. decode_schema parses untrusted bytes: kProtocol if they are not a schema.
void encode_schema(const Schema& schema, Writer& out);
Result<Schema> decode_schema(Reader& in);

}  // namespace wherry::move
