// SPDX-License-Identifier: Apache-2.0
// move: the agent pulls columns out of host memory by one-sided gets and places them, in transit, as Apache Arrow
// (paper 004).
//
//   auto session = wherry::Session::open();
//   auto stream = wherry::Stream::open(*session, {.name = "atoms"},
//                                      {wherry::field<double>("x"), wherry::field<double>("y")});
//   auto ticket = stream->post({{x, y}});                 // returns at once: about a microsecond, whatever the size
//   compute();                                            // must not change x and y yet
//   wherry::Status done = ticket->wait(std::chrono::seconds(1));
//   if (!done) return fail(done);                         // otherwise x and y may be changed again
//
// Any Arrow Flight client, or wherry.open("atoms") on the same machine, can read the frames.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "wherry/column.hpp"
#include "wherry/schema.hpp"
#include "wherry/session.hpp"
#include "wherry/status.hpp"

namespace wherry {

/// The form in which the transfer leaves the bytes (paper 004 sections V-F and V-G).
enum class Strategy : std::uint8_t {
  kRaw = 0,             ///< the buffers as they are, one after the other; no schema
  kArrays = 1,          ///< "direct-to-arrays": one Arrow array a column
  kRecordBatch = 2,     ///< "direct-to-record-batch": a RecordBatch whose schema is known before the transfer
  kIpc = 3,             ///< "direct-to-ipc": a complete Arrow IPC stream, buffers at multiples of 64 bytes
  kIpcPageAligned = 4,  ///< the same, buffers at multiples of 4096 bytes
  kCAbi = 5,            ///< "direct-to-structs": an Arrow C data interface ArrowArray / ArrowSchema pair
};
/// The names that parse_strategy() accepts, such as "ipc" or "arrays"; static text.
WHERRY_API std::string_view to_string(Strategy strategy) noexcept;
/// Accepts "raw", "arrays", "record_batch", "ipc", "ipc_page_aligned" and "c_abi"; else kInvalidArgument.
WHERRY_API Result<Strategy> parse_strategy(std::string_view name);

/// Which delivered frames the agent keeps. The agent never removes a frame that a reader is reading.
struct Retention {
  std::uint64_t frames = 16;  ///< 0: no limit by count
  std::uint64_t bytes = 0;    ///< 0: no limit by bytes (but the agent's budget always applies)
  /// What happens if there is no room for a new frame.
  enum class WhenFull : std::uint8_t {
    kEvict = 0,  ///< the agent removes the oldest frame
    kWait = 1,   ///< the agent removes only frames that were read; otherwise the next offload waits: no frame is lost,
                 ///< and the host sees back-pressure
  };
  WhenFull when_full = WhenFull::kEvict;  ///< applies when `frames` or `bytes` is reached
};

/// Files that the agent writes, one per frame: `DIRECTORY/STREAM-00000000.arrow` (or `.parquet`), with the frame's
/// sequence number. A file is complete or does not exist. The agent never replaces a file: open() fails with
/// kAlreadyExists if the stream's first file exists.
struct Sink {
  /// Arrow's IPC file format, Parquet, or no files.
  enum class Format : std::uint8_t { kNone = 0, kArrow = 1, kParquet = 2 };
  Format format = Format::kNone;  ///< kNone: the stream has no sink
  /// A directory of the agent's file system. The agent opens or creates it when the stream is opened. A relative path
  /// starts in this process's current directory; it is an error if the agent runs on another machine.
  std::string directory;
};

/// The stream's name, the form of its frames, and how many of them the agent keeps.
struct StreamOptions {
  std::string name;  ///< 1 to 255 of [A-Za-z0-9._-] (fewer with a sink, because of the file names); unique on the
                     ///< agent. Opening the name of a closed stream again removes its frames
  Strategy strategy = Strategy::kIpc;  ///< the form of its frames in the agent's memory
  Retention retention;                 ///< which frames the agent keeps
  Sink sink;                           ///< writes each frame to a file; no files if `format` is kNone
  /// Total bytes of each expected offload (all buffers). From now on the agent prepares destination memory for each
  /// (paper 004 II-B) in its spare time. Earlier offloads do not wait; they use memory that is not prepared.
  std::vector<std::uint64_t> announced_bytes;
  /// A stream in parts: several sessions (such as the ranks of a parallel job) open it, each with its own `part`, 0 to
  /// `parts` - 1. The posts of all parts with one tag form a step; readers see the whole step or nothing. 0: the stream
  /// has no parts. See docs/guide/move.md.
  std::uint32_t part = 0, parts = 0;
  /// Metadata of the schema itself, like Field::metadata of a field. Readers get the metadata with every frame. pandas
  /// stores its index in it.
  std::string schema_metadata;
  /// Derived streams that the agent computes from each frame (of a stream in parts: from each step), as a JSON list. A
  /// derived stream's name is this stream's and its own, as in "particles.hot". Empty: none. At most 64 KiB. See
  /// docs/guide/move-operators.md.
  std::string operators;
};

/// A posted offload. A small value; copies refer to the same offload. Must not outlive its session.
class WHERRY_API Ticket {
 public:
  Ticket() noexcept = default;
  /// True if the source memory may be reused (or the offload failed). Reads one word that the agent writes, without a
  /// system call or a fabric call. Exception: if messages wait because the agent's queue was full, ready() tries to
  /// send them. Only wait() notices that an agent died.
  [[nodiscard]] bool ready() const noexcept;
  /// Blocks until ready(). Ok: a reader finds the frame from now on (of a stream in parts: once the other parts have
  /// arrived). Errors: the reason for the failure, kDeadlineExceeded (still in flight), kUnavailable (the agent died),
  /// or kFailedPrecondition: the outcome is no longer known, because since then more offloads have failed than the
  /// session remembers (1024).
  Status wait(std::chrono::nanoseconds timeout) const;
  /// 1, 2, ... within the session; 0: this ticket has no offload.
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
  /// After success: nanoseconds from the first get to the last byte in place, on the agent's clock.
  [[nodiscard]] std::uint64_t transfer_ns() const noexcept;
  /// After success: the frame's number in its stream: 0, 1, ...
  [[nodiscard]] std::uint64_t sequence() const noexcept;

 private:
  friend class Stream;
  friend class Step;
  Ticket(detail::SessionCore* core, std::uint64_t id) noexcept : core_(core), id_(id) {}
  detail::SessionCore* core_ = nullptr;
  std::uint64_t id_ = 0;
};

/// The options of one post.
struct OffloadOptions {
  std::uint64_t tag = 0;  ///< the application's own number for this frame; readers see it
  /// The agent gives up (the ticket fails with kCancelled) if the data is not in place this long after the agent saw
  /// the request. 0: never.
  std::chrono::nanoseconds deadline{0};
  /// For post() only: how long it may wait for a free ticket. 0: it does not wait but returns kWouldBlock.
  std::chrono::nanoseconds wait_for_ticket{0};
};

namespace detail {
class StreamCore;
class StepCore;
}  // namespace detail

/// The same columns, posted repeatedly, like MPI's persistent requests. Stream::bind has checked the columns once.
/// Unregistered memory stays registered until the step is released. Each post is one message of 64 bytes, whatever the
/// number of columns: the agent has the rest from the first post.
///
/// While the step exists, the buffers must keep their addresses and sizes; values may change when all its tickets are
/// ready. Memory of Session::allocate stays until the step is gone, even without its owner. A Region cannot be
/// unregistered meanwhile (kFailedPrecondition). A buffer that was unmapped nevertheless fails the ticket
/// (kSourceFault). Move-only; may outlive its stream, not its session.
class WHERRY_API Step {
 public:
  Step(Step&&) noexcept;
  Step& operator=(Step&&) noexcept;
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
  ~Step();

  /// Posts a frame under the rules of Stream::post, even while earlier posts are in flight. The buffers may be
  /// changed when the last of these tickets is ready. kFailedPrecondition: the stream is closed, or the step is
  /// released.
  Result<Ticket> post(const OffloadOptions& options);
  /// Posts with a tag and no other options.
  Result<Ticket> post(std::uint64_t tag = 0) { return post(OffloadOptions{.tag = tag}); }
  /// Number of posts of this step that are not complete.
  [[nodiscard]] std::size_t in_flight() const noexcept;
  /// Ends the step. Offloads in flight continue; their buffers must stay unchanged until the tickets are ready. Does
  /// not block. Idempotent.
  void release() noexcept;

 private:
  friend class Stream;
  explicit Step(std::unique_ptr<detail::StepCore> core) noexcept;
  std::unique_ptr<detail::StepCore> core_;
};

/// A stream open for writing. Move-only; must not outlive its session. Closing (or destruction) ends the stream for its
/// readers; they can still read the frames that were kept.
class WHERRY_API Stream {
 public:
  /// Opens a stream for writing, with the columns of `schema` (empty: a raw stream). Blocks for one round trip to the
  /// agent. Errors: kAlreadyExists (name in use), kUnsupported (with the field and its type), kInvalidArgument.
  /// kDeadlineExceeded: no answer in time. The agent may have opened the stream; the same call again returns it.
  static Result<Stream> open(Session& session, const StreamOptions& options, const Schema& schema);
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();

  /// Hands one batch of rows to the agent and returns at once. The columns' memory must stay unchanged until the
  /// ticket is ready. Memory outside every region is registered for this offload only. Errors of the call:
  /// kWouldBlock (the limit of tickets in flight is reached, or the message queue to the agent is full),
  /// kInvalidArgument (columns that do not match the schema), kUnavailable. Errors of the ticket: kSourceFault,
  /// kResourceExhausted, kCancelled.
  Result<Ticket> post(std::span<const Column> columns, const OffloadOptions& options = {});
  /// Posts columns given in braces: post({x, y}).
  Result<Ticket> post(std::initializer_list<Column> columns, const OffloadOptions& options = {}) {
    return post(std::span<const Column>(columns.begin(), columns.size()), options);
  }
  /// A frame in two posts, for applications whose columns become final at different times. post() gets only the
  /// number of rows of each column marked `later`; its ticket is ready when the other columns may be overwritten.
  /// post_rest() takes all columns again, with the same lengths, and reads only those marked `later`. Its ticket is
  /// that of the frame, which readers see afterwards. Other posts between the two fail with kFailedPrecondition,
  /// and so does post_rest() without such a post(). Errors as post(). If the first half fails, the second fails
  /// too.
  Result<Ticket> post_rest(std::span<const Column> columns, const OffloadOptions& options = {});
  /// For streams opened with Strategy::kRaw: any number of buffers, one row each.
  Result<Ticket> post_raw(std::span<const std::span<const std::byte>> buffers, const OffloadOptions& options = {});

  /// Checks the columns once, for later posts that do not pass them: see Step. Errors as post(), and kUnavailable.
  Result<Step> bind(std::span<const Column> columns);
  /// Binds columns given in braces.
  Result<Step> bind(std::initializer_list<Column> columns) {
    return bind(std::span<const Column>(columns.begin(), columns.size()));
  }
  /// For streams opened with Strategy::kRaw: at least one buffer.
  Result<Step> bind_raw(std::span<const std::span<const std::byte>> buffers);

  /// Ends the stream after its offloads are done; readers that follow it see the end. Blocks for one round trip.
  Status close();
  /// The name passed to open(). Lives as long as the stream.
  [[nodiscard]] const std::string& name() const noexcept;
  /// The schema passed to open(); empty for a raw stream. Lives as long as the stream.
  [[nodiscard]] const Schema& schema() const noexcept;

 private:
  explicit Stream(std::shared_ptr<detail::StreamCore> core) noexcept;
  Result<Step> bound(std::unique_ptr<detail::StepCore> step);
  std::shared_ptr<detail::StreamCore> core_;
};

}  // namespace wherry
