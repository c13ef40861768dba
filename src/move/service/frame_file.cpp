// SPDX-License-Identifier: Apache-2.0
#include "move/service/frame_file.hpp"

#include <arrow/io/file.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>
#include <arrow/table.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <parquet/arrow/writer.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/socket.hpp"
#include "move/service/frame_arrow.hpp"

namespace wherry::move {
namespace {

/// A file under a name of its own until keep(); gone if that is never reached.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& target)
      : path_(target.parent_path() / fmt::format(".{}.{}.part", target.filename().string(), ::getpid())),
        fd_(::open(path_.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644)) {}
  ~TemporaryFile() {
    if (fd_) ::unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  /// False, with errno, when the disk or the directory refuses.
  bool keep(const std::filesystem::path& target) {
    if (::fsync(fd()) != 0 || std::rename(path_.c_str(), target.c_str()) != 0) return false;
    fd_.reset();
    const Fd directory(::open(target.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return directory && ::fsync(directory.get()) == 0;
  }

 private:
  const std::filesystem::path path_;
  Fd fd_;
};

arrow::Status write_arrow(const arrow::RecordBatch& batch, const std::shared_ptr<arrow::io::OutputStream>& out) {
  arrow::ipc::IpcWriteOptions options;
  options.alignment = 64;
  ARROW_ASSIGN_OR_RAISE(const auto writer, arrow::ipc::MakeFileWriter(out, batch.schema(), options));
  ARROW_RETURN_NOT_OK(writer->WriteRecordBatch(batch));
  return writer->Close();
}

arrow::Status write_parquet(const std::shared_ptr<arrow::RecordBatch>& batch,
                            const std::shared_ptr<arrow::io::OutputStream>& out) {
  ARROW_RETURN_NOT_OK(batch->ValidateFull());
  ARROW_ASSIGN_OR_RAISE(const auto table, arrow::Table::FromRecordBatches({batch}));
  return parquet::arrow::WriteTable(
      *table, arrow::default_memory_pool(), out, parquet::DEFAULT_MAX_ROW_GROUP_LENGTH,
      parquet::WriterProperties::Builder().compression(arrow::Compression::SNAPPY)->build(),
      parquet::ArrowWriterProperties::Builder().store_schema()->build());
}

}  // namespace

std::string frame_file_path(const Frame& frame) {
  const Sink& sink = frame.stream->sink;
  const char* const suffix = sink.format == Sink::Format::kParquet ? "parquet" : "arrow";
  return (std::filesystem::path(sink.directory) /
          fmt::format("{}-{:08}.{}", frame.stream->name, frame.sequence, suffix))
      .string();
}

Result<std::uint64_t> write_frame_file(FramePtr frame) {
  const std::filesystem::path path = std::filesystem::absolute(frame_file_path(*frame));
  const auto failed = [&](const std::string& why) {
    return Status(StatusCode::kUnavailable, path.string() + ": " + why);
  };
  const bool parquet = frame->stream->sink.format == Sink::Format::kParquet;
  auto batch = read_frame(std::move(frame));
  if (!batch) return failed(batch.status().message());

  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  if (error) return failed("the directory cannot be made: " + error.message());
  TemporaryFile file(path);
  if (file.fd() < 0) return failed(std::strerror(errno));
  const int copy = ::fcntl(file.fd(), F_DUPFD_CLOEXEC, 0);  // Arrow closes the descriptor that it is given
  if (copy < 0) return failed(std::strerror(errno));
  const auto out = arrow::io::FileOutputStream::Open(copy);
  if (!out.ok()) return failed(out.status().message());
  arrow::Status status = parquet ? write_parquet(*batch, *out) : write_arrow(**batch, *out);
  const std::int64_t bytes = status.ok() ? (*out)->Tell().ValueOr(0) : 0;
  status &= (*out)->Close();
  if (!status.ok()) return failed(status.message());
  if (!file.keep(path)) return failed(std::strerror(errno));
  return static_cast<std::uint64_t>(bytes);
}

}  // namespace wherry::move
