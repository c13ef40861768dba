// SPDX-License-Identifier: Apache-2.0
// A stream in parts: several clients (the ranks of a parallel job) post parts of the same steps. A step appears whole
// or not at all. Here the parts of a step wait for each other. One thread: the agent's data thread.
//
// A step is what all parts post with one tag. The tags of a part rise, and its frames come in that order, so steps
// become complete in the order of their tags, and a step can be discarded for good once a part that it lacks
//   - has gone (its client died) or was closed: from then on, other parts' posts for such steps fail, until that part
//     is opened again;
//   - has come to a later tag.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "move/message.hpp"
#include "move/service/frame.hpp"

namespace wherry::move {

class Dataset {
 public:
  /// `info->parts` parts, none of which is open. `agreed`: the request with which the first part was opened.
  Dataset(std::shared_ptr<const StreamInfo> info, OpenRequest agreed);

  /// kInvalidArgument, with the difference, unless the request is for a part of the same stream: number of parts,
  /// strategy, retention, sink, columns and metadata.
  [[nodiscard]] Status check_agrees(const OpenRequest& request) const;

  /// kAlreadyExists: the part is open, and the message names its owner. A part whose client died, or that was closed,
  /// is opened again. `owner`: for the message.
  Status open_part(std::uint32_t part, std::string owner);
  /// `gone`: its client has died without closing it. Discards steps that can no longer become complete.
  void close_part(std::uint32_t part, bool gone);
  [[nodiscard]] bool awaited(std::uint32_t part) const noexcept { return parts_[part].state == State::kAwaited; }
  /// No part is open.
  [[nodiscard]] bool idle() const noexcept { return open_ == 0; }
  /// No part is open, and no step can become complete: every part was open at some time, or no part has left a frame.
  [[nodiscard]] bool over() const noexcept { return open_ == 0 && (awaited_ == 0 || pending_.empty()); }

  /// All earlier frames of the part have arrived (or failed), and its next frame has this tag. Steps in between will
  /// never get the part.
  void reached(std::uint32_t part, std::uint64_t tag);
  /// The reason if the step cannot become complete even after this part has delivered its frame.
  struct Blame {
    StatusCode code = StatusCode::kOk;  ///< kOk: it can
    std::uint64_t detail = 0;           ///< of the CompletionRecord, see kStepIsOver
  };
  [[nodiscard]] Blame blame(std::uint32_t part, std::uint64_t tag) const noexcept;
  /// An older step is not complete yet.
  [[nodiscard]] bool ahead(std::uint64_t tag) const noexcept {
    return !pending_.empty() && pending_.begin()->first < tag;
  }

  struct Added {
    Blame blame;    ///< other than kOk: the frame was not taken
    FramePtr step;  ///< complete with this frame: the first part's, which holds the others; null: parts are missing
  };
  /// A frame whose tag, rows and memory are in place. A part that was reopened replaces its earlier frame. Sets the
  /// sequence of steps that become complete: 0, 1, 2, ...
  Added add(std::uint32_t part, std::shared_ptr<Frame> frame);
  /// Discards all incomplete steps, when the stream ends.
  void give_up();

  [[nodiscard]] const std::shared_ptr<const StreamInfo>& info() const noexcept { return info_; }
  [[nodiscard]] PartsStatus status() const noexcept;
  /// Bytes of the arena that parts of incomplete steps take.
  [[nodiscard]] std::uint64_t pending_bytes() const noexcept { return pending_bytes_; }

 private:
  enum class State : std::uint8_t { kAwaited, kOpen, kClosed, kGone };
  struct Part {
    State state = State::kAwaited;
    std::string owner;
    std::optional<std::uint64_t> reached;  ///< the latest tag that it delivered or began to, since it was opened
  };
  struct Step {
    std::vector<std::shared_ptr<Frame>> frames;  ///< one a part; null: not there yet
    std::uint32_t there = 0;
  };
  using Steps = std::map<std::uint64_t, Step>;
  void forget(Steps::iterator step);
  template <typename Lacks>
  void discard(const std::string& why, const Lacks& lacks);

  std::shared_ptr<const StreamInfo> info_;
  const OpenRequest agreed_;
  std::vector<Part> parts_;
  Steps pending_;  ///< by tag
  std::uint32_t open_ = 0, awaited_, left_ = 0;
  std::uint64_t latest_ = 0;               ///< tag that any part reached
  std::optional<std::uint64_t> complete_;  ///< tag of the latest complete step
  std::uint64_t next_sequence_ = 0, discarded_ = 0, pending_bytes_ = 0;
  bool said_skipped_ = false;  ///< logged
};

}  // namespace wherry::move
