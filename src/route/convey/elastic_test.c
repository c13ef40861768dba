/* SPDX-License-Identifier: Apache-2.0
 * Tests items of random sizes, from 0 bytes to some hundred kilobytes, in order from each rank, mixed with items of
 * begin's size. Also several conveyors at once, some of which are freed and made again. */
#include <convey.h>
#include <string.h>

#include "check.h"

enum { kLargest = 300000 };
static int items = 3000; /* of each rank */

static size_t size_of(int64_t from, int64_t to, uint64_t i) {
  const uint64_t n = mixed((uint64_t)from << 40 | (uint64_t)to << 20 | i);
  if (n % 500 == 0) return kLargest - n % 1000;
  if (n % 11 == 0) return 0;
  return n % 97 < 90 ? n % 64 : n % 12000;
}

static void fill(unsigned char* at, size_t bytes, int64_t from, uint64_t i) {
  for (size_t k = 0; k < bytes; k++) at[k] = (unsigned char)(k * 7 + (size_t)from + i * 13);
}

static void session(convey_t* c, int64_t me, int64_t ranks) {
  unsigned char* item = malloc(kLargest);
  unsigned char* expected = malloc(kLargest);
  uint64_t pushed[64] = {0}, pulled[64] = {0}, sent = 0;
  CHECK(item != NULL && expected != NULL && ranks <= 64);
  CHECK(convey_begin(c, 16, 0) == convey_OK);
  const uint64_t total = items;
  int more;
  while ((more = convey_advance(c, sent == total)) != convey_DONE) {
    CHECK(more > 0);
    while (sent < total) {
      const int64_t to = (int64_t)(mixed(sent * 31 + (uint64_t)me) % (uint64_t)ranks);
      const size_t bytes = size_of(me, to, pushed[to]);
      fill(item, bytes, me, pushed[to]);
      const int result = bytes == 16 ? convey_push(c, item, to) : convey_epush(c, bytes, item, to);
      CHECK(result >= 0);
      if (result == convey_FAIL) break;
      pushed[to]++;
      sent++;
    }
    convey_item_t got;
    while (convey_epull(c, &got) == convey_OK) {
      CHECK(got.from >= 0 && got.from < ranks);
      CHECK((uintptr_t)got.data % 16 == 0);
      const uint64_t i = pulled[got.from];
      CHECK(got.bytes == size_of(got.from, me, i));
      fill(expected, got.bytes, got.from, i);
      CHECK(memcmp(got.data, expected, got.bytes) == 0);
      if (mixed(i) % 5 == 0) { /* the same one comes again */
        CHECK(convey_unpull(c) == convey_OK);
        char small[16];
        int64_t from = -1;
        const int result = convey_pull(c, small, &from);
        if (got.bytes == 16) {
          CHECK(result == convey_OK && from == got.from && memcmp(small, expected, 16) == 0);
        } else {
          CHECK(result == -9 && from == -1);
          CHECK(convey_unpull(c) == convey_OK);
          CHECK(convey_epull(c, &got) == convey_OK && got.bytes == size_of(got.from, me, i));
          CHECK(memcmp(got.data, expected, got.bytes) == 0);
        }
      }
      pulled[got.from]++;
    }
    CHECK(got.data == NULL);
  }
  /* All items that each rank has pushed must have arrived. */
  for (int64_t from = 0; from < ranks; from++) {
    uint64_t count = 0;
    for (uint64_t i = 0; i < total; i++)
      if ((int64_t)(mixed(i * 31 + (uint64_t)from) % (uint64_t)ranks) == me) count++;
    CHECK(pulled[from] == count);
  }
  CHECK(convey_epush(c, 1, item, 0) == -1);
  CHECK(convey_push(c, NULL, 0) == -2 && convey_epush(c, 1, NULL, 0) == -2);
  CHECK(convey_pull(c, NULL, NULL) == -2 && convey_epull(c, NULL) == -2);
  free(item);
  free(expected);
}

int main(int argc, char** argv) {
  items = part_of(items, argc, argv);
  const int64_t me = wherry_convey_rank(), ranks = wherry_convey_ranks();
  for (int round = 0; round < 3; round++) {
    convey_t* rigid = convey_new_simple(1024, NULL, NULL, convey_opt_QUIET);
    convey_t* c = round == 1 ? convey_new_etensor(1024, kLargest, 1, 0, 2, NULL, convey_opt_QUIET)
                             : convey_new_elastic(kLargest, SIZE_MAX, 0, NULL, convey_opt_QUIET);
    CHECK(rigid != NULL && c != NULL);
    CHECK((convey_features(c) & convey_ELASTIC) != 0 && (convey_features(rigid) & convey_ELASTIC) == 0);
    CHECK(convey_epush(rigid, 8, &me, 0) == -8);
    CHECK(convey_begin(c, kLargest + 100, 0) == -10);
    CHECK(convey_begin(rigid, 1025, 0) == -10 && convey_begin(rigid, 0, 0) == -11);
    CHECK(convey_free(round == 2 ? NULL : rigid) == convey_OK);
    session(c, me, ranks);
    CHECK(convey_reset(c) == convey_OK);
    if (round == 0) {
      session(c, me, ranks);
      CHECK(convey_reset(c) == convey_OK);
    }
    CHECK(convey_free(c) == convey_OK);
    if (round == 2) CHECK(convey_free(rigid) == convey_OK);
  }
  printf("rank %d of %d is done\n", (int)me, (int)ranks);
  return 0;
}
