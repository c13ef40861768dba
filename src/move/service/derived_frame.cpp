// SPDX-License-Identifier: Apache-2.0
#include "move/service/derived_frame.hpp"

#include <arrow/buffer.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/dictionary.h>
#include <arrow/ipc/options.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>
#include <arrow/util/compression.h>

#include <utility>
#include <vector>

#include "move/operate/pipeline.hpp"

namespace wherry::move {
namespace {

namespace ipc = arrow::ipc;

constexpr std::uint64_t kEndOfStream = 0xffffffff;  // a continuation marker, and no metadata (Arrow's IPC format)

arrow::Result<ipc::IpcWriteOptions> options_for(Pipeline::Compression compression, arrow::MemoryPool* pool) {
  auto options = ipc::IpcWriteOptions::Defaults();
  options.use_threads = false;
  options.alignment = 64;
  options.memory_pool = pool;
  if (compression == Pipeline::Compression::kNone) return options;
  const auto which =
      compression == Pipeline::Compression::kLz4 ? arrow::Compression::LZ4_FRAME : arrow::Compression::ZSTD;
  ARROW_ASSIGN_OR_RAISE(options.codec, arrow::util::Codec::Create(which));
  return options;
}

arrow::Result<std::vector<ipc::IpcPayload>> messages_of(const arrow::RecordBatch& batch,
                                                        const ipc::IpcWriteOptions& options) {
  const ipc::DictionaryFieldMapper mapper(*batch.schema());
  std::vector<ipc::IpcPayload> all(1);
  ARROW_RETURN_NOT_OK(ipc::GetSchemaPayload(*batch.schema(), options, mapper, &all[0]));
  ARROW_ASSIGN_OR_RAISE(const auto dictionaries, ipc::CollectDictionaries(batch, mapper));
  for (const auto& [id, values] : dictionaries)
    ARROW_RETURN_NOT_OK(ipc::GetDictionaryPayload(id, values, options, &all.emplace_back()));
  ARROW_RETURN_NOT_OK(ipc::GetRecordBatchPayload(batch, options, &all.emplace_back()));
  return all;
}

}  // namespace

arrow::Result<std::shared_ptr<Frame>> make_derived_frame(const std::shared_ptr<const StreamInfo>& stream,
                                                         const arrow::RecordBatch& batch, Arena& arena,
                                                         arrow::MemoryPool* pool,
                                                         const std::function<bool()>& make_room) {
  ARROW_ASSIGN_OR_RAISE(const auto options, options_for(stream->pipeline->compression(), pool));
  ARROW_ASSIGN_OR_RAISE(const auto messages, messages_of(batch, options));
  std::int64_t bytes = sizeof kEndOfStream;
  for (const ipc::IpcPayload& message : messages) bytes += ipc::GetPayloadSize(message, options);

  auto frame = std::make_shared<Frame>();
  for (;;) {
    auto extent = arena.try_allocate(static_cast<std::size_t>(bytes));
    if (extent) {
      frame->extent = *std::move(extent);
      break;
    }
    if (extent.status().code() == StatusCode::kResourceExhausted)
      return arrow::Status::CapacityError(extent.status().message());
    if (!make_room()) return arrow::Status::OutOfMemory("the agent's budget is full: ", bytes, " bytes for a frame");
  }
  frame->extent.set_stamp(0);
  arrow::io::FixedSizeBufferWriter out(
      std::make_shared<arrow::MutableBuffer>(reinterpret_cast<std::uint8_t*>(frame->extent.bytes().data()), bytes));
  for (const ipc::IpcPayload& message : messages) {
    std::int32_t metadata_bytes = 0;
    ARROW_RETURN_NOT_OK(ipc::WriteIpcPayload(message, options, &out, &metadata_bytes));
  }
  ARROW_RETURN_NOT_OK(out.Write(&kEndOfStream, sizeof kEndOfStream));
  frame->stream = stream;
  frame->rows = static_cast<std::uint64_t>(batch.num_rows());
  frame->layout.total_bytes = static_cast<std::uint64_t>(bytes);
  frame->set_ipc_written();
  return frame;
}

}  // namespace wherry::move
