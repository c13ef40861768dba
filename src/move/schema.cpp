// SPDX-License-Identifier: Apache-2.0
// Fields and columns that applications build by hand.
#include "wherry/schema.hpp"

#include "wherry/column.hpp"

namespace wherry {
namespace {

Field nested(std::string name, std::string format, Field item, bool nullable) {
  Field f = field(std::move(name), std::move(format), nullable);
  if (item.name.empty()) item.name = "item";  // as Arrow calls it
  f.children.push_back(std::move(item));
  return f;
}

template <typename Offset>
Column variable(std::span<const Offset> offsets) {
  Column c;
  c.length = offsets.empty() ? 0 : static_cast<std::int64_t>(offsets.size()) - 1;
  c.offsets = offsets.data();
  return c;
}

}  // namespace

Field field(std::string name, std::string format, bool nullable) {
  Field f;
  f.name = std::move(name);
  f.format = std::move(format);
  f.nullable = nullable;
  return f;
}

Field utf8(std::string name, bool nullable) { return field(std::move(name), "u", nullable); }

Field binary(std::string name, bool nullable) { return field(std::move(name), "z", nullable); }

Field fixed_size_binary(std::string name, int width_bytes, bool nullable) {
  return field(std::move(name), "w:" + std::to_string(width_bytes), nullable);
}

Field fixed_size_list(std::string name, int size, Field item, bool nullable) {
  return nested(std::move(name), "+w:" + std::to_string(size), std::move(item), nullable);
}

Field list(std::string name, Field item, bool nullable) {
  return nested(std::move(name), "+l", std::move(item), nullable);
}

Field large_list(std::string name, Field item, bool nullable) {
  return nested(std::move(name), "+L", std::move(item), nullable);
}

Field struct_(std::string name, std::vector<Field> members, bool nullable) {
  Field f = field(std::move(name), "+s", nullable);
  f.children = std::move(members);
  return f;
}

Field dictionary(std::string name, std::string index_format, Field values, bool nullable) {
  Field f = field(std::move(name), std::move(index_format), nullable);
  f.dictionary.push_back(std::move(values));
  return f;
}

Column Column::bits(const std::uint8_t* packed, std::int64_t rows) {
  Column c;
  c.length = rows;
  c.values = packed;
  return c;
}

Column Column::fixed_size_binary(const void* bytes, std::int64_t rows) {
  Column c;
  c.length = rows;
  c.values = bytes;
  return c;
}

Column Column::utf8(std::span<const std::int32_t> offsets, const char* data) {
  Column c = variable(offsets);
  c.data = data;
  return c;
}

Column Column::large_utf8(std::span<const std::int64_t> offsets, const char* data) {
  Column c = variable(offsets);
  c.data = data;
  return c;
}

Column Column::fixed_list(std::int64_t rows, std::span<const Column, 1> item) { return struct_(rows, item); }

Column Column::list(std::span<const std::int32_t> offsets, std::span<const Column, 1> item) {
  Column c = variable(offsets);
  c.children = item;
  return c;
}

Column Column::large_list(std::span<const std::int64_t> offsets, std::span<const Column, 1> item) {
  Column c = variable(offsets);
  c.children = item;
  return c;
}

Column Column::struct_(std::int64_t rows, std::span<const Column> members) {
  Column c;
  c.length = rows;
  c.children = members;
  return c;
}

}  // namespace wherry
