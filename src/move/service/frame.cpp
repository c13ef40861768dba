// SPDX-License-Identifier: Apache-2.0
#include "move/service/frame.hpp"

namespace wherry::move {

std::span<const std::byte> Frame::ipc() const {
  const std::span<std::byte> bytes = extent.bytes().first(layout.total_bytes);
  if (!ipc_written_.load(std::memory_order_acquire)) {
    const std::lock_guard lock(write_mutex_);
    if (!ipc_written_.load(std::memory_order_relaxed)) {
      stream->ipc->write_metadata(layout, nodes, bytes);
      ipc_written_.store(true, std::memory_order_release);
    }
  }
  return bytes;
}

}  // namespace wherry::move
