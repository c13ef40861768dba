/* SPDX-License-Identifier: Apache-2.0
 * Children that are forked during a session try all calls. Each call must be refused, and the session continues. */
#include <convey.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* LeakSanitizer calls this at the end of a process. A child does not free UCX objects, which belong to its parent. */
static bool is_child = false;
/* NOLINTBEGIN(bugprone-reserved-identifier) */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) { return is_child; }
/* NOLINTEND(bugprone-reserved-identifier) */

enum { kItems = 100000, kChildren = 4, kRefused = -6 };

/* Runs in a child: uses the parent's conveyors in a session, and a dormant one. */
static int use(convey_t* c, convey_t* elastic, convey_t* dormant, int64_t ranks) {
  int64_t item = INT64_C(1) << 40, from;
  convey_item_t got;
  for (int k = 0; k < 1000; k++) {
    if (convey_push(c, &item, k % ranks) != kRefused) return 10;
    if (convey_epush(elastic, 4, &item, k % ranks) != kRefused) return 11;
  }
  if (convey_pull(c, &item, &from) != kRefused || convey_pull(elastic, &item, &from) != kRefused) return 12;
  if (convey_apull(c, &from) != NULL || convey_epull(elastic, &got) != kRefused || got.data != NULL) return 13;
  if (convey_unpull(c) != kRefused || convey_unpull(elastic) != kRefused) return 14;
  if (convey_advance(c, false) != kRefused || convey_advance(elastic, true) != kRefused) return 15;
  if (convey_begin(c, 8, 8) != kRefused || convey_reset(c) != kRefused) return 16;
  if (convey_begin(dormant, 8, 8) != kRefused || convey_push(dormant, &item, 0) != kRefused) return 17;
  if (convey_pull(dormant, &item, &from) != kRefused || convey_reset(dormant) != kRefused) return 18;
  if (convey_set_codec(dormant, NULL, NULL) != kRefused) return 19;
  if (convey_new(SIZE_MAX, 0, NULL, convey_opt_QUIET) != NULL || wherry_convey_barrier() != kRefused) return 20;
  if (convey_free(c) != convey_OK || convey_free(dormant) != convey_OK) return 21; /* its own memory */
  return 0;
}

int main(void) {
  const int64_t me = wherry_convey_rank(), ranks = wherry_convey_ranks();
  convey_t* c = convey_new(SIZE_MAX, 0, NULL, convey_opt_QUIET);
  convey_t* elastic = convey_new_elastic(8, 0, 0, NULL, convey_opt_QUIET);
  convey_t* dormant = convey_new(SIZE_MAX, 0, NULL, convey_opt_QUIET);
  CHECK(c != NULL && elastic != NULL && dormant != NULL);
  CHECK(convey_begin(c, sizeof(int64_t), 0) == convey_OK && convey_begin(elastic, sizeof(int64_t), 0) == convey_OK);
  int64_t sum = 0, count = 0, item, k = 0, e = 0;
  int children = 0, more = convey_OK, more_elastic = convey_OK;
  convey_item_t got;
  while (more != convey_DONE || more_elastic != convey_DONE) {
    more = convey_advance(c, k == kItems);
    more_elastic = convey_advance(elastic, e == kItems);
    CHECK(more >= convey_DONE && more_elastic >= convey_DONE);
    for (; k < kItems && convey_push(c, &k, k % ranks) == convey_OK; k++) continue;
    for (; e < kItems && convey_epush(elastic, 1 + (size_t)(e % 8), &e, e % ranks) == convey_OK; e++) continue;
    if (children < kChildren && k > (int64_t)kItems / (kChildren + 1) * children) {
      children++; /* with open packets, and items to be pulled */
      fflush(stdout);
      const pid_t child = fork();
      if (child == 0) {
        alarm(60);
        is_child = true;
        exit(use(c, elastic, dormant, ranks)); /* with all that the library does at the end of a process */
      }
      int how = 0;
      CHECK(waitpid(child, &how, 0) == child);
      if (!WIFEXITED(how) || WEXITSTATUS(how) != 0) fprintf(stderr, "a child: %d\n", WEXITSTATUS(how));
      CHECK(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    }
    while (convey_pull(c, &item, NULL) == convey_OK) {
      sum += item;
      count++;
    }
    while (convey_epull(elastic, &got) == convey_OK) {
      item = 0;
      memcpy(&item, got.data, got.bytes); /* the machine is little-endian */
      CHECK(got.bytes == 1 + (size_t)(item & 7));
      count++;
    }
  }
  int64_t due = 0, items = 0;
  for (int64_t i = me; i < kItems; i += ranks) {
    due += i;
    items++;
  }
  CHECK(children == kChildren && sum == due * ranks && count == 2 * items * ranks);
  CHECK(convey_reset(c) == convey_OK && convey_reset(elastic) == convey_OK);
  CHECK(convey_free(c) == convey_OK && convey_free(elastic) == convey_OK && convey_free(dormant) == convey_OK);
  printf("rank %d of %d is done\n", (int)me, (int)ranks);
  return 0;
}
