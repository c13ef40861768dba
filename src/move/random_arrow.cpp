// SPDX-License-Identifier: Apache-2.0
#include "move/random_arrow.hpp"

#include <arrow/c/bridge.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/reader.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "base/aligned.hpp"
#include "base/try.hpp"
#include "move/c_import.hpp"

namespace wherry::move::test {
namespace {

using arrow::ArrayData;
using arrow::Type;
using DataTypePtr = std::shared_ptr<arrow::DataType>;

std::shared_ptr<arrow::Buffer> allocate(std::int64_t size) {
  std::shared_ptr<arrow::Buffer> buffer = arrow::AllocateBuffer(size).ValueOrDie();
  std::memset(buffer->mutable_data(), 0xEE,
              static_cast<std::size_t>(buffer->capacity()));  // stray bits beyond the rows
  return buffer;
}

template <typename T>
void fill(arrow::Buffer& buffer, const auto& next) {
  for (std::int64_t i = 0; i < buffer.size() / static_cast<std::int64_t>(sizeof(T)); ++i) {
    const auto value = static_cast<T>(next());
    std::memcpy(buffer.mutable_data() + i * static_cast<std::int64_t>(sizeof(T)), &value, sizeof value);
  }
}

void forget(ArrowArray& array) {
  if (array.n_buffers > 0 && array.buffers[0] != nullptr) array.null_count = -1;
  for (std::int64_t i = 0; i < array.n_children; ++i) forget(*array.children[i]);
  if (array.dictionary != nullptr) forget(*array.dictionary);
}

Result<Delivered> deliver_c(ArrowSchema& c_schema, ArrowArray& c_array, std::uint32_t alignment) {
  Result<Schema> imported = from_c_schema(c_schema);
  c_schema.release(&c_schema);
  WHERRY_ASSIGN(Schema schema, std::move(imported));
  WHERRY_ASSIGN(Plan plan, make_plan(schema));
  WHERRY_ASSIGN(auto ipc, IpcTemplate::make(schema, plan, alignment));
  Delivered d{std::move(schema), std::move(plan), {}, {}, {}, std::move(ipc), nullptr};

  ColumnTree tree;
  WHERRY_TRY(columns_from_c_array(d.schema, c_array, tree));
  WHERRY_TRY(flatten(d.schema, d.plan, tree.columns(), d.offload));
  WHERRY_TRY(check_offload(d.plan, static_cast<std::uint64_t>(c_array.length), d.offload.nodes, d.offload.buffers));
  d.nodes = d.offload.nodes;
  d.ipc->place(d.nodes, d.offload.buffers, d.layout);
  d.memory = page_aligned(d.layout.total_bytes);
  get_all(d.plan, d.nodes, d.offload.buffers, d.layout, d.frame());
  WHERRY_TRY(finish_buffers(d.plan, d.nodes, d.offload.buffers, d.layout, d.frame()));
  d.ipc->write_metadata(d.layout, d.nodes, d.frame());
  return d;
}

void expect_inside(const ArrayData& data, std::span<const std::byte> frame, std::uint32_t alignment) {
  for (const auto& buffer : data.buffers) {
    if (buffer == nullptr || buffer->size() == 0) continue;
    const auto* address = reinterpret_cast<const std::byte*>(buffer->address());
    EXPECT_GE(address, frame.data()) << "a buffer was copied";
    EXPECT_LE(address + buffer->size(), frame.data() + frame.size()) << "a buffer was copied";
    EXPECT_EQ((address - frame.data()) % alignment, 0);
  }
  for (const auto& child : data.child_data) expect_inside(*child, frame, alignment);
  if (data.dictionary != nullptr) expect_inside(*data.dictionary, frame, alignment);
}

}  // namespace

std::shared_ptr<std::byte> page_aligned(std::size_t bytes) {
  AlignedBytes memory = aligned_bytes(bytes, 4096);
  std::memset(memory.get(), 0xA5, bytes);
  const AlignedDelete free = memory.get_deleter();
  return {memory.release(), free};
}

std::shared_ptr<arrow::Buffer> RandomArrow::bytes(std::int64_t size) {
  auto buffer = allocate(size);
  fill<std::uint8_t>(*buffer, [&] { return engine_(); });
  return buffer;
}

std::shared_ptr<arrow::Buffer> RandomArrow::values(const arrow::DataType& type, std::int64_t rows) {
  const int width = type.byte_width();
  auto buffer = allocate(rows * width);
  // Some types do not allow all bit patterns: ValidateFull checks them.
  switch (type.id()) {
    case Type::HALF_FLOAT:
      fill<std::uint16_t>(*buffer, [&] { return below(0x7C00); });
      break;
    case Type::FLOAT:
      fill<float>(*buffer, [&] { return below(2'000'000) - 1'000'000; });
      break;
    case Type::DOUBLE:
      fill<double>(*buffer, [&] { return below(2'000'000) - 1'000'000; });
      break;
    case Type::DATE64:
      fill<std::int64_t>(*buffer, [&] { return (below(40000) - 20000) * 86'400'000; });
      break;
    case Type::TIME32:
      fill<std::int32_t>(*buffer, [&] { return below(86'400); });
      break;
    case Type::TIME64:
      fill<std::int64_t>(*buffer, [&] { return below(86'400'000'000); });
      break;
    case Type::DECIMAL32:
    case Type::DECIMAL64:
    case Type::DECIMAL128:
    case Type::DECIMAL256: {
      for (std::int64_t i = 0; i < rows; ++i) {
        const std::int64_t value = below(2000) - 1000;
        std::uint8_t* at = buffer->mutable_data() + i * width;
        std::memset(at, value < 0 ? 0xFF : 0, static_cast<std::size_t>(width));
        std::memcpy(at, &value, static_cast<std::size_t>(width < 8 ? width : 8));
      }
      break;
    }
    default:
      return bytes(rows * width);
  }
  return buffer;
}

std::shared_ptr<arrow::Buffer> RandomArrow::offsets(std::int64_t rows, int width, std::int64_t& end) {
  auto buffer = allocate((rows + 1) * width);
  end = below(4);  // not always 0
  bool first = true;
  const auto next = [&] { return first ? (first = false, end) : end += below(5); };
  width == 4 ? fill<std::int32_t>(*buffer, next) : fill<std::int64_t>(*buffer, next);
  return buffer;
}

std::shared_ptr<ArrayData> RandomArrow::array(const arrow::Field& field, std::int64_t rows) {
  if (chance(0.5)) return whole(field, rows);
  const std::int64_t before = below(20);
  return whole(field, before + rows + below(3))->Slice(before, rows);
}

std::shared_ptr<ArrayData> RandomArrow::whole(const arrow::Field& field, std::int64_t rows) {
  const DataTypePtr& type = field.type();
  if (type->id() == Type::NA) return ArrayData::Make(type, rows, {nullptr}, rows);

  std::shared_ptr<arrow::Buffer> validity;
  std::int64_t nulls = 0;
  if (field.nullable() && chance(0.7)) {
    validity = allocate((rows + 7) / 8);
    for (std::int64_t i = 0; i < rows; ++i) {
      const bool null = chance(null_share);
      auto& byte = validity->mutable_data()[i / 8];
      byte = static_cast<std::uint8_t>(null ? byte & ~(1u << (i % 8)) : byte | 1u << (i % 8));
      nulls += null;
    }
    if (chance(0.5)) nulls = arrow::kUnknownNullCount;
  }
  const auto made = [&](std::vector<std::shared_ptr<arrow::Buffer>> buffers,
                        std::vector<std::shared_ptr<ArrayData>> children = {}) {
    buffers.insert(buffers.begin(), validity);
    return ArrayData::Make(type, rows, std::move(buffers), std::move(children), nulls);
  };

  std::int64_t end = 0;
  switch (type->id()) {
    case Type::BOOL:
      return made({bytes((rows + 7) / 8)});
    case Type::STRING:
    case Type::BINARY:
    case Type::LARGE_STRING:
    case Type::LARGE_BINARY: {
      const bool large = type->id() == Type::LARGE_STRING || type->id() == Type::LARGE_BINARY;
      auto ends = offsets(rows, large ? 8 : 4, end);
      auto text = allocate(end + below(3));
      fill<char>(*text, [&] { return 'a' + below(26); });
      return made({ends, text});
    }
    case Type::LIST:
    case Type::MAP:
    case Type::LARGE_LIST: {
      auto ends = offsets(rows, type->id() == Type::LARGE_LIST ? 8 : 4, end);
      return made({ends}, {array(*type->field(0), end + below(3))});
    }
    case Type::FIXED_SIZE_LIST: {
      const int size = static_cast<const arrow::FixedSizeListType&>(*type).list_size();
      return made({}, {array(*type->field(0), rows * size)});
    }
    case Type::STRUCT: {
      std::vector<std::shared_ptr<ArrayData>> members;
      for (const auto& member : type->fields()) members.push_back(array(*member, rows));
      return made({}, std::move(members));
    }
    case Type::DICTIONARY: {
      const auto& dictionary = static_cast<const arrow::DictionaryType&>(*type);
      const std::int64_t size = 1 + below(9);
      const int width = dictionary.index_type()->byte_width();
      auto indices = allocate(rows * width);
      const auto next = [&] { return below(size); };
      width == 1   ? fill<std::int8_t>(*indices, next)
      : width == 2 ? fill<std::int16_t>(*indices, next)
      : width == 4 ? fill<std::int32_t>(*indices, next)
                   : fill<std::int64_t>(*indices, next);
      auto data = made({indices});
      data->dictionary = array(arrow::Field("", dictionary.value_type()), size);
      return data;
    }
    default:
      return made({values(*type, rows)});
  }
}

std::shared_ptr<arrow::RecordBatch> RandomArrow::batch(const std::shared_ptr<arrow::Schema>& schema,
                                                       std::int64_t rows) {
  std::vector<std::shared_ptr<ArrayData>> columns;
  for (const auto& field : schema->fields()) columns.push_back(array(*field, rows));
  return arrow::RecordBatch::Make(schema, rows, std::move(columns));
}

DataTypePtr RandomArrow::type(int depth) {
  static const auto plain = plain_types();
  if (depth <= 1 || chance(0.3)) return plain[static_cast<std::size_t>(below(static_cast<std::int64_t>(plain.size())))];
  switch (below(7)) {
    case 0:
      return arrow::list(type(depth - 1));
    case 1:
      return arrow::large_list(arrow::field("element", type(depth - 1), chance(0.5)));
    case 2:
      return arrow::fixed_size_list(type(depth - 1), static_cast<std::int32_t>(below(4)));
    case 3:
      return arrow::map(plain[static_cast<std::size_t>(below(10))], type(depth - 1), chance(0.5));
    case 4: {
      const DataTypePtr indices[] = {arrow::int8(),   arrow::uint8(), arrow::int16(),
                                     arrow::uint16(), arrow::int32(), arrow::int64()};
      DataTypePtr values = type(depth - 1);
      if (values->id() == Type::DICTIONARY) values = arrow::utf8();
      return arrow::dictionary(indices[below(6)], values, chance(0.5));
    }
    default: {
      arrow::FieldVector members;
      for (std::int64_t i = below(4); i > 0; --i)
        members.push_back(arrow::field("m" + std::to_string(i), type(depth - 1), chance(0.7)));
      return arrow::struct_(members);
    }
  }
}

std::shared_ptr<arrow::Schema> RandomArrow::schema(int most_columns, int depth) {
  arrow::FieldVector columns;
  for (std::int64_t i = below(most_columns); i >= 0; --i) {
    columns.push_back(arrow::field("c" + std::to_string(i), type(depth), chance(0.7)));
  }
  return arrow::schema(columns);
}

std::vector<DataTypePtr> plain_types() {
  using namespace arrow;                                       // NOLINT(google-build-using-namespace)
  using arrow::binary, arrow::fixed_size_binary, arrow::utf8;  // not Wherry's fields of those names
  return {int8(),
          int16(),
          int32(),
          int64(),
          uint8(),
          uint16(),
          uint32(),
          uint64(),
          utf8(),
          binary(),
          float16(),
          float32(),
          float64(),
          boolean(),
          null(),
          date32(),
          date64(),
          time32(TimeUnit::SECOND),
          time32(TimeUnit::MILLI),
          time64(TimeUnit::MICRO),
          time64(TimeUnit::NANO),
          timestamp(TimeUnit::SECOND),
          timestamp(TimeUnit::MILLI, "UTC"),
          timestamp(TimeUnit::MICRO, "Europe/Zürich"),
          timestamp(TimeUnit::NANO, "+02:00"),
          duration(TimeUnit::SECOND),
          duration(TimeUnit::MILLI),
          duration(TimeUnit::MICRO),
          duration(TimeUnit::NANO),
          month_interval(),
          day_time_interval(),
          month_day_nano_interval(),
          decimal32(7, 2),
          decimal64(15, -3),
          decimal128(30, 4),
          decimal256(60, 10),
          fixed_size_binary(7),
          fixed_size_binary(0),
          large_utf8(),
          large_binary()};
}

std::vector<DataTypePtr> nested_types() {
  using namespace arrow;  // NOLINT(google-build-using-namespace)
  using arrow::dictionary, arrow::field, arrow::fixed_size_list, arrow::large_list, arrow::list, arrow::struct_,
      arrow::utf8;
  const auto words = dictionary(int8(), utf8());
  return {list(int32()),
          large_list(utf8()),
          list(list(boolean())),
          fixed_size_list(float64(), 3),
          fixed_size_list(boolean(), 5),
          fixed_size_list(utf8(), 0),
          list(fixed_size_list(list(int16()), 2)),
          fixed_size_list(fixed_size_list(float32(), 2), 3),
          map(utf8(), float64()),
          map(int32(), map(utf8(), boolean())),
          struct_({}),
          struct_({field("a", int8()), field("b", boolean()), field("c", utf8(), false)}),
          struct_({field("a", struct_({field("b", list(struct_({field("c", float64())})))}))}),
          list(null()),
          struct_({field("n", null())}),
          words,
          dictionary(uint32(), float64()),
          dictionary(int64(), large_binary(), true),
          list(words),
          struct_({field("w", words), field("x", words)}),
          dictionary(int16(), struct_({field("w", words), field("d", decimal128(10, 2))})),
          dictionary(int32(), list(dictionary(int8(), struct_({field("w", words)})))),
          struct_({field("a", dictionary(uint8(), list(words))), field("b", list(words)), field("c", int32())}),
          dictionary(int8(), null()),
          dictionary(int8(), boolean()),
          map(words, words)};
}

void get_all(const Plan& plan, std::span<const NodeRef> nodes, std::span<const BufferRef> buffers,
             const FrameLayout& layout, std::span<std::byte> frame) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    if (plan.buffers[i].kind == BufferKind::kValidity && nodes[plan.buffers[i].node].null_count == 0) continue;
    const BufferRef& buffer = buffers[next++];
    const bool lone = plan.buffers[i].kind == BufferKind::kOffsets && buffer.bytes == 0;  // which was left out
    ASSERT_EQ(lone ? plan.nodes[plan.buffers[i].node].width : buffer.bytes, layout.buffers[i].bytes);
    ASSERT_LE(layout.buffers[i].offset + buffer.bytes, frame.size());
    if (buffer.bytes == 0) continue;
    std::memcpy(frame.data() + layout.buffers[i].offset, reinterpret_cast<const void*>(buffer.address), buffer.bytes);
  }
  EXPECT_EQ(next, buffers.size());
}

Result<Delivered> deliver(const arrow::RecordBatch& batch, std::uint32_t alignment, bool forget_nulls) {
  ArrowSchema schema{};
  ArrowArray array{};
  if (!arrow::ExportRecordBatch(batch, &array, &schema).ok()) return Status(StatusCode::kInternal, "export");
  if (forget_nulls) forget(array);
  Result<Delivered> delivered = deliver_c(schema, array, alignment);
  array.release(&array);
  return delivered;
}

Result<Delivered> deliver(const arrow::StructArray& batch, std::uint32_t alignment, bool forget_nulls) {
  ArrowSchema schema{};
  ArrowArray array{};
  if (!arrow::ExportArray(batch, &array, &schema).ok()) return Status(StatusCode::kInternal, "export");
  if (forget_nulls) forget(array);
  Result<Delivered> delivered = deliver_c(schema, array, alignment);
  array.release(&array);
  return delivered;
}

void expect_delivered(const Delivered& delivered, const arrow::RecordBatch& wanted) {
  const std::span<std::byte> frame = delivered.frame();
  const std::uint32_t alignment = delivered.ipc->alignment();
  for (const Placement& buffer : delivered.layout.buffers) {
    EXPECT_EQ(buffer.offset % alignment, 0u);
    for (std::uint64_t at = buffer.offset + buffer.bytes; at % alignment != 0; ++at) {
      ASSERT_EQ(frame[at], std::byte{0}) << "old bytes at " << at;
    }
  }
  for (std::size_t i = 0; i < delivered.plan.buffers.size(); ++i) {
    const BufferSpec& spec = delivered.plan.buffers[i];
    if (spec.kind != BufferKind::kValidity && spec.kind != BufferKind::kBits) continue;
    const Placement& bits = delivered.layout.buffers[i];
    for (auto bit = static_cast<std::uint64_t>(delivered.nodes[spec.node].length); bit < bits.bytes * 8; ++bit) {
      ASSERT_EQ(frame[bits.offset + bit / 8] >> (bit % 8) & std::byte{1}, std::byte{0})
          << "stray bit " << bit << " of buffer " << i;
    }
  }

  auto buffer = std::make_shared<arrow::Buffer>(reinterpret_cast<const std::uint8_t*>(frame.data()),
                                                static_cast<std::int64_t>(frame.size()));
  auto input = std::make_shared<arrow::io::BufferReader>(buffer);
  auto reader = arrow::ipc::RecordBatchStreamReader::Open(input);
  ASSERT_TRUE(reader.ok()) << reader.status().ToString();
  auto read = (*reader)->Next();
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  ASSERT_NE(*read, nullptr);
  const arrow::RecordBatch& got = **read;
  const arrow::Status valid = got.ValidateFull();
  ASSERT_TRUE(valid.ok()) << valid.ToString() << "\n" << wanted.schema()->ToString();
  EXPECT_TRUE(got.schema()->Equals(*wanted.schema(), true)) << got.schema()->ToString() << "\nwanted\n"
                                                            << wanted.schema()->ToString();
  EXPECT_TRUE(got.Equals(wanted)) << got.ToString() << "\nwanted\n" << wanted.ToString();
  for (const auto& column : got.columns()) expect_inside(*column->data(), frame, alignment);

  auto end = (*reader)->Next();
  ASSERT_TRUE(end.ok()) << end.status().ToString();
  EXPECT_EQ(*end, nullptr);
  EXPECT_EQ(input->Tell().ValueOrDie(), static_cast<std::int64_t>(delivered.layout.total_bytes));
}

}  // namespace wherry::move::test
