// SPDX-License-Identifier: Apache-2.0
#include "move/service/catalogue.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace wherry::move {
namespace {

bool is_full(const Retention& rule, std::size_t frames, std::uint64_t bytes) {
  return (rule.frames != 0 && frames >= rule.frames) || (rule.bytes != 0 && bytes >= rule.bytes);
}
bool is_over(const Retention& rule, std::size_t frames, std::uint64_t bytes) {
  return (rule.frames != 0 && frames > rule.frames) || (rule.bytes != 0 && bytes > rule.bytes && frames > 1);
}

}  // namespace

struct Catalogue::RoomHook {
  std::mutex mutex;
  std::shared_ptr<const std::function<void()>> hook;

  void call() {
    std::shared_ptr<const std::function<void()>> current;
    {
      const std::lock_guard lock(mutex);
      current = hook;
    }
    if (current != nullptr && *current) (*current)();
  }
};

Catalogue::Catalogue() : room_hook_(std::make_shared<RoomHook>()) {}

Catalogue::Entry* Catalogue::entry_of(const StreamInfo& stream) {
  const auto it = streams_.find(stream.name);
  return it == streams_.end() || it->second.info.get() != &stream ? nullptr : &it->second;
}

/// Moves the oldest frame that may go to `gone`, so that its memory is freed after the lock.
bool Catalogue::evict(Entry& entry, std::vector<FramePtr>& gone) {
  auto it = entry.frames.begin();
  if (entry.info->retention.when_full == Retention::WhenFull::kWait) {
    it = std::find_if(it, entry.frames.end(), [](const Held& held) { return held.read; });
  }
  if (it == entry.frames.end()) return false;
  entry.rows -= it->frame->rows;
  entry.bytes -= it->frame->layout.total_bytes;
  entry.evicted_unread += it->read ? 0 : 1;
  gone.push_back(std::move(it->frame));
  entry.frames.erase(it);
  return true;
}

/// The frame, counted apart: when the last copy of the result goes, memory may have come back.
FramePtr Catalogue::lend(FramePtr frame) const {
  const Frame* const raw = frame.get();
  return {raw, [frame = std::move(frame), room = room_hook_](const Frame*) mutable {
            frame.reset();
            room->call();
          }};
}

Status Catalogue::open(std::shared_ptr<const StreamInfo> info) {
  Entry old;
  {
    const std::lock_guard lock(mutex_);
    if (down_)
      return {StatusCode::kUnavailable, "the agent is shutting down: stream \"" + info->name + "\" was not opened"};
    Entry& entry = streams_[info->name];
    if (entry.info != nullptr && entry.open) {
      return {StatusCode::kAlreadyExists,
              "stream \"" + info->name + "\" is open already: close it, or give this one another name"};
    }
    old = std::exchange(entry, Entry{});
    entry.info = std::move(info);
    entry.generation = ++generations_;
  }
  changed_.notify_all();
  const bool freed = !old.frames.empty();
  old.frames.clear();
  if (freed) room_hook_->call();
  return Status::ok();
}

void Catalogue::close(const std::string& name) {
  {
    const std::lock_guard lock(mutex_);
    const auto it = streams_.find(name);
    if (it == streams_.end()) return;
    it->second.open = false;
  }
  changed_.notify_all();
}

void Catalogue::shut_down() {
  {
    const std::lock_guard lock(mutex_);
    down_ = true;
    for (auto& [name, entry] : streams_) entry.open = false;
  }
  changed_.notify_all();
}

bool Catalogue::make_room(const StreamInfo& stream) {
  const Retention& rule = stream.retention;
  if (rule.when_full == Retention::WhenFull::kEvict)
    return true;  // publish() evicts: readers keep the oldest frame until then
  std::vector<FramePtr> gone;
  bool room = true;
  {
    const std::lock_guard lock(mutex_);
    Entry* const entry = entry_of(stream);
    while (entry != nullptr && room && is_full(rule, entry->frames.size(), entry->bytes)) room = evict(*entry, gone);
  }
  if (!gone.empty()) {
    gone.clear();
    room_hook_->call();
  }
  return room;
}

bool Catalogue::evict_one(const StreamInfo& stream) {
  std::vector<FramePtr> gone;
  {
    const std::lock_guard lock(mutex_);
    Entry* const entry = entry_of(stream);
    if (entry == nullptr || !evict(*entry, gone)) return false;
  }
  gone.clear();
  room_hook_->call();
  return true;
}

void Catalogue::publish(FramePtr frame) {
  std::vector<FramePtr> gone;
  std::shared_ptr<const std::function<void(FramePtr)>> sink;
  {
    const std::lock_guard lock(mutex_);
    Entry* const entry = entry_of(*frame->stream);
    if (entry == nullptr) return;
    assert(frame->sequence == entry->next && "a stream's frames are published in order");
    entry->next = frame->sequence + 1;
    entry->rows += frame->rows;
    entry->bytes += frame->layout.total_bytes;
    entry->total_bytes += frame->layout.total_bytes;
    entry->frames.push_back({frame, false});
    while (is_over(entry->info->retention, entry->frames.size(), entry->bytes) && evict(*entry, gone)) {
    }
    if (frame->stream->sink.format != Sink::Format::kNone) sink = sink_hook_;
  }
  changed_.notify_all();
  if (!gone.empty()) {
    gone.clear();
    room_hook_->call();
  }
  if (sink != nullptr && *sink) (*sink)(lend(std::move(frame)));
}

StreamStatus Catalogue::status_of(const Entry& entry) {
  StreamStatus status;
  status.info = entry.info;
  status.open = entry.open;
  status.first = entry.frames.empty() ? entry.next : entry.frames.front().frame->sequence;
  status.next = entry.next;
  status.generation = entry.generation;
  status.held_frames = entry.frames.size();
  status.held_rows = entry.rows;
  status.held_bytes = entry.bytes;
  status.total_frames = entry.next;
  status.total_bytes = entry.total_bytes;
  status.evicted_unread = entry.evicted_unread;
  return status;
}

std::vector<StreamStatus> Catalogue::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<StreamStatus> all;
  all.reserve(streams_.size());
  for (const auto& [name, entry] : streams_) all.push_back(status_of(entry));
  return all;
}

std::optional<StreamStatus> Catalogue::find(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto it = streams_.find(name);
  if (it == streams_.end()) return std::nullopt;
  return status_of(it->second);
}

Catalogue::Next Catalogue::next(const std::string& name, std::uint64_t sequence, std::chrono::milliseconds timeout,
                                std::uint64_t generation) {
  constexpr std::chrono::milliseconds kLongest =
      std::chrono::hours(24 * 365);  // so that the deadline does not overflow
  const auto deadline = std::chrono::steady_clock::now() + std::clamp(timeout, std::chrono::milliseconds(0), kLongest);
  std::unique_lock lock(mutex_);
  for (bool late = false;;) {
    const auto it = streams_.find(name);
    if (it == streams_.end()) return {Next::What::kNoStream, nullptr, 0, generation};
    const Entry& entry = it->second;
    if (generation == 0) generation = entry.generation;
    if (entry.generation != generation) return {Next::What::kEnd, nullptr, 0, generation};
    const auto held =
        std::lower_bound(entry.frames.begin(), entry.frames.end(), sequence,
                         [](const Held& one, std::uint64_t wanted) { return one.frame->sequence < wanted; });
    if (held != entry.frames.end()) {
      const std::uint64_t skipped = held->frame->sequence - sequence;
      return {Next::What::kFrame, lend(held->frame), skipped, generation};
    }
    if (!entry.open) return {Next::What::kEnd, nullptr, entry.next > sequence ? entry.next - sequence : 0, generation};
    if (late) return {Next::What::kTimeout, nullptr, 0, generation};
    late = changed_.wait_until(lock, deadline) == std::cv_status::timeout;
  }
}

void Catalogue::mark_read(const Frame& frame) {
  {
    const std::lock_guard lock(mutex_);
    Entry* const entry = entry_of(*frame.stream);
    if (entry == nullptr) return;
    const auto held =
        std::lower_bound(entry->frames.begin(), entry->frames.end(), frame.sequence,
                         [](const Held& one, std::uint64_t wanted) { return one.frame->sequence < wanted; });
    if (held == entry->frames.end() || held->frame.get() != &frame) return;
    held->read = true;
    if (entry->info->retention.when_full != Retention::WhenFull::kWait) return;
  }
  room_hook_->call();
}

void Catalogue::set_sink_hook(std::function<void(FramePtr)> hook) {
  auto shared = std::make_shared<const std::function<void(FramePtr)>>(std::move(hook));
  const std::lock_guard lock(mutex_);
  sink_hook_ = std::move(shared);
}

void Catalogue::set_room_hook(std::function<void()> hook) {
  auto shared = std::make_shared<const std::function<void()>>(std::move(hook));
  const std::lock_guard lock(room_hook_->mutex);
  room_hook_->hook = std::move(shared);
}

}  // namespace wherry::move
