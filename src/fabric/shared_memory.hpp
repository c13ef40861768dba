// SPDX-License-Identifier: Apache-2.0 Checks a peer's claims about its shared memory. UCX maps the memory of a packed
// key, and trusts every address and size in it. A process that then reads past the mapping, or past the end of the file
// behind it, is killed.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "wherry/status.hpp"

namespace wherry::fabric {

/// The number of bytes of the memory that process `owner` has at `base` and this process maps at `here`. It ends at the
/// end of either mapping, or of the file behind them if that is shorter. kInvalidArgument: the two are not the same
/// piece of shared memory.
/// Says how it is now: the owner can shrink the file later.
/// Reads both processes' /proc/PID/maps, some 0.3 us for each mapping. Not for a hot path.
Result<std::size_t> shared_bytes(pid_t owner, std::uint64_t base, const std::byte* here);

}  // namespace wherry::fabric
