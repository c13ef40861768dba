// SPDX-License-Identifier: Apache-2.0
// Teaches: offloading from C, or from any language that can call C. Every call returns a status, and writes texts into
// the caller's memory.
#include <stdio.h>
#include <stdlib.h>

#include "wherry/wherry.h"

enum { kRows = 100000 };

static wherry_error why;

static void must(int status) {
  if (status == WHERRY_OK) return;
  (void)fprintf(stderr, "%s: %s\n", wherry_status_name(status), why.message);
  exit(1);
}

int main(void) {
  static double mass[kRows];
  static float position[kRows][3];
  const wherry_field fields[] = {{.name = "mass", .format = "g"},
                                 {.name = "position", .format = "f", .values_per_row = 3}};
  const wherry_column columns[] = {{.values = mass, .rows = kRows}, {.values = position, .rows = kRows}};
  wherry_session* session = NULL;
  wherry_stream* stream = NULL;
  wherry_region* region = NULL;
  wherry_ticket ticket;
  uint64_t nanoseconds = 0;
  uint64_t sequence = 1;

  must(wherry_session_open(NULL, &session, &why));
  wherry_session_info info = {.size = sizeof info};
  must(wherry_session_get_info(session, &info, &why));
  (void)printf("%s\n", info.text);

  wherry_stream_options options;
  must(wherry_stream_options_init(&options, sizeof options));
  options.name = "bodies";
  must(wherry_stream_open_fields(session, &options, fields, 2, &stream, &why));
  must(wherry_region_register(session, position, sizeof position, &region, &why));  // once, for all steps

  must(wherry_stream_post(stream, columns, 2, NULL, &ticket, &why));
  // The application continues to compute here. It must not change mass and position yet.
  must(wherry_ticket_wait(ticket, INT64_C(10000000000), &why));
  must(wherry_ticket_transfer_ns(ticket, &nanoseconds, &why));
  must(wherry_ticket_sequence(ticket, &sequence, &why));
  (void)printf("frame %d took the agent %.1f us\n", (int)sequence, (double)nanoseconds / 1e3);

  must(wherry_region_unregister(region, &why));
  must(wherry_stream_close(stream, &why));
  must(wherry_session_close(session, &why));
  return sequence == 0 && nanoseconds > 0 ? 0 : 1;
}
