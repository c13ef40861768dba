// SPDX-License-Identifier: Apache-2.0
#include "move/service/products.hpp"

#include <arrow/array.h>
#include <arrow/buffer.h>
#include <arrow/c/bridge.h>
#include <arrow/extension_type.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include <atomic>
#include <cstddef>
#include <mutex>
#include <string>
#include <utility>

#include "base/try.hpp"
#include "move/arrow_schema.hpp"
#include "move/arrow_status.hpp"

namespace wherry::move {
namespace {

constexpr std::size_t kSpareStructs = 16;  ///< as many as frames are kept by default

/// The place and length of a buffer of the plan.
struct Piece {
  const std::byte* data = nullptr;
  std::uint64_t bytes = 0;
};

/// The piece of a buffer in a frame whose first byte is `base`. Its pointer is null without a validity bitmap.
Piece piece_of(const Plan& plan, std::size_t buffer, std::span<const NodeRef> nodes, const FrameLayout& layout,
               const std::byte* base) noexcept {
  const BufferSpec& spec = plan.buffers[buffer];
  const Placement& placed = layout.buffers[buffer];
  if (spec.kind == BufferKind::kValidity && nodes[spec.node].null_count == 0) return {};
  return {base + placed.offset, placed.bytes};
}

/// An Arrow buffer in a frame's memory that keeps the frame alive.
class FrameMemory final : public arrow::Buffer {
 public:
  explicit FrameMemory(FramePtr frame)
      : arrow::Buffer(reinterpret_cast<const std::uint8_t*>(frame->extent.bytes().data()),
                      static_cast<std::int64_t>(frame->layout.total_bytes)),
        frame_(std::move(frame)) {}

 private:
  FramePtr frame_;
};

/// The same array with buffers that keep `memory` alive.
std::shared_ptr<arrow::ArrayData> owning(const arrow::ArrayData& borrowed,
                                         const std::shared_ptr<arrow::Buffer>& memory) {
  auto data = std::make_shared<arrow::ArrayData>(borrowed);
  for (std::shared_ptr<arrow::Buffer>& buffer : data->buffers) {
    if (buffer == nullptr) continue;
    buffer = arrow::SliceBuffer(memory, buffer->data() - memory->data(), buffer->size());
  }
  for (std::shared_ptr<arrow::ArrayData>& child : data->child_data) child = owning(*child, memory);
  if (data->dictionary != nullptr) data->dictionary = owning(*data->dictionary, memory);
  return data;
}

/// The release callback of a lent struct. It does not free memory and does not release the children.
void mark_released(ArrowArray* array) { array->release = nullptr; }

}  // namespace

/// The ArrowArray structs of one frame: [0] is the batch, [1 + i] node i of the plan. Links between structs are made
/// once per stream and slot. A frame fills in lengths and pointers.
struct Products::Structs {
  explicit Structs(const Plan& plan)
      : nodes(plan.nodes.size() + 1), children(plan.nodes.size()), buffers(plan.buffers.size()) {
    const auto columns = [&](std::size_t i) {  // the roots of dictionaries have no parent either
      return plan.nodes[i].parent < 0 && plan.nodes[i].section + 1 == plan.sections.size();
    };
    ArrowArray** next = children.data();
    const auto adopt = [&](ArrowArray& parent, const auto& is_child) {
      parent.children = next;
      for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
        if (is_child(i)) *next++ = &nodes[i + 1];
      }
      parent.n_children = next - parent.children;
      if (parent.n_children == 0) parent.children = nullptr;
    };
    adopt(nodes[0], columns);
    nodes[0].n_buffers = 1;
    nodes[0].buffers = &no_validity;
    nodes[0].release = mark_released;
    for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
      const NodeSpec& spec = plan.nodes[i];
      ArrowArray& node = nodes[i + 1];
      if (spec.kind == Kind::kStruct || spec.kind == Kind::kList || spec.kind == Kind::kFixedSizeList) {
        adopt(node, [&](std::size_t child) { return plan.nodes[child].parent == static_cast<std::int32_t>(i); });
      }
      if (spec.dictionary_section >= 0) {
        node.dictionary = &nodes[plan.sections[static_cast<std::size_t>(spec.dictionary_section)].first_node + 1];
      }
      node.n_buffers = spec.buffer_count;
      if (spec.buffer_count != 0) node.buffers = buffers.data() + spec.first_buffer;
      node.release = mark_released;
    }
  }

  void fill(const Plan& plan, std::span<const NodeRef> refs, const FrameLayout& layout, const std::byte* base) {
    nodes[0].length = refs[plan.sections.back().first_node].length;
    for (std::size_t i = 0; i < refs.size(); ++i) {
      nodes[i + 1].length = refs[i].length;
      nodes[i + 1].null_count = refs[i].null_count;
    }
    for (std::size_t i = 0; i < buffers.size(); ++i) buffers[i] = piece_of(plan, i, refs, layout, base).data;
  }

  std::vector<ArrowArray> nodes;
  std::vector<ArrowArray*> children;
  std::vector<const void*> buffers;
  const void* no_validity = nullptr;
};

/// The common part of a stream's products.
class ProductTemplate {
 public:
  static Result<std::shared_ptr<ProductTemplate>> make(const StreamInfo& stream) {
    WHERRY_ASSIGN(auto schema, to_arrow(stream.schema, stream.schema_metadata));
    auto made = std::make_shared<ProductTemplate>();
    made->schema_ = std::move(schema);
    made->plan_ = stream.plan;
    made->types_.resize(made->plan_.nodes.size());
    std::uint32_t node = made->plan_.sections.back().first_node;
    for (const auto& field : made->schema_->fields()) made->learn(field->type(), node);
    if (stream.strategy == Strategy::kCAbi) {
      const arrow::Status exported = arrow::ExportSchema(*made->schema_, &made->c_schema_);
      if (!exported.ok()) return from_arrow(exported, "stream \"" + stream.name + "\"");
      made->spare_.push_back(std::make_unique<Products::Structs>(made->plan_));
    }
    return made;
  }
  ProductTemplate() = default;
  ProductTemplate(const ProductTemplate&) = delete;
  ProductTemplate& operator=(const ProductTemplate&) = delete;
  ~ProductTemplate() {
    if (c_schema_.release != nullptr) c_schema_.release(&c_schema_);
  }

  /// Checks maps first: Arrow C++ would abort on an invalid child when it makes the array (MapArray::SetData).
  [[nodiscard]] Status check(std::span<const NodeRef> nodes) const {
    for (const std::uint32_t node : never_null_) {
      if (nodes[node].null_count != 0) {
        return {StatusCode::kInvalidArgument, "node " + std::to_string(node) + ": entries or keys of a map are null"};
      }
    }
    return {};
  }

  /// Makes columns that borrow the memory at `base`.
  [[nodiscard]] std::vector<std::shared_ptr<arrow::ArrayData>> assemble(std::span<const NodeRef> nodes,
                                                                        const FrameLayout& layout,
                                                                        const std::byte* base) const {
    std::vector<std::shared_ptr<arrow::ArrayData>> columns(static_cast<std::size_t>(schema_->num_fields()));
    std::uint32_t node = plan_.sections.back().first_node;
    for (auto& column : columns) column = assemble_node(node, nodes, layout, base);
    return columns;
  }

  std::unique_ptr<Products::Structs> take_structs() {
    {
      const std::lock_guard lock(mutex_);
      if (!spare_.empty()) {
        auto structs = std::move(spare_.back());
        spare_.pop_back();
        return structs;
      }
    }
    return std::make_unique<Products::Structs>(plan_);
  }
  void give_back(std::unique_ptr<Products::Structs> structs) {
    const std::lock_guard lock(mutex_);
    if (spare_.size() < kSpareStructs) spare_.push_back(std::move(structs));
  }

  [[nodiscard]] const std::shared_ptr<arrow::Schema>& schema() const noexcept { return schema_; }
  [[nodiscard]] const ArrowSchema& c_schema() const noexcept { return c_schema_; }
  [[nodiscard]] const Plan& plan() const noexcept { return plan_; }

 private:
  static const arrow::DataType& storage(const arrow::DataType& type) {
    return type.id() == arrow::Type::EXTENSION ? *static_cast<const arrow::ExtensionType&>(type).storage_type() : type;
  }

  /// Stores the types of `node` and of all nodes below it, which follow it in pre-order. Advances `node` past
  /// them.
  void learn(const std::shared_ptr<arrow::DataType>& type, std::uint32_t& node) {
    const std::uint32_t own = node++;
    types_[own] = type;
    const arrow::DataType& plain = storage(*type);
    if (plan_.nodes[own].dictionary_section >= 0) {
      std::uint32_t values = plan_.sections[static_cast<std::size_t>(plan_.nodes[own].dictionary_section)].first_node;
      learn(static_cast<const arrow::DictionaryType&>(plain).value_type(), values);
      return;
    }
    if (plain.id() == arrow::Type::MAP) never_null_.insert(never_null_.end(), {own + 1, own + 2});
    for (const auto& field : plain.fields()) learn(field->type(), node);
  }

  std::shared_ptr<arrow::ArrayData> assemble_node(std::uint32_t& node, std::span<const NodeRef> nodes,
                                                  const FrameLayout& layout, const std::byte* base) const {
    const std::uint32_t own = node++;
    const NodeSpec& spec = plan_.nodes[own];
    auto data = std::make_shared<arrow::ArrayData>(types_[own], nodes[own].length, nodes[own].null_count);
    if (spec.kind == Kind::kNull) data->buffers.emplace_back();  // Arrow C++ wants a place for it
    for (std::uint32_t i = spec.first_buffer; i < spec.first_buffer + spec.buffer_count; ++i) {
      const Piece piece = piece_of(plan_, i, nodes, layout, base);
      data->buffers.push_back(piece.data == nullptr
                                  ? nullptr
                                  : std::make_shared<arrow::Buffer>(reinterpret_cast<const std::uint8_t*>(piece.data),
                                                                    static_cast<std::int64_t>(piece.bytes)));
    }
    if (spec.dictionary_section >= 0) {
      std::uint32_t values = plan_.sections[static_cast<std::size_t>(spec.dictionary_section)].first_node;
      data->dictionary = assemble_node(values, nodes, layout, base);
      return data;
    }
    const int children = storage(*types_[own]).num_fields();
    for (int i = 0; i < children; ++i) data->child_data.push_back(assemble_node(node, nodes, layout, base));
    return data;
  }

  Plan plan_;  // a copy: products may outlive the stream's own description
  std::shared_ptr<arrow::Schema> schema_;
  std::vector<std::shared_ptr<arrow::DataType>> types_;  ///< by node of the plan
  std::vector<std::uint32_t> never_null_;                ///< entries and keys of maps
  ArrowSchema c_schema_{};

  std::mutex mutex_;
  std::vector<std::unique_ptr<Products::Structs>> spare_;
};

Products::Products(std::shared_ptr<ProductTemplate> shape) noexcept : shape_(std::move(shape)) {}

Products::~Products() {
  if (structs_ != nullptr) shape_->give_back(std::move(structs_));
}

CAbi Products::c_abi() const noexcept {
  if (structs_ == nullptr) return {};
  return {structs_->nodes.data(), &shape_->c_schema()};
}

Status make_products(const StreamInfo& stream, std::span<const NodeRef> nodes, Frame& frame) {
  const Strategy strategy = stream.strategy;
  if (strategy != Strategy::kArrays && strategy != Strategy::kRecordBatch && strategy != Strategy::kCAbi) return {};
  if (stream.products == nullptr) {
    WHERRY_ASSIGN(stream.products, ProductTemplate::make(stream));
  }
  const std::shared_ptr<ProductTemplate>& shape = stream.products;
  WHERRY_TRY(shape->check(nodes));
  const std::byte* base = frame.extent.bytes().data();
  std::shared_ptr<Products> made(new Products(shape));
  if (strategy == Strategy::kCAbi) {
    made->structs_ = shape->take_structs();
    made->structs_->fill(shape->plan(), nodes, frame.layout, base);
  } else {
    auto columns = shape->assemble(nodes, frame.layout, base);
    if (strategy == Strategy::kArrays) {
      for (const auto& column : columns) made->arrays_.push_back(arrow::MakeArray(column));
    } else {
      const std::int64_t rows = columns.front()->length;
      made->record_batch_ = arrow::RecordBatch::Make(shape->schema(), rows, std::move(columns));
    }
  }
  frame.products = std::move(made);
  return {};
}

std::shared_ptr<arrow::RecordBatch> record_batch_of(const FramePtr& frame) {
  const Products* const products = frame->products.get();
  if (products == nullptr) return nullptr;
  const std::shared_ptr<arrow::Schema>& schema = products->shape_->schema();
  if (products->structs_ != nullptr) {
    ArrowArray array{};
    ArrowSchema unused{};
    if (!export_c_abi(frame, array, unused)) return nullptr;
    unused.release(&unused);
    auto imported = arrow::ImportRecordBatch(&array, schema);
    return imported.ok() ? *std::move(imported) : nullptr;  // released by Arrow either way
  }
  const auto memory = std::make_shared<FrameMemory>(frame);
  std::vector<std::shared_ptr<arrow::ArrayData>> columns;
  if (products->record_batch_ != nullptr) {
    for (const auto& column : products->record_batch_->column_data()) columns.push_back(owning(*column, memory));
  } else {
    for (const auto& column : products->arrays_) columns.push_back(owning(*column->data(), memory));
  }
  const std::int64_t rows = columns.front()->length;
  return arrow::RecordBatch::Make(schema, rows, std::move(columns));
}

std::vector<std::shared_ptr<arrow::Array>> arrays_of(const FramePtr& frame) {
  const std::shared_ptr<arrow::RecordBatch> batch = record_batch_of(frame);
  return batch == nullptr ? std::vector<std::shared_ptr<arrow::Array>>() : batch->columns();
}

CAbi c_abi_of(const Frame& frame) { return frame.products == nullptr ? CAbi{} : frame.products->c_abi(); }

namespace {

/// One exported tree of structs with a common reference count, because a consumer may move children out and release
/// them last.
template <typename Structs>
struct Exported {
  Exported(FramePtr source, const Plan& plan) : frame(std::move(source)), structs(plan), living(structs.nodes.size()) {
    structs.fill(plan, frame->nodes, frame->layout, frame->extent.bytes().data());
    for (ArrowArray& node : structs.nodes) {
      node.release = release;
      node.private_data = this;
    }
  }

  static void release(ArrowArray* array) {
    for (std::int64_t i = 0; i < array->n_children; ++i) {
      if (array->children[i]->release != nullptr) array->children[i]->release(array->children[i]);
    }
    if (array->dictionary != nullptr && array->dictionary->release != nullptr) {
      array->dictionary->release(array->dictionary);
    }
    auto* const self = static_cast<Exported*>(array->private_data);
    array->release = nullptr;
    if (self->living.fetch_sub(1, std::memory_order_acq_rel) == 1) delete self;
  }

  FramePtr frame;
  Structs structs;
  std::atomic<std::size_t> living;
};

}  // namespace

Status export_c_abi(FramePtr frame, ArrowArray& array, ArrowSchema& schema) {
  const Products* const products = frame->products.get();
  if (products == nullptr || products->structs_ == nullptr) {
    return {StatusCode::kFailedPrecondition, "frame " + std::to_string(frame->sequence) + " of stream \"" +
                                                 frame->stream->name + "\" has no C structs: its strategy is " +
                                                 std::string(to_string(frame->stream->strategy))};
  }
  const ProductTemplate& shape = *products->shape_;
  ArrowSchema exported{};
  if (const arrow::Status s = arrow::ExportSchema(*shape.schema(), &exported); !s.ok()) {
    return from_arrow(s, "stream \"" + frame->stream->name + "\"");
  }
  auto* const tree = new Exported<Products::Structs>(std::move(frame), shape.plan());
  schema = exported;
  array = tree->structs.nodes.front();  // moved: the consumer's copy is the one that counts
  return {};
}

}  // namespace wherry::move
