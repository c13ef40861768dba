// SPDX-License-Identifier: Apache-2.0
#pragma once
// The status of streams as JSON for readers.
#include <string>
#include <vector>

#include "move/service/catalogue.hpp"

namespace wherry::move {

/// A JSON array of {name, strategy, open, generation, first, next, held_frames, held_rows, held_bytes, total_frames,
/// total_bytes, evicted_unread}, numbers as in StreamStatus.
std::string streams_json(const std::vector<StreamStatus>& streams);

}  // namespace wherry::move
