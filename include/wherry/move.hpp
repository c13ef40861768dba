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

/// What the transfer itself makes of the bytes (paper 004 sections V-F and V-G).
enum class Strategy : std::uint8_t {
  kRaw = 0,             ///< the buffers as they are, one after the other; no schema
  kArrays = 1,          ///< "direct-to-arrays": one Arrow array a column
  kRecordBatch = 2,     ///< "direct-to-record-batch": a RecordBatch whose schema was known before
  kIpc = 3,             ///< "direct-to-ipc": a complete Arrow IPC stream, buffers at multiples of 64 bytes
  kIpcPageAligned = 4,  ///< the same, buffers at multiples of 4096 bytes
  kCAbi = 5,            ///< "direct-to-structs": an Arrow C data interface ArrowArray / ArrowSchema pair
};
WHERRY_API std::string_view to_string(Strategy strategy) noexcept;
WHERRY_API Result<Strategy> parse_strategy(
    std::string_view name);  ///< "raw", "arrays", "record_batch", "ipc", "ipc_page_aligned", "c_abi"

/// Which delivered frames the agent keeps. A frame that is being read is never taken away from its reader.
struct Retention {
  std::uint64_t frames = 16;  ///< 0: no limit by count
  std::uint64_t bytes = 0;    ///< 0: no limit by bytes (the agent's budget always holds)
  enum class WhenFull : std::uint8_t {
    kEvict = 0,  ///< the oldest frame goes
    kWait = 1,   ///< only frames that somebody has read may go; the next offload waits (nothing is lost, back-pressure
                 ///< reaches the host)
  } when_full = WhenFull::kEvict;
};

/// Files that the agent writes, one a frame: <directory>/<stream>-<sequence, 8 digits>.<arrow|parquet>, complete or not
/// at all. The agent replaces no file: opening fails with kAlreadyExists if the first file of the stream exists.
struct Sink {
  enum class Format : std::uint8_t { kNone = 0, kArrow = 1, kParquet = 2 } format = Format::kNone;
  /// Of the agent's file system; opened, and made if it is missing, when the stream is opened. A relative one starts in
  /// this process's current directory, and is an error where the agent runs on another machine.
  std::string directory;
};

struct StreamOptions {
  std::string name;  ///< 1 to 255 of [A-Za-z0-9._-] (fewer with a sink: the files have names, too); unique on the
                     ///< agent. A closed stream's name can be opened again: its frames go then
  Strategy strategy = Strategy::kIpc;
  Retention retention;
  Sink sink;
  /// Sizes, in bytes (of all buffers of an offload), of the offloads to come: the agent prepares destination memory for
  /// each (paper 004 II-B), in its spare time from now on; what arrives earlier meets colder memory, and does not wait.
  std::vector<std::uint64_t> announced_bytes;
  /// A stream in parts: several sessions (the ranks of a parallel job, say) open it, each with its own `part`, from 0
  /// to `parts` - 1. What all of them post with one tag is a step, which readers see whole or not at all. 0: no parts.
  /// See docs/move.md.
  std::uint32_t part = 0, parts = 0;
  /// Of the schema itself, as Field::metadata is of a field; readers get it with every frame. pandas' index is in
  /// there.
  std::string schema_metadata;
};

/// A posted offload. A small value; copies name the same offload. Must not outlive its session.
class WHERRY_API Ticket {
 public:
  Ticket() noexcept = default;
  /// True once the source memory may be reused (or the offload failed). Reads one word that the agent writes; no system
  /// call, no call into the fabric, but for messages that could not leave at once because the agent's queue was full:
  /// those it helps along. Does not notice an agent's death: wait() does.
  [[nodiscard]] bool ready() const noexcept;
  /// Blocks until ready(). Ok, why the offload failed, kDeadlineExceeded (it is still in flight), or kUnavailable if
  /// the agent died. kFailedPrecondition: it ended so long ago that more offloads have failed since than the session
  /// remembers (1024), so its outcome is not known any more.
  Status wait(std::chrono::nanoseconds timeout) const;
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
  /// After success: nanoseconds from the first get to the last byte in place on the agent's clock, and the frame's
  /// sequence number.
  [[nodiscard]] std::uint64_t transfer_ns() const noexcept;
  [[nodiscard]] std::uint64_t sequence() const noexcept;

 private:
  friend class Stream;
  friend class Step;
  Ticket(detail::SessionCore* core, std::uint64_t id) noexcept : core_(core), id_(id) {}
  detail::SessionCore* core_ = nullptr;
  std::uint64_t id_ = 0;
};

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

/// The same columns, to be posted again and again (as MPI's persistent requests): Stream::bind looked at them once, and
/// memory that nobody registered is registered until the step goes. A post is one message of 64 bytes, however many
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
  Result<Ticket> post(std::uint64_t tag = 0) { return post(OffloadOptions{.tag = tag}); }
  /// Posts of this step that are not complete.
  [[nodiscard]] std::size_t in_flight() const noexcept;
  /// Ends it; what is in flight goes on, and its buffers must stay unchanged until then. Does not block. Idempotent.
  void release() noexcept;

 private:
  friend class Stream;
  explicit Step(std::unique_ptr<detail::StepCore> core) noexcept;
  std::unique_ptr<detail::StepCore> core_;
};

/// Move-only; must not outlive its session. Closing (or destruction) ends the stream for its readers; kept frames stay
/// readable.
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
  Result<Ticket> post(std::initializer_list<Column> columns, const OffloadOptions& options = {}) {
    return post(std::span<const Column>(columns.begin(), columns.size()), options);
  }
  /// For streams opened with Strategy::kRaw: any number of buffers, one row each.
  Result<Ticket> post_raw(std::span<const std::span<const std::byte>> buffers, const OffloadOptions& options = {});

  /// Looks at the columns once, for posts without them: see Step. Errors as of post(), and kUnavailable.
  Result<Step> bind(std::span<const Column> columns);
  Result<Step> bind(std::initializer_list<Column> columns) {
    return bind(std::span<const Column>(columns.begin(), columns.size()));
  }
  /// For streams opened with Strategy::kRaw: one buffer at least.
  Result<Step> bind_raw(std::span<const std::span<const std::byte>> buffers);

  /// Ends the stream once its offloads are done: readers that follow it see the end. Blocks for one round trip.
  Status close();
  [[nodiscard]] const std::string& name() const noexcept;
  [[nodiscard]] const Schema& schema() const noexcept;

 private:
  explicit Stream(std::shared_ptr<detail::StreamCore> core) noexcept;
  Result<Step> bound(std::unique_ptr<detail::StepCore> step);
  std::shared_ptr<detail::StreamCore> core_;
};

}  // namespace wherry
