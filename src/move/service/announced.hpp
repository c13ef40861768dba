// SPDX-License-Identifier: Apache-2.0
// Estimates the size of a stream's frames from the announced sizes of its offloads (StreamOptions::announced_bytes).
#pragma once

#include <cstdint>

#include "move/service/frame.hpp"

namespace wherry::move {

/// The size of the frame of an offload with `bytes` bytes of buffers in total. `validity`: every nullable column has a
/// bitmap. Exact if the schema determines how the bytes are divided (fixed-width columns). Otherwise (strings, lists,
/// dictionaries) the error is at most one alignment gap per buffer.
std::uint64_t announced_frame_bytes(const StreamInfo& info, std::uint64_t bytes, bool validity);

}  // namespace wherry::move
