// SPDX-License-Identifier: Apache-2.0
#include "move/service/frame_arrow.hpp"

#include <arrow/buffer.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/options.h>
#include <arrow/ipc/reader.h>
#include <arrow/record_batch.h>
#include <arrow/status.h>

#include <string>
#include <utility>

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

Result<std::shared_ptr<arrow::RecordBatch>> read_frame(FramePtr frame) {
  if (auto batch = record_batch_of(frame)) return batch;  // made in transit: there is nothing to parse
  arrow::ipc::IpcReadOptions options;
  options.use_threads = false;
  arrow::io::BufferReader bytes(frame_buffer(frame));
  auto reader = arrow::ipc::RecordBatchStreamReader::Open(&bytes, options);
  if (!reader.ok()) return from_arrow(reader.status(), name_of(*frame));
  auto batch = (*reader)->Next();
  if (!batch.ok()) return from_arrow(batch.status(), name_of(*frame));
  if (*batch == nullptr) return Status(StatusCode::kInternal, name_of(*frame) + " holds no record batch");
  return *std::move(batch);
}

std::string with_cause(const arrow::Status& status) {
  return status.detail() == nullptr ? status.message() : status.message() + ": " + status.detail()->ToString();
}

Status from_arrow(const arrow::Status& status, std::string_view what) {
  if (status.ok()) return ok_status();
  StatusCode code = StatusCode::kInternal;
  switch (status.code()) {
    case arrow::StatusCode::Invalid:
    case arrow::StatusCode::TypeError:
      code = StatusCode::kInvalidArgument;
      break;
    case arrow::StatusCode::KeyError:
      code = StatusCode::kNotFound;
      break;
    case arrow::StatusCode::NotImplemented:
      code = StatusCode::kUnsupported;
      break;
    case arrow::StatusCode::Cancelled:
      code = StatusCode::kCancelled;
      break;
    case arrow::StatusCode::IOError:
      code = StatusCode::kUnavailable;
      break;
    default:
      break;
  }
  return {code, std::string(what) + ": " + with_cause(status)};
}

}  // namespace wherry::move
