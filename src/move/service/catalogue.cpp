// SPDX-License-Identifier: Apache-2.0
#include "move/service/catalogue.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/guarded.hpp"
#include "base/log.hpp"

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

/// Whether a frame of a WhenFull::kWait stream has been read and no operator still needs it.
bool Catalogue::may_go(const Entry& entry, const Held& held) {
  return held.read && held.frame->sequence < entry.operated;
}

/// Whether the bytes that wait for the operators have reached their limit.
bool Catalogue::lags(const Entry& entry) const {
  std::uint64_t bytes = 0;
  for (auto it = entry.frames.rbegin(); it != entry.frames.rend() && it->frame->sequence >= entry.operated; ++it)
    bytes += it->frame->step_memory();
  return bytes > lag_limit_;
}

/// The oldest frame that may be evicted. `idle`: only frames that no reader holds.
Catalogue::Frames::iterator Catalogue::oldest(Entry& entry, May which, bool idle) {
  const bool any = which == May::kUnread || entry.info->retention.when_full == Retention::WhenFull::kEvict;
  return std::find_if(entry.frames.begin(), entry.frames.end(), [&](const Held& held) {
    return (any || may_go(entry, held)) && (!idle || held.frame.use_count() == 1);
  });
}

/// Moves a frame to `gone`, so that its memory is freed after the lock is released.
void Catalogue::take_out(Entry& entry, Frames::iterator it, std::vector<FramePtr>& gone) {
  gone.push_back(it->frame);  // first: it may throw
  entry.rows -= it->frame->step_rows();
  entry.bytes -= it->frame->step_bytes();
  entry.evicted_unread += it->read ? 0 : 1;
  entry.frames.erase(it);
}

bool Catalogue::evict(Entry& entry, std::vector<FramePtr>& gone) {
  const auto it = oldest(entry, May::kByRule, false);
  if (it == entry.frames.end()) return false;
  take_out(entry, it, gone);
  return true;
}

/// The stream that must give up a frame if `stream` needs memory; null if there is none.
Catalogue::Entry* Catalogue::yields_to(const StreamInfo& stream, May& which) {
  which = May::kByRule;
  Entry* const own = entry_of(stream);
  if (own != nullptr && oldest(*own, which, true) != own->frames.end()) return own;
  Entry* best = nullptr;
  const auto look = [&](bool only_closed) {
    std::uint64_t age = 0;
    for (auto& [name, entry] : streams_) {
      if (only_closed && entry.open) continue;
      const auto it = oldest(entry, which, true);
      if (it == entry.frames.end() || (best != nullptr && it->age > age)) continue;
      best = &entry;
      age = it->age;
    }
    return best != nullptr;
  };
  if (look(true) || look(false)) return best;
  which = May::kUnread;
  look(true);
  return best;
}

/// Limits the memory outside of the budget for the status of closed streams. It runs rarely, because it visits all
/// closed streams.
void Catalogue::forget_closed(std::vector<FramePtr>& gone) {
  if (generations_ < forgotten_at_ + kRememberedStreams) return;
  forgotten_at_ = generations_;
  for (auto it = streams_.begin(); it != streams_.end();) {
    Entry& entry = it->second;
    const std::uint64_t since = entry.open ? 0 : generations_ - entry.closed_at;
    while (since > kClosedStreams && evict(entry, gone)) {
    }
    it = since > kRememberedStreams && entry.frames.empty() ? streams_.erase(it) : std::next(it);
  }
}

/// Wraps the frame in a reference with a separate count. When the last copy of the result is destroyed, the frame's
/// memory may be freed. `who`: the reader for which loans_ counts the frame.
FramePtr Catalogue::lend(FramePtr frame, std::shared_ptr<Loans::Borrower> who) const {
  const Frame* const raw = frame.get();
  return {raw,
          [frame = std::move(frame), who = std::move(who), loans = loans_, room = room_hook_](const Frame*) mutable {
            if (who != nullptr) loans->give_back(*frame, *who);
            frame.reset();
            room->call();
          }};
}

Status Catalogue::check_names(const StreamInfo& stream) const {
  const auto taken = [&](const std::string& name, const std::string& source) {
    const auto it = streams_.find(name);
    return it != streams_.end() && it->second.open && (source.empty() || it->second.info->source != source);
  };
  if (taken(stream.name, {}))
    return {StatusCode::kAlreadyExists,
            "stream \"" + stream.name + "\" is open already: close it, or give this one another name"};
  for (const auto& derived : stream.derived) {
    if (taken(derived->name, stream.name))
      return {StatusCode::kAlreadyExists,
              "stream \"" + derived->name + "\" is open already: close it, or give the derived stream another name"};
  }
  const auto open_derived = static_cast<std::size_t>(std::ranges::count_if(
      streams_, [](const auto& one) { return one.second.open && one.second.info->pipeline != nullptr; }));
  if (!stream.derived.empty() && open_derived + stream.derived.size() > kMaxOpenDerived)
    return {StatusCode::kResourceExhausted, "the agent has " + std::to_string(open_derived) + " derived streams, and " +
                                                std::to_string(kMaxOpenDerived) + " at most: close some"};
  return ok_status();
}

Status Catalogue::open(std::shared_ptr<const StreamInfo> info) {
  decltype(streams_) made, old;
  std::vector<FramePtr> gone;
  std::shared_ptr<const std::function<void(std::shared_ptr<const StreamInfo>)>> operate;
  {
    const std::lock_guard lock(mutex_);
    if (down_)
      return {StatusCode::kUnavailable, "the agent is shutting down: stream \"" + info->name + "\" was not opened"};
    if (Status s = check_names(*info); !s) return s;
    const auto make = [&](const std::shared_ptr<const StreamInfo>& one) {
      Entry& entry = made[one->name];
      entry.info = one;
      entry.generation = ++generations_;
      if (!one->derived.empty()) entry.operated = 0;
    };
    for (const auto& derived : info->derived) make(derived);
    make(info);
    // Everything that needs memory is done: nodes move without any.
    while (!made.empty()) {
      auto node = made.extract(made.begin());
      if (const auto it = streams_.find(node.key()); it != streams_.end()) old.insert(streams_.extract(it));
      streams_.insert(std::move(node));
    }
    if (!info->derived.empty()) operate = operate_hook_;
    attempt([&] { forget_closed(gone); });  // another time, if not now
  }
  changed_.notify_all();
  const bool freed =
      !gone.empty() || std::ranges::any_of(old, [](const auto& one) { return !one.second.frames.empty(); });
  old.clear();
  gone.clear();
  if (freed) room_hook_->call();
  if (operate != nullptr && *operate) (*operate)(std::move(info));
  return ok_status();
}

void Catalogue::close(const StreamInfo& stream) {
  {
    const std::lock_guard lock(mutex_);
    Entry* const entry = entry_of(stream);
    if (entry == nullptr) return;
    if (std::exchange(entry->open, false)) entry->closed_at = generations_;
  }
  changed_.notify_all();
}

void Catalogue::close(const std::string& name) {
  {
    const std::lock_guard lock(mutex_);
    const auto it = streams_.find(name);
    if (it == streams_.end()) return;
    if (std::exchange(it->second.open, false)) it->second.closed_at = generations_;
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
  const bool evicts = rule.when_full == Retention::WhenFull::kEvict;
  if (evicts && stream.sink.format == Sink::Format::kNone)
    return true;  // publish() evicts: readers keep the oldest frame until then
  std::vector<FramePtr> gone;
  bool room = true;
  {
    const std::lock_guard lock(mutex_);
    Entry* const entry = entry_of(stream);
    room = entry == nullptr || (entry->sinking < kSinkQueue && (evicts || !lags(*entry)));
    while (!evicts && entry != nullptr && room && is_full(rule, entry->frames.size(), entry->bytes))
      room = evict(*entry, gone);
  }
  if (!gone.empty()) {
    gone.clear();
    room_hook_->call();
  }
  return room;
}

bool Catalogue::evict_one(const StreamInfo& stream) {
  std::vector<FramePtr> gone;
  std::string lost;
  {
    const std::lock_guard lock(mutex_);
    May which = May::kByRule;
    Entry* const entry = yields_to(stream, which);
    if (entry == nullptr) return false;
    if (which == May::kUnread && !std::exchange(entry->gave_way, true)) lost = entry->info->name;
    take_out(*entry, oldest(*entry, which, true), gone);
  }
  gone.clear();
  if (!lost.empty()) {
    spdlog::warn(
        "stream '{}' is closed and keeps frames until they are read, but the budget is full: unread ones go now, so "
        "that "
        "stream '{}' gets on; read them in time, or raise the budget",
        lost, stream.name);
  }
  room_hook_->call();
  return true;
}

bool Catalogue::evict_for_reader() {
  std::vector<FramePtr> gone;
  {
    const std::lock_guard lock(mutex_);
    Entry* from = nullptr;
    Frames::iterator best;
    const auto look = [&](const auto& wanted) {
      for (auto& [name, entry] : streams_) {
        const bool open_evict = entry.open && entry.info->retention.when_full == Retention::WhenFull::kEvict;
        const bool lossless = entry.info->retention.when_full == Retention::WhenFull::kWait;
        const auto it = std::ranges::find_if(entry.frames, [&, open_evict, lossless](const Held& held) {
          return held.frame.use_count() == 1 && (!lossless || held.frame->sequence < entry.operated) &&
                 wanted(held, open_evict);
        });
        if (it == entry.frames.end() || (from != nullptr && it->age > best->age)) continue;
        from = &entry;
        best = it;
      }
      return from != nullptr;
    };
    if (!look([](const Held& held, bool) { return held.read; }) &&
        !look([](const Held&, bool open_evict) { return open_evict; }))
      return false;
    take_out(*from, best, gone);
  }
  gone.clear();
  room_hook_->call();
  return true;
}

Catalogue::Published Catalogue::insert(FramePtr frame) {
  Published published;
  const std::lock_guard lock(mutex_);
  Entry* const entry = entry_of(*frame->stream);
  if (entry == nullptr) return published;
  assert((frame->sequence == entry->next || (!entry->info->source.empty() && frame->sequence > entry->next)) &&
         "a stream's frames are published in order");
  entry->frames.push_back({frame, false, ages_ + 1, {}});  // first: it may throw
  ++ages_;
  entry->next = frame->sequence + 1;
  entry->rows += frame->step_rows();
  entry->bytes += frame->step_bytes();
  entry->total_bytes += frame->step_bytes();
  while (is_over(entry->info->retention, entry->frames.size(), entry->bytes) && evict(*entry, published.gone)) {
  }
  if (frame->stream->sink.format != Sink::Format::kNone && sink_hook_ != nullptr && *sink_hook_) {
    published.sink = sink_hook_;
    ++entry->sinking;
  }
  published.frame = std::move(frame);
  return published;
}

void Catalogue::announce(Published published) {
  if (published.frame == nullptr) return;
  changed_.notify_all();
  if (!published.gone.empty()) {
    published.gone.clear();
    room_hook_->call();
  }
  if (published.sink == nullptr) return;
  const FramePtr frame = lend(std::move(published.frame));
  if (const Status taken = (*published.sink)(frame); !taken) sunk(*frame, taken);
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
  status.sink_errors = entry.sink_errors;
  status.sink_error = entry.sink_error;
  status.parts = entry.parts;
  status.operator_lag = entry.operated < entry.next ? entry.next - entry.operated : 0;
  status.operator_errors = entry.operator_errors;
  status.operator_skipped = entry.operator_skipped;
  status.operator_error = entry.operator_error;
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
                                std::uint64_t generation, std::shared_ptr<Loans::Borrower> who) {
  constexpr std::chrono::milliseconds kLongest =
      std::chrono::hours(24 * 365);  // so that the deadline does not overflow
  const auto deadline = std::chrono::steady_clock::now() + std::clamp(timeout, std::chrono::milliseconds(0), kLongest);
  std::unique_lock lock(mutex_);
  for (bool late = false;;) {
    const auto it = streams_.find(name);
    if (it == streams_.end()) {  // it was there, for a reader that has a generation: it has ended, and is forgotten
      return {generation == 0 ? Next::What::kNoStream : Next::What::kEnd, nullptr, 0, generation};
    }
    const Entry& entry = it->second;
    if (generation == 0) generation = entry.generation;
    if (entry.generation != generation) return {Next::What::kEnd, nullptr, 0, generation};
    const auto held =
        std::lower_bound(entry.frames.begin(), entry.frames.end(), sequence,
                         [](const Held& one, std::uint64_t wanted) { return one.frame->sequence < wanted; });
    if (held != entry.frames.end()) {
      const std::uint64_t skipped = held->frame->sequence - sequence;
      if (who != nullptr) {
        if (Status s = loans_->lend(*held->frame, *who); !s)
          return {Next::What::kHeldTooMuch, nullptr, 0, generation, std::move(s)};
      }
      return {Next::What::kFrame, lend(held->frame, std::move(who)), skipped, generation};
    }
    if (!entry.open) return {Next::What::kEnd, nullptr, entry.next > sequence ? entry.next - sequence : 0, generation};
    if (late) return {Next::What::kTimeout, nullptr, 0, generation};
    late = changed_.wait_until(lock, deadline) == std::cv_status::timeout;
  }
}

/// Applies `mark` to the step if the catalogue still holds it.
template <typename Mark>
void Catalogue::mark(const Frame& step, Mark mark) {
  {
    const std::lock_guard lock(mutex_);
    Entry* const entry = entry_of(*step.stream);
    if (entry == nullptr) return;
    const auto held =
        std::lower_bound(entry->frames.begin(), entry->frames.end(), step.sequence,
                         [](const Held& one, std::uint64_t wanted) { return one.frame->sequence < wanted; });
    if (held == entry->frames.end() || held->frame.get() != &step) return;
    mark(*held);
    if (!held->read || entry->info->retention.when_full != Retention::WhenFull::kWait) return;
  }
  room_hook_->call();
}

void Catalogue::mark_read(const Frame& frame) {
  mark(frame, [](Held& held) { held.read = true; });
}

void Catalogue::mark_read(const Frame& step, std::uint32_t part) {
  mark(step, [&](Held& held) {
    held.parts_read.resize(held.frame->frames());
    held.parts_read[part] = true;
    held.read = held.read || std::ranges::all_of(held.parts_read, [](bool read) { return read; });
  });
}

void Catalogue::note_parts(const StreamInfo& stream, const PartsStatus& parts) {
  const std::lock_guard lock(mutex_);
  if (Entry* const entry = entry_of(stream)) entry->parts = parts;
}

void Catalogue::sunk(const Frame& frame, const Status& outcome) {
  if (outcome) mark_read(frame);
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    Entry* const entry = entry_of(*frame.stream);
    if (entry != nullptr) {
      --entry->sinking;
      first = !outcome && entry->sink_errors++ == 0;
      if (first) attempt([&] { entry->sink_error = outcome.message(); });
    }
  }
  if (first) {
    spdlog::error("stream '{}': a frame did not become a file: {} (further ones of this stream are only counted)",
                  frame.stream->name, outcome.message());
  }
  room_hook_->call();
}

void Catalogue::operated(const Frame& frame, const Status& outcome, std::uint64_t skipped) {
  if (outcome) mark_read(frame);
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    Entry* const entry = entry_of(*frame.stream);
    if (entry == nullptr) return;
    entry->operated = frame.sequence + 1;
    entry->operator_skipped += skipped;
    first = !outcome && entry->operator_errors++ == 0;
    if (first) attempt([&] { entry->operator_error = outcome.message(); });
  }
  if (first) {
    spdlog::error("stream '{}': an operator failed on frame {}: {} (further failures of this stream are only counted)",
                  frame.stream->name, frame.sequence, outcome.message());
  }
  room_hook_->call();
}

void Catalogue::end_operators(const StreamInfo& stream, const Status& why, std::uint64_t skipped) {
  {
    const std::lock_guard lock(mutex_);
    Entry* const entry = entry_of(stream);
    if (entry == nullptr) return;
    if (!why && entry->operator_errors++ == 0) attempt([&] { entry->operator_error = why.message(); });
    entry->operator_skipped += skipped;
    entry->operated = kNever;
  }
  if (!why) spdlog::error("stream '{}': its operators do not run: {}", stream.name, why.message());
  room_hook_->call();
}

void Catalogue::limit_lag(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  lag_limit_ = bytes;
}

void Catalogue::set_operate_hook(std::function<void(std::shared_ptr<const StreamInfo>)> hook) {
  auto shared = std::make_shared<const std::function<void(std::shared_ptr<const StreamInfo>)>>(std::move(hook));
  const std::lock_guard lock(mutex_);
  operate_hook_ = std::move(shared);
}

void Catalogue::set_sink_hook(std::function<Status(const FramePtr&)> hook) {
  auto shared = std::make_shared<const std::function<Status(const FramePtr&)>>(std::move(hook));
  const std::lock_guard lock(mutex_);
  sink_hook_ = std::move(shared);
}

void Catalogue::set_room_hook(std::function<void()> hook) {
  auto shared = std::make_shared<const std::function<void()>>(std::move(hook));
  const std::lock_guard lock(room_hook_->mutex);
  room_hook_->hook = std::move(shared);
}

}  // namespace wherry::move
