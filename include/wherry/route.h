// SPDX-License-Identifier: Apache-2.0
// route.hpp for C99 and for every language that can call C: fire-and-forget messages between the ranks of a job. Status
// codes, errors, ownership and structs follow the rules in wherry.h.
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
// Threads: one at a time. Handlers run in that thread, inside poll, send and the collective calls. A handler may send,
// but must not call any other function of this header, and must return (no exception, no longjmp).
// docs/guide/route-states.md lists the states of a route and the calls allowed in each.
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
  WHERRY_PLACEMENT_SHARED = 1,    ///< an agent on the rank's own core routes
  WHERRY_PLACEMENT_HOST = 2,      ///< an agent on another core of the host routes
  WHERRY_PLACEMENT_DPU = 3        ///< an agent on the SmartNIC routes
} wherry_placement;

/// How a rank takes part in its job.
typedef struct wherry_route_options {
  size_t size;               ///< set by wherry_route_options_init
  uint64_t backlog_bytes;    ///< bytes of messages that wait for buffers, at least 16 MiB; beyond that, send waits
  int64_t flush_after_ns;    ///< messages leave at the latest by the first poll after this time
  int64_t start_timeout_ns;  ///< how long start waits for the other ranks
  int32_t placement;         ///< wherry_placement
  uint32_t buffer_bytes;     ///< size of one buffer, a multiple of 64; 0: WHERRY_ROUTE_BUFFER_BYTES, else 32 KiB
  uint32_t buffers;          ///< number of buffers to each next hop, a power of two; 0: WHERRY_ROUTE_BUFFERS, else 4
  uint32_t reserved;         ///< 0
} wherry_route_options;

/// Writes the defaults into the `size` bytes (sizeof *options) at `options`.
WHERRY_API int wherry_route_options_init(wherry_route_options* options, size_t size);

/// Joins the job in which `wherry run`, a PMIx server or an MPI launcher started this process; else one rank alone.
/// Collective: blocks until every rank has joined. `options`: NULL for the defaults.
WHERRY_API int wherry_route_start(const wherry_route_options* options, wherry_route** route, wherry_error* error);

/// Leaves the job without waiting for other ranks or calling handlers. Quiesce first if messages may be on their way.
/// WHERRY_FAILED_PRECONDITION inside a handler: the route stays open.
WHERRY_API int wherry_route_close(wherry_route* route, wherry_error* error);

/// The number of this rank, from 0; 0 for NULL.
WHERRY_API uint32_t wherry_route_rank(const wherry_route* route);
/// The number of ranks in the job; 0 for NULL.
WHERRY_API uint32_t wherry_route_ranks(const wherry_route* route);
/// The number of this rank's node, from 0; 0 for NULL.
WHERRY_API uint32_t wherry_route_node(const wherry_route* route);
/// The number of nodes in the job; 0 for NULL.
WHERRY_API uint32_t wherry_route_nodes(const wherry_route* route);
/// One readable line about rank, placement and buffers. Lives as long as the route.
WHERRY_API const char* wherry_route_describe(const wherry_route* route);

/// Called for each message. The bytes are aligned to 8 and valid during the call.
typedef void (*wherry_route_function)(void* user, const void* message, size_t bytes);

/// *handler becomes the destination of messages for `function`. Register the same functions, in the same order, on
/// every rank, before the first call that polls. Handlers stay registered until the route is closed. Collective calls
/// compare the registrations of all ranks, and fail with WHERRY_FAILED_PRECONDITION if they differ. A function is
/// identified by its address in the program, which must be the same program on all ranks. WHERRY_ALREADY_EXISTS, and
/// the job fails: the function is registered already, or two functions lie in no program or library (callbacks made at
/// run time). Register these by name.
WHERRY_API int wherry_route_on_bytes(wherry_route* route, wherry_route_function function, void* user, uint32_t* handler,
                                     wherry_error* error);

/// Registers a handler by name, in any order. The name has at least one character and is unique on a rank.
WHERRY_API int wherry_route_on_bytes_named(wherry_route* route, const char* name, wherry_route_function function,
                                           void* user, uint32_t* handler, wherry_error* error);

/// Copies the message, at most 16 MiB. The message leaves when its buffer is full, or at a poll, flush or quiesce. If
/// the pipe is full, the library keeps up to backlog_bytes of messages, then handles messages until there is room. A
/// handler cannot wait: the job fails there with WHERRY_RESOURCE_EXHAUSTED. WHERRY_FAILED_PRECONDITION: an unfinished
/// quiesce is over on all ranks; call it (it returns WHERRY_OK), then send.
WHERRY_NODISCARD WHERRY_API int wherry_route_send(wherry_route* route, uint32_t to, uint32_t handler,
                                                  const void* message, size_t bytes, wherry_error* error);
/// As wherry_route_send, but if the pipe is full, returns WHERRY_WOULD_BLOCK at once: poll and try again.
WHERRY_NODISCARD WHERRY_API int wherry_route_try_send(wherry_route* route, uint32_t to, uint32_t handler,
                                                      const void* message, size_t bytes, wherry_error* error);

/// Handles arrived messages and sends waiting ones. Writes the number of handled messages to *handled (may be NULL).
/// Fails as wherry_route_status does.
WHERRY_API int wherry_route_poll(wherry_route* route, uint64_t* handled, wherry_error* error);
/// Sends now everything that was sent so far and still waits in a buffer.
WHERRY_API int wherry_route_flush(wherry_route* route, wherry_error* error);

/// Collective: returns when every message that any rank has sent, in handlers too, has been handled.
/// WHERRY_DEADLINE_EXCEEDED: not yet. The route may send and poll, but must call quiesce again before another
/// collective call. WHERRY_FOREVER: no limit.
WHERRY_NODISCARD WHERRY_API int wherry_route_quiesce(wherry_route* route, int64_t timeout_ns, wherry_error* error);
/// As wherry_route_quiesce, without waiting. WHERRY_WOULD_BLOCK: call it again; first poll and send if needed.
WHERRY_NODISCARD WHERRY_API int wherry_route_try_quiesce(wherry_route* route, wherry_error* error);

/// How wherry_route_reduce_u64 combines the values.
typedef enum wherry_combine { WHERRY_SUM = 0, WHERRY_MIN = 1, WHERRY_MAX = 2 } wherry_combine;
/// Collective: *result becomes the sum, the minimum or the maximum of the values of all ranks.
/// WHERRY_FAILED_PRECONDITION: a quiesce has begun and has not yet returned WHERRY_OK.
WHERRY_NODISCARD WHERRY_API int wherry_route_reduce_u64(wherry_route* route, uint64_t value, int combine,
                                                        uint64_t* result, wherry_error* error);

/// Counts since start.
typedef struct wherry_route_statistics {
  size_t size;  ///< sizeof(wherry_route_statistics), set by the caller; fields unknown to the library become 0
  uint64_t sent, handled;        ///< messages of this rank
  uint64_t forwarded_bytes;      ///< bytes for other ranks that this rank passed on
  uint64_t bytes_out, bytes_in;  ///< headers included
  uint64_t transfers;            ///< number of times that a buffer, or a part of one, was handed to the next hop
  uint64_t flush_full, flush_idle, flush_timeout, flush_explicit;  ///< transfers by cause
  uint64_t would_block;                                            ///< calls that found the pipe full
  uint64_t backlog_bytes, backlog_high;                            ///< bytes kept back: now, and at most
  uint64_t blocked_ns;  ///< nanoseconds in polls that found nothing to do, from the 17th in a row
} wherry_route_statistics;
/// Fills *statistics. The caller must set its `size` before.
WHERRY_API int wherry_route_get_statistics(const wherry_route* route, wherry_route_statistics* statistics,
                                           wherry_error* error);

/// WHERRY_OK while the job is whole; else the reason (a rank or an agent died, for example). After a failure, no
/// message is delivered.
WHERRY_API int wherry_route_status(const wherry_route* route, wherry_error* error);

#ifdef __cplusplus
}
#endif
#endif
