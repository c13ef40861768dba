// SPDX-License-Identifier: Apache-2.0
// Objects that the strategies arrays, record_batch and c_abi make for a frame during its transfer (paper 004 section
// V-F): "direct-to-arrays", "direct-to-record-batch" and "direct-to-structs". The Arrow objects exist when the ticket
// completes, and the gets write directly to the memory that they point to.
//
// A product lives in its frame and borrows the frame's memory. It must not own the frame, because the frame would then
// never be freed. Objects for readers (record_batch_of, arrays_of, export_c_abi) own the frame, and so does each sliced
// buffer of them.
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

/// A struct array with one child per column, and its schema ("+s").
struct CAbi {
  const ArrowArray* array = nullptr;
  const ArrowSchema* schema = nullptr;
  explicit operator bool() const noexcept { return array != nullptr; }
};

/// Immutable. Its results, and objects made from them, are borrowed and valid while the frame lives. For code in the
/// agent that holds the frame. Access costs nothing.
class Products {
 public:
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  /// With Strategy::kArrays: one array for each column. Otherwise empty.
  [[nodiscard]] const std::vector<std::shared_ptr<arrow::Array>>& arrays() const noexcept { return arrays_; }
  /// With Strategy::kRecordBatch: the batch. Otherwise null.
  [[nodiscard]] const arrow::RecordBatch* record_batch() const noexcept { return record_batch_.get(); }
  /// With Strategy::kCAbi: the structs. Otherwise nulls. The stream makes its schema once.
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

/// Called on the data thread before the frame is published: makes the product of the stream's strategy (none for raw,
/// ipc and ipc_page_aligned). Needs frame.extent and frame.layout, and the frame's `nodes` after finish_buffers. Does
/// not copy columns. kInvalidArgument: a map has null entries or keys, for which Arrow C++ would end the process. The
/// first frame of a stream also makes its schema.
Status make_products(const StreamInfo& stream, std::span<const NodeRef> nodes, Frame& frame);

/// The frame's columns as a batch of the stream's schema, made from the frame's product; null without one. Copies no
/// data; allocates a little per buffer. The batch, its columns and slices keep the frame alive. Only first and last
/// offsets are checked: call ValidateFull() before code that follows other offsets or indices.
std::shared_ptr<arrow::RecordBatch> record_batch_of(const FramePtr& frame);
/// Like record_batch_of(), as one array per column. Empty without a product.
std::vector<std::shared_ptr<arrow::Array>> arrays_of(const FramePtr& frame);

/// The frame's structs in a c_abi stream; nulls in others. They are lent. A consumer that holds the frame may read
/// them, or import a copy of the top struct (its release callback only marks the copy). A consumer that moves children
/// out, or cannot hold the frame, must use export_c_abi.
CAbi c_abi_of(const Frame& frame);
/// Exports structs by all rules of the C data interface. The consumer owns them, may move them or their children, and
/// releases each struct once, on any thread. The frame lives until the array's last struct is released.
/// kFailedPrecondition: the frame has another strategy. Sets the arguments only on success.
Status export_c_abi(FramePtr frame, ArrowArray& array, ArrowSchema& schema);

}  // namespace wherry::move
