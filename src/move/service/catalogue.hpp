// SPDX-License-Identifier: Apache-2.0
// The frames that the agent holds, by stream (of a stream in parts: steps, by their first frame): published by the data
// thread, read by Flight, by processes on the same machine and by the file sink. Thread-safe. One mutex, taken once per
// frame and by readers; nobody holds it while bytes move.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "move/service/frame.hpp"
#include "move/service/loans.hpp"

namespace wherry::move {

struct StreamStatus {
  std::shared_ptr<const StreamInfo> info;
  bool open = true;         ///< more may come
  std::uint64_t first = 0;  ///< sequence of the oldest frame held
  std::uint64_t next = 0;   ///< sequence of the next frame to come
  std::uint64_t generation =
      0;  ///< which opening this is, of all that the catalogue saw (from 1): a name may be opened again
  /// Bytes are those of the frames' IPC streams, here and in Retention::bytes.
  std::uint64_t held_frames = 0, held_rows = 0, held_bytes = 0, total_frames = 0, total_bytes = 0, evicted_unread = 0;
  std::uint64_t sink_errors = 0;  ///< frames that did not become a file
  std::string sink_error;         ///< the first one's cause, which names the file
  PartsStatus parts;
};

inline constexpr std::size_t kSinkQueue = 64;  ///< frames of one stream that may wait for its sink
/// Closed streams that are remembered: by what they say of themselves, once they hold no frame; and with their frames.
inline constexpr std::uint64_t kRememberedStreams = 256, kClosedStreams = 16384;

class Catalogue {
 public:
  Catalogue();

  /// kAlreadyExists while a stream of that name is open; a closed one (and its frames) is replaced, and who follows it
  /// sees its end. kUnavailable after shut_down().
  Status open(std::shared_ptr<const StreamInfo> info);
  /// Readers that follow the stream see its end. Frames stay. No-op for an unknown name.
  void close(const std::string& name);
  /// As close, for all of them; readers that wait are woken. Nothing can be opened afterwards.
  void shut_down();

  /// Whether the stream can take another frame now. False for WhenFull::kWait streams that are full of unread frames,
  /// and for those with a sink that is kSinkQueue frames behind. Evicts what may go. Reserves nothing: with n offloads
  /// in flight a stream can hold (and its sink be behind by) up to n - 1 frames more than its limit.
  bool make_room(const StreamInfo& stream);
  /// For a full budget: one frame goes, so that `stream` can have its memory. False if there is none. The first of:
  /// the stream's own oldest that may go by its rule; the oldest of closed streams that may; the oldest of all that
  /// may; the oldest unread one of a closed WhenFull::kWait stream, which nobody may ever read. Frames that somebody
  /// reads or writes to a file at the moment stay: their memory would not come back.
  bool evict_one(const StreamInfo& stream);
  /// Adds a finished frame (its sequence must be `next`) and applies retention; the newest frame always stays. Wakes
  /// followers; calls the sink hook. A frame of a stream that has been replaced in the meantime is dropped.
  void publish(FramePtr frame);

  [[nodiscard]] std::vector<StreamStatus> list() const;
  [[nodiscard]] std::optional<StreamStatus> find(const std::string& name) const;

  struct Next {
    enum class What { kFrame, kEnd, kTimeout, kNoStream, kHeldTooMuch } what;
    FramePtr frame;  ///< kFrame
    std::uint64_t skipped =
        0;  ///< frames between `sequence` and this one (or the end) that were evicted before they were read
    std::uint64_t generation = 0;  ///< of the stream that was asked; to be handed to the following call
    Status why;                    ///< kHeldTooMuch: what Loans::lend() said
  };
  /// The first held frame whose sequence is >= `sequence`; waits for it up to `timeout` while the stream is open. With
  /// a generation other than 0: kEnd if the stream of that name is another one by now. The frame's memory is lent until
  /// the last copy of `frame` goes, which calls the room hook. With `who`, it counts as held by that reader.
  Next next(const std::string& name, std::uint64_t sequence, std::chrono::milliseconds timeout,
            std::uint64_t generation = 0, std::shared_ptr<Loans::Borrower> who = nullptr);
  /// What readers hold, and may hold.
  [[nodiscard]] Loans& loans() const noexcept { return *loans_; }
  /// The frame (of parts: all of its step) has been read in full by somebody: under WhenFull::kWait it may go now.
  void mark_read(const Frame& frame);
  /// One part of the step has. The step counts as read when each has been, by whomever.
  void mark_read(const Frame& step, std::uint32_t part);
  /// For the status of the stream.
  void note_parts(const StreamInfo& stream, const PartsStatus& parts);
  /// The sink has done with a frame that it got: written, which counts as read, or not, and why. The first failure of a
  /// stream is logged and kept in its status.
  void sunk(const Frame& frame, const Status& outcome);

  /// Called (without the lock) after each publish of a stream with a sink, which answers with sunk() in the end.
  void set_sink_hook(std::function<void(FramePtr)> hook);
  /// Called (without the lock, from any thread, readers' too) whenever frames went or may go, so that the service
  /// retries waiting offloads: should only wake it. A call that had begun before the hook was replaced may still be
  /// running afterwards.
  void set_room_hook(std::function<void()> hook);

 private:
  struct Held {
    FramePtr frame;
    bool read = false;
    std::uint64_t age = 0;           ///< smaller: published earlier, whatever the stream
    std::vector<bool> parts_read{};  ///< one a part, once one of several has been read
  };
  struct RoomHook;
  struct Entry {
    std::shared_ptr<const StreamInfo> info;
    bool open = true;
    std::deque<Held> frames;  ///< sequences rise; gaps where a frame went before an older one that was not free to go
    std::uint64_t closed_at = 0;  ///< generations seen by then
    std::uint64_t generation = 0, next = 0, rows = 0, bytes = 0, total_bytes = 0, evicted_unread = 0;
    std::uint64_t sinking = 0, sink_errors = 0;  ///< sinking: given to the sink, which has not said sunk() yet
    std::string sink_error;
    PartsStatus parts;
    bool gave_way = false;  ///< it lost unread frames that it was to keep, and the log says so
  };
  Entry* entry_of(const StreamInfo& stream);
  enum class May { kByRule, kUnread };  ///< kUnread: also what nobody has read
  using Frames = std::deque<Held>;
  static Frames::iterator oldest(Entry& entry, May which, bool idle);
  static void take_out(Entry& entry, Frames::iterator it, std::vector<FramePtr>& gone);
  static bool evict(Entry& entry, std::vector<FramePtr>& gone);
  Entry* yields_to(const StreamInfo& stream, May& which);
  void forget_closed(std::vector<FramePtr>& gone);
  static StreamStatus status_of(const Entry& entry);
  template <typename Mark>
  void mark(const Frame& step, Mark mark);
  FramePtr lend(FramePtr frame, std::shared_ptr<Loans::Borrower> who = nullptr) const;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Entry> streams_;
  std::shared_ptr<const std::function<void(FramePtr)>> sink_hook_;
  std::shared_ptr<RoomHook> room_hook_;  ///< shared with frames that are lent, which may outlive the catalogue
  const std::shared_ptr<Loans> loans_ = std::make_shared<Loans>();  ///< likewise
  std::uint64_t generations_ = 0, ages_ = 0, forgotten_at_ = 0;
  bool down_ = false;
};

}  // namespace wherry::move
