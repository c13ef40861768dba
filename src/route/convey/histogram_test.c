/* SPDX-License-Identifier: Apache-2.0
 * The histogram as in bale's programs: each rank counts items of the others. Then the owner of each counter computes it
 * again as a check. Runs twice with one conveyor, with items of 8 and of 20 bytes. */
#include <convey.h>
#include <string.h>

#include "check.h"

enum { kCounters = 1000 };
static int updates = 200000; /* of each rank */

typedef struct {
  uint32_t index, words[4];
} wide_t;

static uint64_t counter_of(int64_t rank, uint64_t i) { return mixed((uint64_t)rank << 32 | i); }

static void session(convey_t* c, int64_t me, int64_t ranks, size_t item_bytes) {
  uint64_t* counts = calloc(kCounters, sizeof *counts);
  uint64_t next[64] = {0};
  CHECK(counts != NULL && ranks <= 64);
  CHECK(convey_begin(c, item_bytes, 0) == convey_OK);
  CHECK(convey_item_size(c) == item_bytes);
  uint64_t i = 0;
  int more;
  while ((more = convey_advance(c, i == (uint64_t)updates)) != convey_DONE) {
    CHECK(more > 0);
    for (; i < (uint64_t)updates; i++) {
      const uint64_t place = counter_of(me, i) % (kCounters * (uint64_t)ranks);
      const uint64_t item = place / (uint64_t)ranks;
      const wide_t wide = {(uint32_t)item, {(uint32_t)i, 1, 2, (uint32_t)me}};
      const void* bytes = item_bytes == sizeof item ? (const void*)&item : &wide;
      const int pushed = convey_push(c, bytes, (int64_t)(place % (uint64_t)ranks));
      CHECK(pushed >= 0);
      if (pushed == convey_FAIL) break;
    }
    uint64_t item = 0;
    wide_t wide;
    int64_t from = -1;
    while (convey_pull(c, item_bytes == sizeof item ? (void*)&item : &wide, &from) == convey_OK) {
      CHECK(from >= 0 && from < ranks);
      if (item_bytes == sizeof wide) {
        item = wide.index;
        /* items of each rank arrive in order */
        CHECK(wide.words[3] == (uint32_t)from && wide.words[1] == 1 && wide.words[2] == 2);
        CHECK(wide.words[0] >= next[from]);
        next[from] = (uint64_t)wide.words[0] + 1;
      }
      CHECK(item < kCounters);
      counts[item]++;
    }
  }
  CHECK(convey_push(c, &i, 0) < 0);
  uint64_t pulled = 0;
  for (int64_t rank = 0; rank < ranks; rank++) {
    for (uint64_t k = 0; k < (uint64_t)updates; k++) {
      const uint64_t place = counter_of(rank, k) % (kCounters * (uint64_t)ranks);
      if ((int64_t)(place % (uint64_t)ranks) != me) continue;
      counts[place / (uint64_t)ranks]--;
      pulled++;
    }
  }
  for (int k = 0; k < kCounters; k++) CHECK(counts[k] == 0);
  CHECK(convey_statistic(c, convey_PUSHES) == updates);
  CHECK(convey_statistic(c, convey_PULLS) == (int64_t)pulled);
  free(counts);
}

int main(int argc, char** argv) {
  updates = part_of(updates, argc, argv);
  CHECK(strcmp(convey_version, "0.6.0") == 0);
  convey_t* c = convey_new(SIZE_MAX, 0, NULL, convey_opt_SCATTER);
  CHECK(c != NULL);
  const int64_t me = wherry_convey_rank(), ranks = wherry_convey_ranks();
  CHECK(convey_item_size(c) == 0);
  session(c, me, ranks, sizeof(uint64_t));
  CHECK(convey_reset(c) == convey_OK);
  session(c, me, ranks, sizeof(wide_t));
  CHECK(convey_statistic(c, convey_PUSHES + convey_CUMULATIVE) == 2 * updates);
  CHECK(convey_statistic(c, convey_BEGINS) == 1 && convey_statistic(c, convey_CUMULATIVE) == 2);
  CHECK(convey_free(c) == convey_OK); /* without a reset, as bale's programs do */
  printf("rank %d of %d is done\n", (int)me, (int)ranks);
  return 0;
}
