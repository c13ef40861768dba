// SPDX-License-Identifier: Apache-2.0
#include "move/flatten.hpp"

#include <cstring>
#include <string>

#include "base/hot.hpp"

namespace wherry::move {
namespace {

enum class Fault : std::uint8_t {
  kNone,
  kNegative,
  kTooLong,
  kUnequalRows,
  kTooShort,
  kNullCount,
  kNoValidity,
  kNotNullable,
  kNoValues,
  kNoOffsets,
  kNoData,
  kValueSize,
  kPackedBits,
  kFallingOffsets,
  kChildCount,
  kListSize,
  kNoDictionary,
  kLater,
};

/// Walks the columns and the plan in parallel. It does not allocate or build text: it stores an error as numbers.
class Flattener {
 public:
  Flattener(const Plan& plan, FlatOffload& out) : plan_(plan), out_(out) {}

  bool columns(std::span<const Column> columns) {
    const std::int64_t rows = columns.front().length;
    begin(static_cast<std::uint32_t>(plan_.sections.size() - 1));
    for (const Column& column : columns) {
      if (column.length != rows) return fail(node_, Fault::kUnequalRows, column.length, rows);
      if (!visit(column, 0, rows)) return false;
    }
    return true;
  }

  bool dictionary(std::uint32_t section, const Column& values) {
    begin(section);
    return visit(values, 0, values.length);
  }

  [[nodiscard]] BufferRef* buffers_end() const noexcept { return buffer_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::uint32_t later() const noexcept { return later_; }
  [[nodiscard, gnu::cold, gnu::noinline]] Status status(const Schema& schema) const;

 private:
  void begin(std::uint32_t section) {
    node_ = plan_.sections[section].first_node;
    end_ = node_ + plan_.sections[section].node_count;
    buffer_ = out_.buffers.data() + plan_.sections[section].first_buffer;
  }

  bool fail(std::uint32_t node, Fault fault, std::int64_t got = 0, std::int64_t wanted = 0) noexcept {
    fault_ = fault;
    fault_node_ = node;
    got_ = got;
    wanted_ = wanted;
    return false;
  }

  /// Visits `rows` rows of the column, from its row `start` on. These are the rows that a sliced or nested parent uses.
  /// Both numbers are within [0, kMaxExtent].
  WHERRY_HOT bool visit(const Column& column, std::int64_t start, std::int64_t rows) {
    const std::uint32_t node = node_++;
    const NodeSpec& spec = plan_.nodes[node];
    if (column.length < 0 || column.offset < 0) return fail(node, Fault::kNegative, column.length, column.offset);
    if (column.length > kMaxExtent || column.offset > kMaxExtent) return fail(node, Fault::kTooLong);
    if (start + rows > column.length) return fail(node, Fault::kTooShort, column.length, start + rows);
    const std::int64_t first = column.offset + start;

    std::int64_t nulls = 0;
    if (column.null_count < -1 || column.null_count > column.length)
      return fail(node, Fault::kNullCount, column.null_count, column.length);
    if (spec.kind == Kind::kNull) {
      nulls = rows;
    } else if (column.null_count != 0 && rows != 0) {
      if (column.validity != nullptr) {
        nulls = rows == column.length ? column.null_count : -1;  // of a part, only the agent can tell
        if (nulls > 0 && !spec.nullable) return fail(node, Fault::kNotNullable, nulls, rows);
        put_bits(column.validity, first, rows);
      } else if (column.null_count > 0) {
        return fail(node, Fault::kNoValidity, column.null_count);
      }
    }
    out_.nodes[node] = {rows, nulls};

    const bool takes_later = spec.kind == Kind::kFixed || spec.kind == Kind::kFixedSizeList;
    if (column.later && (!takes_later || spec.dictionary_section >= 0)) return fail(node, Fault::kLater);
    switch (spec.kind) {
      case Kind::kNull:
        return true;
      case Kind::kFixed:
        return fixed(node, spec, column, first, rows);
      case Kind::kBool:
        if (column.value_bytes != 0) return fail(node, Fault::kPackedBits);
        if (column.values == nullptr && rows != 0) return fail(node, Fault::kNoValues);
        put_bits(static_cast<const std::uint8_t*>(column.values), first, rows);
        return true;
      case Kind::kBinary: {
        Range range;
        if (!offsets(node, spec, column, first, rows, range)) return false;
        if (range.count > kMaxExtent || range.start > kMaxExtent) return fail(node, Fault::kTooLong);
        if (column.data == nullptr && range.count != 0) return fail(node, Fault::kNoData, range.count);
        put(column.data, range.start, range.count, 0);
        return true;
      }
      case Kind::kList: {
        Range range;
        if (!offsets(node, spec, column, first, rows, range)) return false;
        if (column.children.size() != 1)
          return fail(node, Fault::kChildCount, static_cast<std::int64_t>(column.children.size()), 1);
        if (range.count > kMaxExtent || range.start > kMaxExtent) return fail(node, Fault::kTooLong);
        return visit(column.children.front(), range.start, range.count);
      }
      case Kind::kFixedSizeList: {
        if (column.children.size() != 1 && column.list_size == 0)
          return fail(node, Fault::kChildCount, static_cast<std::int64_t>(column.children.size()), 1);
        if (column.list_size != 0 && column.list_size != static_cast<std::int32_t>(spec.list_size))
          return fail(node, Fault::kListSize, column.list_size, spec.list_size);
        Range range;
        if (__builtin_mul_overflow(first, std::int64_t{spec.list_size}, &range.start) || range.start > kMaxExtent ||
            __builtin_mul_overflow(rows, std::int64_t{spec.list_size}, &range.count) || range.count > kMaxExtent) {
          return fail(node, Fault::kTooLong);
        }
        if (column.list_size != 0) {
          Column items;
          items.length = range.start + range.count;
          items.values = column.values;
          items.value_bytes = column.value_bytes;
          items.later = column.later;
          return visit(items, range.start, range.count);
        }
        return visit(column.children.front(), range.start, range.count);
      }
      case Kind::kStruct:
        return members(node, column, first, rows);
    }
    return true;
  }

  bool fixed(std::uint32_t node, const NodeSpec& spec, const Column& column, std::int64_t first, std::int64_t rows) {
    if (column.value_bytes != 0 && column.value_bytes != spec.width)
      return fail(node, Fault::kValueSize, column.value_bytes, spec.width);
    std::int64_t end = 0;
    if (__builtin_mul_overflow(first + rows, std::int64_t{spec.width}, &end) || end > kMaxExtent)
      return fail(node, Fault::kTooLong);
    const std::int64_t bytes = rows * spec.width;
    if (column.later) {
      put_later(bytes);
      return true;
    }
    if (column.values == nullptr && bytes != 0) return fail(node, Fault::kNoValues);
    put(column.values, end - bytes, bytes, 0);
    if (spec.dictionary_section >= 0) {
      if (column.dictionary == nullptr) return fail(node, Fault::kNoDictionary);
      out_.roots[static_cast<std::size_t>(spec.dictionary_section)] = column.dictionary;
    }
    return true;
  }

  bool members(std::uint32_t node, const Column& column, std::int64_t first, std::int64_t rows) {
    std::size_t member = 0;
    for (; node_ < end_ && plan_.nodes[node_].parent == static_cast<std::int32_t>(node); ++member) {
      if (member >= column.children.size()) break;
      if (!visit(column.children[member], first, rows)) return false;
    }
    const bool more = node_ < end_ && plan_.nodes[node_].parent == static_cast<std::int32_t>(node);
    if (more || member != column.children.size()) {
      return fail(node, Fault::kChildCount, static_cast<std::int64_t>(column.children.size()), -1);
    }
    return true;
  }

  struct Range {
    std::int64_t start = 0;
    std::int64_t count = 0;
  };

  /// Adds the offsets, and returns the range that they select. Without rows it does not read memory, because Arrow then
  /// allows a null pointer.
  bool offsets(std::uint32_t node, const NodeSpec& spec, const Column& column, std::int64_t first, std::int64_t rows,
               Range& range) {
    if (rows == 0) {
      put(nullptr, 0, 0, 0);
      return true;
    }
    if (column.offsets == nullptr) return fail(node, Fault::kNoOffsets);
    const std::int64_t begin = load(column.offsets, first, spec.width);
    const std::int64_t end = load(column.offsets, first + rows, spec.width);
    if (begin < 0 || end < begin) return fail(node, Fault::kFallingOffsets, end, begin);
    put(column.offsets, first * spec.width, (rows + 1) * spec.width, begin);
    range = {begin, end - begin};
    return true;
  }

  static std::int64_t load(const void* offsets, std::int64_t index, std::uint32_t width) noexcept {
    if (width == sizeof(std::int32_t)) {
      std::int32_t value;
      std::memcpy(&value, static_cast<const char*>(offsets) + index * 4, sizeof value);
      return value;
    }
    std::int64_t value;
    std::memcpy(&value, static_cast<const char*>(offsets) + index * 8, sizeof value);
    return value;
  }

  void put_bits(const std::uint8_t* bits, std::int64_t first, std::int64_t rows) noexcept {
    const std::int64_t skip = first % 8;
    put(bits, first / 8, rows == 0 ? 0 : (skip + rows + 7) / 8, skip);
  }

  void put_later(std::int64_t bytes) noexcept {
    *buffer_++ = {0, static_cast<std::uint64_t>(bytes), 0, 0, 0};
    bytes_ += static_cast<std::uint64_t>(bytes);
    later_ += bytes != 0 ? 1 : 0;
  }

  void put(const void* base, std::int64_t at, std::int64_t bytes, std::int64_t rebase) noexcept {
    if (bytes == 0) {
      *buffer_++ = {};
      return;
    }
    *buffer_++ = {reinterpret_cast<std::uintptr_t>(base) + static_cast<std::uint64_t>(at),
                  static_cast<std::uint64_t>(bytes), 0, 0, rebase};
    bytes_ += static_cast<std::uint64_t>(bytes);
  }

  const Plan& plan_;
  FlatOffload& out_;
  std::uint32_t node_ = 0;
  std::uint32_t end_ = 0;
  BufferRef* buffer_ = nullptr;
  std::uint64_t bytes_ = 0;
  std::uint32_t later_ = 0;

  Fault fault_ = Fault::kNone;
  std::uint32_t fault_node_ = 0;
  std::int64_t got_ = 0, wanted_ = 0;
};

Status Flattener::status(const Schema& schema) const {
  const std::string got = std::to_string(got_);
  const std::string wanted = std::to_string(wanted_);
  std::string what;
  switch (fault_) {
    case Fault::kNone:
      return {};
    case Fault::kNegative:
      what = "negative length (" + got + ") or offset (" + wanted + ")";
      break;
    case Fault::kTooLong:
      what = "lengths overflow: more than 2^48 rows or bytes";
      break;
    case Fault::kUnequalRows:
      what = "has " + got + " rows where the first column has " + wanted;
      break;
    case Fault::kTooShort:
      what = "has " + got + " rows where its parent needs " + wanted;
      break;
    case Fault::kNullCount:
      what = "null_count is " + got + ", not -1 (unknown) or 0 to its length of " + wanted;
      break;
    case Fault::kNoValidity:
      what = "has a null_count of " + got + " and no validity bitmap";
      break;
    case Fault::kNotNullable:
      what = got + " of its " + wanted +
             " rows are null, and its field is not nullable: open the stream with a field " +
             "that is, or fill the nulls";
      break;
    case Fault::kNoValues:
      what = "values is a null pointer";
      break;
    case Fault::kNoOffsets:
      what = "offsets is a null pointer";
      break;
    case Fault::kNoData:
      what = "data is a null pointer where the offsets select " + got + " bytes";
      break;
    case Fault::kValueSize:
      what = "values of " + got + " bytes each were given where the field's type has " + wanted;
      break;
    case Fault::kPackedBits:
      what = "numbers were given where the field is packed bits: use Column::bits";
      break;
    case Fault::kFallingOffsets:
      what = "offsets are negative or fall: first " + wanted + ", last " + got;
      break;
    case Fault::kChildCount:
      what = "has " + got + " children, " + (wanted_ < 0 ? "not one for each member of its field" : "not one");
      break;
    case Fault::kListSize:
      what = got_ < 0 ? "its values do not fill the last row of " + std::to_string(-got_)
                      : "rows of " + got + " values were given where the field has " + wanted;
      break;
    case Fault::kNoDictionary:
      what = "dictionary is a null pointer where the field is dictionary-encoded";
      break;
    case Fault::kLater:
      what = "only a fixed-width column, or a fixed-size list of those, can be given later";
      break;
  }
  return {StatusCode::kInvalidArgument, "column '" + node_path(schema, plan_, fault_node_) + "': " + what};
}

/// The sections were written with space for all buffers. Closes the gaps of absent buffers, and returns the end.
BufferRef* close_gaps(const Plan& plan, FlatOffload& out) {
  BufferRef* to = out.buffers.data();
  for (const Section& section : plan.sections) {
    std::size_t count = section.buffer_count;
    for (std::uint32_t i = section.first_node; i < section.first_node + section.node_count; ++i) {
      count -= plan.nodes[i].kind != Kind::kNull && out.nodes[i].null_count == 0;
    }
    std::memmove(to, out.buffers.data() + section.first_buffer, count * sizeof(BufferRef));
    to += count;
  }
  return to;
}

}  // namespace

[[gnu::cold, gnu::noinline]] static Status wrong_column_count(std::size_t got, std::size_t wanted) {
  return {StatusCode::kInvalidArgument,
          "got " + std::to_string(got) + " columns for a schema of " + std::to_string(wanted) + " fields"};
}

Status flatten(const Schema& schema, const Plan& plan, std::span<const Column> columns, FlatOffload& out) {
  if (columns.size() != schema.size()) {
    out.clear();
    return wrong_column_count(columns.size(), schema.size());
  }
  // Do not clear the memory first: overwriting the old content is cheaper.
  out.nodes.resize(plan.nodes.size());
  out.buffers.resize(plan.buffers.size());
  out.roots.resize(plan.sections.size());

  Flattener walk(plan, out);
  bool ok = walk.columns(columns);
  BufferRef* end = walk.buffers_end();
  if (plan.sections.size() > 1) {
    // Go backwards: a dictionary is found in the section that refers to it, and that section comes after it.
    for (std::size_t section = plan.sections.size() - 1; ok && section-- > 0;) {
      ok = walk.dictionary(static_cast<std::uint32_t>(section), *out.roots[section]);
    }
    if (ok) end = close_gaps(plan, out);
  }
  if (!ok) {
    out.clear();
    return walk.status(schema);
  }
  out.buffers.resize(static_cast<std::size_t>(end - out.buffers.data()));
  out.bytes = walk.bytes();
  out.later = walk.later();
  return {};
}

}  // namespace wherry::move
