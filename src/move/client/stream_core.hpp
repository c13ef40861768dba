// SPDX-License-Identifier: Apache-2.0
#pragma once
// The state behind a Stream handle.
#include <cstdint>
#include <memory>

#include "base/hot_memory.hpp"
#include "move/client/post.hpp"
#include "move/flatten.hpp"
#include "move/plan.hpp"
#include "session/session_core.hpp"
#include "wherry/move.hpp"

namespace wherry::detail {

class StreamCore : public InHotMemory {
 public:
  SessionCore* session = nullptr;
  std::uint32_t id = 0;
  StreamOptions options;
  Schema schema;
  move::Plan plan;
  move::FlatOffload flat;          ///< reused
  HotVector<std::uint32_t> hints;  ///< per buffer: the region that held it last time
  std::uint64_t posted = 0;
  std::uint64_t last_tag = 0;  ///< of the latest post
  std::size_t last_message_bytes = 0;
  bool open = true;
  struct Expected {
    std::uint64_t bytes = 0;
    bool later = false;  ///< post_rest() gives it
  };
  HotVector<Expected> rest;  ///< between the two posts of a frame: its buffers. Empty otherwise
};

/// The state behind a Step handle.
class StepCore : public InHotMemory {
 public:
  std::shared_ptr<StreamCore> stream;
  move::Bound bound;
};

}  // namespace wherry::detail
