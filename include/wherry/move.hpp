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
// Any Arrow Flight client, or wherry.open("atoms") on the same machine, reads what arrived.
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
  kRecordBatch = 2,     ///< "direct-to-record-batch": a RecordBatch whose schema was known before
  kIpc = 3,             ///< "direct-to-ipc": a complete Arrow IPC stream, buffers at multiples of 64 bytes
  kIpcPageAligned = 4,  ///< the same, buffers at multiples of 4096 bytes
  kCAbi = 5,            ///< "direct-to-structs": an Arrow C data interface ArrowArray / ArrowSchema pair
};
/// "ipc", "arrays", ...: the names that parse_strategy() takes; static text.
WHERRY_API std::string_view to_string(Strategy strategy) noexcept;
/// Of "raw", "arrays", "record_batch", "ipc", "ipc_page_aligned", "c_abi". kInvalidArgument for another name.
WHERRY_API Result<Strategy> parse_strategy(std::string_view name);

/// Which delivered frames the agent keeps. A frame that is being read is never taken away from its reader.
struct Retention {
  std::uint64_t frames = 16;  ///< 0: no limit by count
  std::uint64_t bytes = 0;    ///< 0: no limit by bytes (the agent's budget always holds)
  /// What happens to a frame for which there is no room.
  enum class WhenFull : std::uint8_t {
    kEvict = 0,  ///< the oldest frame goes
    kWait = 1,   ///< only frames that somebody has read may go; the next offload waits (nothing is lost, back-pressure
                 ///< reaches the host)
  };
  WhenFull when_full = WhenFull::kEvict;  ///< once `frames` or `bytes` are reached
};

/// Files that the agent writes, one a frame: `DIRECTORY/STREAM-00000000.arrow` (or `.parquet`), with the frame's
/// sequence number, complete or not at all. The agent replaces no file: opening fails with kAlreadyExists if the first
/// file of the stream exists.
struct Sink {
  /// Arrow's IPC file format, Parquet, or no files.
  enum class Format : std::uint8_t { kNone = 0, kArrow = 1, kParquet = 2 };
  Format format = Format::kNone;  ///< kNone: the stream has no sink
  /// A directory of the agent's file system. The agent opens it, or makes it, when the stream is opened. A relative one
  /// starts in this process's current directory, and is an error where the agent runs on another machine.
  std::string directory;
};

/// What a stream is called, what form its frames have, and how many of them the agent keeps.
struct StreamOptions {
  std::string name;  ///< 1 to 255 of [A-Za-z0-9._-] (fewer with a sink: the files have names, too); unique on the
                     ///< agent. A closed stream's name can be opened again: its frames go then
  Strategy strategy = Strategy::kIpc;  ///< the form of its frames in the agent's memory
  Retention retention;                 ///< which frames the agent keeps
  Sink sink;                           ///< files of every frame; none unless it has a format
  /// Sizes, in bytes (of all buffers of an offload), of the offloads to come: the agent prepares destination memory for
  /// each (paper 004 II-B), in its spare time from now on. Earlier offloads get colder memory, and do not wait.
  std::vector<std::uint64_t> announced_bytes;
  /// A stream in parts: several sessions (the ranks of a parallel job, say) open it, each with its own `part`, from 0
  /// to `parts` - 1. The posts of all parts with one tag are a step, which readers see whole or not at all. 0: no
  /// parts. See docs/guide/move.md.
  std::uint32_t part = 0, parts = 0;
  /// Metadata of the schema itself, like Field::metadata of a field. Readers get them with every frame. pandas stores
  /// its index there.
  std::string schema_metadata;
  /// What the agent makes of each frame (of a stream in parts: of each step) for readers: JSON, a list of derived
  /// streams, whose names are this one's and their own: "particles.hot". Empty: none. At most 64 KiB. See
  /// docs/guide/move-operators.md.
  std::string operators;
};

/// A posted offload. A small value; copies name the same offload. Must not outlive its session.
class WHERRY_API Ticket {
 public:
  Ticket() noexcept = default;
  /// True once the source memory may be reused (or the offload failed). Reads one word that the agent writes; no system
  /// call, and no call into the fabric. The exception: if messages are waiting because the agent's queue was full, it
  /// tries to send them. Does not notice an agent's death: wait() does.
  [[nodiscard]] bool ready() const noexcept;
  /// Blocks until ready(). Ok (a reader that asks from now on finds the frame; of a stream in parts, that of a step
  /// whose other parts have arrived), why the offload failed, kDeadlineExceeded (it is still in flight), or
  /// kUnavailable if the agent died. kFailedPrecondition: it ended so long ago that more offloads have failed since
  /// than the session remembers (1024), so its outcome is not known any more.
  Status wait(std::chrono::nanoseconds timeout) const;
  /// 1, 2, ... within the session; 0: no offload.
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

/// What one post says beside its columns.
struct OffloadOptions {
  std::uint64_t tag = 0;  ///< the application's own number for this frame; readers see it
  /// The agent gives up (the ticket fails with kCancelled) when the data is not in place this long after it saw
  /// the request. 0: never.
  std::chrono::nanoseconds deadline{0};
  /// post() only: how long it may wait for a free ticket. 0: not at all, kWouldBlock.
  std::chrono::nanoseconds wait_for_ticket{0};
};

namespace detail {
class StreamCore;
class StepCore;
}  // namespace detail

/// The same columns, posted repeatedly, like MPI's persistent requests. Stream::bind has checked them once.
/// Unregistered memory stays registered until the step is released. A post is one message of 64 bytes, however many
/// columns there are; the agent knows the rest since the first one.
///
/// The buffers must stay where and as large as they are for as long as the step lives; their values may change whenever
/// its tickets are ready. Memory of Session::allocate stays, although its owner is gone, until the step goes; a Region
/// refuses to be unregistered (kFailedPrecondition). A buffer that was unmapped all the same fails the ticket
/// (kSourceFault). Move-only; may outlive its stream, not its session.
class WHERRY_API Step {
 public:
  Step(Step&&) noexcept;
  Step& operator=(Step&&) noexcept;
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
  ~Step();

  /// As Stream::post, by whose rules it also goes while earlier posts are in flight: each is a frame of its own, and
  /// the buffers may be changed when the last is ready. kFailedPrecondition: the stream is closed, or the step
  /// released.
  Result<Ticket> post(const OffloadOptions& options);
  /// The same, with a tag alone.
  Result<Ticket> post(std::uint64_t tag = 0) { return post(OffloadOptions{.tag = tag}); }
  /// Posts of this step that are not complete.
  [[nodiscard]] std::size_t in_flight() const noexcept;
  /// Ends it. Offloads in flight go on, and their buffers must stay unchanged until they are ready. Does not block.
  /// Idempotent.
  void release() noexcept;

 private:
  friend class Stream;
  explicit Step(std::unique_ptr<detail::StepCore> core) noexcept;
  std::unique_ptr<detail::StepCore> core_;
};

/// A stream open for writing. Move-only; must not outlive its session. Closing (or destruction) ends the stream for its
/// readers; kept frames stay readable.
class WHERRY_API Stream {
 public:
  /// Opens a stream for writing; frames have the columns of `schema` (none: a raw stream). Blocks for one round trip to
  /// the agent. kAlreadyExists: the name is taken; kUnsupported, naming field and type; kInvalidArgument;
  /// kDeadlineExceeded: no answer in time; the agent may have opened it: the same call again gets that stream.
  static Result<Stream> open(Session& session, const StreamOptions& options, const Schema& schema);
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();

  /// Hands one batch of rows to the agent and returns at once. The memory behind the columns must stay unchanged until
  /// the ticket is ready. Memory outside every region is registered for the time of the offload. Errors at once:
  /// kWouldBlock (as many tickets in flight as the session allows, or as many messages waiting as the way to the agent
  /// holds), kInvalidArgument (columns that do not match the schema), kUnavailable. Later, through the ticket:
  /// kSourceFault, kResourceExhausted, kCancelled.
  Result<Ticket> post(std::span<const Column> columns, const OffloadOptions& options = {});
  /// The same with the columns in braces: post({x, y}).
  Result<Ticket> post(std::initializer_list<Column> columns, const OffloadOptions& options = {}) {
    return post(std::span<const Column>(columns.begin(), columns.size()), options);
  }
  /// A frame in two posts, for an application whose columns become final at different times. Columns with `later` give
  /// their number of rows to post(), whose ticket is then ready when the columns that post() was given may be
  /// overwritten. post_rest() takes all columns again, in the same lengths, and hands over those that were `later`; it
  /// reads nothing of the others. Its ticket is that of the frame, which readers see afterwards. Until post_rest(),
  /// other posts on the stream fail with kFailedPrecondition, and so does post_rest() itself without such a post().
  /// Errors as post(). If the first half fails, so does the second.
  Result<Ticket> post_rest(std::span<const Column> columns, const OffloadOptions& options = {});
  /// For streams opened with Strategy::kRaw: any number of buffers, one row each.
  Result<Ticket> post_raw(std::span<const std::span<const std::byte>> buffers, const OffloadOptions& options = {});

  /// Looks at the columns once, for posts without them: see Step. Errors as of post(), and kUnavailable.
  Result<Step> bind(std::span<const Column> columns);
  /// The same with the columns in braces.
  Result<Step> bind(std::initializer_list<Column> columns) {
    return bind(std::span<const Column>(columns.begin(), columns.size()));
  }
  /// For streams opened with Strategy::kRaw: one buffer at least.
  Result<Step> bind_raw(std::span<const std::span<const std::byte>> buffers);

  /// Ends the stream once its offloads are done: readers that follow it see the end. Blocks for one round trip.
  Status close();
  /// As opened. Lives as long as the stream.
  [[nodiscard]] const std::string& name() const noexcept;
  /// As opened; empty for a raw stream. Lives as long as the stream.
  [[nodiscard]] const Schema& schema() const noexcept;

 private:
  explicit Stream(std::shared_ptr<detail::StreamCore> core) noexcept;
  Result<Step> bound(std::unique_ptr<detail::StepCore> step);
  std::shared_ptr<detail::StreamCore> core_;
};

}  // namespace wherry
