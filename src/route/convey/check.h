/* SPDX-License-Identifier: Apache-2.0
 * For the test programs: ends the rank, and so the job, if a check fails. */
#ifndef WHERRY_ROUTE_CONVEY_CHECK_H
#define WHERRY_ROUTE_CONVEY_CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

/* A hash of n; equal on every rank. */
static inline uint64_t mixed(uint64_t n) {
  n = (n + 1) * UINT64_C(0x9e3779b97f4a7c15);
  n = (n ^ (n >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  n = (n ^ (n >> 27)) * UINT64_C(0x94d049bb133111eb);
  return n ^ (n >> 31);
}

/* The number of items to run: `all`, or with an argument N all / N. */
static inline int part_of(int all, int argc, char** argv) {
  const int part = argc > 1 ? atoi(argv[1]) : 1;
  CHECK(part > 0 && all >= part);
  return all / part;
}

#endif
