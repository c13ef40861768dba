// SPDX-License-Identifier: Apache-2.0
// Checks a peer's claims about its shared memory. UCX maps the memory of a packed key, and trusts every address and
// size in it. The kernel kills a process that then reads past the mapping, or past the end of the mapped file.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "wherry/status.hpp"

namespace wherry::fabric {

/// Returns how many bytes this process shares at `here` with the memory at `base` in process `owner`.
/// The end of either mapping or of the mapped file limits it, whichever comes first.
/// kInvalidArgument: the two are not the same shared memory. The owner can shrink the file after this
/// check. Reads /proc/PID/maps of both processes, about 0.3 us for each mapping, so it is not for a
/// hot path.
Result<std::size_t> shared_bytes(pid_t owner, std::uint64_t base, const std::byte* here);

}  // namespace wherry::fabric
