// SPDX-License-Identifier: Apache-2.0
// Client side: Arrow C data interface structs of any Arrow library become a Schema and Columns, without an Arrow
// library. The structs are trusted like any pointer of this process: only the match of array and schema is checked.
#pragma once

#include <span>
#include <vector>

#include "move/c_data.hpp"
#include "wherry/column.hpp"
#include "wherry/schema.hpp"
#include "wherry/status.hpp"

namespace wherry::move {

/// Owns the Column objects of a whole tree, with dictionaries and children, but not the memory that they point to.
/// Reusable: a later columns_from_c_array does not allocate. Move-only, because the columns point at each other.
class ColumnTree {
 public:
  ColumnTree() = default;
  ColumnTree(ColumnTree&&) noexcept = default;
  ColumnTree& operator=(ColumnTree&&) noexcept = default;
  ColumnTree(const ColumnTree&) = delete;
  ColumnTree& operator=(const ColumnTree&) = delete;

  /// One element per field of the schema, as flatten and Stream::post need them. Valid until the tree is filled again
  /// or destroyed.
  [[nodiscard]] std::span<const Column> columns() const noexcept { return std::span(nodes_).first(width_); }

 private:
  friend class TreeBuilder;
  std::vector<Column>
      nodes_;  ///< the columns first, then children, siblings side by side; never grows while it is being filled
  std::size_t width_ = 0;
};

/// `schema` describes a record batch: a struct (format "+s") whose members are the fields. The caller keeps it; it is
/// not released. kInvalidArgument if it is not a struct or breaks the interface's rules. make_plan checks whether
/// Wherry supports the types. If `metadata` is not null, it gets the metadata of the schema.
Result<Schema> from_c_schema(const ArrowSchema& schema, std::string* metadata = nullptr);

/// Converts one field of any type.
Result<Field> from_c_field(const ArrowSchema& schema);

/// `array` is a struct array, which is a record batch, sliced or not. It is not released. The array and all its memory
/// belong to the caller and must outlive the offload. kInvalidArgument, with the path of the field, if the counts of
/// buffers or children differ from those of the schema's types, or if rows of the batch itself are null. `out` is empty
/// after an error.
Status columns_from_c_array(const Schema& schema, const ArrowArray& array, ColumnTree& out);

}  // namespace wherry::move
