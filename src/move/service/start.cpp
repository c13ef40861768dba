// SPDX-License-Identifier: Apache-2.0
// The second step of an offload: it gets memory for its frame. Old frames are evicted for it, or it waits.
#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "move/service/announced.hpp"
#include "move/service/state.hpp"

namespace wherry::move {
namespace {

constexpr std::uint32_t kMovingPerStream = 16;                // offloads whose gets may be in flight at once
constexpr std::uint64_t kAheadShare = 4;                      // of the budget: frames whose older steps are incomplete
constexpr std::size_t kAnnouncedFrames = 2;                   // of one size: one is read while the other arrives
constexpr std::size_t kWarmUpBytes = std::size_t{128} << 10;  // at a time
constexpr std::uint64_t kWarmUpNs = 50'000;  // of a poll: how many bytes become resident meanwhile, the machine says

}  // namespace

bool OffloadEngine::must_wait(Offload& o) {
  if (!std::exchange(o.waited, true)) ++counters_.busy;
  return false;
}

/// Whether a part may start a frame while an older step is incomplete. The limit prevents parts that run ahead from
/// filling the budget, which would leave no memory for late parts.
bool OffloadEngine::may_run_ahead(const StreamState& stream, const Offload& o) const {
  if (stream.info->retention.when_full == Retention::WhenFull::kWait) return false;
  std::uint64_t bytes = o.frame->layout.total_bytes;
  for (const auto& [name, dataset] : datasets_) bytes += dataset->pending_bytes();
  for (const StreamState* other : active_) {
    if (other->dataset == nullptr) continue;
    for (const auto& one : other->queue) {
      if (one->state != Offload::State::kWaiting && one->state != Offload::State::kFailed)
        bytes += one->frame->extent.bytes().size();
    }
  }
  return bytes <= arena_->capacity() / kAheadShare;
}

/// Finds destination memory and starts the offload. False: not now.
bool OffloadEngine::try_start(StreamState& stream, Offload& o) {
  if (stream.dataset != nullptr) {
    Dataset& dataset = *stream.dataset;
    const bool first = &o == stream.queue.front().get();
    if (first) {
      dataset.reached(stream.part, o.tag);
      note_dataset(dataset);
    }
    if (const Dataset::Blame why = dataset.blame(stream.part, o.tag); why.code != StatusCode::kOk) {
      o.state = Offload::State::kFailed;
      o.code = why.code;
      o.detail = why.detail;
      return true;
    }
    if ((!first || dataset.ahead(o.tag)) && !may_run_ahead(stream, o)) return must_wait(o);
  }
  // A lossless stream starts one offload at a time, so that it never exceeds its limit.
  const bool lossless = stream.info->retention.when_full == Retention::WhenFull::kWait;
  if (lossless && &o != stream.queue.front().get()) return false;
  ClientState& client = *stream.client;
  if (stream.moving >= kMovingPerStream || client.reconnect || client.suspects != 0) return false;
  if (!catalogue_.make_room(*stream.info)) return must_wait(o);
  for (;;) {
    auto extent = arena_->try_allocate(o.frame->layout.total_bytes);
    if (extent) {
      o.frame->extent = *std::move(extent);
      // The memory now belongs to this offload. Metadata of an earlier frame in it remains valid only if the shape is
      // the same.
      const bool ipc = stream.info->strategy == Strategy::kIpc || stream.info->strategy == Strategy::kIpcPageAligned;
      if (!ipc || o.shape != o.frame->extent.stamp()) o.frame->extent.set_stamp(0);
      break;
    }
    if (extent.status().code() == StatusCode::kResourceExhausted) {
      o.state = Offload::State::kFailed;
      o.code = StatusCode::kResourceExhausted;
      o.detail = limit_detail(Limit::kBudget, arena_->capacity());
      return true;
    }
    // To make room, release memory that is reserved for announced frames, then evict old frames.
    if (!cold_.empty()) {
      cold_.clear();
      warm_bytes_ = 0;
    } else if (!catalogue_.evict_one(*stream.info) && !end_idle_dataset()) {
      return must_wait(o);
    }
  }
  o.state = Offload::State::kMoving;
  o.start = ++client.starts;
  ++stream.moving;
  ++client.moving;
  o.started_ns = 0;  // until its first turn
  return true;
}

/// Reserves memory for frames of offloads of about `announced` bytes, with and without validity if that changes the
/// size. poll() touches it.
void OffloadEngine::prepare_memory(const StreamInfo& info, std::uint64_t announced) {
  std::size_t before = 0;
  for (const bool validity : {false, true}) {
    const std::size_t bytes = announced_frame_bytes(info, announced, validity);
    if (Arena::class_size(bytes) == std::exchange(before, Arena::class_size(bytes))) continue;
    for (std::size_t i = 0; i < kAnnouncedFrames; ++i) {
      auto extent = arena_->try_allocate(bytes);
      if (!extent) break;  // then there is nothing to prepare
      cold_.push_back(*std::move(extent));
    }
  }
}

/// Touches the next slice of the announced memory. It works in slices, so that other streams do not wait while
/// gigabytes become resident.
bool OffloadEngine::warm_up() {
  if (cold_.empty()) return false;
  const std::uint64_t began = now_ns();
  do {
    const std::span<std::byte> bytes = cold_.front().bytes();
    const std::size_t n = std::min(kWarmUpBytes, bytes.size() - warm_bytes_);
    Arena::touch(bytes.subspan(warm_bytes_, n));
    warm_bytes_ += n;
    if (warm_bytes_ == bytes.size()) {
      cold_.pop_front();
      warm_bytes_ = 0;
    }
  } while (!cold_.empty() && now_ns() - began < kWarmUpNs);
  return true;
}

}  // namespace wherry::move
