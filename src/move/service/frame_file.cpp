// SPDX-License-Identifier: Apache-2.0
#include "move/service/frame_file.hpp"

#include <arrow/io/file.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>
#include <arrow/table.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <parquet/arrow/writer.h>
#include <sys/types.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/unfinished_file.hpp"
#include "move/arrow_status.hpp"
#include "move/service/frame_arrow.hpp"

namespace wherry::move {
namespace {

constexpr mode_t kMode = 0644;  // less the umask

using Batches = std::vector<std::shared_ptr<arrow::RecordBatch>>;

arrow::Status write_arrow(const Batches& batches, const std::shared_ptr<arrow::io::OutputStream>& out) {
  arrow::ipc::IpcWriteOptions options;
  options.alignment = 64;
  options.unify_dictionaries = batches.size() > 1;  // a file has one for all its batches
  ARROW_ASSIGN_OR_RAISE(const auto writer, arrow::ipc::MakeFileWriter(out, batches.front()->schema(), options));
  if (batches.size() == 1) {
    ARROW_RETURN_NOT_OK(writer->WriteRecordBatch(*batches.front()));
  } else {
    for (const auto& batch : batches) ARROW_RETURN_NOT_OK(batch->ValidateFull());  // unifying follows the indices
    ARROW_ASSIGN_OR_RAISE(const auto table, arrow::Table::FromRecordBatches(batches));
    ARROW_RETURN_NOT_OK(writer->WriteTable(*table));
  }
  return writer->Close();
}

arrow::Status write_parquet(const Batches& batches, const std::shared_ptr<arrow::io::OutputStream>& out) {
  for (const auto& batch : batches) ARROW_RETURN_NOT_OK(batch->ValidateFull());
  ARROW_ASSIGN_OR_RAISE(const auto table, arrow::Table::FromRecordBatches(batches));
  return parquet::arrow::WriteTable(
      *table, arrow::default_memory_pool(), out, parquet::DEFAULT_MAX_ROW_GROUP_LENGTH,
      parquet::WriterProperties::Builder().compression(arrow::Compression::SNAPPY)->build(),
      parquet::ArrowWriterProperties::Builder().store_schema()->build());
}

}  // namespace

std::string frame_file_path(const Frame& frame) {
  const Sink& sink = frame.stream->sink;
  return std::filesystem::path(sink.directory) / sink_file_name(frame.stream->name, frame.sequence, sink.format);
}

Result<std::uint64_t> write_frame_file(FramePtr frame, const SinkDirectory& directory, Unfinished unfinished) {
  const std::string path = frame_file_path(*frame);
  const std::string name = sink_file_name(frame->stream->name, frame->sequence, frame->stream->sink.format);
  const auto failed = [&](const std::string& why) { return Status(StatusCode::kUnavailable, path + ": " + why); };
  const bool parquet = frame->stream->sink.format == Sink::Format::kParquet;
  Batches batches;  // one a part
  for (std::size_t i = 0; i < frame->frames(); ++i) {
    auto batch = read_frame(frame_of(frame, i));
    if (!batch) return failed(batch.status().message());
    batches.push_back(*std::move(batch));
  }
  frame.reset();

  UnfinishedFile file(directory.fd(), unfinished, kMode);
  if (file.fd() < 0) {
    return failed(errno == ENOENT ? "the directory was removed after the stream was opened" : std::strerror(errno));
  }
  const int copy = ::fcntl(file.fd(), F_DUPFD_CLOEXEC, 0);  // Arrow closes the descriptor that it is given
  if (copy < 0) return failed(std::strerror(errno));
  const auto out = arrow::io::FileOutputStream::Open(copy);
  if (!out.ok()) return failed(with_cause(out.status()));
  arrow::Status status = parquet ? write_parquet(batches, *out) : write_arrow(batches, *out);
  const std::int64_t bytes = status.ok() ? (*out)->Tell().ValueOr(0) : 0;
  status &= (*out)->Close();
  if (!status.ok()) return failed(with_cause(status));
  if (!file.keep(name)) {
    return failed(errno == EEXIST ? "a file of this name exists already, and the agent replaces no file"
                                  : std::strerror(errno));
  }
  return static_cast<std::uint64_t>(bytes);
}

}  // namespace wherry::move
