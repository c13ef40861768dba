// SPDX-License-Identifier: Apache-2.0
// kv.hpp for C99 and for every language that can call C: a client of the replicated key-value store. Status codes,
// errors, ownership and structs follow the rules in wherry.h.
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

/// The node that is asked first. Any serving node can answer.
typedef enum wherry_kv_read_from {
  WHERRY_KV_NEAREST = 0,  ///< the node that answers a ping first; measured again every second
  WHERRY_KV_ROUND_ROBIN = 1,
  WHERRY_KV_LEADER = 2
} wherry_kv_read_from;

/// The cluster's address, and how a client asks the cluster.
typedef struct wherry_kv_options {
  size_t size;               ///< set by wherry_kv_options_init
  const char* const* nodes;  ///< "host:port" or "host" (port 19286), by their numbers in the cluster; "": no such node
  size_t node_count;         ///< 0 to 8; 0: the cluster file or the keeper gives the nodes
  int64_t deadline_ns;       ///< for calls that pass no deadline
  int64_t first_timeout_ns;  ///< time until a request is sent again; then twice as long, ...
  int64_t timeout_cap_ns;    ///< ... up to this time
  int64_t connect_timeout_ns;  ///< how long connect waits for a serving node
  uint64_t seed;               ///< for the lengths of pauses and for tags; 0: a random seed
  uint32_t first_lane;         ///< WHERRY_KV_GRANTED, or the first static lane, which no other client uses
  uint32_t lanes;              ///< number of writes that may be in flight at once; 0: only reads
  uint32_t operations;         ///< operations in flight, or finished and not yet polled: a power of two, up to 65536
  int32_t reads;               ///< wherry_kv_read_from
  int32_t spin;                ///< 1: waits without sleeping
  uint32_t reserved;           ///< 0
  const char* cluster;         ///< file that names nodes and keepers, if those are not given here; NULL: none
  const char* const* keepers;  ///< "host:port" of the keepers, which grant the lanes
  size_t keeper_count;         ///< number of `keepers`
} wherry_kv_options;

/// Writes the defaults into the `size` bytes (sizeof *options) at `options`. `nodes` has no default.
WHERRY_API int wherry_kv_options_init(wherry_kv_options* options, size_t size);

/// Blocks until a serving node has answered and a keeper has granted the lanes. WHERRY_UNAVAILABLE: no node or keeper
/// did so. WHERRY_RESOURCE_EXHAUSTED: too few lanes are free, or (at once) the cluster has fewer lanes.
/// WHERRY_INVALID_ARGUMENT: the options are wrong, or the keeper belongs to another cluster.
WHERRY_API int wherry_kv_connect(const wherry_kv_options* options, wherry_kv** kv, wherry_error* error);
/// Closes the client without waiting for operations in flight. Their writes may still take effect, once.
WHERRY_API int wherry_kv_close(wherry_kv* kv, wherry_error* error);

// ---------------------------------------------------------------- one at a time
//
// Each call blocks until its operation has ended, at most deadline_ns (0: the deadline of the options). It returns
//   WHERRY_OK
//   WHERRY_NOT_FOUND            there is no such key
//   WHERRY_FAILED_PRECONDITION  another version: the one found is in *version; 0: no such key. Or a child of fork()
//   WHERRY_RESOURCE_EXHAUSTED   no room in the key's bucket
//   WHERRY_INVALID_ARGUMENT     a value of more than 1024 bytes, say
//   WHERRY_UNAVAILABLE          no answer; nothing was changed
//   WHERRY_DEADLINE_EXCEEDED    no answer; the write may have taken effect, or still take effect, once
//   WHERRY_CANCELLED            another client writes through this one's lane; the write may have taken effect, once
// `version` may be NULL.

/// Copies the value to `value`, which has room for `capacity` bytes. WHERRY_INVALID_ARGUMENT: the value does not fit;
/// *bytes is still set to its length, and *version to its version.
WHERRY_NODISCARD WHERRY_API int wherry_kv_get(wherry_kv* kv, uint64_t key, void* value, size_t capacity,
                                              int64_t deadline_ns, size_t* bytes, uint32_t* version,
                                              wherry_error* error);
/// Writes the key, whether it exists or not.
WHERRY_NODISCARD WHERRY_API int wherry_kv_put(wherry_kv* kv, uint64_t key, const void* value, size_t bytes,
                                              int64_t deadline_ns, uint32_t* version, wherry_error* error);
/// Writes only if the key has the version `expected`. 0: only if the key does not exist.
WHERRY_NODISCARD WHERRY_API int wherry_kv_put_if(wherry_kv* kv, uint64_t key, uint32_t expected, const void* value,
                                                 size_t bytes, int64_t deadline_ns, uint32_t* version,
                                                 wherry_error* error);
/// Deletes the key. WHERRY_NOT_FOUND: the key does not exist.
WHERRY_NODISCARD WHERRY_API int wherry_kv_remove(wherry_kv* kv, uint64_t key, int64_t deadline_ns, uint32_t* version,
                                                 wherry_error* error);
/// As wherry_kv_remove, but only if the key has the version `expected`.
WHERRY_NODISCARD WHERRY_API int wherry_kv_remove_if(wherry_kv* kv, uint64_t key, uint32_t expected, int64_t deadline_ns,
                                                    uint32_t* version, wherry_error* error);

// ---------------------------------------------------------------- many at once
//
// Each call returns at once. WHERRY_WOULD_BLOCK: all operations that the options allow, or all lanes, are in use.
// Values are copied. Posted operations are sent together, at the next poll or wait.

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
  const void* value;  ///< of a read with WHERRY_OK; valid until the next poll
  size_t bytes;       ///< length of value
  uint32_t version;   ///< the version read or written; for a refused conditional write, the version found
  int32_t status;     ///< the status that a blocking call would have returned
} wherry_kv_completion;

/// Returns up to `capacity` completions, and their number in *count. Never blocks.
WHERRY_NODISCARD WHERRY_API int wherry_kv_poll(wherry_kv* kv, wherry_kv_completion* completions, size_t capacity,
                                               size_t* count, wherry_error* error);
/// Blocks until there is something to poll. WHERRY_DEADLINE_EXCEEDED: timeout_ns is over. WHERRY_FOREVER: no limit.
WHERRY_NODISCARD WHERRY_API int wherry_kv_wait(wherry_kv* kv, int64_t timeout_ns, wherry_error* error);

#ifdef __cplusplus
}
#endif
#endif
