// SPDX-License-Identifier: Apache-2.0
// Whether what a peer says of its shared memory is true. UCX maps what a packed key says and believes every address and
// size that goes with it; whoever then reads past the mapping, or past the end of the file behind it, is killed.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "wherry/status.hpp"

namespace wherry::fabric {

/// How many bytes there are of the memory that process `owner` has at `base` and this process maps at `here`: up to the
/// end of either mapping, or of the file behind them if that is shorter. kInvalidArgument: the two are not the same
/// piece of shared memory.
/// Says how it is now: the owner can shrink the file later.
/// Reads both processes' /proc/PID/maps, some 0.3 us a mapping: nothing for a hot path.
Result<std::size_t> shared_bytes(pid_t owner, std::uint64_t base, const std::byte* here);

}  // namespace wherry::fabric
