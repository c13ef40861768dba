// SPDX-License-Identifier: Apache-2.0
// route.hpp for C99 and for every language that can call C: fire-and-forget messages between the ranks of a job.
// Status, errors, ownership and structs are as wherry.h says.
//
//   void add(void* user, const void* message, size_t bytes) {
//     if (bytes == sizeof(uint64_t)) ((uint64_t*)user)[*(const uint64_t*)message] += 1;
//   }
//   ...
//   wherry_error why;
//   wherry_route* route;
//   uint32_t handler;
//   if (wherry_route_start(NULL, &route, &why) != WHERRY_OK) { puts(why.message); ... }
//   // the same handlers, in the same order, on every rank
//   wherry_route_on_bytes(route, add, table, &handler, &why);
//   if (wherry_route_send(route, owner, handler, &index, sizeof index, &why) != WHERRY_OK) { puts(why.message); ... }
//   // returns when every message sent anywhere has been handled
//   if (wherry_route_quiesce(route, WHERRY_FOREVER, &why) != WHERRY_OK) { puts(why.message); ... }
//   wherry_route_close(route, &why);
//
// Threads: one at a time. Handlers run in it, inside poll, send and the collective calls. They may send, but call
// nothing else of here, and must return (no exception, no longjmp). docs/guide/route-states.md has the states of a
// route and the calls that each allows.
#ifndef WHERRY_ROUTE_H
#define WHERRY_ROUTE_H

#include "wherry/wherry.h"

#ifdef __cplusplus
extern "C" {
#endif

/// One rank of a job.
typedef struct wherry_route wherry_route;

/// The processor that routes messages between the ranks.
typedef enum wherry_placement {
  WHERRY_PLACEMENT_DEFAULT = -1,  ///< WHERRY_PLACEMENT if set, else inline
  WHERRY_PLACEMENT_INLINE = 0,    ///< messages are routed in the ranks' own threads: no agent
  WHERRY_PLACEMENT_SHARED = 1,    ///< by an agent on the rank's own core
  WHERRY_PLACEMENT_HOST = 2,      ///< by an agent on another core of the host
  WHERRY_PLACEMENT_DPU = 3        ///< by an agent on the SmartNIC
} wherry_placement;

/// How a rank takes part in its job.
typedef struct wherry_route_options {
  size_t size;               ///< set by wherry_route_options_init
  uint64_t backlog_bytes;    ///< what this rank may hold back for full buffers, at least 16 MiB; then send waits
  int64_t flush_after_ns;    ///< messages leave at the latest by the first poll after this time
  int64_t start_timeout_ns;  ///< how long start waits for the other ranks
  int32_t placement;         ///< wherry_placement
  uint32_t buffer_bytes;     ///< of one buffer, a multiple of 64; 0: WHERRY_ROUTE_BUFFER_BYTES, else 32 KiB
  uint32_t buffers;          ///< to each next hop, a power of two; 0: WHERRY_ROUTE_BUFFERS, else 4
  uint32_t reserved;         ///< 0
} wherry_route_options;

/// Writes the defaults into the `size` bytes (sizeof *options) at `options`.
WHERRY_API int wherry_route_options_init(wherry_route_options* options, size_t size);

/// Joins the job that `wherry run`, a PMIx server or an MPI launcher has started this process in; else one rank alone.
/// Collective: blocks until every rank is there. `options`: NULL for the defaults.
WHERRY_API int wherry_route_start(const wherry_route_options* options, wherry_route** route, wherry_error* error);

/// Leaves the job, without waiting for the others, and calls no handler: quiesce first where messages may still be on
/// their way. WHERRY_FAILED_PRECONDITION inside a handler; nothing is closed then.
WHERRY_API int wherry_route_close(wherry_route* route, wherry_error* error);

/// This process, from 0 on; 0 for NULL.
WHERRY_API uint32_t wherry_route_rank(const wherry_route* route);
/// The processes of the job; 0 for NULL.
WHERRY_API uint32_t wherry_route_ranks(const wherry_route* route);
/// The node of this rank, from 0 on; 0 for NULL.
WHERRY_API uint32_t wherry_route_node(const wherry_route* route);
/// The nodes of the job; 0 for NULL.
WHERRY_API uint32_t wherry_route_nodes(const wherry_route* route);
/// One line about rank, placement and buffers, for people. Lives as long as the route.
WHERRY_API const char* wherry_route_describe(const wherry_route* route);

/// Called for each message. The bytes, aligned to 8, live during the call.
typedef void (*wherry_route_function)(void* user, const void* message, size_t bytes);

/// *handler is the destination of messages for `function`. Register the same ones, in the same order, on every rank,
/// before the first call that polls. They stay until the route is closed. Collective calls compare what ranks have
/// registered: WHERRY_FAILED_PRECONDITION if it differs. Functions are told apart by their addresses in the program,
/// which must be the same one on all ranks. WHERRY_ALREADY_EXISTS, and the job fails: the function is registered
/// already, or neither of two lies in a program or library (a callback that was made at run time): register them by
/// name.
WHERRY_API int wherry_route_on_bytes(wherry_route* route, wherry_route_function function, void* user, uint32_t* handler,
                                     wherry_error* error);

/// The same by name, in any order. The name, of at least one character, is unique on a rank.
WHERRY_API int wherry_route_on_bytes_named(wherry_route* route, const char* name, wherry_route_function function,
                                           void* user, uint32_t* handler, wherry_error* error);

/// Copies the message. It leaves when its buffer is full, or by poll, flush or quiesce. When the pipe is full, keeps
/// the message back, up to backlog_bytes, and beyond that handles messages until there is room: handlers may run before
/// it returns. A handler cannot wait: there the job fails with WHERRY_RESOURCE_EXHAUSTED. WHERRY_FAILED_PRECONDITION: a
/// quiesce that had not ended is over on all ranks; call it, it says WHERRY_OK, then send. At most 16 MiB a message.
WHERRY_NODISCARD WHERRY_API int wherry_route_send(wherry_route* route, uint32_t to, uint32_t handler,
                                                  const void* message, size_t bytes, wherry_error* error);
/// The same, but WHERRY_WOULD_BLOCK at once when the pipe is full: nothing happened, poll and try again.
WHERRY_NODISCARD WHERRY_API int wherry_route_try_send(wherry_route* route, uint32_t to, uint32_t handler,
                                                      const void* message, size_t bytes, wherry_error* error);

/// Handles arrived messages and sends waiting ones. *handled, unless NULL: the number of handled messages. Fails as
/// wherry_route_status does.
WHERRY_API int wherry_route_poll(wherry_route* route, uint64_t* handled, wherry_error* error);
/// Everything sent so far leaves now.
WHERRY_API int wherry_route_flush(wherry_route* route, wherry_error* error);

/// Collective: returns once every message that any rank has sent, in handlers too, has been handled.
/// WHERRY_DEADLINE_EXCEEDED: not yet; the route may send and poll, and must call it again before another collective
/// call. WHERRY_FOREVER: no limit.
WHERRY_NODISCARD WHERRY_API int wherry_route_quiesce(wherry_route* route, int64_t timeout_ns, wherry_error* error);
/// The same without waiting: WHERRY_WOULD_BLOCK: call it again, meanwhile poll and send if you like.
WHERRY_NODISCARD WHERRY_API int wherry_route_try_quiesce(wherry_route* route, wherry_error* error);

/// How wherry_route_reduce_u64 combines the values.
typedef enum wherry_combine { WHERRY_SUM = 0, WHERRY_MIN = 1, WHERRY_MAX = 2 } wherry_combine;
/// Collective: *result becomes the sum, the least or the greatest of the values of all ranks.
/// WHERRY_FAILED_PRECONDITION: a quiesce is under way that has not said WHERRY_OK.
WHERRY_NODISCARD WHERRY_API int wherry_route_reduce_u64(wherry_route* route, uint64_t value, int combine,
                                                        uint64_t* result, wherry_error* error);

/// Counts since start.
typedef struct wherry_route_statistics {
  size_t size;  ///< sizeof(wherry_route_statistics), set by the caller; fields that the library does not know become 0
  uint64_t sent, handled;        ///< messages of this rank
  uint64_t forwarded_bytes;      ///< for other ranks, on their way through this one
  uint64_t bytes_out, bytes_in;  ///< headers included
  uint64_t transfers;            ///< times that a buffer, or a part of one, was handed on
  uint64_t flush_full, flush_idle, flush_timeout, flush_explicit;  ///< why they were
  uint64_t would_block;                                            ///< calls that found the pipe full
  uint64_t backlog_bytes, backlog_high;                            ///< now, and at most
  uint64_t blocked_ns;  ///< in calls that found nothing to do, from the 17th such poll in a row on
} wherry_route_statistics;
/// Fills *statistics, whose `size` the caller has set.
WHERRY_API int wherry_route_get_statistics(const wherry_route* route, wherry_route_statistics* statistics,
                                           wherry_error* error);

/// WHERRY_OK while the job is whole; else why it is not (a rank or an agent died, say). Then nothing is delivered any
/// more.
WHERRY_API int wherry_route_status(const wherry_route* route, wherry_error* error);

#ifdef __cplusplus
}
#endif
#endif
