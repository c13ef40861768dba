// SPDX-License-Identifier: Apache-2.0
#include "move/plan.hpp"
#include "base/try.hpp"

#include <string>
#include <string_view>
#include <utility>

namespace wherry::move {
namespace {

/// The path from a column to a node, kept on the stack. It is converted to text only for an error.
struct Path {
  const Path* up = nullptr;
  std::string_view name;

  [[nodiscard]] std::string text() const {
    return up == nullptr ? std::string(name) : up->text() + "." + std::string(name);
  }
};

Status invalid(const Path& path, const std::string& what) {
  return {StatusCode::kInvalidArgument, "field '" + path.text() + "': " + what};
}

class Planner {
 public:
  Result<Plan> run(const Schema& schema) {
    if (schema.empty()) return Status(StatusCode::kInvalidArgument, "the schema has no fields: give at least one");
    Draft batch;
    for (const Field& column : schema) {
      const Path path{nullptr, column.name};
      WHERRY_TRY(add(column, path, -1, 1, batch));
    }
    close(std::move(batch), -1);
    return std::move(plan_);
  }

 private:
  /// A section whose nodes are being collected. Indices are relative to the section.
  struct Draft {
    std::vector<NodeSpec> nodes;
    std::vector<BufferSpec> buffers;
  };

  Status add(const Field& field, const Path& path, std::int32_t parent, std::size_t depth, Draft& draft) {
    if (depth > kMaxDepth) {
      return invalid(path, "nested deeper than " + std::to_string(kMaxDepth) + " levels");
    }
    if (++nodes_seen_ > kMaxNodes) {
      return {StatusCode::kInvalidArgument,
              "the schema has more than " + std::to_string(kMaxNodes) + " fields, nested ones included"};
    }
    WHERRY_TRY(check_texts(field, path));

    const Format format = parse_format(field.format);
    if (format.verdict == Format::Verdict::kUnsupported) {
      return {StatusCode::kUnsupported, "field '" + path.text() + "' is " + format.type + " (format '" + field.format +
                                            "'), which Wherry does not move; cast it to a plain layout first"};
    }
    if (format.verdict == Format::Verdict::kUnknown) {
      return invalid(path, "unknown format '" + field.format +
                               "': give one of the Arrow C data interface, such as 'g' for float64");
    }
    WHERRY_TRY(check_children(field, format, path));

    const auto index = static_cast<std::int32_t>(draft.nodes.size());
    NodeSpec node;
    node.kind = format.kind;
    node.width = format.width;
    node.list_size = format.list_size;
    node.parent = parent;
    node.first_buffer = static_cast<std::uint32_t>(draft.buffers.size());
    node.buffer_count = buffer_count(format.kind);
    node.nullable = field.nullable;
    draft.nodes.push_back(node);
    add_buffers(format.kind, static_cast<std::uint32_t>(index), draft);

    if (!field.dictionary.empty()) {
      WHERRY_ASSIGN(const std::uint32_t section, add_dictionary(field, path, depth));
      draft.nodes[static_cast<std::size_t>(index)].dictionary_section = static_cast<std::int32_t>(section);
    }
    for (const Field& child : field.children) {
      const Path child_path{&path, child.name};
      WHERRY_TRY(add(child, child_path, index, depth + 1, draft));
    }
    return {};
  }

  Result<std::uint32_t> add_dictionary(const Field& field, const Path& path, std::size_t depth) {
    if (field.dictionary.size() > 1) return invalid(path, "has more than one dictionary");
    if (!is_index_format(field.format)) {
      return invalid(path, "dictionary indices must be integers, not of format '" + field.format + "'");
    }
    const Field& values = field.dictionary.front();
    const Path values_path{&path, "dictionary"};
    if (!values.dictionary.empty()) {
      return Status(StatusCode::kUnsupported,
                    "field '" + path.text() +
                        "' is a dictionary whose values are themselves indices of a dictionary, which an "
                        "Arrow IPC stream cannot say; decode one of the two");
    }
    const std::int64_t id = next_dictionary_id_++;  // before the inner ones: ids are in pre-order, sections are not
    Draft draft;
    WHERRY_TRY(add(values, values_path, -1, depth + 1, draft));
    draft.nodes.front().nullable = true;  // Arrow keeps no such flag of a dictionary's values
    return close(std::move(draft), id);
  }

  static Status check_texts(const Field& field, const Path& path) {
    // A name that is not valid UTF-8 cannot be printed in the error.
    if (!is_utf8_text(field.name))
      return {StatusCode::kInvalidArgument, "a field's name is not UTF-8 text without zero bytes"};
    if (!field.metadata.empty() && metadata_bytes(field.metadata) != static_cast<std::int64_t>(field.metadata.size())) {
      return invalid(path, "its metadata is not in the C data interface's binary encoding");
    }
    if (!is_utf8_text(field.format)) return invalid(path, "its format string is not UTF-8 text without zero bytes");
    return {};
  }

  static Status check_children(const Field& field, const Format& format, const Path& path) {
    const std::size_t count = field.children.size();
    if (format.kind == Kind::kStruct) return {};
    if (format.kind == Kind::kList || format.kind == Kind::kFixedSizeList) {
      if (count != 1) return invalid(path, "a list has exactly one child, not " + std::to_string(count));
      return field.format == "+m" ? check_map(field, path) : Status{};
    }
    return count == 0 ? Status{}
                      : invalid(path, "format '" + field.format + "' takes no children, not " + std::to_string(count));
  }

  static Status check_map(const Field& field, const Path& path) {
    const Field& entries = field.children.front();
    if (entries.format != "+s" || entries.children.size() != 2) {
      return invalid(path, "a map's child must be a struct of two members, key and value");
    }
    if (entries.nullable || entries.children.front().nullable) {
      return invalid(path, "a map's entries and keys must not be nullable");
    }
    return {};
  }

  static void add_buffers(Kind kind, std::uint32_t node, Draft& draft) {
    if (kind == Kind::kNull) return;
    draft.buffers.push_back({BufferKind::kValidity, node});
    switch (kind) {
      case Kind::kFixed:
        draft.buffers.push_back({BufferKind::kFixed, node});
        break;
      case Kind::kBool:
        draft.buffers.push_back({BufferKind::kBits, node});
        break;
      case Kind::kList:
        draft.buffers.push_back({BufferKind::kOffsets, node});
        break;
      case Kind::kBinary:
        draft.buffers.push_back({BufferKind::kOffsets, node});
        draft.buffers.push_back({BufferKind::kData, node});
        break;
      case Kind::kNull:
      case Kind::kFixedSizeList:
      case Kind::kStruct:
        break;
    }
  }

  /// Appends a finished section to the plan; returns its index.
  std::uint32_t close(Draft draft, std::int64_t dictionary_id) {
    const auto index = static_cast<std::uint32_t>(plan_.sections.size());
    const auto first_node = static_cast<std::uint32_t>(plan_.nodes.size());
    const auto first_buffer = static_cast<std::uint32_t>(plan_.buffers.size());
    plan_.sections.push_back({first_node, static_cast<std::uint32_t>(draft.nodes.size()), first_buffer,
                              static_cast<std::uint32_t>(draft.buffers.size()), dictionary_id});
    for (NodeSpec& node : draft.nodes) {
      if (node.parent >= 0) node.parent += static_cast<std::int32_t>(first_node);
      node.first_buffer += first_buffer;
      node.section = index;
      plan_.nodes.push_back(node);
    }
    for (BufferSpec& buffer : draft.buffers) {
      buffer.node += first_node;
      plan_.buffers.push_back(buffer);
    }
    return index;
  }

  Plan plan_;
  std::size_t nodes_seen_ = 0;
  std::int64_t next_dictionary_id_ = 0;
};

/// The index of a node among its parent's children (or among the batch's columns).
std::size_t ordinal(const Plan& plan, std::uint32_t node) {
  const std::int32_t parent = plan.nodes[node].parent;
  std::size_t count = 0;
  for (std::uint32_t i = plan.sections[plan.nodes[node].section].first_node; i < node; ++i)
    count += plan.nodes[i].parent == parent;
  return count;
}

const Field& find_field(const Schema& schema, const Plan& plan, std::uint32_t node, std::string& path) {
  const NodeSpec& spec = plan.nodes[node];
  if (spec.parent >= 0) {
    const Field& child =
        find_field(schema, plan, static_cast<std::uint32_t>(spec.parent), path).children[ordinal(plan, node)];
    path += "." + child.name;
    return child;
  }
  if (spec.section + 1 == plan.sections.size()) {
    const Field& column = schema[ordinal(plan, node)];
    path = column.name;
    return column;
  }
  std::uint32_t indices = 0;
  while (plan.nodes[indices].dictionary_section != static_cast<std::int32_t>(spec.section)) ++indices;
  const Field& owner = find_field(schema, plan, indices, path);
  path += ".dictionary";
  return owner.dictionary.front();
}

enum FieldFlags : std::uint8_t {
  kNullable = 1,
  kDictionaryOrdered = 2,
  kMapKeysSorted = 4,
  kHasDictionary = 8,
  kAllFlags = 15
};

/// The smallest field: empty name, format and metadata, flags, no children.
constexpr std::size_t kSmallestField = 3 * sizeof(std::uint32_t) + sizeof(std::uint8_t) + sizeof(std::uint32_t);

void encode_field(const Field& field, Writer& out) {
  std::uint8_t flags = 0;
  if (field.nullable) flags |= kNullable;
  if (field.dictionary_ordered) flags |= kDictionaryOrdered;
  if (field.map_keys_sorted) flags |= kMapKeysSorted;
  if (!field.dictionary.empty()) flags |= kHasDictionary;
  out.put_string(field.name);
  out.put_string(field.format);
  out.put(flags);
  out.put_string(field.metadata);
  out.put(static_cast<std::uint32_t>(field.children.size()));
  for (const Field& child : field.children) encode_field(child, out);
  if (!field.dictionary.empty()) encode_field(field.dictionary.front(), out);
}

class SchemaDecoder {
 public:
  explicit SchemaDecoder(Reader& in) : in_(in) {}

  bool fields(std::size_t depth, std::vector<Field>& out) {
    const auto count = in_.get<std::uint32_t>();
    // Do not allocate for more items than the remaining bytes can hold.
    if (!in_.ok() || count > kMaxNodes - seen_ || count > in_.remaining() / kSmallestField) return false;
    out.resize(count);
    for (Field& field : out) {
      if (!one(depth, field)) return false;
    }
    return true;
  }

 private:
  bool one(std::size_t depth, Field& field) {
    if (depth > kMaxDepth || ++seen_ > kMaxNodes) return false;
    field.name = in_.get_string();
    field.format = in_.get_string();
    const auto flags = in_.get<std::uint8_t>();
    field.nullable = (flags & kNullable) != 0;
    field.dictionary_ordered = (flags & kDictionaryOrdered) != 0;
    field.map_keys_sorted = (flags & kMapKeysSorted) != 0;
    field.metadata = in_.get_string();
    if (!in_.ok() || flags > kAllFlags || !fields(depth + 1, field.children)) return false;
    if ((flags & kHasDictionary) == 0) return true;
    field.dictionary.resize(1);
    return one(depth + 1, field.dictionary.front());
  }

  Reader& in_;
  std::size_t seen_ = 0;
};

}  // namespace

Result<Plan> make_plan(const Schema& schema) { return Planner().run(schema); }

std::string node_path(const Schema& schema, const Plan& plan, std::uint32_t node) {
  std::string path;
  find_field(schema, plan, node, path);
  return path;
}

void encode_schema(const Schema& schema, Writer& out) {
  out.put(static_cast<std::uint32_t>(schema.size()));
  for (const Field& field : schema) encode_field(field, out);
}

Result<Schema> decode_schema(Reader& in) {
  Schema schema;
  if (!SchemaDecoder(in).fields(1, schema)) {
    return Status(StatusCode::kProtocol, "these bytes are not a schema, or one over the limits of " +
                                             std::to_string(kMaxNodes) + " fields and " + std::to_string(kMaxDepth) +
                                             " levels");
  }
  return schema;
}

}  // namespace wherry::move
