// SPDX-License-Identifier: Apache-2.0
// The frames that the agent holds, by stream (steps, if it has parts). The data thread publishes them; Flight, local
// processes and the file sink read them. Thread-safe: one mutex, locked briefly, never while bytes move.
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
  /// Here and in Retention::bytes, bytes are those of the frames' IPC streams.
  std::uint64_t held_frames = 0, held_rows = 0, held_bytes = 0, total_frames = 0, total_bytes = 0, evicted_unread = 0;
  std::uint64_t sink_errors = 0;  ///< frames that did not become a file
  std::string sink_error;         ///< the first one's cause, which names the file
  PartsStatus parts;
  /// For a stream with derived streams (StreamInfo::derived), numbers of frames: that wait for its operators; for which
  /// an operator failed; that were removed before the operators reached them.
  std::uint64_t operator_lag = 0, operator_errors = 0, operator_skipped = 0;
  std::string operator_error;  ///< the first one's cause, which names the derived stream
};

inline constexpr std::size_t kSinkQueue = 64;        ///< frames of one stream that may wait for its sink
inline constexpr std::size_t kMaxOpenDerived = 256;  ///< derived streams of one agent that are open at a time
/// How many closed streams are kept: without frames (only their status), and with frames.
inline constexpr std::uint64_t kRememberedStreams = 256, kClosedStreams = 16384;

class Catalogue {
 public:
  Catalogue();

  /// kAlreadyExists: a stream of that name is open. A closed stream is replaced with its frames, and its followers see
  /// its end. Derived streams are opened in the same way, all or none. They replace derived streams of an earlier
  /// stream of this name. kUnavailable: after shut_down(). kResourceExhausted: more than kMaxOpenDerived.
  Status open(std::shared_ptr<const StreamInfo> info);
  /// Readers that follow the stream see its end. Frames remain. No effect for an unknown name.
  void close(const std::string& name);
  /// Like close(name), but has no effect if another stream has taken the name.
  void close(const StreamInfo& stream);
  /// Closes all streams and wakes waiting readers. Afterwards no stream can be opened.
  void shut_down();

  /// Whether the stream can take another frame now. Evicts frames if allowed. False for a WhenFull::kWait stream that
  /// is full of unread frames or whose operators are too far behind (limit_lag), and for a stream whose sink is
  /// kSinkQueue frames behind. Does not reserve space: with n offloads in flight, a stream may hold (and its sink may
  /// lag by) up to n - 1 frames more than its limit.
  bool make_room(const StreamInfo& stream);
  /// For a full budget: removes one frame, so that `stream` can use its memory. False if no frame can be removed.
  /// Takes the first of: the stream's own oldest frame that its rule lets go; the oldest evictable frame of closed
  /// streams; the oldest evictable frame of all; the oldest unread frame of a closed WhenFull::kWait stream, which
  /// may never be read. Frames that are being read or written to a file remain: evicting them would not free their
  /// memory.
  bool evict_one(const StreamInfo& stream);
  /// For a full budget: removes one frame, so that a result for a reader can use its memory. False if no frame can be
  /// removed. Takes the first of: the oldest frame that was read; the oldest frame of an open WhenFull::kEvict stream,
  /// whose next frame would replace it anyway. An unread frame that would not be replaced remains, because reading must
  /// not lose frames.
  bool evict_for_reader();
  /// The result of insert() for announce(): frames that retention has removed, and the sink that gets the frame.
  struct Published {
    std::vector<FramePtr> gone;
    std::shared_ptr<const std::function<Status(const FramePtr&)>> sink;
    FramePtr frame;
  };
  /// Adds a finished frame (its sequence must be `next`) and applies retention; the newest frame always remains.
  /// Readers can find it from now on. Drops a frame whose stream has been replaced.
  [[nodiscard]] Published insert(FramePtr frame);
  /// The slower half: wakes followers, frees memory, calls the sink hook.
  void announce(Published published);
  void publish(FramePtr frame) { announce(insert(std::move(frame))); }

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
  /// Returns the first held frame with a sequence >= `sequence`. While the stream is open, waits up to `timeout`. With
  /// a generation other than 0: kEnd if the name is now another stream's. The frame's memory is lent until the last
  /// copy of `frame` is destroyed; that calls the room hook. With `who`, that reader holds the frame.
  Next next(const std::string& name, std::uint64_t sequence, std::chrono::milliseconds timeout,
            std::uint64_t generation = 0, std::shared_ptr<Loans::Borrower> who = nullptr);
  /// The bytes that readers hold, and the limit.
  [[nodiscard]] Loans& loans() const noexcept { return *loans_; }
  [[nodiscard]] std::shared_ptr<Loans> shared_loans() const noexcept { return loans_; }
  /// Records that a reader has read the whole frame (in a stream in parts: the whole step). Under WhenFull::kWait it
  /// may now be evicted.
  void mark_read(const Frame& frame);
  /// Records that a reader has read one part of the step. The step is read when all parts are, by any readers.
  void mark_read(const Frame& step, std::uint32_t part);
  /// Sets the parts' status in the stream's status.
  void note_parts(const StreamInfo& stream, const PartsStatus& parts);
  /// Records that the sink has finished a frame: it was written, which counts as read, or it failed with this Status.
  /// The first failure of a stream is logged and kept in its status.
  void sunk(const Frame& frame, const Status& outcome);

  /// Records that the operators of the frame's stream have finished it: all results are published, which counts as
  /// read, or one failed with this Status. `skipped`: earlier frames that were already removed. The first failure of a
  /// stream is logged and kept in its status. Under WhenFull::kWait the frame may be evicted only from now on.
  void operated(const Frame& frame, const Status& outcome, std::uint64_t skipped);
  /// Records that no operator will process further frames of the stream. `why`: the reason; ok: the stream has ended.
  void end_operators(const StreamInfo& stream, const Status& why, std::uint64_t skipped);
  /// Limits the bytes of frames that may wait for the operators of one WhenFull::kWait stream (one frame may always
  /// wait). More would leave no memory for results, so that no frame could ever go.
  void limit_lag(std::uint64_t bytes);
  /// The hook is called (without the lock) for each opened stream with derived streams. It must call operated() and
  /// end_operators().
  void set_operate_hook(std::function<void(std::shared_ptr<const StreamInfo>)> hook);

  /// The hook is called (without the lock) for each frame of a stream with a sink. Ok: the sink accepted the frame, and
  /// calls sunk() at the end. Another Status: the sink refused the frame, which counts as a sink error. A call may
  /// still run after the hook is replaced.
  void set_sink_hook(std::function<Status(const FramePtr&)> hook);
  /// The hook is called (without the lock, on any thread, also on readers' threads) when frames were freed or may be
  /// freed, so that the service retries waiting offloads. It should only wake the service. A call may still run after
  /// the hook is replaced.
  void set_room_hook(std::function<void()> hook);

 private:
  struct Held {
    FramePtr frame;
    bool read = false;
    std::uint64_t age = 0;           ///< smaller: published earlier, whatever the stream
    std::vector<bool> parts_read{};  ///< one a part, once one of several has been read
  };
  struct RoomHook;
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  struct Entry {
    std::shared_ptr<const StreamInfo> info;
    bool open = true;
    std::deque<Held> frames;  ///< sequences rise; gaps where a frame went before an older one that was not free to go
    std::uint64_t closed_at = 0;  ///< generations seen by then
    std::uint64_t generation = 0, next = 0, rows = 0, bytes = 0, total_bytes = 0, evicted_unread = 0;
    std::uint64_t sinking = 0, sink_errors = 0;  ///< sinking: given to the sink, which has not said sunk() yet
    std::string sink_error;
    PartsStatus parts;
    std::uint64_t operated = kNever;  ///< operators have finished with frames below this; kNever: there are none
    std::uint64_t operator_errors = 0, operator_skipped = 0;
    std::string operator_error;
    bool gave_way = false;  ///< it lost unread frames that it was to keep, and the log says so
  };
  Entry* entry_of(const StreamInfo& stream);
  enum class May { kByRule, kUnread };  ///< kUnread: also what nobody has read
  using Frames = std::deque<Held>;
  static Frames::iterator oldest(Entry& entry, May which, bool idle);
  static void take_out(Entry& entry, Frames::iterator it, std::vector<FramePtr>& gone);
  static bool may_go(const Entry& entry, const Held& held);
  [[nodiscard]] bool lags(const Entry& entry) const;
  [[nodiscard]] Status check_names(const StreamInfo& stream) const;
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
  std::shared_ptr<const std::function<Status(const FramePtr&)>> sink_hook_;
  std::shared_ptr<const std::function<void(std::shared_ptr<const StreamInfo>)>> operate_hook_;
  std::uint64_t lag_limit_ = kNever;
  std::shared_ptr<RoomHook> room_hook_;  ///< shared with frames that are lent, which may outlive the catalogue
  const std::shared_ptr<Loans> loans_ = std::make_shared<Loans>();  ///< likewise
  std::uint64_t generations_ = 0, ages_ = 0, forgotten_at_ = 0;
  bool down_ = false;
};

}  // namespace wherry::move
