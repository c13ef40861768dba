// SPDX-License-Identifier: Apache-2.0
// kv.hpp for C99 and for every language that can call C: a client of the replicated key-value store.
// Status, errors, ownership and structs are as wherry.h says.
//
//   wherry_kv_options options;
//   wherry_kv_options_init(&options, sizeof options);
//   options.cluster = "lab.toml";
//   wherry_error why;
//   wherry_kv* kv;
//   if (wherry_kv_connect(&options, &kv, &why) != WHERRY_OK) { puts(why.message); ... }
//   uint32_t version;
//   if (wherry_kv_put(kv, 7, "value", 5, 0, &version, &why) != WHERRY_OK) { puts(why.message); ... }
//   int status = wherry_kv_put_if(kv, 7, version, "other", 5, 0, &version, &why);
//   // WHERRY_FAILED_PRECONDITION: not that version
//   wherry_kv_close(kv, &why);
//
// Threads: one at a time.
#ifndef WHERRY_KV_H
#define WHERRY_KV_H

#include "wherry/wherry.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A client of a cluster. wherry_kv_connect, wherry_kv_close.
typedef struct wherry_kv wherry_kv;

/// The longest value, in bytes.
enum { WHERRY_KV_MAX_VALUE = 1024 };

#define WHERRY_KV_GRANTED UINT32_MAX  ///< the keeper grants the lanes

/// Which node is asked first. Any node that serves can answer.
typedef enum wherry_kv_read_from {
  WHERRY_KV_NEAREST = 0,  ///< the one that answers a ping first; asked anew every second
  WHERRY_KV_ROUND_ROBIN = 1,
  WHERRY_KV_LEADER = 2
} wherry_kv_read_from;

/// Where the cluster is, and how a client asks it.
typedef struct wherry_kv_options {
  size_t size;               ///< set by wherry_kv_options_init
  const char* const* nodes;  ///< "host:port" or "host" (port 19286), by their numbers in the cluster; "": no such node
  size_t node_count;         ///< 0 to 8; 0: the cluster file says, or the keeper
  int64_t deadline_ns;       ///< of calls that name none
  int64_t first_timeout_ns;  ///< a request is sent again after so long, then after twice as long, ...
  int64_t timeout_cap_ns;    ///< ... but not longer than this
  int64_t connect_timeout_ns;  ///< how long connect waits for a serving node
  uint64_t seed;               ///< of pauses and tags; 0: a random one
  uint32_t first_lane;         ///< WHERRY_KV_GRANTED; or static lanes from here, which no other client uses
  uint32_t lanes;              ///< as many writes may be in flight at once; 0: only reads
  uint32_t operations;         ///< in flight, or finished and not yet polled: a power of two, up to 65536
  int32_t reads;               ///< wherry_kv_read_from
  int32_t spin;                ///< 1: waits without sleeping
  uint32_t reserved;           ///< 0
  const char* cluster;         ///< the cluster file: it names nodes and keepers, unless those are given; NULL: none
  const char* const* keepers;  ///< "host:port" of the keepers, which grant the lanes
  size_t keeper_count;         ///< of keepers
} wherry_kv_options;

/// Writes the defaults into the `size` bytes (sizeof *options) at `options`. `nodes` has none.
WHERRY_API int wherry_kv_options_init(wherry_kv_options* options, size_t size);

/// Blocks until a node that serves has answered, and a keeper has granted the lanes. WHERRY_UNAVAILABLE: none does;
/// WHERRY_RESOURCE_EXHAUSTED: too few lanes are free, or (at once) the cluster does not have so many;
/// WHERRY_INVALID_ARGUMENT: the options, or the keeper is another cluster's.
WHERRY_API int wherry_kv_connect(const wherry_kv_options* options, wherry_kv** kv, wherry_error* error);
/// Operations in flight are given up: writes may still take effect, once.
WHERRY_API int wherry_kv_close(wherry_kv* kv, wherry_error* error);

// ---------------------------------------------------------------- one at a time
//
// Each blocks until the operation has ended, deadline_ns at most (0: that of the options), and returns
//   WHERRY_OK
//   WHERRY_NOT_FOUND            there is no such key
//   WHERRY_FAILED_PRECONDITION  another version: the one found is in *version; 0: no such key. Or a child of fork()
//   WHERRY_RESOURCE_EXHAUSTED   no room in the key's bucket
//   WHERRY_INVALID_ARGUMENT     a value of more than 1024 bytes, say
//   WHERRY_UNAVAILABLE          no answer; nothing was changed
//   WHERRY_DEADLINE_EXCEEDED    no answer; the write may have taken effect, or still take effect, once
//   WHERRY_CANCELLED            another client writes through this one's lane; the write may have taken effect, once
// `version`: NULL if it is not wanted.

/// Copies the value to `value`, which has room for `capacity` bytes. WHERRY_INVALID_ARGUMENT when it does not fit:
/// then, too, *bytes is its length, and *version its version.
WHERRY_NODISCARD WHERRY_API int wherry_kv_get(wherry_kv* kv, uint64_t key, void* value, size_t capacity,
                                              int64_t deadline_ns, size_t* bytes, uint32_t* version,
                                              wherry_error* error);
/// Writes the key, whether it is there or not.
WHERRY_NODISCARD WHERRY_API int wherry_kv_put(wherry_kv* kv, uint64_t key, const void* value, size_t bytes,
                                              int64_t deadline_ns, uint32_t* version, wherry_error* error);
/// Writes only if the key has the version `expected`; 0: only if there is no such key.
WHERRY_NODISCARD WHERRY_API int wherry_kv_put_if(wherry_kv* kv, uint64_t key, uint32_t expected, const void* value,
                                                 size_t bytes, int64_t deadline_ns, uint32_t* version,
                                                 wherry_error* error);
/// Deletes the key. WHERRY_NOT_FOUND: there is none.
WHERRY_NODISCARD WHERRY_API int wherry_kv_remove(wherry_kv* kv, uint64_t key, int64_t deadline_ns, uint32_t* version,
                                                 wherry_error* error);
/// The same, only if the key has the version `expected`.
WHERRY_NODISCARD WHERRY_API int wherry_kv_remove_if(wherry_kv* kv, uint64_t key, uint32_t expected, int64_t deadline_ns,
                                                    uint32_t* version, wherry_error* error);

// ---------------------------------------------------------------- many at once
//
// Each returns at once: WHERRY_WOULD_BLOCK when as many operations as the options allow, or all lanes, are in use.
// Values are copied. Posted operations leave together, at the next poll or wait.

/// As wherry_kv_get.
WHERRY_NODISCARD WHERRY_API int wherry_kv_post_get(wherry_kv* kv, uint64_t key, uint64_t tag, int64_t deadline_ns,
                                                   wherry_error* error);
/// As wherry_kv_put.
WHERRY_NODISCARD WHERRY_API int wherry_kv_post_put(wherry_kv* kv, uint64_t key, const void* value, size_t bytes,
                                                   uint64_t tag, int64_t deadline_ns, wherry_error* error);
/// As wherry_kv_put_if.
WHERRY_NODISCARD WHERRY_API int wherry_kv_post_put_if(wherry_kv* kv, uint64_t key, uint32_t expected, const void* value,
                                                      size_t bytes, uint64_t tag, int64_t deadline_ns,
                                                      wherry_error* error);
/// As wherry_kv_remove.
WHERRY_NODISCARD WHERRY_API int wherry_kv_post_remove(wherry_kv* kv, uint64_t key, uint64_t tag, int64_t deadline_ns,
                                                      wherry_error* error);
/// As wherry_kv_remove_if.
WHERRY_NODISCARD WHERRY_API int wherry_kv_post_remove_if(wherry_kv* kv, uint64_t key, uint32_t expected, uint64_t tag,
                                                         int64_t deadline_ns, wherry_error* error);

/// The result of a posted operation.
typedef struct wherry_kv_completion {
  uint64_t tag;       ///< as posted
  const void* value;  ///< of a read that ended WHERRY_OK; until the next poll
  size_t bytes;       ///< of value
  uint32_t version;   ///< read or written; the one found, of a conditional write that was refused
  int32_t status;     ///< as a blocking call would have returned
} wherry_kv_completion;

/// Takes up to `capacity` completions; *count: how many. Never blocks.
WHERRY_NODISCARD WHERRY_API int wherry_kv_poll(wherry_kv* kv, wherry_kv_completion* completions, size_t capacity,
                                               size_t* count, wherry_error* error);
/// Blocks until there is something to poll; WHERRY_DEADLINE_EXCEEDED: timeout_ns have passed. WHERRY_FOREVER: no limit.
WHERRY_NODISCARD WHERRY_API int wherry_kv_wait(wherry_kv* kv, int64_t timeout_ns, wherry_error* error);

#ifdef __cplusplus
}
#endif
#endif
