// SPDX-License-Identifier: Apache-2.0
// The strategies arrays, record_batch and c_abi make these objects of a frame while it is transferred (paper 004
// section V-F): "direct-to-arrays", "direct-to-record-batch" and "direct-to-structs". When the ticket completes, the
// Arrow objects exist. The gets put their bytes where the objects point.
//
// A product lives in its frame and borrows the frame's memory. It must not own the frame, because the frame would then
// never be freed. Objects for readers (record_batch_of, arrays_of, export_c_abi) own the frame, down to the last sliced
// buffer.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "move/flatten.hpp"
#include "move/service/frame.hpp"

struct ArrowArray;   // the C data interface: move/c_data.hpp or arrow/c/abi.h
struct ArrowSchema;  //
namespace arrow {
class Array;
class RecordBatch;
}  // namespace arrow

namespace wherry::move {

/// A struct array, one child a column, and its schema ("+s").
struct CAbi {
  const ArrowArray* array = nullptr;
  const ArrowSchema* schema = nullptr;
  explicit operator bool() const noexcept { return array != nullptr; }
};

/// Immutable. Everything that it returns, and everything made from that, is borrowed and valid while the frame lives.
/// For code in the agent that holds the frame. Access costs nothing.
class Products {
 public:
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  /// Strategy::kArrays: one array for each column. Empty otherwise.
  [[nodiscard]] const std::vector<std::shared_ptr<arrow::Array>>& arrays() const noexcept { return arrays_; }
  /// Strategy::kRecordBatch; null otherwise.
  [[nodiscard]] const arrow::RecordBatch* record_batch() const noexcept { return record_batch_.get(); }
  /// Strategy::kCAbi; nulls otherwise. The schema is the stream's, made once.
  [[nodiscard]] CAbi c_abi() const noexcept;

 private:
  friend class ProductTemplate;
  friend Status make_products(const StreamInfo&, std::span<const NodeRef>, Frame&);
  friend std::shared_ptr<arrow::RecordBatch> record_batch_of(const FramePtr&);
  friend std::vector<std::shared_ptr<arrow::Array>> arrays_of(const FramePtr&);
  friend Status export_c_abi(FramePtr, ArrowArray&, ArrowSchema&);
  struct Structs;
  explicit Products(std::shared_ptr<ProductTemplate> shape) noexcept;

  std::shared_ptr<ProductTemplate> shape_;
  std::vector<std::shared_ptr<arrow::Array>> arrays_;
  std::shared_ptr<arrow::RecordBatch> record_batch_;
  std::unique_ptr<Structs> structs_;  ///< goes back to the stream, for its next frame
};

/// For the data thread, before the frame is published: gives the frame the product of its stream's strategy (none for
/// raw, ipc and ipc_page_aligned). Needs frame.extent and frame.layout; `nodes` are those of the frame, after
/// finish_buffers. Copies nothing of the columns. kInvalidArgument for a map whose entries or keys are null: Arrow C++
/// ends the process over such an array. The first frame of a stream also makes its schema.
Status make_products(const StreamInfo& stream, std::span<const NodeRef> nodes, Frame& frame);

/// The frame's columns as a batch of the stream's schema, from the frame's product. Null without one. Copies nothing;
/// allocates a little for each buffer. The batch, its columns, and slices of them keep the frame. Offsets and indices
/// between the first and the last are unchecked: call ValidateFull() before code that follows them.
std::shared_ptr<arrow::RecordBatch> record_batch_of(const FramePtr& frame);
/// The same, one array a column. Empty without a product.
std::vector<std::shared_ptr<arrow::Array>> arrays_of(const FramePtr& frame);

/// For frames of c_abi streams; nulls for others. The structs are lent. A consumer that holds the frame may read them,
/// or import a copy of the top one (its release callback only marks that copy). A consumer that moves children out, or
/// cannot hold the frame, must use export_c_abi.
CAbi c_abi_of(const Frame& frame);
/// A pair that follows the C data interface in full. The consumer owns it, may move it or its children, and releases
/// each struct once, on any thread. Keeps the frame until the last struct of the array is released. kFailedPrecondition
/// for a frame of another strategy; the arguments are set on success only.
Status export_c_abi(FramePtr frame, ArrowArray& array, ArrowSchema& schema);

}  // namespace wherry::move
