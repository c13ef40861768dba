// SPDX-License-Identifier: Apache-2.0
// Catches exceptions at the boundaries of a process. An exception that a stranger or a client causes must end that
// connection, not the process. The usual exception is std::bad_alloc, so this code allocates nothing.
#pragma once

#include <cstddef>
#include <exception>
#include <new>

#include "wherry/status.hpp"

namespace wherry {

/// kResourceExhausted. The text is short enough for std::string to hold without an allocation.
inline Status no_memory() noexcept { return {StatusCode::kResourceExhausted, "out of memory"}; }

/// Runs `work` and returns its result. If it throws, returns a Status with the text of the exception.
template <typename Work>
auto guarded(Work work) noexcept -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return no_memory();
  } catch (const std::exception& error) {
    try {
      return Status(StatusCode::kInternal, error.what());
    } catch (const std::exception&) {
      return no_memory();
    }
  }
}

/// Runs `work` and returns false if it throws. For log lines and messages to a peer, which need memory that may be
/// exhausted.
template <typename Work>
bool attempt(Work work) noexcept {
  try {
    work();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

/// Throws std::bad_alloc if `bytes` bytes cannot be allocated now. Call it before a library that would end the process
/// if it cannot allocate (nlohmann's json; Arrow, whose destructors and noexcept functions allocate). This exception
/// can be caught. Another thread may still take the memory in between.
inline void require_memory(std::size_t bytes) { ::operator delete(::operator new(bytes)); }

}  // namespace wherry
