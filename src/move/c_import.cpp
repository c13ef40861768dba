// SPDX-License-Identifier: Apache-2.0
#include "move/c_import.hpp"

#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/try.hpp"
#include "move/format.hpp"
#include "move/plan.hpp"

namespace wherry::move {
namespace {

Status invalid(std::string what) { return {StatusCode::kInvalidArgument, std::move(what)}; }

/// Copies binary key/value metadata. The encoding does not store its total length, so this computes it. False if a
/// count in it is negative.
bool copy_metadata(const char* from, std::string& to) {
  std::size_t at = 0;
  const auto take_count = [&] {
    std::int32_t value;
    std::memcpy(&value, from + at, sizeof value);
    at += sizeof value;
    return value;
  };
  const std::int32_t pairs = take_count();
  if (pairs < 0) return false;
  for (std::int64_t text = 0; text < 2 * std::int64_t{pairs}; ++text) {
    const std::int32_t length = take_count();
    if (length < 0) return false;
    at += static_cast<std::size_t>(length);
  }
  to.assign(from, at);
  return true;
}

Status read_field(const ArrowSchema& schema, std::size_t depth, Field& out) {
  if (schema.release == nullptr) return invalid("the ArrowSchema was released already");
  if (schema.format == nullptr) return invalid("an ArrowSchema has no format");
  if (depth > kMaxDepth)
    return invalid("the ArrowSchema is nested deeper than " + std::to_string(kMaxDepth) + " levels");
  if (schema.n_children < 0 || schema.n_children > static_cast<std::int64_t>(kMaxNodes) ||
      (schema.n_children > 0 && schema.children == nullptr)) {
    return invalid("the ArrowSchema of format '" + std::string(schema.format) + "' has a bad number of children");
  }
  out.name = schema.name == nullptr ? "" : schema.name;
  out.format = schema.format;
  out.nullable = (schema.flags & ARROW_FLAG_NULLABLE) != 0;
  out.dictionary_ordered = (schema.flags & ARROW_FLAG_DICTIONARY_ORDERED) != 0;
  out.map_keys_sorted = (schema.flags & ARROW_FLAG_MAP_KEYS_SORTED) != 0;
  if (schema.metadata != nullptr && !copy_metadata(schema.metadata, out.metadata)) {
    return invalid("the metadata of field '" + out.name + "' is not in the C data interface's binary encoding");
  }
  out.children.resize(static_cast<std::size_t>(schema.n_children));
  for (std::size_t i = 0; i < out.children.size(); ++i) {
    if (schema.children[i] == nullptr)
      return invalid("child " + std::to_string(i) + " of field '" + out.name + "' is a null pointer");
    WHERRY_TRY(read_field(*schema.children[i], depth + 1, out.children[i]));
  }
  if (schema.dictionary != nullptr) {
    out.dictionary.resize(1);
    return read_field(*schema.dictionary, depth + 1, out.dictionary.front());
  }
  return {};
}

std::size_t count_fields(const std::vector<Field>& fields) {
  std::size_t count = fields.size();
  for (const Field& field : fields) count += count_fields(field.children) + count_fields(field.dictionary);
  return count;
}

/// Whether rows of the record batch itself are null. Its bitmap is almost always absent.
bool has_null_rows(const ArrowArray& batch) {
  if (batch.null_count == 0 || batch.n_buffers == 0 || batch.buffers == nullptr || batch.buffers[0] == nullptr)
    return batch.null_count > 0;
  if (batch.null_count > 0) return true;
  const auto* bits = static_cast<const std::uint8_t*>(batch.buffers[0]);
  for (std::int64_t row = batch.offset; row < batch.offset + batch.length; ++row) {
    if ((bits[row / 8] >> (row % 8) & 1) == 0) return true;
  }
  return false;
}

}  // namespace

class TreeBuilder {
 public:
  TreeBuilder(const Schema& schema, ColumnTree& out) : schema_(schema), nodes_(out.nodes_), width_(out.width_) {}

  Status run(const ArrowArray& batch) {
    nodes_.clear();
    width_ = 0;
    WHERRY_TRY(check_batch(batch));
    nodes_.reserve(count_fields(schema_));  // from here on pointers to nodes stay good
    nodes_.resize(schema_.size());
    for (std::size_t i = 0; i < schema_.size(); ++i) {
      Status s = fill(schema_[i], batch.children[i], i);
      const Column& column = nodes_[i];
      if (s && batch.length > column.length - batch.offset) {
        s = invalid("has " + std::to_string(column.length) + " rows where the batch selects " +
                    std::to_string(batch.length) + " from " + std::to_string(batch.offset));
      }
      if (!s) {
        nodes_.clear();
        return invalid("column '" + schema_[i].name + "': " + s.message());
      }
      select(batch, nodes_[i]);
    }
    width_ = schema_.size();
    return {};
  }

 private:
  Status check_batch(const ArrowArray& batch) const {
    if (batch.release == nullptr) return invalid("the ArrowArray was released already");
    if (batch.length < 0 || batch.offset < 0 || batch.length > kMaxExtent || batch.offset > kMaxExtent) {
      return invalid("the ArrowArray has a bad length (" + std::to_string(batch.length) + ") or offset (" +
                     std::to_string(batch.offset) + ")");
    }
    if (batch.n_children != static_cast<std::int64_t>(schema_.size()) || batch.children == nullptr ||
        batch.n_buffers != 1) {
      return invalid("the ArrowArray is not a struct array of " + std::to_string(schema_.size()) + " columns: it has " +
                     std::to_string(batch.n_children) + " children and " + std::to_string(batch.n_buffers) +
                     " buffers");
    }
    if (has_null_rows(batch)) return invalid("the ArrowArray has null rows, which a record batch cannot have");
    return {};
  }

  /// Restricts a column to the rows that the batch's offset and length select.
  static void select(const ArrowArray& batch, Column& column) noexcept {
    if (batch.length != column.length && column.null_count > 0) column.null_count = -1;
    column.offset += batch.offset;
    column.length = batch.length;
  }

  Status fill(const Field& field, const ArrowArray* array, std::size_t at) {
    if (array == nullptr) return invalid("is a null pointer");
    const Format format = parse_format(field.format);
    if (format.verdict != Format::Verdict::kKnown)
      return invalid("format '" + field.format + "' is not one that Wherry moves");
    if (array->n_buffers != buffer_count(format.kind) || (array->n_buffers > 0 && array->buffers == nullptr)) {
      return invalid("has " + std::to_string(array->n_buffers) + " buffers where format '" + field.format + "' has " +
                     std::to_string(buffer_count(format.kind)));
    }
    if (array->n_children != static_cast<std::int64_t>(field.children.size()) ||
        (array->n_children > 0 && array->children == nullptr)) {
      return invalid("has " + std::to_string(array->n_children) + " children where its field has " +
                     std::to_string(field.children.size()));
    }
    if ((array->dictionary != nullptr) == field.dictionary.empty()) {
      return invalid(array->dictionary == nullptr ? "has no dictionary, its field has"
                                                  : "has a dictionary, its field has not");
    }
    if (array->length < 0 || array->offset < 0 || array->length > kMaxExtent || array->offset > kMaxExtent) {
      return invalid("has a bad length (" + std::to_string(array->length) + ") or offset (" +
                     std::to_string(array->offset) + ")");
    }

    Column& column = nodes_[at];
    column.length = array->length;
    column.offset = array->offset;
    column.null_count = array->null_count;
    if (format.kind != Kind::kNull) column.validity = static_cast<const std::uint8_t*>(array->buffers[0]);
    if (format.kind == Kind::kFixed || format.kind == Kind::kBool) column.values = array->buffers[1];
    if (format.kind == Kind::kList || format.kind == Kind::kBinary) column.offsets = array->buffers[1];
    if (format.kind == Kind::kBinary) column.data = array->buffers[2];

    const std::size_t first = nodes_.size();
    nodes_.resize(first + field.children.size());
    column.children = std::span<const Column>(nodes_).subspan(first);
    for (std::size_t i = 0; i < field.children.size(); ++i) {
      if (Status s = fill(field.children[i], array->children[i], first + i); !s)
        return within(field.children[i].name, s);
    }
    if (!field.dictionary.empty()) {
      const std::size_t dictionary = nodes_.size();
      nodes_.emplace_back();
      column.dictionary = &nodes_[dictionary];
      if (Status s = fill(field.dictionary.front(), array->dictionary, dictionary); !s) return within("dictionary", s);
    }
    return {};
  }

  static Status within(std::string_view name, const Status& inner) {
    return invalid("in '" + std::string(name) + "': " + inner.message());
  }

  const Schema& schema_;
  std::vector<Column>& nodes_;
  std::size_t& width_;
};

Result<Field> from_c_field(const ArrowSchema& schema) {
  Field field;
  WHERRY_TRY(read_field(schema, 0, field));
  return field;
}

Result<Schema> from_c_schema(const ArrowSchema& schema, std::string* metadata) {
  WHERRY_ASSIGN(Field root, from_c_field(schema));
  if (root.format != "+s" || !root.dictionary.empty()) {
    return invalid("the ArrowSchema is of format '" + root.format + "', not that of a record batch ('+s')");
  }
  if (metadata != nullptr) *metadata = std::move(root.metadata);
  return std::move(root.children);
}

Status columns_from_c_array(const Schema& schema, const ArrowArray& array, ColumnTree& out) {
  return TreeBuilder(schema, out).run(array);
}

}  // namespace wherry::move
