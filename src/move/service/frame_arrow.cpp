// SPDX-License-Identifier: Apache-2.0
#include "move/service/frame_arrow.hpp"

#include <arrow/buffer.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/options.h>
#include <arrow/ipc/reader.h>
#include <arrow/record_batch.h>

#include <string>
#include <utility>

#include "move/arrow_status.hpp"
#include "move/service/products.hpp"

namespace wherry::move {
namespace {

class FrameBuffer final : public arrow::Buffer {
 public:
  FrameBuffer(FramePtr frame, std::span<const std::byte> ipc)
      : arrow::Buffer(reinterpret_cast<const std::uint8_t*>(ipc.data()), static_cast<std::int64_t>(ipc.size())),
        frame_(std::move(frame)) {}

 private:
  FramePtr frame_;
};

std::string name_of(const Frame& frame) {
  return "frame " + std::to_string(frame.sequence) + " of stream \"" + frame.stream->name + "\"";
}

}  // namespace

std::shared_ptr<arrow::Buffer> frame_buffer(FramePtr frame) {
  const std::span<const std::byte> ipc = frame->ipc();
  return std::make_shared<FrameBuffer>(std::move(frame), ipc);
}

Result<std::shared_ptr<arrow::RecordBatch>> read_frame(FramePtr frame, arrow::MemoryPool* pool) {
  if (auto batch = record_batch_of(frame)) return batch;  // made in transit: there is nothing to parse
  arrow::ipc::IpcReadOptions options;
  options.use_threads = false;
  if (pool != nullptr) options.memory_pool = pool;
  arrow::io::BufferReader bytes(frame_buffer(frame));
  auto reader = arrow::ipc::RecordBatchStreamReader::Open(&bytes, options);
  if (!reader.ok()) return from_arrow(reader.status(), name_of(*frame));
  auto batch = (*reader)->Next();
  if (!batch.ok()) return from_arrow(batch.status(), name_of(*frame));
  if (*batch == nullptr) return Status(StatusCode::kInternal, name_of(*frame) + " holds no record batch");
  return *std::move(batch);
}

}  // namespace wherry::move
