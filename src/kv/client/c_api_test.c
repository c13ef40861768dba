/* SPDX-License-Identifier: Apache-2.0
 * kv.h in C99, and fork(). Called by client_test.cpp, which provides a store. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wherry/kv.h>

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #condition); \
      return __LINE__;                                                         \
    }                                                                          \
  } while (0)

/* Exit status of a child: 0, or the number of the failed line modulo 256. */
static int in_a_child(wherry_kv* kv) {
  wherry_error why;
  CHECK(wherry_kv_post_get(kv, 1, 1, 0, &why) == WHERRY_FAILED_PRECONDITION && strstr(why.message, "fork") != NULL);
  CHECK(wherry_kv_wait(kv, WHERRY_FOREVER, &why) == WHERRY_FAILED_PRECONDITION && strstr(why.message, "fork") != NULL);
  return 0;
}

static int forks(wherry_kv* kv) {
  int status = -1;
  const pid_t child = fork();
  if (child == 0) _exit(in_a_child(kv));
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  return 0;
}

int kv_c_api_test(const char* const* nodes, size_t count, const char* nobody);

static int errors(const char* const* nodes, size_t count, const char* nobody) {
  wherry_error why;
  wherry_kv_options options;
  wherry_kv* kv = NULL;
  CHECK(wherry_kv_options_init(&options, 8) == WHERRY_INVALID_ARGUMENT);
  CHECK(wherry_kv_options_init(&options, sizeof options) == WHERRY_OK && options.lanes == 64);
  CHECK(options.first_lane == WHERRY_KV_GRANTED);
  CHECK(wherry_kv_connect(&options, &kv, &why) == WHERRY_INVALID_ARGUMENT && kv == NULL);
  CHECK(strstr(why.message, "none given") != NULL);
  CHECK(wherry_kv_connect(NULL, &kv, &why) == WHERRY_INVALID_ARGUMENT);
  CHECK(wherry_kv_connect(&options, NULL, &why) == WHERRY_INVALID_ARGUMENT);
  options.nodes = nodes;
  options.node_count = count;
  options.reads = 3;
  CHECK(wherry_kv_connect(&options, &kv, &why) == WHERRY_INVALID_ARGUMENT);
  CHECK(strstr(why.message, "reads is 3") != NULL);
  options.reads = WHERRY_KV_LEADER;
  options.reserved = 1;
  CHECK(wherry_kv_connect(&options, &kv, &why) == WHERRY_INVALID_ARGUMENT);
  CHECK(strstr(why.message, "reserved") != NULL);
  options.reserved = 0;
  options.first_lane = 70000;
  CHECK(wherry_kv_connect(&options, &kv, &why) == WHERRY_INVALID_ARGUMENT);
  options.first_lane = WHERRY_KV_GRANTED; /* and nobody who grants */
  CHECK(wherry_kv_connect(&options, &kv, &why) == WHERRY_INVALID_ARGUMENT);
  CHECK(strstr(why.message, "name the cluster file") != NULL);
  options.first_lane = 0;
  options.nodes = &nobody;
  options.node_count = 1;
  options.connect_timeout_ns = 20000000;
  CHECK(wherry_kv_connect(&options, &kv, &why) == WHERRY_UNAVAILABLE && kv == NULL);
  CHECK(wherry_kv_close(NULL, NULL) == WHERRY_OK);
  CHECK(wherry_kv_put(NULL, 1, NULL, 0, 0, NULL, &why) == WHERRY_INVALID_ARGUMENT);
  CHECK(wherry_kv_poll(NULL, NULL, 0, NULL, NULL) == WHERRY_INVALID_ARGUMENT);
  return 0;
}

static int calls(wherry_kv* kv) {
  wherry_error why;
  char value[WHERRY_KV_MAX_VALUE + 1];
  size_t bytes = 77;
  uint32_t version = 78, found = 0;
  CHECK(wherry_kv_get(kv, 1, value, sizeof value, 0, &bytes, &version, &why) == WHERRY_NOT_FOUND);
  CHECK(wherry_kv_remove(kv, 1, 0, &version, &why) == WHERRY_NOT_FOUND);
  CHECK(bytes == 77 && version == 78); /* outputs are written when they mean something */
  CHECK(wherry_kv_put(kv, 1, "value", 5, 0, &version, &why) == WHERRY_OK && version != 0);
  CHECK(wherry_kv_get(kv, 1, value, sizeof value, 0, &bytes, &found, &why) == WHERRY_OK);
  CHECK(bytes == 5 && memcmp(value, "value", 5) == 0 && found == version);
  CHECK(wherry_kv_get(kv, 1, value, 4, 0, &bytes, NULL, &why) == WHERRY_INVALID_ARGUMENT && bytes == 5);
  CHECK(wherry_kv_put_if(kv, 1, version + 1, "other", 5, 0, &found, &why) == WHERRY_FAILED_PRECONDITION);
  CHECK(found == version);
  CHECK(wherry_kv_put_if(kv, 1, version, "other", 5, 0, &version, &why) == WHERRY_OK);
  CHECK(wherry_kv_remove_if(kv, 1, version + 1, 0, NULL, &why) == WHERRY_FAILED_PRECONDITION);
  CHECK(wherry_kv_remove_if(kv, 1, version, 0, NULL, &why) == WHERRY_OK);
  CHECK(wherry_kv_remove(kv, 1, 0, NULL, &why) == WHERRY_NOT_FOUND);
  memset(value, 'x', sizeof value);
  CHECK(wherry_kv_put(kv, 1, value, sizeof value, 0, NULL, &why) == WHERRY_INVALID_ARGUMENT);
  CHECK(strstr(why.message, "1025") != NULL);
  CHECK(wherry_kv_put(kv, 1, NULL, 3, 0, NULL, &why) == WHERRY_INVALID_ARGUMENT);
  return 0;
}

static int posts(wherry_kv* kv) {
  wherry_error why;
  wherry_kv_completion ended[16];
  size_t count = 0, total = 0;
  for (uint64_t i = 0; i < 10; i++) {
    CHECK(wherry_kv_post_put(kv, 100 + i, &i, sizeof i, i, 0, &why) == WHERRY_OK);
    CHECK(wherry_kv_post_put_if(kv, 200 + i, 0, &i, sizeof i, 20 + i, 0, &why) == WHERRY_OK);
    CHECK(wherry_kv_post_remove(kv, 300 + i, 40 + i, 0, &why) == WHERRY_OK);
    CHECK(wherry_kv_post_remove_if(kv, 400 + i, 1, 60 + i, 0, &why) == WHERRY_OK);
  }
  while (total < 40) {
    CHECK(wherry_kv_wait(kv, WHERRY_FOREVER, &why) == WHERRY_OK);
    CHECK(wherry_kv_poll(kv, ended, 16, &count, &why) == WHERRY_OK && count <= 16);
    for (size_t i = 0; i < count; i++) CHECK(ended[i].status == (ended[i].tag < 40 ? WHERRY_OK : WHERRY_NOT_FOUND));
    total += count;
  }
  for (uint64_t i = 0; i < 10; i++) CHECK(wherry_kv_post_get(kv, 100 + i, i, 0, &why) == WHERRY_OK);
  for (total = 0; total < 10; total += count) {
    CHECK(wherry_kv_wait(kv, WHERRY_FOREVER, &why) == WHERRY_OK);
    CHECK(wherry_kv_poll(kv, ended, 16, &count, &why) == WHERRY_OK);
    for (size_t i = 0; i < count; i++) {
      CHECK(ended[i].status == WHERRY_OK && ended[i].bytes == 8 && ended[i].version != 0);
      CHECK(memcmp(ended[i].value, &ended[i].tag, 8) == 0);
    }
  }
  CHECK(wherry_kv_wait(kv, 1000000, &why) == WHERRY_DEADLINE_EXCEEDED);
  return 0;
}

int kv_c_api_test(const char* const* nodes, size_t count, const char* nobody) {
  wherry_error why;
  wherry_kv_options options;
  wherry_kv* kv = NULL;
  int failed = errors(nodes, count, nobody);
  if (failed != 0) return failed;
  CHECK(wherry_kv_options_init(&options, sizeof options) == WHERRY_OK);
  options.nodes = nodes;
  options.node_count = count;
  options.first_lane = 7;
  CHECK(wherry_kv_connect(&options, &kv, &why) == WHERRY_OK);
  failed = calls(kv);
  if (failed == 0) failed = posts(kv);
  if (failed == 0) failed = forks(kv);
  CHECK(wherry_kv_close(kv, &why) == WHERRY_OK);
  return failed;
}
