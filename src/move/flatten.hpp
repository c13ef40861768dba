// SPDX-License-Identifier: Apache-2.0
// Client side: converts a tree of Columns to the node and buffer lists of one offload. From the application's memory it
// reads at most two offsets per variable-length node, and no values. So its cost does not depend on the number of rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/hot.hpp"
#include "base/hot_memory.hpp"
#include "move/plan.hpp"
#include "wherry/column.hpp"

namespace wherry::move {

/// A node in the message: 16 bytes.
struct NodeRef {
  std::int64_t length;      ///< rows
  std::int64_t null_count;  ///< 0: no validity buffer follows; > 0: exact; -1: unknown, the agent counts
  friend bool operator==(const NodeRef&, const NodeRef&) = default;
};

/// A buffer in the message: 32 bytes. One per buffer of the plan, in order, without validity if null_count is 0.
struct BufferRef {
  std::uint64_t address;  ///< in the client's address space; byte that holds the first row
  std::uint64_t bytes;    ///< from address; exactly what the agent gets
  std::uint32_t region;   ///< region id; filled in by the session, 0 here
  std::uint32_t reserved;
  std::int64_t rebase;  ///< validity, bits: index (0..7) of the first row's bit in the first byte; offsets: value of
                        ///< the first offset
  friend bool operator==(const BufferRef&, const BufferRef&) = default;
};

struct FlatOffload {
  HotVector<NodeRef> nodes;
  HotVector<BufferRef> buffers;
  std::uint64_t bytes = 0;         ///< sum of buffer bytes
  std::uint32_t later = 0;         ///< buffers of columns that are given later: their address is 0
  HotVector<const Column*> roots;  ///< scratch of flatten: dictionaries by section; means nothing after the call
  void clear() noexcept {
    nodes.clear();
    buffers.clear();
    bytes = 0;
    later = 0;
  }
};

/// Fills `out` (cleared first; its capacity is reused, so a warm call does not allocate). Slices (Column::offset, of
/// parents too) become adjusted addresses. A node without validity whose null_count is -1 is sent as 0. Dictionaries
/// are sent with every offload. kInvalidArgument, with the field's path ("x.item"), if columns do not match the schema:
/// count, negative length or offset, children shorter than their parent needs, a null pointer where bytes are needed,
/// overflowing lengths, columns with different numbers of rows, decreasing offsets, a missing dictionary. `plan` was
/// made from `schema`, which is used only for names.
WHERRY_HOT Status flatten(const Schema& schema, const Plan& plan, std::span<const Column> columns, FlatOffload& out);

}  // namespace wherry::move
