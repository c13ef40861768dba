/* SPDX-License-Identifier: Apache-2.0
 * Tests route.h in C99, as a rank of a job or as a single rank. */
#include <string.h>
#include <wherry/route.h>

#include "../convey/check.h"

enum { kMessages = 20000, kCounters = 500 };

typedef struct {
  wherry_route* route;
  uint32_t answer;
  uint64_t counts[kCounters];
  uint64_t answers, sum, large;
} state_t;

static void on_update(void* user, const void* message, size_t bytes) {
  state_t* state = user;
  uint64_t update[2];
  CHECK(bytes == sizeof update && (uintptr_t)message % 8 == 0);
  memcpy(update, message, sizeof update);
  state->counts[update[0]]++;
  wherry_error why;
  if (update[0] % 100 == 0)
    CHECK(wherry_route_send(state->route, (uint32_t)update[1], state->answer, update, 8, &why) == WHERRY_OK);
  CHECK(wherry_route_poll(state->route, NULL, &why) == WHERRY_FAILED_PRECONDITION);
}

static void on_answer(void* user, const void* message, size_t bytes) {
  state_t* state = user;
  if (bytes > 8) {
    const unsigned char* at = message;
    for (size_t i = 0; i < bytes; i++) CHECK(at[i] == (unsigned char)(i * 3));
    state->large++;
    return;
  }
  state->answers++;
}

static void errors(wherry_route* route) {
  wherry_error why;
  wherry_route_options options;
  CHECK(wherry_route_options_init(&options, sizeof options) == WHERRY_OK && options.placement == -1);
  CHECK(wherry_route_options_init(&options, 8) == WHERRY_INVALID_ARGUMENT);
  wherry_route* other = route;
  options.placement = 7;
  CHECK(wherry_route_start(&options, &other, &why) == WHERRY_INVALID_ARGUMENT && other == route);
  CHECK(strstr(why.message, "placement is 7") != NULL);
  CHECK(wherry_route_options_init(&options, sizeof options) == WHERRY_OK);
  options.reserved = 1;
  CHECK(wherry_route_start(&options, &other, &why) == WHERRY_INVALID_ARGUMENT && other == route);
  CHECK(strstr(why.message, "reserved is 1") != NULL);
  options.reserved = 0;
  options.backlog_bytes = (16U << 20) - 1;
  CHECK(wherry_route_start(&options, &other, &why) == WHERRY_INVALID_ARGUMENT && other == route);
  CHECK(strstr(why.message, "backlog_bytes is 16777215") != NULL);
  CHECK(wherry_route_start(NULL, NULL, &why) == WHERRY_INVALID_ARGUMENT);
  CHECK(wherry_route_send(route, 10000, 16, NULL, 0, &why) == WHERRY_INVALID_ARGUMENT);
  CHECK(strstr(why.message, "no rank 10000") != NULL);
  CHECK(wherry_route_try_send(route, 0, 999, NULL, 0, &why) == WHERRY_INVALID_ARGUMENT);
  CHECK(strstr(why.message, "no handler 999") != NULL);
  CHECK(wherry_route_send(NULL, 0, 16, NULL, 0, NULL) == WHERRY_INVALID_ARGUMENT);
  CHECK(wherry_route_send(route, 0, 16, &why, (size_t)17 << 20, &why) == WHERRY_INVALID_ARGUMENT);
  CHECK(wherry_route_on_bytes(route, NULL, NULL, NULL, &why) == WHERRY_INVALID_ARGUMENT);
  uint64_t result = 5;
  CHECK(wherry_route_reduce_u64(route, 1, 3, &result, &why) == WHERRY_INVALID_ARGUMENT && result == 5);
  wherry_route_statistics few = {0};
  CHECK(wherry_route_get_statistics(route, &few, &why) == WHERRY_INVALID_ARGUMENT);
  CHECK(wherry_route_rank(NULL) == 0 && wherry_route_close(NULL, NULL) == WHERRY_OK);
}

int main(void) {
  static state_t state;
  static unsigned char large[100000];
  wherry_error why;
  wherry_route* route = NULL;
  wherry_route_options options;
  CHECK(wherry_route_options_init(&options, sizeof options) == WHERRY_OK);
  if (wherry_route_start(&options, &route, &why) != WHERRY_OK) {
    fprintf(stderr, "%s\n", why.message);
    return 1;
  }
  const uint32_t me = wherry_route_rank(route), ranks = wherry_route_ranks(route);
  CHECK(me < ranks && wherry_route_node(route) < wherry_route_nodes(route));
  CHECK(strncmp(wherry_route_describe(route), "rank ", 5) == 0);
  uint32_t update = 0;
  state.route = route;
  CHECK(wherry_route_on_bytes(route, on_update, &state, &update, &why) == WHERRY_OK);
  CHECK(wherry_route_on_bytes(route, on_answer, &state, &state.answer, &why) == WHERRY_OK);
  errors(route);

  uint64_t asked = 0;
  for (uint64_t i = 0; i < kMessages; i++) {
    const uint64_t counter = mixed((uint64_t)me * kMessages + i) % ((uint64_t)kCounters * ranks);
    const uint64_t message[2] = {counter / ranks, me};
    const uint32_t to = (uint32_t)(counter % ranks);
    asked += message[0] % 100 == 0;
    int status;
    if (i % 2 == 0) {
      status = wherry_route_send(route, to, update, message, sizeof message, &why);
    } else {
      while ((status = wherry_route_try_send(route, to, update, message, sizeof message, &why)) == WHERRY_WOULD_BLOCK)
        CHECK(wherry_route_poll(route, NULL, &why) == WHERRY_OK);
    }
    CHECK(status == WHERRY_OK);
  }
  for (size_t i = 0; i < sizeof large; i++) large[i] = (unsigned char)(i * 3);
  for (uint32_t to = 0; to < ranks; to++)
    CHECK(wherry_route_send(route, to, state.answer, large, sizeof large, &why) == WHERRY_OK);
  CHECK(wherry_route_flush(route, &why) == WHERRY_OK);
  CHECK(wherry_route_quiesce(route, WHERRY_FOREVER, &why) == WHERRY_OK);
  CHECK(state.answers == asked && state.large == ranks);
  for (uint64_t k = 0; k < (uint64_t)kMessages * ranks; k++) {
    const uint64_t counter = mixed(k) % ((uint64_t)kCounters * ranks);
    if (counter % ranks == me) state.counts[counter / ranks]--;
  }
  for (int k = 0; k < kCounters; k++) CHECK(state.counts[k] == 0);

  uint64_t most = 0, sum = 0;
  CHECK(wherry_route_reduce_u64(route, me, WHERRY_MAX, &most, &why) == WHERRY_OK && most == ranks - 1);
  CHECK(wherry_route_reduce_u64(route, me + 1, WHERRY_SUM, &sum, &why) == WHERRY_OK);
  CHECK(sum == (uint64_t)ranks * (ranks + 1) / 2);
  int status;
  while ((status = wherry_route_try_quiesce(route, &why)) == WHERRY_WOULD_BLOCK) continue;
  CHECK(status == WHERRY_OK && wherry_route_status(route, &why) == WHERRY_OK);
  wherry_route_statistics statistics = {.size = sizeof statistics};
  CHECK(wherry_route_get_statistics(route, &statistics, &why) == WHERRY_OK);
  CHECK(statistics.sent >= kMessages && statistics.bytes_out > 0 && statistics.size == sizeof statistics);
  CHECK(wherry_route_close(route, &why) == WHERRY_OK);
  printf("rank %u of %u is done\n", (unsigned)me, (unsigned)ranks);
  return 0;
}
