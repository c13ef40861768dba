// SPDX-License-Identifier: Apache-2.0
#include "probe/device/host_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

namespace wherry::probe {

Result<HostMemory> HostMemory::make(std::size_t bytes, bool lock) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (at == MAP_FAILED)
    return Status(StatusCode::kResourceExhausted, fmt::format("{} bytes of memory: {}", bytes, std::strerror(errno)));
  HostMemory memory;
  memory.at_ = static_cast<std::byte*>(at);
  memory.bytes_ = bytes;
  memory.locked_ = lock && mlock(at, bytes) == 0;
  return memory;
}

HostMemory::~HostMemory() {
  if (at_ != nullptr) munmap(at_, bytes_);
}

}  // namespace wherry::probe
