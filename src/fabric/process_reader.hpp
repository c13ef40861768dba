// SPDX-License-Identifier: Apache-2.0
// Reads memory of a process on the same machine, many pieces in one system call.
//
// UCX issues one process_vm_readv(2) for each 512 KiB of each get. An offload of many columns pays for each call (0.5
// to 1 us). The call itself accepts lists on both sides. Like all CMA gets it is one-sided: the memory's owner runs no
// code, and may be asleep.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "wherry/status.hpp"

namespace wherry::fabric {

/// Collects pieces and reads them together. Not thread-safe. At each call the kernel checks the permission to trace the
/// process, as it does for UCX's own CMA transport.
class ProcessReader {
 public:
  static constexpr std::size_t kPieces = 256;  ///< of one call; the kernel's limit is IOV_MAX = 1024

  explicit ProcessReader(pid_t pid) noexcept : pid_(pid) {}

  /// Adds one piece; `bytes` > 0. True: there is room for more. False: call read() before the next add().
  [[nodiscard]] bool add(std::byte* to, std::uint64_t from, std::size_t bytes) noexcept {
    local_[count_] = {to, bytes};
    remote_[count_] = {reinterpret_cast<void*>(from), bytes};
    return ++count_ < kPieces;
  }
  /// Reads all pieces added since the last call, and always clears the list. kSourceFault: some memory cannot be read
  /// (earlier pieces may have been read). kUnavailable: the process is gone. kPermissionDenied.
  Status read();
  /// After a failed read(): the unreadable piece, counted from the first add().
  [[nodiscard]] std::size_t failed() const noexcept { return failed_; }

 private:
  pid_t pid_;
  std::size_t count_ = 0;
  std::size_t failed_ = 0;
  std::array<iovec, kPieces> local_;
  std::array<iovec, kPieces> remote_;
};

}  // namespace wherry::fabric
