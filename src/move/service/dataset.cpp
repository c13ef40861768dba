// SPDX-License-Identifier: Apache-2.0
#include "move/service/dataset.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/guarded.hpp"
#include "base/log.hpp"

namespace wherry::move {

namespace {

Bytes encoded(const Field& field) {
  Writer out;
  encode_schema({field}, out);
  return std::move(out).take();
}

std::string shown(const Retention& rule) {
  return fmt::format("{} frames, {} bytes, {}", rule.frames, rule.bytes,
                     rule.when_full == Retention::WhenFull::kWait ? "wait" : "evict");
}

}  // namespace

Dataset::Dataset(std::shared_ptr<const StreamInfo> info, OpenRequest agreed)
    : info_(std::move(info)), agreed_(std::move(agreed)), parts_(info_->parts), awaited_(info_->parts) {}

Status Dataset::check_agrees(const OpenRequest& request) const {
  const StreamOptions &ours = request.options, &theirs = agreed_.options;
  const auto differ = [&](const std::string& what, const auto& given, const auto& wanted) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("stream \"{}\": all parts must agree: {} is {} here, and {} where it was opened first",
                              info_->name, what, given, wanted));
  };
  if (ours.parts != theirs.parts) return differ("the number of parts", ours.parts, theirs.parts);
  if (ours.strategy != theirs.strategy)
    return differ("the strategy", to_string(ours.strategy), to_string(theirs.strategy));
  if (shown(ours.retention) != shown(theirs.retention))
    return differ("the retention", shown(ours.retention), shown(theirs.retention));
  if (ours.sink.format != theirs.sink.format || ours.sink.directory != theirs.sink.directory)
    return differ("the sink", "'" + ours.sink.directory + "'", "'" + theirs.sink.directory + "'");
  if (ours.operators != theirs.operators)
    return differ("the list of operators", fmt::format("{} bytes", ours.operators.size()), "another");
  if (request.schema.size() != agreed_.schema.size())
    return differ("the number of columns", request.schema.size(), agreed_.schema.size());
  for (std::size_t i = 0; i < request.schema.size(); ++i) {
    const Field &here = request.schema[i], &there = agreed_.schema[i];
    if (here.name != there.name)
      return differ(fmt::format("column {}", i), "'" + here.name + "'", "'" + there.name + "'");
    if (here.format != there.format)
      return differ("the type of column '" + here.name + "'", "'" + here.format + "'", "'" + there.format + "'");
    if (encoded(here) != encoded(there))
      return differ("column '" + here.name + "'", "of one type", "of another, or has other metadata");
  }
  if (ours.schema_metadata != theirs.schema_metadata)
    return differ("the metadata of the schema", fmt::format("{} bytes", ours.schema_metadata.size()),
                  fmt::format("{} bytes", theirs.schema_metadata.size()));
  return ok_status();
}

Status Dataset::open_part(std::uint32_t part, std::string owner) {
  Part& p = parts_[part];
  if (p.state == State::kOpen) {
    return {StatusCode::kAlreadyExists,
            fmt::format("part {} of stream \"{}\" is open already, by {}: give each session "
                        "a part of its own",
                        part, info_->name, p.owner)};
  }
  if (p.state == State::kAwaited)
    --awaited_;
  else
    --left_;
  p = {State::kOpen, std::move(owner), std::nullopt};
  ++open_;
  return ok_status();
}

void Dataset::close_part(std::uint32_t part, bool gone) {
  Part& p = parts_[part];
  p.state = gone ? State::kGone : State::kClosed;
  --open_;
  ++left_;
  std::string why;
  attempt([&] { why = fmt::format("part {} ({}) {}", part, p.owner, gone ? "has gone" : "was closed"); });
  discard(why, [&](std::uint64_t, const Step& step) { return step.frames[part] == nullptr; });
}

void Dataset::reached(std::uint32_t part, std::uint64_t tag) {
  Part& p = parts_[part];
  if (p.reached && *p.reached >= tag) return;
  p.reached = tag;
  latest_ = std::max(latest_, tag);
  if (!ahead(tag)) return;
  const std::uint64_t before = discarded_;
  std::string why;  // once
  if (!said_skipped_)
    attempt([&] { why = fmt::format("part {} ({}) went on to tag {} without them", part, p.owner, tag); });
  discard(why, [&](std::uint64_t older, const Step& step) { return older < tag && step.frames[part] == nullptr; });
  said_skipped_ = said_skipped_ || discarded_ != before;
}

Dataset::Blame Dataset::blame(std::uint32_t part, std::uint64_t tag) const noexcept {
  if (complete_ && tag <= *complete_) return {StatusCode::kFailedPrecondition, kStepIsOver};
  if (left_ == 0 && latest_ <= tag) return {};
  const auto step = pending_.find(tag);
  Blame other_cause;
  for (std::uint32_t other = 0; other < parts_.size(); ++other) {
    const Part& p = parts_[other];
    if (other == part || (step != pending_.end() && step->second.frames[other] != nullptr)) continue;
    const std::uint64_t detail = other + std::uint64_t{1};
    if (p.state == State::kGone || p.state == State::kClosed) {
      if (!p.reached || *p.reached < tag) return {StatusCode::kUnavailable, detail};
      // This part delivered its frame, so another part ended the step, except if this part's client has died.
      if (p.state == State::kGone) other_cause = {StatusCode::kUnavailable, detail};
    }
    if (other_cause.code == StatusCode::kOk && p.reached && *p.reached > tag)
      other_cause = {StatusCode::kFailedPrecondition, detail};
    if (other_cause.code == StatusCode::kOk && p.state == State::kClosed)
      other_cause = {StatusCode::kUnavailable, detail};
  }
  return other_cause;
}

Dataset::Added Dataset::add(std::uint32_t part, std::shared_ptr<Frame> frame) {
  const std::uint64_t tag = frame->tag;
  reached(part, tag);
  if (const Blame why = blame(part, tag); why.code != StatusCode::kOk) return {why, nullptr};
  const auto at = pending_.try_emplace(tag).first;
  Step& step = at->second;
  if (step.frames.empty()) step.frames.resize(parts_.size());
  if (const auto& before = step.frames[part]; before != nullptr)
    pending_bytes_ -= before->extent.bytes().size();
  else
    ++step.there;
  pending_bytes_ += frame->extent.bytes().size();
  step.frames[part] = std::move(frame);
  if (step.there < parts_.size()) return {};

  // All parts have reached this tag, so an older step with a missing part will never become complete.
  discard(std::string(), [&](std::uint64_t older, const Step&) { return older < tag; });
  std::shared_ptr<Frame> first = step.frames[0];
  for (const std::shared_ptr<Frame>& one : step.frames) {
    one->sequence = next_sequence_;
    if (one != first) first->others.push_back(one);
  }
  ++next_sequence_;
  complete_ = tag;
  forget(at);
  return {{}, std::move(first)};
}

void Dataset::give_up() {
  discard("no part is open any more", [](std::uint64_t, const Step&) { return true; });
}

PartsStatus Dataset::status() const noexcept {
  return {.parts = static_cast<std::uint32_t>(parts_.size()),
          .open = open_,
          .incomplete = pending_.size(),
          .discarded = discarded_};
}

void Dataset::forget(Steps::iterator step) {
  for (const auto& frame : step->second.frames) {
    if (frame != nullptr) pending_bytes_ -= frame->extent.bytes().size();
  }
  pending_.erase(step);
}

/// Discards the incomplete steps. If `why` is not empty, it is logged with the number of steps and bytes.
template <typename Lacks>
void Dataset::discard(const std::string& why, const Lacks& lacks) {
  std::uint64_t count = 0, first = 0, last = 0;
  for (auto it = pending_.begin(); it != pending_.end();) {
    const auto next = std::next(it);
    if (lacks(it->first, it->second)) {
      if (count++ == 0) first = it->first;
      last = it->first;
      forget(it);
    }
    it = next;
  }
  discarded_ += count;
  if (count == 0 || why.empty()) return;
  attempt([&] {
    spdlog::warn("stream '{}': {}: {} incomplete {} discarded ({})", info_->name, why, count,
                 count == 1 ? "step was" : "steps were",
                 count == 1 ? fmt::format("tag {}", first) : fmt::format("tags {} to {}", first, last));
  });
}

}  // namespace wherry::move
