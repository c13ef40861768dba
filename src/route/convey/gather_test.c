/* SPDX-License-Identifier: Apache-2.0
 * Index gather as in bale's programs: requests use one conveyor and answers another. If there is no room for an
 * answer, the program calls unpull. */
#include <convey.h>
#include <string.h>

#include "check.h"

enum { kEntries = 5000 };
static int requests_each = 100000; /* of each rank */

typedef struct {
  int64_t slot, index;
} request_t;

int main(int argc, char** argv) {
  requests_each = part_of(requests_each, argc, argv);
  convey_t* requests = convey_new(SIZE_MAX, 0, NULL, convey_opt_SCATTER);
  convey_t* replies = convey_new_tensor(16384, 1, 0, 2, NULL, 0);
  CHECK(requests != NULL && replies != NULL);
  const int64_t me = wherry_convey_rank(), ranks = wherry_convey_ranks();
  uint64_t* table = malloc(kEntries * sizeof *table);
  uint64_t* got = calloc(requests_each, sizeof *got);
  CHECK(table != NULL && got != NULL);
  for (int64_t k = 0; k < kEntries; k++) table[k] = mixed((uint64_t)(k * ranks + me));

  CHECK(convey_begin(requests, sizeof(request_t), 0) == convey_OK);
  CHECK(convey_begin(replies, sizeof(request_t), sizeof(request_t)) == convey_OK);
  int64_t i = 0, answers = 0;
  bool more;
  while (more = convey_advance(requests, i == requests_each), more | convey_advance(replies, !more)) {
    for (; i < requests_each; i++) {
      const int64_t place = (int64_t)(mixed((uint64_t)(me * requests_each + i)) % (uint64_t)(kEntries * ranks));
      const request_t request = {i, place / ranks};
      if (convey_push(requests, &request, place % ranks) != convey_OK) break;
    }
    int64_t from;
    request_t request;
    while (convey_pull(requests, &request, &from) == convey_OK) {
      CHECK(request.index < kEntries);
      const request_t reply = {request.slot, (int64_t)table[request.index]};
      if (convey_push(replies, &reply, from) != convey_OK) {
        CHECK(convey_unpull(requests) == convey_OK);
        CHECK(convey_unpull(requests) == convey_FAIL);
        break;
      }
    }
    const request_t* reply;
    while ((reply = convey_apull(replies, NULL)) != NULL) {
      CHECK((uintptr_t)reply % sizeof *reply == 0);
      got[reply->slot] = (uint64_t)reply->index;
      answers++;
    }
  }
  CHECK(answers == requests_each);
  for (i = 0; i < requests_each; i++)
    CHECK(got[i] == mixed(mixed((uint64_t)(me * requests_each + i)) % (uint64_t)(kEntries * ranks)));
  CHECK(convey_free(requests) == convey_OK);
  CHECK(convey_free(replies) == convey_OK);
  free(table);
  free(got);
  printf("rank %d of %d is done\n", (int)me, (int)ranks);
  return 0;
}
