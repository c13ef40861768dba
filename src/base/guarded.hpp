// SPDX-License-Identifier: Apache-2.0
// Where exceptions end: what a stranger or a client causes must cost the stranger or the client, not the process. The
// usual one is std::bad_alloc, so nothing here needs memory.
#pragma once

#include <cstddef>
#include <exception>
#include <new>

#include "wherry/status.hpp"

namespace wherry {

/// kResourceExhausted. The text is short enough for std::string to hold without an allocation.
inline Status no_memory() noexcept { return {StatusCode::kResourceExhausted, "out of memory"}; }

/// Runs `work`. Returns what it returns, or, if it throws, a Status that says what it threw.
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

/// Runs `work`. If it throws, the rest of `work` is left out: for lines of the log and messages to a peer, which take
/// memory that may be the very thing that is missing. False: it threw.
template <typename Work>
bool attempt(Work work) noexcept {
  try {
    work();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

/// Throws std::bad_alloc unless so many bytes can be had now. Before calls into libraries that end the process where
/// they cannot allocate (Arrow, whose destructors and noexcept functions allocate; nlohmann's json): this one can be
/// caught. Another thread may take the memory meanwhile.
inline void require_memory(std::size_t bytes) { ::operator delete(::operator new(bytes)); }

}  // namespace wherry
