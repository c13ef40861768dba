// SPDX-License-Identifier: Apache-2.0
// The C ABI of session.hpp and move.hpp, for C99 and for every language that can call C.
//
//   wherry_error why;
//   wherry_session* session;
//   wherry_stream* stream;
//   wherry_ticket ticket;
//   const wherry_field fields[] = {{.name = "x", .format = "g"}, {.name = "xyz", .format = "f", .values_per_row = 3}};
//   const wherry_column columns[] = {{.values = x, .rows = n}, {.values = xyz, .rows = n}};
//   wherry_stream_options options;
//   wherry_stream_options_init(&options, sizeof options);
//   options.name = "particles";
//   if (wherry_session_open(NULL, &session, &why) != WHERRY_OK) { puts(why.message); ... }
//   wherry_stream_open_fields(session, &options, fields, 2, &stream, &why);
//   // returns at once; do not change x and xyz yet
//   if (wherry_stream_post(stream, columns, 2, NULL, &ticket, &why) != WHERRY_OK) { puts(why.message); ... }
//   ...
//   // when it is ok, x and xyz may be changed again
//   if (wherry_ticket_wait(ticket, 1000000000, &why) != WHERRY_OK) { puts(why.message); ... }
//   if (wherry_stream_close(stream, &why) != WHERRY_OK) { puts(why.message); ... }
//   wherry_session_close(session, &why);
//
// Status. Functions return a wherry_status: WHERRY_OK, WHERRY_WOULD_BLOCK (nothing happened, call again later) or an
// error. The last argument receives the message and may be NULL. Functions write it only if they do not return
// WHERRY_OK, and write every other output only if they do. No function throws, prints or exits.
//
// Threads. One thread at a time may use a session and its objects; wherry_ticket_ready may be called from any thread.
//
// Ownership. Handles belong to the caller, who passes each once to its close, free or unregister function; NULL is
// accepted there. A session can be closed only after everything that belongs to it. Strings and arrays that are passed
// in are read during the call and not kept, except the data of a post: see wherry_stream_post.
//
// Structs. Structs that begin with `size` may grow: new fields are appended, and both sides use the fields that both
// know. Fill such a struct with its _init function, which also sets the defaults. All other structs are fixed for this
// WHERRY_ABI_VERSION. Times are in nanoseconds; a negative time counts as 0.
#ifndef WHERRY_WHERRY_H
#define WHERRY_WHERRY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define WHERRY_API [[gnu::visibility("default")]]
extern "C" {
#else
#define WHERRY_API __attribute__((visibility("default")))
#endif

/// The compiler warns if the result of such a call is ignored: the result may say that the call did not succeed.
#if defined(__cplusplus)
#define WHERRY_NODISCARD [[nodiscard]]
#elif defined(__GNUC__)
#define WHERRY_NODISCARD __attribute__((warn_unused_result))
#else
#define WHERRY_NODISCARD
#endif

/// The ABI version of libwherry.so (its SOVERSION). A change means that programs must be compiled again.
#define WHERRY_ABI_VERSION 0

/// A timeout without a limit: it lasts as long as the agent lives.
#define WHERRY_FOREVER INT64_MAX

/// The return value of every function, as an int. Numbers never change; new ones may be appended.
typedef enum wherry_status {
  WHERRY_OK = 0,
  WHERRY_WOULD_BLOCK = 1,       ///< back-pressure: nothing happened, call again later; not an error
  WHERRY_INVALID_ARGUMENT = 2,  ///< the call is wrong; the message gives the reason and the remedy
  WHERRY_NOT_FOUND = 3,
  WHERRY_ALREADY_EXISTS = 4,
  WHERRY_UNSUPPORTED = 5,          ///< a type, transport or option that this Wherry does not offer
  WHERRY_FAILED_PRECONDITION = 6,  ///< valid call, wrong time
  WHERRY_DEADLINE_EXCEEDED = 7,    ///< the call's time is over; the awaited event may still happen
  WHERRY_RESOURCE_EXHAUSTED = 8,   ///< larger than the budget can ever hold, or out of memory
  WHERRY_SOURCE_FAULT = 9,         ///< the agent could not read the host's memory
  WHERRY_CANCELLED = 10,           ///< the stream or session was closed before, or the post's own deadline passed
  WHERRY_UNAVAILABLE = 11,         ///< no agent is reachable, or it died
  WHERRY_PERMISSION_DENIED = 12,
  WHERRY_VERSION_MISMATCH = 13,
  WHERRY_PROTOCOL = 14,
  WHERRY_INTERNAL = 15
} wherry_status;

/// Caller's memory for the text of one error. The struct need not be initialised: the call writes it.
typedef struct wherry_error {
  int32_t status;      ///< the returned status
  char message[1020];  ///< UTF-8, ends with a zero; longer messages are cut
} wherry_error;

/// The version of the loaded library: "0.1.0". Static.
WHERRY_API const char* wherry_version(void);
/// The WHERRY_ABI_VERSION of the loaded library.
WHERRY_API int wherry_abi_version(void);
/// The status's name, such as "invalid argument"; "unknown" for other numbers. Static.
WHERRY_API const char* wherry_status_name(int status);

// ---------------------------------------------------------------- session

/// One application process and one agent. See wherry_session_open, wherry_session_close.
typedef struct wherry_session wherry_session;
/// Memory that Wherry allocated. See wherry_memory_allocate, wherry_memory_free.
typedef struct wherry_memory wherry_memory;
/// The caller's memory, registered. See wherry_region_register, wherry_region_unregister.
typedef struct wherry_region wherry_region;
/// A stream open for writing. See wherry_stream_open, wherry_stream_close.
typedef struct wherry_stream wherry_stream;

/// How the agent reaches the application's memory.
typedef enum wherry_transport {
  WHERRY_TRANSPORT_AUTO = 0,  ///< the best one according to UCX
  WHERRY_TRANSPORT_SHM = 1,   ///< the agent is on the same machine
  WHERRY_TRANSPORT_TCP = 2,   ///< gets are emulated: the client runs a progress thread
  WHERRY_TRANSPORT_RDMA = 3   ///< InfiniBand or RoCE verbs
} wherry_transport;

/// The agent that a session uses, and how the session reaches it.
typedef struct wherry_session_options {
  size_t size;  ///< set by wherry_session_options_init
  /// NULL or "auto": WHERRY_AGENT if set, else the running agent of the default session file, else "embedded".
  /// "embedded": start an agent for this session only, which ends with this process. A path: the session file that an
  /// agent wrote. "host:port": that agent, with `token`.
  const char* agent;
  const char* token;                      ///< NULL: the token in the session file
  const char* name;                       ///< shown in the agent's status and logs; NULL: the program's name
  const char* embedded_program;           ///< path of wherryd; NULL: WHERRY_WHERRYD, beside the library, PATH
  const char* const* embedded_arguments;  ///< further arguments for wherryd, ended by NULL; may be NULL
  int64_t connect_timeout_ns;             ///< longest time for open, including an embedded agent's start
  uint64_t embedded_budget_bytes;         ///< memory of an embedded agent for frames
  uint32_t max_tickets;                   ///< offloads that may be in flight; a power of two, 1 to 4096
  int32_t transport;                      ///< wherry_transport
  int32_t embedded_core;                  ///< -1: the highest allowed core except the caller's
  int32_t embedded_flight;                ///< 0: serve no Arrow Flight
} wherry_session_options;

/// Writes the defaults into the `size` bytes (sizeof *options) at `options`. WHERRY_INVALID_ARGUMENT if `size` is too
/// small.
WHERRY_API int wherry_session_options_init(wherry_session_options* options, size_t size);

/// Blocks until the agent has answered and the self-test is done (milliseconds), at most connect_timeout_ns.
/// `options`: NULL for the defaults.
WHERRY_API int wherry_session_open(const wherry_session_options* options, wherry_session** session,
                                   wherry_error* error);

/// Waits briefly for offloads in flight, then leaves; an embedded agent drains and exits. Tickets are invalid
/// afterwards. WHERRY_FAILED_PRECONDITION: memory, regions or streams of the session are open; the session stays open.
WHERRY_API int wherry_session_close(wherry_session* session, wherry_error* error);

/// The agent of a session, and the result of the one-sidedness self-test.
typedef struct wherry_session_info {
  size_t size;  ///< sizeof(wherry_session_info), set by the caller; fields unknown to the library become zero
  const char* agent_version;    ///< "0.1.0"
  const char* transports;       ///< UCX's names, on the agent's side: "posix/memory cma/memory"
  const char* session_file;     ///< the agent's session file, if it was used, or ""; readers can use it
  const char* flight_uri;       ///< "grpc://127.0.0.1:12345", or ""
  const char* text;             ///< all of this in one readable line
  int32_t agent_pid;            ///< process id, on the agent's machine
  int32_t heap_one_sided;       ///< 1: the agent reads ordinary memory without the host's help (measured)
  int32_t allocated_one_sided;  ///< 1: the same is true of memory that Wherry allocated
  int32_t mapped;               ///< 1: the agent maps memory that Wherry allocated: loads instead of gets
} wherry_session_info;

/// The strings belong to the session, and live as long as the session.
WHERRY_API int wherry_session_get_info(const wherry_session* session, wherry_session_info* info, wherry_error* error);

/// Number of tickets that are posted and not complete.
WHERRY_API int wherry_session_in_flight(wherry_session* session, size_t* count, wherry_error* error);

/// Blocks until nothing is in flight. Returns the first failure of a ticket without a wait, if any. Other errors:
/// WHERRY_DEADLINE_EXCEEDED, or WHERRY_UNAVAILABLE if the agent died.
WHERRY_NODISCARD WHERRY_API int wherry_session_drain(wherry_session* session, int64_t timeout_ns, wherry_error* error);

// ---------------------------------------------------------------- memory

/// Allocates page-aligned, zeroed, registered memory; *data becomes its address. An agent on the same machine maps it,
/// which makes it the cheapest source. Every page is touched.
WHERRY_API int wherry_memory_allocate(wherry_session* session, size_t bytes, wherry_memory** memory, void** data,
                                      wherry_error* error);
/// Blocks while offloads still read the memory, at most ten seconds and only while the agent lives. After that it warns
/// on standard error, and the session frees the memory later. The handle is invalid in both cases.
WHERRY_API int wherry_memory_free(wherry_memory* memory, wherry_error* error);

/// Registers [data, data + bytes), the caller's own memory: offloads of memory in this range need no further
/// registration. It must stay mapped until the region is unregistered.
WHERRY_API int wherry_region_register(wherry_session* session, const void* data, size_t bytes, wherry_region** region,
                                      wherry_error* error);
/// WHERRY_FAILED_PRECONDITION: offloads that read it are in flight; the region stays registered, its handle valid.
WHERRY_API int wherry_region_unregister(wherry_region* region, wherry_error* error);

// ---------------------------------------------------------------- streams

/// The form in which the transfer leaves the bytes (paper 004 sections V-F and V-G).
typedef enum wherry_strategy {
  WHERRY_STRATEGY_RAW = 0,     ///< the buffers as they are, one after the other; no schema
  WHERRY_STRATEGY_ARRAYS = 1,  ///< one Arrow array a column
  WHERRY_STRATEGY_RECORD_BATCH = 2,
  WHERRY_STRATEGY_IPC = 3,               ///< an Arrow IPC stream, buffers at multiples of 64 bytes (default)
  WHERRY_STRATEGY_IPC_PAGE_ALIGNED = 4,  ///< the same, buffers at multiples of 4096 bytes
  WHERRY_STRATEGY_C_ABI = 5              ///< an ArrowArray / ArrowSchema pair
} wherry_strategy;

/// What happens if there is no room for a new frame.
typedef enum wherry_when_full {
  WHERRY_EVICT = 0,           ///< the agent removes the oldest frame
  WHERRY_WAIT_FOR_READER = 1  ///< the agent removes only frames that were read; otherwise the next offload waits
} wherry_when_full;

/// Files that the agent writes, one per frame.
typedef enum wherry_sink_format {
  WHERRY_SINK_NONE = 0,
  WHERRY_SINK_ARROW = 1,
  WHERRY_SINK_PARQUET = 2
} wherry_sink_format;

/// The stream's name, the form of its frames, and how many of them the agent keeps.
typedef struct wherry_stream_options {
  size_t size;                      ///< set by wherry_stream_options_init
  const char* name;                 ///< 1 to 255 of [A-Za-z0-9._-]; unique on the agent
  const char* sink_directory;       ///< in the agent's file system; files are NAME-00000000.arrow (or .parquet)
  const uint64_t* announced_bytes;  ///< sizes of expected offloads: the agent prepares memory for each now; may be NULL
  size_t announced_count;           ///< number of announced_bytes
  uint64_t keep_frames;             ///< number of delivered frames that the agent keeps; 0: no limit by count
  uint64_t keep_bytes;              ///< 0: no limit by bytes (but the agent's budget always applies)
  int32_t strategy;                 ///< wherry_strategy
  int32_t when_full;                ///< wherry_when_full
  int32_t sink_format;              ///< wherry_sink_format
  int32_t reserved;                 ///< 0
  /// A stream in parts: several sessions open it, each with its own part, 0 to parts - 1. The posts of all parts with
  /// one tag form a step; readers see the whole step or nothing. parts 0: the stream has no parts.
  uint32_t part;
  uint32_t parts;  ///< see part
  /// Derived streams that the agent computes from each frame, as a JSON list (docs/guide/move-operators.md). NULL: no
  /// derived streams.
  const char* operators;
} wherry_stream_options;

/// As wherry_session_options_init. `name` has no default.
WHERRY_API int wherry_stream_options_init(wherry_stream_options* options, size_t size);

/// A column of plain values, for programs without Arrow.
typedef struct wherry_field {
  const char* name;  ///< unique in the stream
  /// Arrow C data interface format string of a fixed-width type: "g" double, "f" float, "l" int64_t, "i" int32_t, "C"
  /// uint8_t, "b" packed bits, "tsn:UTC" a timestamp, "w:16" 16 bytes, ...
  const char* format;
  uint32_t values_per_row;  ///< 2 or more: a fixed-size list of so many values (3 for xyz[n][3]); 0 and 1: one value
  int32_t nullable;         ///< 1: columns of this field may have a validity bitmap
} wherry_field;

// These structs are defined by the Arrow C data interface.
struct ArrowSchema;
struct ArrowArray;

/// `schema` is the schema of a record batch: a struct ("+s") whose members are the columns, of any type, also nested.
/// Its metadata become the metadata of the record batch's schema. The call reads it and does not release it. NULL for
/// WHERRY_STRATEGY_RAW, which has no schema.
/// Blocks for one round trip. Errors: WHERRY_ALREADY_EXISTS, or WHERRY_UNSUPPORTED with the field and its type.
WHERRY_API int wherry_stream_open(wherry_session* session, const wherry_stream_options* options,
                                  const struct ArrowSchema* schema, wherry_stream** stream, wherry_error* error);
/// Opens a stream whose columns are described by `count` fields.
WHERRY_API int wherry_stream_open_fields(wherry_session* session, const wherry_stream_options* options,
                                         const wherry_field* fields, size_t count, wherry_stream** stream,
                                         wherry_error* error);

/// Ends the stream after its offloads are done: readers that follow it see the end and can still read kept frames.
/// Blocks for one round trip. The handle is invalid, whatever is returned; tickets stay valid. After an error, readers
/// may not see the end.
WHERRY_NODISCARD WHERRY_API int wherry_stream_close(wherry_stream* stream, wherry_error* error);

// ---------------------------------------------------------------- posting

/// The options of one post.
typedef struct wherry_post_options {
  size_t size;                 ///< set by wherry_post_options_init
  uint64_t tag;                ///< the application's own number for this frame; readers see it
  int64_t deadline_ns;         ///< time after which the agent gives up, from when it saw the request; 0: never
  int64_t wait_for_ticket_ns;  ///< longest wait for a free ticket; 0: no wait, WHERRY_WOULD_BLOCK
} wherry_post_options;

/// As wherry_session_options_init; all zero.
WHERRY_API int wherry_post_options_init(wherry_post_options* options, size_t size);

/// A posted offload: a value that may be copied. All zero: no offload. Invalid after its session is closed.
typedef struct wherry_ticket {
  uint64_t id;   ///< 1, 2, ... within the session
  void* opaque;  ///< for Wherry's own use
} wherry_ticket;

/// The rows of one column in one offload.
typedef struct wherry_column {
  const void* values;       ///< rows * values_per_row values, or packed bits
  int64_t rows;             ///< the same for all columns
  const uint8_t* validity;  ///< bitmap, 1 = valid, least significant bit first; may be NULL when null_count <= 0
  int64_t null_count;       ///< 0: no nulls, validity is ignored; -1: unknown, the agent counts them; nullable only
} wherry_column;

/// One buffer of a raw stream. Its memory is borrowed like that of columns.
typedef struct wherry_buffer {
  const void* data;  ///< where it begins
  size_t bytes;      ///< its size
} wherry_buffer;

/// Hands one batch of rows to the agent and returns at once (about a microsecond, whatever the size).
///
/// The columns' memory is borrowed: it must stay valid and unchanged until the ticket is ready. The array of columns
/// itself is needed only during the call. Memory outside every region is registered for this offload only. `options`:
/// NULL for the defaults. `ticket`: NULL if not needed; wherry_session_drain then reports failures.
///
/// Errors of the call: WHERRY_WOULD_BLOCK (the limit of tickets in flight is reached), WHERRY_INVALID_ARGUMENT (columns
/// that do not match the stream's), WHERRY_UNAVAILABLE. Errors of the ticket: WHERRY_SOURCE_FAULT,
/// WHERRY_RESOURCE_EXHAUSTED, WHERRY_CANCELLED.
WHERRY_NODISCARD WHERRY_API int wherry_stream_post(wherry_stream* stream, const wherry_column* columns, size_t count,
                                                   const wherry_post_options* options, wherry_ticket* ticket,
                                                   wherry_error* error);

/// As wherry_stream_post, for a struct array of the Arrow C data interface (a record batch, sliced or not). Wherry
/// borrows it and never calls its release. The structs are read during the call. The buffers that they point to must
/// stay until the ticket is ready, so release the array only after that.
WHERRY_NODISCARD WHERRY_API int wherry_stream_post_arrow(wherry_stream* stream, const struct ArrowArray* batch,
                                                         const wherry_post_options* options, wherry_ticket* ticket,
                                                         wherry_error* error);

/// As wherry_stream_post, for WHERRY_STRATEGY_RAW: borrows `count` buffers, one row each.
WHERRY_NODISCARD WHERRY_API int wherry_stream_post_raw(wherry_stream* stream, const wherry_buffer* buffers,
                                                       size_t count, const wherry_post_options* options,
                                                       wherry_ticket* ticket, wherry_error* error);

/// Columns to be posted repeatedly, like MPI's persistent requests. The columns are checked once; each post is one
/// message of 64 bytes, whatever the number of columns. Unregistered memory is registered until the step is released.
/// Until then the buffers must keep their addresses and sizes and stay mapped; values may change when the step's
/// tickets are ready. A step belongs to its session: release it before closing the session.
typedef struct wherry_step wherry_step;

/// Makes a step from columns in the form that wherry_stream_post takes. The buffers of an ArrowArray (next function)
/// must stay until the step is released and its tickets are ready.
WHERRY_NODISCARD WHERRY_API int wherry_stream_bind(wherry_stream* stream, const wherry_column* columns, size_t count,
                                                   wherry_step** step, wherry_error* error);
/// Makes a step from a struct array in the form that wherry_stream_post_arrow takes.
WHERRY_NODISCARD WHERRY_API int wherry_stream_bind_arrow(wherry_stream* stream, const struct ArrowArray* batch,
                                                         wherry_step** step, wherry_error* error);
/// Makes a step from at least one buffer, for WHERRY_STRATEGY_RAW.
WHERRY_NODISCARD WHERRY_API int wherry_stream_bind_raw(wherry_stream* stream, const wherry_buffer* buffers,
                                                       size_t count, wherry_step** step, wherry_error* error);

/// Posts the step's columns under the rules of wherry_stream_post, even while earlier posts are in flight.
/// WHERRY_FAILED_PRECONDITION: the stream is closed.
WHERRY_NODISCARD WHERRY_API int wherry_step_post(wherry_step* step, const wherry_post_options* options,
                                                 wherry_ticket* ticket, wherry_error* error);

/// Releases the step without blocking. Offloads in flight continue: their buffers must stay unchanged until the tickets
/// are ready. The handle is invalid afterwards.
WHERRY_API int wherry_step_release(wherry_step* step, wherry_error* error);

/// *ready becomes 1 if the source memory may be reused (or the offload failed), else 0. Any thread may call it. The
/// call reads one word that the agent writes: no system call. Only wherry_ticket_wait notices that an agent died.
WHERRY_API int wherry_ticket_ready(wherry_ticket ticket, int* ready, wherry_error* error);

/// Blocks until the ticket is ready or the time is over. Returns WHERRY_OK, the reason why the offload failed, or
/// WHERRY_DEADLINE_EXCEEDED (the offload is still in flight and uses its memory), or WHERRY_UNAVAILABLE if the agent
/// died. An offload that missed the deadline of its own post has failed with WHERRY_CANCELLED.
/// WHERRY_FAILED_PRECONDITION: the outcome is no longer known, because since then more offloads have failed than the
/// session remembers (1024).
WHERRY_NODISCARD WHERRY_API int wherry_ticket_wait(wherry_ticket ticket, int64_t timeout_ns, wherry_error* error);

/// For a successful offload: nanoseconds from the first get to the last byte in place, on the agent's clock.
/// WHERRY_FAILED_PRECONDITION if it is in flight or failed; WHERRY_NOT_FOUND after max_tickets later posts.
WHERRY_API int wherry_ticket_transfer_ns(wherry_ticket ticket, uint64_t* nanoseconds, wherry_error* error);
/// For a successful offload: the frame's number in its stream: 0, 1, ... Errors as above.
WHERRY_API int wherry_ticket_sequence(wherry_ticket ticket, uint64_t* sequence, wherry_error* error);

#ifdef __cplusplus
}
#endif
#endif
