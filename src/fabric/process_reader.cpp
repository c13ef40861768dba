// SPDX-License-Identifier: Apache-2.0
#include "fabric/process_reader.hpp"

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace wherry::fabric {

Status ProcessReader::read() {
  const std::size_t count = std::exchange(count_, 0);
  std::size_t first = 0;
  while (first < count) {
    const ssize_t got = process_vm_readv(pid_, &local_[first], count - first, &remote_[first], count - first, 0);
    if (got <= 0) {
      const int why = got == 0 ? EFAULT : errno;
      failed_ = first;
      const StatusCode code = why == ESRCH   ? StatusCode::kUnavailable
                              : why == EPERM ? StatusCode::kPermissionDenied
                                             : StatusCode::kSourceFault;
      return {code, "process_vm_readv of pid " + std::to_string(pid_) + ": " + std::strerror(why)};
    }
    // A short read stops where the memory ends. Read the rest once more to get the reason.
    auto left = static_cast<std::size_t>(got);
    while (first < count && left >= local_[first].iov_len) left -= local_[first++].iov_len;
    if (left == 0) continue;
    local_[first] = {static_cast<std::byte*>(local_[first].iov_base) + left, local_[first].iov_len - left};
    remote_[first] = {static_cast<std::byte*>(remote_[first].iov_base) + left, remote_[first].iov_len - left};
  }
  return ok_status();
}

}  // namespace wherry::fabric
