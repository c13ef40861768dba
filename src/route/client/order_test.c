/* SPDX-License-Identifier: Apache-2.0
 * Ranks register unnamed functions in different orders, or one function twice. They must get an error that says so. */
#include <string.h>
#include <wherry/route.h>

#include "../convey/check.h"

static void count_a(void* user, const void* message, size_t bytes) {
  (void)message;
  *(uint64_t*)user += bytes;
}
static void count_b(void* user, const void* message, size_t bytes) {
  (void)message;
  *(uint64_t*)user += 2 * bytes;
}

static wherry_route* start(void) {
  wherry_error why;
  wherry_route* route = NULL;
  const int status = wherry_route_start(NULL, &route, &why);
  if (status != WHERRY_OK) fprintf(stderr, "%s\n", why.message);
  CHECK(status == WHERRY_OK);
  return route;
}

static void another_order(void) {
  wherry_error why;
  uint64_t a = 0, b = 0;
  uint32_t to_a = 0, to_b = 0;
  wherry_route* route = start();
  const uint32_t me = wherry_route_rank(route), ranks = wherry_route_ranks(route);
  if (me == 1) CHECK(wherry_route_on_bytes(route, count_b, &b, &to_b, &why) == WHERRY_OK);
  CHECK(wherry_route_on_bytes(route, count_a, &a, &to_a, &why) == WHERRY_OK);
  if (me != 1) CHECK(wherry_route_on_bytes(route, count_b, &b, &to_b, &why) == WHERRY_OK);
  const int status = wherry_route_quiesce(route, WHERRY_FOREVER, &why);
  CHECK(status == (ranks == 1 ? WHERRY_OK : WHERRY_FAILED_PRECONDITION));
  if (ranks != 1) CHECK(strstr(why.message, "have registered different handlers") != NULL);
  if (ranks != 1) CHECK(strstr(why.message, "by name") != NULL);
  CHECK(wherry_route_close(route, &why) == WHERRY_OK);
  printf("rank %u of %u is done\n", (unsigned)me, (unsigned)ranks);
}

static void one_function_twice(void) {
  wherry_error why;
  uint64_t a = 0, b = 0;
  uint32_t first = 0, second = 0;
  wherry_route* route = start();
  CHECK(wherry_route_on_bytes_named(route, "first", count_a, &a, &first, &why) == WHERRY_OK);
  CHECK(wherry_route_on_bytes_named(route, "second", count_a, &b, &second, &why) == WHERRY_OK && first != second);
  CHECK(wherry_route_on_bytes(route, count_a, &a, &first, &why) == WHERRY_OK);
  CHECK(wherry_route_on_bytes(route, count_a, &b, &second, &why) == WHERRY_ALREADY_EXISTS);
  CHECK(strstr(why.message, "give each a name") != NULL);
  CHECK(wherry_route_close(route, &why) == WHERRY_OK);
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "twice") == 0) {
    one_function_twice();
    puts("rank 0 of 1 is done");
  } else {
    another_order();
  }
  return 0;
}
