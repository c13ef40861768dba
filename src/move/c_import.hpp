// SPDX-License-Identifier: Apache-2.0
// Client side: Arrow C data interface structs, as any Arrow library exports them, become a Schema and Columns. No Arrow
// needed. The structs are trusted as any in-process pointer is; what is checked is that array and schema belong
// together.
#pragma once

#include <span>
#include <vector>

#include "move/c_data.hpp"
#include "wherry/column.hpp"
#include "wherry/schema.hpp"
#include "wherry/status.hpp"

namespace wherry::move {

/// Owns the Column objects of one whole tree, dictionaries and children included (not the memory they point to).
/// Reusable: a warm columns_from_c_array does not allocate. Move-only, because the columns point at each other.
class ColumnTree {
 public:
  ColumnTree() = default;
  ColumnTree(ColumnTree&&) noexcept = default;
  ColumnTree& operator=(ColumnTree&&) noexcept = default;
  ColumnTree(const ColumnTree&) = delete;
  ColumnTree& operator=(const ColumnTree&) = delete;

  /// One per field of the schema: what flatten and Stream::post take. Valid until the tree is filled again or
  /// destroyed.
  [[nodiscard]] std::span<const Column> columns() const noexcept { return std::span(nodes_).first(width_); }

 private:
  friend class TreeBuilder;
  std::vector<Column>
      nodes_;  ///< the columns first, then children, siblings side by side; never grows while it is being filled
  std::size_t width_ = 0;
};

/// `schema` is that of a record batch, a struct (format "+s"); its members are the fields. Not released: it stays the
/// caller's. kInvalidArgument if it is no struct or breaks the interface's rules. Whether Wherry moves the types,
/// make_plan says.
/// `metadata`, if it is wanted, becomes the schema's own.
Result<Schema> from_c_schema(const ArrowSchema& schema, std::string* metadata = nullptr);

/// One field, of any type.
Result<Field> from_c_field(const ArrowSchema& schema);

/// `array` is a struct array: a record batch, sliced or not. Not released: it, and all it points to, stays the caller's
/// and must outlive the offload. kInvalidArgument, naming the field by path, if the counts of buffers or children are
/// not those of the schema's types or if rows of the batch itself are null. `out` is empty after an error.
Status columns_from_c_array(const Schema& schema, const ArrowArray& array, ColumnTree& out);

}  // namespace wherry::move
