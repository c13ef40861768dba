/* SPDX-License-Identifier: Apache-2.0
 * Tests pushes that depend on pulls: a token circulates before any rank is done. Also tests many sessions of one
 * conveyor with different sizes, and the results of wrong calls. */
#include <convey.h>
#include <string.h>

#include "check.h"

enum { kRounds = 50, kSessions = 20 };

static void around(convey_t* c, int64_t me, int64_t ranks, size_t words) {
  int64_t token[8] = {0};
  CHECK(convey_begin(c, words * sizeof *token, 64) == convey_OK);
  int64_t seen = 0, waiting = me == 0 ? 0 : -1;
  int more;
  while ((more = convey_advance(c, seen == kRounds && waiting < 0)) != convey_DONE) {
    CHECK(more > 0);
    if (waiting >= 0) {
      for (size_t k = 0; k < words; k++) token[k] = waiting + (int64_t)k;
      if (convey_push(c, token, (me + 1) % ranks) == convey_OK) waiting = -1;
    }
    int64_t from;
    if (convey_pull(c, token, &from) == convey_OK) {
      CHECK(from == (me + ranks - 1) % ranks && token[words - 1] == token[0] + (int64_t)words - 1);
      seen++;
      if (!(me == 0 && seen == kRounds)) waiting = token[0] + 1;
      CHECK(token[0] == (me == 0 ? seen * ranks - 1 : (seen - 1) * ranks + me - 1));
    }
  }
}

static void errors(int64_t ranks) {
  int64_t item = 0, from = -7;
  convey_item_t got = {1, &item, 1};
  CHECK(convey_push(NULL, &item, 0) == -3 && convey_advance(NULL, true) == -3 && convey_free(NULL) == convey_OK);
  CHECK(convey_features(NULL) == 0 && convey_item_size(NULL) == 0 && convey_statistic(NULL, 0) == 0);
  convey_t* c = convey_new(SIZE_MAX, 0, NULL, convey_opt_QUIET | convey_opt_PROGRESS);
  CHECK(c != NULL && (convey_features(c) & convey_STEADY) != 0);
  CHECK(convey_push(c, &item, 0) == -1 && convey_pull(c, &item, &from) == -1 && convey_unpull(c) == -1);
  CHECK(convey_apull(c, &from) == NULL && convey_epull(c, &got) == -8);
  CHECK(convey_advance(c, false) == -1 && convey_reset(c) == convey_OK);
  CHECK(convey_set_codec(c, NULL, NULL) == convey_OK);
  CHECK(convey_set_codec(c, &convey_standard_codec, NULL) == convey_FAIL);
  CHECK(convey_begin(c, sizeof item, 8) == convey_OK && convey_begin(c, sizeof item, 8) == -1);
  CHECK(convey_push(c, &item, -1) == -4 && convey_push(c, &item, ranks) == -4);
  CHECK(convey_pull(c, &item, &from) == convey_FAIL && convey_unpull(c) == convey_FAIL && from == -7);
  CHECK(convey_reset(c) == -1 && convey_free(c) == -1);
  CHECK(convey_statistic(c, 8 + 8) == -1 && convey_statistic(c, -1) == -1);
  int more;
  while ((more = convey_advance(c, true)) != convey_DONE) {
    CHECK(more > 0 && convey_push(c, &item, 0) == -1);
  }
  CHECK(convey_advance(c, true) == convey_DONE && convey_pull(c, &item, &from) == convey_FAIL);
  CHECK(convey_unpull(c) == convey_FAIL && convey_push(c, &item, 0) == -1 && convey_begin(c, 8, 8) == -1);
  CHECK(convey_reset(c) == convey_OK && convey_free(c) == convey_OK);
  CHECK(convey_new_simple(0, NULL, NULL, convey_opt_QUIET) == NULL);
  CHECK(convey_error_string(NULL, -4) != NULL && convey_error_string(NULL, 99) != NULL);
  CHECK(strcmp(convey_error_string(NULL, -4), convey_error_string(NULL, -3)) != 0);
}

int main(void) {
  const int64_t me = wherry_convey_rank(), ranks = wherry_convey_ranks();
  convey_t* c = convey_new(SIZE_MAX, 0, NULL, convey_opt_PROGRESS);
  CHECK(c != NULL);
  for (size_t k = 0; k < kSessions; k++) {
    around(c, me, ranks, 1 + k % 8);
    CHECK(convey_reset(c) == convey_OK);
  }
  CHECK(convey_free(c) == convey_OK);
  errors(ranks);
  CHECK(wherry_convey_barrier() == 0);
  printf("rank %d of %d is done\n", (int)me, (int)ranks);
  return 0;
}
