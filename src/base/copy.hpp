// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace wherry {

/// memcpy with stores that bypass the caches, for destinations that nobody reads soon and that are larger than the cache: spares the
/// read of every destination line. Regions must not overlap. The data is globally visible when the call returns.
void copy_streaming(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

}  // namespace wherry
