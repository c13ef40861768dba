// SPDX-License-Identifier: Apache-2.0
#include "move/service/stream_json.hpp"

#include <nlohmann/json.hpp>

namespace wherry::move {

std::string streams_json(const std::vector<StreamStatus>& streams) {
  nlohmann::json all = nlohmann::json::array();
  for (const StreamStatus& stream : streams) {
    all.push_back({{"name", stream.info->name},
                   {"strategy", to_string(stream.info->strategy)},
                   {"open", stream.open},
                   {"generation", stream.generation},
                   {"first", stream.first},
                   {"next", stream.next},
                   {"held_frames", stream.held_frames},
                   {"held_rows", stream.held_rows},
                   {"held_bytes", stream.held_bytes},
                   {"total_frames", stream.total_frames},
                   {"total_bytes", stream.total_bytes},
                   {"evicted_unread", stream.evicted_unread},
                   {"sink_errors", stream.sink_errors},
                   {"sink_error", stream.sink_error},
                   {"parts", stream.info->parts},
                   {"open_parts", stream.parts.open},
                   {"incomplete_steps", stream.parts.incomplete},
                   {"discarded_steps", stream.parts.discarded},
                   {"source", stream.info->source},
                   {"derived", stream.info->derived.size()},
                   {"operator_lag", stream.operator_lag},
                   {"operator_errors", stream.operator_errors},
                   {"operator_skipped", stream.operator_skipped},
                   {"operator_error", stream.operator_error}});
  }
  return all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);  // paths need not be UTF-8
}

}  // namespace wherry::move
