// SPDX-License-Identifier: Apache-2.0
// Arrow serialised by the host into shared memory, at its best. The arrays are wrapped, not copied. The schema was
// written before. Each record batch goes to the same pages, which have been touched. One copy remains.
#include <arrow/io/api.h>
#include <arrow/ipc/api.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "peers/fix_peer.hpp"

namespace wherry::lammps {
namespace {

class FixArrow final : public FixPeer {
 public:
  FixArrow(LAMMPS_NS::LAMMPS* lammps, int argument_count, char** arguments)
      : FixPeer(lammps, argument_count, arguments) {}

 private:
  arrow::Status put(const arrow::RecordBatch& batch) override {
    std::int64_t size = 0;
    ARROW_RETURN_NOT_OK(arrow::ipc::GetRecordBatchSize(batch, options_, &size));
    if (buffer_ == nullptr) ARROW_RETURN_NOT_OK(map(size + size / 10));
    arrow::io::FixedSizeBufferWriter out(buffer_);
    std::int32_t metadata = 0;
    std::int64_t body = 0;
    return arrow::ipc::WriteRecordBatch(batch, 0, &out, &metadata, &body, options_);
  }

  /// The pages stay mapped until the process ends.
  arrow::Status map(std::int64_t bytes) {
    const int file = ::open(where_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) return arrow::Status::IOError("cannot open ", where_);
    const bool grown = ::ftruncate(file, bytes) == 0;
    const auto size = static_cast<std::size_t>(bytes);
    void* const pages = grown ? ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    ::close(file);
    if (pages == MAP_FAILED) return arrow::Status::IOError("cannot map ", bytes, " bytes of ", where_);
    std::memset(pages, 1, size);
    buffer_ = std::make_shared<arrow::MutableBuffer>(static_cast<std::uint8_t*>(pages), bytes);
    return arrow::Status::OK();
  }

  arrow::ipc::IpcWriteOptions options_ = arrow::ipc::IpcWriteOptions::Defaults();
  std::shared_ptr<arrow::Buffer> buffer_;
};

}  // namespace

void* create_arrow(void* lammps, int argument_count, char** arguments) {
  return static_cast<LAMMPS_NS::Fix*>(new FixArrow(static_cast<LAMMPS_NS::LAMMPS*>(lammps), argument_count, arguments));
}

}  // namespace wherry::lammps
