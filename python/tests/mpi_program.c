/* SPDX-License-Identifier: Apache-2.0
 * A program that uses both MPI and route, for test_openmpi.py: it compares the sums that both compute by messages.
 * With an argument, rank 1 exits with this status while the others wait for it. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <wherry/route.h>

static void add(void* user, const void* message, size_t bytes) {
  if (bytes == sizeof(uint64_t)) *(uint64_t*)user += *(const uint64_t*)message;
}

static void check(int status, const wherry_error* why) {
  if (status == WHERRY_OK) return;
  fprintf(stderr, "%s\n", why->message);
  exit(3);
}

int main(int argc, char** argv) {
  int rank = 0, ranks = 0;
  uint32_t handler = 0, to;
  uint64_t by_route = 0, by_mpi = 0, round, mine;
  wherry_error why;
  wherry_route* route = NULL;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  check(wherry_route_start(NULL, &route, &why), &why);
  if (wherry_route_rank(route) != (uint32_t)rank || wherry_route_ranks(route) != (uint32_t)ranks) return 4;
  if (argc > 1) {
    if (rank == 1) exit(atoi(argv[1]));
    MPI_Barrier(MPI_COMM_WORLD);
  }
  check(wherry_route_on_bytes(route, add, &by_route, &handler, &why), &why);
  mine = 1 + (uint64_t)rank;
  for (round = 0; round < 1000; ++round)
    for (to = 0; to < (uint32_t)ranks; ++to)
      check(wherry_route_send(route, to, handler, &mine, sizeof mine, &why), &why);
  check(wherry_route_quiesce(route, WHERRY_FOREVER, &why), &why);
  mine *= 1000;
  MPI_Allreduce(&mine, &by_mpi, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  check(wherry_route_close(route, &why), &why);
  printf("rank %d: %s\n", rank, by_route == by_mpi ? "the sums are equal" : "the sums differ");
  fflush(stdout);
  MPI_Finalize();
  return 0;
}
