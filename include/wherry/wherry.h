// SPDX-License-Identifier: Apache-2.0
// The C ABI: what session.hpp and move.hpp offer, for C99 and for every language that can call C.
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
// Status. Functions return a wherry_status: WHERRY_OK, WHERRY_WOULD_BLOCK (nothing happened, call again later) or what
// went wrong. The last argument takes the message and may be NULL. It is written when WHERRY_OK is not returned, and
// every other output only when it is. Nothing is ever thrown, printed or exited from here.
//
// Threads. One thread at a time may use a session and its objects; wherry_ticket_ready may be called from any thread.
//
// Ownership. Handles belong to the caller, who gives each to its close, free or unregister function once; NULL is
// accepted there. A session can be closed only after everything that belongs to it. Strings and arrays that are passed
// in are read during the call and not kept, except the data of a post: see there.
//
// Structs. Those that begin with `size` may grow: fields are appended, and both sides use the fields that the other
// knows. Fill them with their _init function, which also gives the defaults. All others are as they are for this
// WHERRY_ABI_VERSION. Times are nanoseconds; a negative one counts as 0.
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

/// The compiler warns of a call whose result is ignored: it may say that something was not taken.
#if defined(__cplusplus)
#define WHERRY_NODISCARD [[nodiscard]]
#elif defined(__GNUC__)
#define WHERRY_NODISCARD __attribute__((warn_unused_result))
#else
#define WHERRY_NODISCARD
#endif

/// Of libwherry.so (its SOVERSION): changes when a program must be compiled again.
#define WHERRY_ABI_VERSION 0

/// A timeout that lasts as long as the agent lives.
#define WHERRY_FOREVER INT64_MAX

/// The return value of every function, as an int. Numbers are never changed, new ones may be appended.
typedef enum wherry_status {
  WHERRY_OK = 0,
  WHERRY_WOULD_BLOCK = 1,       ///< back-pressure: nothing happened, call again later; not an error
  WHERRY_INVALID_ARGUMENT = 2,  ///< the call is wrong; the message says what and how to mend it
  WHERRY_NOT_FOUND = 3,
  WHERRY_ALREADY_EXISTS = 4,
  WHERRY_UNSUPPORTED = 5,          ///< a type, transport or option that this Wherry does not offer
  WHERRY_FAILED_PRECONDITION = 6,  ///< right call, wrong moment
  WHERRY_DEADLINE_EXCEEDED = 7,    ///< the call's time is over; what it waited for may still come about
  WHERRY_RESOURCE_EXHAUSTED = 8,   ///< larger than the budget can ever hold, or out of memory
  WHERRY_SOURCE_FAULT = 9,         ///< the agent could not read the host's memory
  WHERRY_CANCELLED = 10,           ///< the stream or session was closed first, or the post's own deadline was over
  WHERRY_UNAVAILABLE = 11,         ///< no agent, or it died
  WHERRY_PERMISSION_DENIED = 12,
  WHERRY_VERSION_MISMATCH = 13,
  WHERRY_PROTOCOL = 14,
  WHERRY_INTERNAL = 15
} wherry_status;

/// Memory of the caller for the text of one error. It need not be initialised: the call writes it.
typedef struct wherry_error {
  int32_t status;      ///< as returned
  char message[1020];  ///< UTF-8, ends with a zero; longer messages are cut
} wherry_error;

/// The version of the loaded library: "0.1.0". Static.
WHERRY_API const char* wherry_version(void);
/// The WHERRY_ABI_VERSION of the loaded library.
WHERRY_API int wherry_abi_version(void);
/// "invalid argument"; "unknown" for a number that is none. Static.
WHERRY_API const char* wherry_status_name(int status);

// ---------------------------------------------------------------- session

/// One application process and one agent. wherry_session_open, wherry_session_close.
typedef struct wherry_session wherry_session;
/// Memory that Wherry allocated. wherry_memory_allocate, wherry_memory_free.
typedef struct wherry_memory wherry_memory;
/// The caller's memory, registered. wherry_region_register, wherry_region_unregister.
typedef struct wherry_region wherry_region;
/// A stream open for writing. wherry_stream_open, wherry_stream_close.
typedef struct wherry_stream wherry_stream;

/// How the agent reaches the application's memory.
typedef enum wherry_transport {
  WHERRY_TRANSPORT_AUTO = 0,  ///< whatever UCX finds best
  WHERRY_TRANSPORT_SHM = 1,   ///< agent on the same machine
  WHERRY_TRANSPORT_TCP = 2,   ///< gets are emulated: the client runs a progress thread
  WHERRY_TRANSPORT_RDMA = 3   ///< InfiniBand or RoCE verbs
} wherry_transport;

/// Which agent a session uses, and how.
typedef struct wherry_session_options {
  size_t size;  ///< set by wherry_session_options_init
  /// NULL or "auto": WHERRY_AGENT if set, else the running agent of the default session file, else "embedded".
  /// "embedded": an agent of one's own, which ends with this process. A path: the session file that an agent wrote.
  /// "host:port": that agent, with `token`.
  const char* agent;
  const char* token;                      ///< NULL: that of the session file
  const char* name;                       ///< shown in the agent's status and logs; NULL: the program's name
  const char* embedded_program;           ///< wherryd; NULL: WHERRY_WHERRYD, beside the library, PATH
  const char* const* embedded_arguments;  ///< further ones for wherryd, the last followed by NULL; may be NULL
  int64_t connect_timeout_ns;             ///< how long open may take, an embedded agent's start included
  uint64_t embedded_budget_bytes;         ///< memory of an embedded agent for frames
  uint32_t max_tickets;                   ///< offloads that may be in flight; a power of two, 1 to 4096
  int32_t transport;                      ///< wherry_transport
  int32_t embedded_core;                  ///< -1: the highest one allowed other than the caller's
  int32_t embedded_flight;                ///< 0: serve no Arrow Flight
} wherry_session_options;

/// Writes the defaults into the `size` bytes (sizeof *options) at `options`. WHERRY_INVALID_ARGUMENT if they are too
/// few.
WHERRY_API int wherry_session_options_init(wherry_session_options* options, size_t size);

/// Blocks until the agent answered and the one-sidedness self-test is done (milliseconds), connect_timeout_ns at most.
/// `options`: NULL for the defaults.
WHERRY_API int wherry_session_open(const wherry_session_options* options, wherry_session** session,
                                   wherry_error* error);

/// Waits briefly for offloads in flight, then leaves; an embedded agent drains and exits. Tickets are void afterwards.
/// WHERRY_FAILED_PRECONDITION while memory, regions or streams of the session are open; nothing is closed then.
WHERRY_API int wherry_session_close(wherry_session* session, wherry_error* error);

/// The agent of a session, and what the self-test of one-sidedness found.
typedef struct wherry_session_info {
  size_t size;  ///< sizeof(wherry_session_info), set by the caller; fields that the library does not know become zero
  const char* agent_version;    ///< "0.1.0"
  const char* transports;       ///< as UCX names them, of the agent's side: "posix/memory cma/memory"
  const char* session_file;     ///< of the agent, if it was found through one, or ""; readers can use it
  const char* flight_uri;       ///< "grpc://127.0.0.1:12345", or ""
  const char* text;             ///< all of this in one line, for people
  int32_t agent_pid;            ///< its process, on its own machine
  int32_t heap_one_sided;       ///< 1: the agent reads ordinary memory without the host's help (measured)
  int32_t allocated_one_sided;  ///< 1: the same for memory that Wherry allocated
  int32_t mapped;               ///< 1: the agent maps memory that Wherry allocated: loads instead of gets
} wherry_session_info;

/// The strings belong to the session and live as long as it.
WHERRY_API int wherry_session_get_info(const wherry_session* session, wherry_session_info* info, wherry_error* error);

/// Tickets posted and not complete.
WHERRY_API int wherry_session_in_flight(wherry_session* session, size_t* count, wherry_error* error);

/// Blocks until nothing is in flight. The first failure among tickets without a wait, if any; WHERRY_DEADLINE_EXCEEDED;
/// WHERRY_UNAVAILABLE if the agent died.
WHERRY_NODISCARD WHERRY_API int wherry_session_drain(wherry_session* session, int64_t timeout_ns, wherry_error* error);

// ---------------------------------------------------------------- memory

/// Page-aligned, zeroed, registered memory; *data is its address. An agent on the same machine maps it: the cheapest
/// source there is. Every page is touched.
WHERRY_API int wherry_memory_allocate(wherry_session* session, size_t bytes, wherry_memory** memory, void** data,
                                      wherry_error* error);
/// Blocks while offloads still read the memory and the agent lives, ten seconds at most: then it warns on standard
/// error, and the session frees the memory when they are done. The handle is gone either way.
WHERRY_API int wherry_memory_free(wherry_memory* memory, wherry_error* error);

/// Registers [data, data + bytes), the caller's own memory: offloads of anything inside need no registration of their
/// own. It must stay mapped until the region is unregistered.
WHERRY_API int wherry_region_register(wherry_session* session, const void* data, size_t bytes, wherry_region** region,
                                      wherry_error* error);
/// WHERRY_FAILED_PRECONDITION while offloads that read it are in flight; the region stays registered, the handle good.
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

/// What happens to a frame for which there is no room.
typedef enum wherry_when_full {
  WHERRY_EVICT = 0,           ///< the oldest frame goes
  WHERRY_WAIT_FOR_READER = 1  ///< only frames that somebody has read may go; the next offload waits, nothing is lost
} wherry_when_full;

/// Files that the agent writes, one a frame.
typedef enum wherry_sink_format {
  WHERRY_SINK_NONE = 0,
  WHERRY_SINK_ARROW = 1,
  WHERRY_SINK_PARQUET = 2
} wherry_sink_format;

/// What a stream is called, what form its frames have, and how many of them the agent keeps.
typedef struct wherry_stream_options {
  size_t size;                      ///< set by wherry_stream_options_init
  const char* name;                 ///< 1 to 255 of [A-Za-z0-9._-]; unique on the agent
  const char* sink_directory;       ///< of the agent's file system; files are NAME-00000000.arrow (or .parquet)
  const uint64_t* announced_bytes;  ///< sizes of the offloads to come: memory for each is prepared now; may be NULL
  size_t announced_count;           ///< of announced_bytes
  uint64_t keep_frames;             ///< delivered frames that the agent keeps; 0: no limit by count
  uint64_t keep_bytes;              ///< 0: no limit by bytes (the agent's budget always holds)
  int32_t strategy;                 ///< wherry_strategy
  int32_t when_full;                ///< wherry_when_full
  int32_t sink_format;              ///< wherry_sink_format
  int32_t reserved;                 ///< 0
  /// A stream in parts: several sessions open it, each with its own part, 0 to parts - 1. The posts of all parts with
  /// one tag are a step, which readers see whole or not at all. parts 0: none.
  uint32_t part;
  uint32_t parts;  ///< see part
  /// What the agent makes of each frame for readers: JSON, a list of derived streams (docs/guide/move-operators.md);
  /// NULL: none.
  const char* operators;
} wherry_stream_options;

/// As wherry_session_options_init. `name` has no default.
WHERRY_API int wherry_stream_options_init(wherry_stream_options* options, size_t size);

/// A column of plain values, for programs without Arrow.
typedef struct wherry_field {
  const char* name;  ///< unique in the stream
  /// Arrow C data interface format string of a type of fixed width: "g" double, "f" float, "l" int64_t, "i" int32_t,
  /// "C" uint8_t, "b" packed bits, "tsn:UTC" a timestamp, "w:16" 16 bytes, ...
  const char* format;
  uint32_t values_per_row;  ///< 2 or more: a fixed-size list of that many (an xyz[n][3] has 3); 0 and 1: one value
  int32_t nullable;         ///< 1: its columns may have a validity bitmap
} wherry_field;

// Of the Arrow C data interface.
struct ArrowSchema;
struct ArrowArray;

/// `schema` is that of a record batch: a struct ("+s") whose members are the columns, of any type, nested ones too; its
/// metadata travel as the record batch schema's own. It is read during the call and not released. NULL for
/// WHERRY_STRATEGY_RAW, which has none.
/// Blocks for one round trip. WHERRY_ALREADY_EXISTS; WHERRY_UNSUPPORTED, naming field and type.
WHERRY_API int wherry_stream_open(wherry_session* session, const wherry_stream_options* options,
                                  const struct ArrowSchema* schema, wherry_stream** stream, wherry_error* error);
/// The same from `count` fields.
WHERRY_API int wherry_stream_open_fields(wherry_session* session, const wherry_stream_options* options,
                                         const wherry_field* fields, size_t count, wherry_stream** stream,
                                         wherry_error* error);

/// Ends the stream once its offloads are done: readers that follow it see the end, kept frames stay readable. Blocks
/// for one round trip. The handle is gone, whatever is returned; tickets stay good. An error may mean that readers do
/// not see the end.
WHERRY_NODISCARD WHERRY_API int wherry_stream_close(wherry_stream* stream, wherry_error* error);

// ---------------------------------------------------------------- posting

/// What one post says beside its data.
typedef struct wherry_post_options {
  size_t size;                 ///< set by wherry_post_options_init
  uint64_t tag;                ///< the application's own number for this frame; readers see it
  int64_t deadline_ns;         ///< the agent gives up this long after it saw the request; 0: never
  int64_t wait_for_ticket_ns;  ///< how long the call may wait for a free ticket; 0: not at all, WHERRY_WOULD_BLOCK
} wherry_post_options;

/// As wherry_session_options_init; all zero.
WHERRY_API int wherry_post_options_init(wherry_post_options* options, size_t size);

/// A posted offload: a value, to be copied at will. All zero: none. Void once its session is closed.
typedef struct wherry_ticket {
  uint64_t id;   ///< 1, 2, ... within the session
  void* opaque;  ///< Wherry's
} wherry_ticket;

/// The rows of one column in one offload.
typedef struct wherry_column {
  const void* values;       ///< rows * values_per_row values, or packed bits
  int64_t rows;             ///< the same for all columns
  const uint8_t* validity;  ///< bitmap, 1 = valid, least significant bit first; may be NULL when null_count <= 0
  int64_t null_count;       ///< 0: no nulls, validity is ignored; -1: unknown, the agent counts them; nullable only
} wherry_column;

/// One buffer of a raw stream, borrowed as columns are.
typedef struct wherry_buffer {
  const void* data;  ///< where it begins
  size_t bytes;      ///< its size
} wherry_buffer;

/// Hands one batch of rows to the agent and returns at once (about a microsecond, whatever the size).
///
/// The columns' memory is borrowed: it must stay valid and unchanged until the ticket is ready. The array of columns
/// itself may go when the call returns. Memory outside every region is registered for the time of the offload.
/// `options`: NULL for the defaults. `ticket`: NULL if it is not needed; wherry_session_drain reports failures.
///
/// Errors at once: WHERRY_WOULD_BLOCK (as many tickets in flight as the session allows), WHERRY_INVALID_ARGUMENT
/// (columns that do not match the stream's), WHERRY_UNAVAILABLE. Later, through the ticket: WHERRY_SOURCE_FAULT,
/// WHERRY_RESOURCE_EXHAUSTED, WHERRY_CANCELLED.
WHERRY_NODISCARD WHERRY_API int wherry_stream_post(wherry_stream* stream, const wherry_column* columns, size_t count,
                                                   const wherry_post_options* options, wherry_ticket* ticket,
                                                   wherry_error* error);

/// The same for a struct array of the Arrow C data interface (a record batch, sliced or not). It is borrowed, not
/// consumed: Wherry never calls its release. The structs are read during the call; the buffers that they point to must
/// stay until the ticket is ready, so release the array no earlier than that.
WHERRY_NODISCARD WHERRY_API int wherry_stream_post_arrow(wherry_stream* stream, const struct ArrowArray* batch,
                                                         const wherry_post_options* options, wherry_ticket* ticket,
                                                         wherry_error* error);

/// For WHERRY_STRATEGY_RAW: `count` buffers, one row each. Borrowed as above.
WHERRY_NODISCARD WHERRY_API int wherry_stream_post_raw(wherry_stream* stream, const wherry_buffer* buffers,
                                                       size_t count, const wherry_post_options* options,
                                                       wherry_ticket* ticket, wherry_error* error);

/// The same columns, to be posted again and again (as MPI's persistent requests). Looked at once: a post is one message
/// of 64 bytes, however many columns there are. Unregistered memory is registered until the step is released. The
/// buffers must stay where and as large as they are until then, and be mapped; values may change whenever the step's
/// tickets are ready. A step belongs to its session: release it before the session is closed.
typedef struct wherry_step wherry_step;

/// As wherry_stream_post, wherry_stream_post_arrow and wherry_stream_post_raw take their data, of which raw needs one
/// buffer at least. Of an ArrowArray the buffers must stay until the step is released and its tickets are ready.
WHERRY_NODISCARD WHERRY_API int wherry_stream_bind(wherry_stream* stream, const wherry_column* columns, size_t count,
                                                   wherry_step** step, wherry_error* error);
/// The same of a struct array, as wherry_stream_post_arrow takes it.
WHERRY_NODISCARD WHERRY_API int wherry_stream_bind_arrow(wherry_stream* stream, const struct ArrowArray* batch,
                                                         wherry_step** step, wherry_error* error);
/// The same of buffers, for WHERRY_STRATEGY_RAW.
WHERRY_NODISCARD WHERRY_API int wherry_stream_bind_raw(wherry_stream* stream, const wherry_buffer* buffers,
                                                       size_t count, wherry_step** step, wherry_error* error);

/// As wherry_stream_post, by whose rules it also goes while earlier posts are in flight. WHERRY_FAILED_PRECONDITION:
/// the stream is closed.
WHERRY_NODISCARD WHERRY_API int wherry_step_post(wherry_step* step, const wherry_post_options* options,
                                                 wherry_ticket* ticket, wherry_error* error);

/// Offloads in flight go on: their buffers must stay unchanged until the tickets are ready. Does not block; the handle
/// is gone.
WHERRY_API int wherry_step_release(wherry_step* step, wherry_error* error);

/// *ready becomes 1 once the source memory may be reused (or the offload failed), 0 before. Reads one word that the
/// agent writes: no system call, any thread. Does not notice an agent's death: wherry_ticket_wait does.
WHERRY_API int wherry_ticket_ready(wherry_ticket ticket, int* ready, wherry_error* error);

/// Blocks until the ticket is ready or the time is over. WHERRY_OK, the reason why the offload failed,
/// WHERRY_DEADLINE_EXCEEDED (the offload is still in flight: its memory is not free yet), or WHERRY_UNAVAILABLE if the
/// agent died. An offload that missed the post's own deadline has failed with WHERRY_CANCELLED.
/// WHERRY_FAILED_PRECONDITION: more offloads have failed since than the session remembers (1024), so how this one ended
/// is not known any more.
WHERRY_NODISCARD WHERRY_API int wherry_ticket_wait(wherry_ticket ticket, int64_t timeout_ns, wherry_error* error);

/// Of an offload that succeeded: nanoseconds from the first get to the last byte in place, on the agent's clock.
/// WHERRY_FAILED_PRECONDITION if it is in flight or failed, WHERRY_NOT_FOUND once max_tickets later ones were posted.
WHERRY_API int wherry_ticket_transfer_ns(wherry_ticket ticket, uint64_t* nanoseconds, wherry_error* error);
/// Of an offload that succeeded: the frame's number in its stream: 0, 1, ... Errors as above.
WHERRY_API int wherry_ticket_sequence(wherry_ticket ticket, uint64_t* sequence, wherry_error* error);

#ifdef __cplusplus
}
#endif
#endif
