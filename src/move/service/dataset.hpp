// SPDX-License-Identifier: Apache-2.0
// A stream in parts: several clients (the ranks of a parallel job) post parts of the same steps. A step appears whole
// or not at all, so its parts wait here for each other. One thread: the agent's data thread.
//
// A step consists of what all parts post with one tag. A part's tags increase, and its frames arrive in that order. So
// steps become complete in the order of their tags. A step can be discarded once a part that it lacks
//   - has gone (its client died) or was closed; then other parts' posts for such steps fail until that part is opened
//     again;
//   - has reached a later tag.
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
  /// Has `info->parts` parts, all closed. `agreed`: the request with which the first part was opened.
  Dataset(std::shared_ptr<const StreamInfo> info, OpenRequest agreed);

  /// Checks that the request is for the same stream: number of parts, strategy, retention, sink, columns and metadata.
  /// kInvalidArgument: the message names the difference.
  [[nodiscard]] Status check_agrees(const OpenRequest& request) const;

  /// Opens a part, also again after its client died or it was closed. kAlreadyExists: the part is open, and the message
  /// names its owner. `owner`: for that message.
  Status open_part(std::uint32_t part, std::string owner);
  /// Discards steps that can no longer become complete. `gone`: the part's client died without closing it.
  void close_part(std::uint32_t part, bool gone);
  [[nodiscard]] bool awaited(std::uint32_t part) const noexcept { return parts_[part].state == State::kAwaited; }
  /// No part is open.
  [[nodiscard]] bool idle() const noexcept { return open_ == 0; }
  /// Whether no part is open and no step is expected: every part was open at some time, or no frame is pending.
  [[nodiscard]] bool over() const noexcept { return open_ == 0 && (awaited_ == 0 || pending_.empty()); }

  /// Records that all earlier frames of the part have arrived (or failed), and that its next frame has this tag. Steps
  /// in between will never get this part.
  void reached(std::uint32_t part, std::uint64_t tag);
  /// The reason why a step cannot become complete even after this part delivers its frame.
  struct Blame {
    StatusCode code = StatusCode::kOk;  ///< kOk: it can
    std::uint64_t detail = 0;           ///< of the CompletionRecord, see kStepIsOver
  };
  [[nodiscard]] Blame blame(std::uint32_t part, std::uint64_t tag) const noexcept;
  /// Whether an older step is not complete yet.
  [[nodiscard]] bool ahead(std::uint64_t tag) const noexcept {
    return !pending_.empty() && pending_.begin()->first < tag;
  }

  struct Added {
    Blame blame;    ///< other than kOk: the frame was not taken
    FramePtr step;  ///< complete with this frame: the first part's, which holds the others; null: parts are missing
  };
  /// Adds a frame whose tag, rows and memory are set. The frame of a reopened part replaces the part's earlier frame.
  /// Numbers the steps that become complete: 0, 1, 2, ...
  Added add(std::uint32_t part, std::shared_ptr<Frame> frame);
  /// Discards all incomplete steps; called when the stream ends.
  void give_up();

  [[nodiscard]] const std::shared_ptr<const StreamInfo>& info() const noexcept { return info_; }
  [[nodiscard]] PartsStatus status() const noexcept;
  /// Bytes of the arena that the parts of incomplete steps use.
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
