// SPDX-License-Identifier: Apache-2.0 Catches exceptions at the boundaries of a process. An exception that a stranger
// or a client causes must end that connection, not the process. The usual exception is std::bad_alloc, so this code
// allocates nothing.
#pragma once

#include <cstddef>
#include <exception>
#include <new>

#include "wherry/status.hpp"

namespace wherry {

/// kResourceExhausted. The text is short enough for std::string to hold without an allocation.
inline Status no_memory() noexcept { return {StatusCode::kResourceExhausted, "out of memory"}; }

/// Runs `work` and returns its result, or, if it throws, a Status with the text of the exception.
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

/// Runs `work`. If it throws, the rest of `work` is skipped. For lines of the log and messages to a peer: they need
/// memory, which may be exhausted. False: it threw.
template <typename Work>
bool attempt(Work work) noexcept {
  try {
    work();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

/// Throws std::bad_alloc unless this many bytes can be allocated now. Call it before libraries that end the process if
/// they cannot allocate (Arrow, whose destructors and noexcept functions allocate; nlohmann's json): this exception can
/// be caught. Another thread may still take the memory in between.
inline void require_memory(std::size_t bytes) { ::operator delete(::operator new(bytes)); }

}  // namespace wherry
