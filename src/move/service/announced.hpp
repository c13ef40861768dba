// SPDX-License-Identifier: Apache-2.0 Estimates the size of a stream's frames from the announced sizes of its offloads
// (StreamOptions::announced_bytes).
#pragma once

#include <cstdint>

#include "move/service/frame.hpp"

namespace wherry::move {

/// Bytes of the frame of an offload whose buffers are `bytes` in sum; `validity`: every nullable column brings its
/// bitmap. Exact if the schema determines how the bytes are divided (fixed-width columns). Otherwise (strings, lists,
/// dictionaries) it is wrong by at most one alignment gap a buffer.
std::uint64_t announced_frame_bytes(const StreamInfo& info, std::uint64_t bytes, bool validity);

}  // namespace wherry::move
