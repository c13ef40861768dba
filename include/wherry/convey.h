// SPDX-License-Identifier: Apache-2.0
// Conveyors on top of route, with the names, numbers and behaviour of bale's convey.h 0.6: programs written for bale
// compile and run unchanged. Written from bale's documentation. docs/guide/convey.md lists the differences.
//
// A conveyor carries items between the ranks of a job, of one size or (if elastic) of any size. Push items to other
// ranks, pull the items that arrived, and call advance until it returns convey_DONE:
//
//   convey_t* c = convey_new(SIZE_MAX, 0, NULL, 0);
//   convey_begin(c, sizeof item, 0);
//   for (size_t i = 0; convey_advance(c, i == n) > 0;) {
//     for (; i < n; i++)
//       if (convey_push(c, &items[i], owner[i]) != convey_OK) break;
//     while (convey_pull(c, &item, &from) == convey_OK) handle(item, from);
//   }
//   convey_reset(c);
//   convey_free(c);
//
// The first constructor joins the job that the process was started in (`wherry run`, an MPI launcher, or one rank
// alone). The process leaves the job when it exits. Constructors, begin, reset and free are collective. Only one thread
// may call at a time.
#ifndef WHERRY_CONVEY_H
#define WHERRY_CONVEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define WHERRY_API [[gnu::visibility("default")]]
extern "C" {
#else
#define WHERRY_API __attribute__((visibility("default")))
#endif

/// The compiler warns if the result of such a call is ignored: the result may say that an item was not accepted.
#if defined(__cplusplus)
#define WHERRY_NODISCARD [[nodiscard]]
#elif defined(__GNUC__)
#define WHERRY_NODISCARD __attribute__((warn_unused_result))
#else
#define WHERRY_NODISCARD
#endif

/// The version of bale's interface that this header matches: "0.6.0".
WHERRY_API extern const char convey_version[];

/// A conveyor. The caller owns it and passes it to convey_free once.
typedef struct conveyor convey_t;

// ---------------------------------------------------------------- constants

/// The return values of calls. Negative values are errors; convey_error_string explains them.
enum convey_status {
  convey_DONE = 0,  ///< returned by advance: the session is complete
  convey_FAIL = 0,  ///< returned by push, pull and similar calls: not possible now, but not an error
  convey_OK = 1,
  convey_NEAR = 2  ///< returned by advance: nothing more arrives, but some items are still to be pulled
};

/// Bits of convey_features.
enum convey_feature {
  convey_ELASTIC = 0x01,  ///< has epush and epull
  convey_STEADY = 0x02,   ///< delivers items even before any rank is done
  convey_THRIFTY = 0x04   ///< can compress; no conveyor of Wherry does
};

/// What convey_statistic counts, since the last reset.
enum convey_statistic {
  convey_BEGINS = 0,
  convey_PUSHES = 1,
  convey_PULLS = 2,
  convey_UNPULLS = 3,
  convey_ADVANCES = 4,
  convey_COMMS = 5,      ///< packets sent
  convey_SYNCS = 6,      ///< rounds in which ranks agree that everything has arrived
  convey_BYTES = 7,      ///< bytes of packets, without their headers
  convey_CUMULATIVE = 8  ///< flag to add to another constant: counts since the constructor, not since reset
};

/// Bits for the constructors. QUIET: no messages on standard error. The others have no effect in Wherry.
enum convey_option {
  convey_opt_RECKLESS = 0x01,
  convey_opt_DYNAMIC = 0x02,
  convey_opt_QUIET = 0x04,
  convey_opt_SCATTER = 0x08,
  convey_opt_PROGRESS = 0x10,
  convey_opt_ALERT = 0x20,
  convey_opt_COMPRESS = 0x40
};
/// More bits for the constructors. They have no effect in Wherry.
enum convey_expert_option { convey_opt_STANDARD = 0x100000, convey_opt_BLOCKING = 0x200000 };

/// The largest alignment of items, in bytes.
#define CONVEY_MAX_ALIGN (UINT64_C(64))

// ---------------------------------------------------------------- types

/// The result of convey_epull.
typedef struct {
  size_t bytes;  ///< size of the item, may be 0
  void* data;    ///< where the item lies, until the next pull or unpull of this conveyor succeeds
  int64_t from;  ///< the rank that pushed the item
} convey_item_t;

/// An argument of convey_new_simple, which ignores it.
typedef struct mpp_alltoall convey_mpp_a2a_t;

/// An allocator. Constructors accept it but do not call it: Wherry allocates the memory itself.
typedef struct convey_alc8r {
  // These members are bale's; Wherry does not call them.
  void* alc8r;
  void* (*grab)(void* alc8r, size_t size, const char* tag, uint64_t value);
  void (*free)(void* alc8r, void* ptr);
} convey_alc8r_t;  ///< as struct convey_alc8r

/// What bale tells a codec about the items.
typedef struct convey_cargo {
  // These members are bale's; Wherry does not fill them.
  size_t tag_size;
  size_t item_size;
  size_t packet_size;
  size_t max_items;
  void* arg;
} convey_cargo_t;  ///< as struct convey_cargo

/// What a codec in bale requires of its buffers.
typedef struct convey_layout {
  // These members are bale's; Wherry does not read them.
  size_t align;
  size_t stride;
  size_t slack;
  size_t offset;
  size_t overrun;
} convey_layout_t;  ///< as struct convey_layout

/// A way to compress packets.
typedef struct convey_codec {
  // These members are bale's; no conveyor of Wherry calls them.
  const char* name;
  bool (*plan)(const convey_cargo_t* cargo, convey_layout_t* layout);
  void* (*link)(const convey_cargo_t* cargo, bool decompress);
  size_t (*compress)(const convey_cargo_t* cargo, void* link_data, size_t n_items, void* inbuf, size_t limit,
                     void* outbuf);
  void (*decompress)(const convey_cargo_t* cargo, void* link_data, size_t n_items, size_t n_bytes, void* inbuf,
                     void* outbuf);
  void (*unlink)(const convey_cargo_t* cargo, void* link_data);
} convey_codec_t;  ///< as struct convey_codec
/// Declines every cargo.
WHERRY_API extern const convey_codec_t convey_standard_codec;

// ---------------------------------------------------------------- constructors: NULL and a message if they fail

/// Items of one size, up to 16 MiB. The constructor ignores all arguments except `options`.
WHERRY_API convey_t* convey_new(size_t max_bytes, size_t n_local, const convey_alc8r_t* alloc, uint64_t options);
/// Items of up to `item_bound` bytes.
WHERRY_API convey_t* convey_new_elastic(size_t item_bound, size_t max_bytes, size_t n_local,
                                        const convey_alc8r_t* alloc, uint64_t options);
/// Items of one size, up to `capacity` bytes. From here on, constructors use only the byte sizes and `options`.
WHERRY_API convey_t* convey_new_simple(size_t capacity, const convey_alc8r_t* alloc, const convey_mpp_a2a_t* a2a,
                                       uint64_t options);
/// As convey_new_simple.
WHERRY_API convey_t* convey_new_twohop(size_t capacity, size_t row_procs, const convey_alc8r_t* alloc,
                                       uint64_t options);
/// As convey_new_simple.
WHERRY_API convey_t* convey_new_tensor(size_t capacity, int order, size_t n_local, size_t n_buffers,
                                       const convey_alc8r_t* alloc, uint64_t options);
/// Elastic: items of up to the larger of `monster_bytes` and `buffer_bytes`.
WHERRY_API convey_t* convey_new_etensor(size_t buffer_bytes, size_t monster_bytes, int order, size_t n_local,
                                        size_t n_buffers, const convey_alc8r_t* alloc, uint64_t options);

// ---------------------------------------------------------------- a session: begin, then push, pull, advance; reset

/// `align`: the alignment of the pointers that apull and epull return. A power of two up to 64 that divides item_bytes;
/// for any other value, the largest such power of two.
WHERRY_API int convey_begin(convey_t* c, size_t item_bytes, size_t align);
/// convey_OK: the item was copied. convey_FAIL: no room now; advance and pull, then try again.
WHERRY_NODISCARD WHERRY_API int convey_push(convey_t* c, const void* item, int64_t pe);
/// Elastic conveyors only: pushes an item of any size, including 0.
WHERRY_NODISCARD WHERRY_API int convey_epush(convey_t* c, size_t bytes, const void* item, int64_t pe);
/// convey_FAIL: no item has arrived. `from` may be NULL.
WHERRY_API int convey_pull(convey_t* c, void* item, int64_t* from);
/// Returns the item in place, until the next pull or unpull of this conveyor succeeds. NULL: no item now, or an error.
WHERRY_API void* convey_apull(convey_t* c, int64_t* from);
/// Elastic conveyors only: the next item, in place. convey_FAIL: no item has arrived.
WHERRY_API int convey_epull(convey_t* c, convey_item_t* result);
/// Undoes the last pull: the next pull returns the same item again.
WHERRY_API int convey_unpull(convey_t* c);
/// Every rank calls this function until it returns convey_DONE. `done`: this rank will not push any more.
WHERRY_NODISCARD WHERRY_API int convey_advance(convey_t* c, bool done);
/// Ends the session after convey_DONE; convey_begin may follow. Collective.
WHERRY_API int convey_reset(convey_t* c);
/// Frees the conveyor; NULL is accepted. A call during a session is an error. Collective.
WHERRY_API int convey_free(convey_t* c);

// ---------------------------------------------------------------- about a conveyor

/// Returns convey_FAIL, because no conveyor of Wherry is convey_THRIFTY.
WHERRY_API int convey_set_codec(convey_t* c, const convey_codec_t* codec, void* arg);
/// The item size passed to begin; 0 if there is no session.
WHERRY_API size_t convey_item_size(convey_t* c);
/// The convey_feature bits of this conveyor.
WHERRY_API uint64_t convey_features(convey_t* c);
/// One statistic of this rank; -1 if there is no such statistic.
WHERRY_API int64_t convey_statistic(convey_t* c, int which);
/// The meaning of a negative return value, as a static string.
WHERRY_API const char* convey_error_string(convey_t* c, int error);

// ---------------------------------------------------------------- Wherry's own: who this process is

/// The number of this process, from 0. Joins the job if necessary, as constructors do; -1 if that fails.
WHERRY_API int64_t wherry_convey_rank(void);
/// The number of processes in the job. Joins the job in the same way.
WHERRY_API int64_t wherry_convey_ranks(void);
/// Collective: returns when all ranks have called it. Returns 0, or a negative error. For programs without a barrier.
WHERRY_API int wherry_convey_barrier(void);

#ifdef __cplusplus
}
#endif
#endif
