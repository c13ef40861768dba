// SPDX-License-Identifier: Apache-2.0
// How large the frames of a stream will be, from nothing but the sizes of its offloads
// (StreamOptions::announced_bytes).
#pragma once

#include <cstdint>

#include "move/service/frame.hpp"

namespace wherry::move {

/// Bytes of the frame of an offload whose buffers are `bytes` in sum; `validity`: every nullable column brings its
/// bitmap. Exact where the schema says how the bytes are shared out (fixed-width columns); where it does not (strings,
/// lists, dictionaries) a guess that is off by an alignment gap a buffer at most.
std::uint64_t announced_frame_bytes(const StreamInfo& info, std::uint64_t bytes, bool validity);

}  // namespace wherry::move
