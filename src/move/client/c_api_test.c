// SPDX-License-Identifier: Apache-2.0
// The C ABI used from C99. Each function tests one thing, and returns NULL or a text with the place and the failure.
// c_api_test.cpp in src/agent declares them, runs them against an agent and checks what arrived there.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wherry/wherry.h"

#define SECONDS INT64_C(1000000000)

// The structs of every Arrow library (https://arrow.apache.org/docs/format/CDataInterface.html#structure-definitions).
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema** children;
  struct ArrowSchema* dictionary;
  void (*release)(struct ArrowSchema*);
  void* private_data;
};
struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  struct ArrowArray** children;
  struct ArrowArray* dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
};

static char failure[2048];
static wherry_error why;

static const char* failed(int line, const char* what) {
  (void)snprintf(failure, sizeof failure, "c_api_test.c:%d: %s (last error: %d %s)", line, what, (int)why.status,
                 why.message);
  return failure;
}

#define CHECK(condition)                                   \
  do {                                                     \
    if (!(condition)) return failed(__LINE__, #condition); \
  } while (0)
/// Expects a status whose text contains `part`.
#define REFUSED(call, expected, part)                                                                    \
  do {                                                                                                   \
    memset(&why, 0, sizeof why);                                                                         \
    CHECK((call) == (expected));                                                                         \
    CHECK(why.status == (expected));                                                                     \
    if (strstr(why.message, part) == NULL) return failed(__LINE__, "message of " #call " lacks: " part); \
  } while (0)
#define OK(call) CHECK((call) == WHERRY_OK)

static int open_session(const char* session_file, wherry_session** session) {
  wherry_session_options options;
  wherry_session_options_init(&options, sizeof options);
  options.agent = session_file;
  options.name = "c_api_test";
  return wherry_session_open(&options, session, &why);
}

static wherry_stream_options named(const char* name) {
  wherry_stream_options options;
  wherry_stream_options_init(&options, sizeof options);
  options.name = name;
  return options;
}

// ---------------------------------------------------------------- what works

const char* c_library(void) {
  CHECK(strcmp(wherry_version(), "0.1.0") == 0);
  CHECK(wherry_abi_version() == WHERRY_ABI_VERSION);
  CHECK(strcmp(wherry_status_name(WHERRY_OK), "ok") == 0);
  CHECK(strcmp(wherry_status_name(WHERRY_INVALID_ARGUMENT), "invalid argument") == 0);
  CHECK(strcmp(wherry_status_name(-1), "unknown") == 0);
  CHECK(strcmp(wherry_status_name(16), "unknown") == 0);
  return NULL;
}

const char* c_session(const char* session_file) {
  wherry_session* session = NULL;
  wherry_session_info info;
  size_t in_flight = 7;
  OK(open_session(session_file, &session));
  memset(&info, 0xff, sizeof info);
  info.size = sizeof info;
  OK(wherry_session_get_info(session, &info, &why));
  CHECK(strcmp(info.agent_version, "0.1.0") == 0);
  CHECK(strcmp(info.session_file, session_file) == 0);
  CHECK(strncmp(info.flight_uri, "grpc://", 7) == 0);
  CHECK(info.agent_pid > 0);
  CHECK(info.heap_one_sided == 1 && info.allocated_one_sided == 1 && info.mapped == 1);
  CHECK(strstr(info.text, "one_sided") != NULL && strlen(info.transports) > 0);
  OK(wherry_session_in_flight(session, &in_flight, &why));
  CHECK(in_flight == 0);
  OK(wherry_session_drain(session, 0, &why));
  OK(wherry_session_close(session, &why));
  OK(wherry_session_close(NULL, &why));
  return NULL;
}

/// Stream "plain": x of double; xyz of float[3], nullable, with one null; heap, registered and allocated memory. Three
/// frames.
const char* c_plain(const char* session_file) {
  enum { kRows = 1000 };
  static double x[kRows];
  static float xyz[kRows][3];
  static uint8_t validity[kRows / 8];
  const wherry_field fields[] = {{.name = "x", .format = "g"},
                                 {.name = "xyz", .format = "f", .values_per_row = 3, .nullable = 1}};
  wherry_column columns[2] = {{.values = x, .rows = kRows},
                              {.values = xyz, .rows = kRows, .validity = validity, .null_count = 1}};
  wherry_session* session = NULL;
  wherry_stream* stream = NULL;
  wherry_region* region = NULL;
  wherry_memory* memory = NULL;
  void* data = NULL;
  wherry_ticket ticket = {0};
  wherry_post_options post;
  uint64_t number = 99;
  int ready = 0;
  for (int i = 0; i < kRows; ++i) {
    x[i] = i * 0.5;
    for (int k = 0; k < 3; ++k) xyz[i][k] = (float)(3 * i + k);
  }
  memset(validity, 0xff, sizeof validity);
  validity[0] = 0xfd;  // row 1 is null

  OK(open_session(session_file, &session));
  const wherry_stream_options options = named("plain");
  OK(wherry_stream_open_fields(session, &options, fields, 2, &stream, &why));

  OK(wherry_stream_post(stream, columns, 2, NULL, &ticket, &why));
  OK(wherry_ticket_wait(ticket, 10 * SECONDS, &why));
  OK(wherry_ticket_ready(ticket, &ready, &why));
  CHECK(ready == 1 && ticket.id == 1);
  OK(wherry_ticket_transfer_ns(ticket, &number, &why));
  CHECK(number > 0);
  OK(wherry_ticket_sequence(ticket, &number, &why));
  CHECK(number == 0);

  OK(wherry_region_register(session, x, sizeof x, &region, &why));
  wherry_post_options_init(&post, sizeof post);
  post.tag = 42;
  post.deadline_ns = 10 * SECONDS;
  columns[1].null_count = -1;
  OK(wherry_stream_post(stream, columns, 2, &post, &ticket, &why));
  OK(wherry_ticket_wait(ticket, WHERRY_FOREVER, &why));
  OK(wherry_ticket_sequence(ticket, &number, &why));
  CHECK(number == 1);
  OK(wherry_region_unregister(region, &why));
  OK(wherry_region_unregister(NULL, &why));

  OK(wherry_memory_allocate(session, sizeof x, &memory, &data, &why));
  CHECK(((const double*)data)[kRows - 1] == 0);
  memcpy(data, x, sizeof x);
  columns[0].values = data;
  OK(wherry_stream_post(stream, columns, 2, NULL, NULL, &why));  // nobody waits for it
  OK(wherry_session_drain(session, 10 * SECONDS, &why));
  OK(wherry_memory_free(memory, &why));
  OK(wherry_memory_free(NULL, &why));

  OK(wherry_stream_close(stream, &why));
  OK(wherry_stream_close(NULL, &why));
  OK(wherry_ticket_ready(ticket, &ready, &why));  // tickets outlive their stream
  CHECK(ready == 1);
  OK(wherry_session_close(session, &why));
  return NULL;
}

static void never(struct ArrowArray* array) { array->private_data = array; }
static void schema_never(struct ArrowSchema* schema) { schema->private_data = schema; }

/// Stream "arrow": s of utf8, v of int32; rows "a", "bc" and then their slice "bc". Wherry must not release them.
const char* c_arrow(const char* session_file) {
  static const int32_t offsets[] = {0, 1, 3};
  static const int32_t values[] = {7, -8};
  struct ArrowSchema fields[2] = {{.format = "u", .name = "s", .release = schema_never},
                                  {.format = "i", .name = "v", .release = schema_never}};
  struct ArrowSchema* field_pointers[] = {&fields[0], &fields[1]};
  struct ArrowSchema schema = {.format = "+s", .n_children = 2, .children = field_pointers, .release = schema_never};
  const void* text_buffers[] = {NULL, offsets, "abc"};
  const void* value_buffers[] = {NULL, values};
  const void* batch_buffers[] = {NULL};
  struct ArrowArray columns[2] = {{.length = 2, .n_buffers = 3, .buffers = text_buffers, .release = never},
                                  {.length = 2, .n_buffers = 2, .buffers = value_buffers, .release = never}};
  struct ArrowArray* column_pointers[] = {&columns[0], &columns[1]};
  struct ArrowArray batch = {.length = 2,
                             .n_buffers = 1,
                             .n_children = 2,
                             .buffers = batch_buffers,
                             .children = column_pointers,
                             .release = never};
  wherry_session* session = NULL;
  wherry_stream* stream = NULL;
  wherry_ticket ticket;
  OK(open_session(session_file, &session));
  const wherry_stream_options options = named("arrow");
  OK(wherry_stream_open(session, &options, &schema, &stream, &why));
  OK(wherry_stream_post_arrow(stream, &batch, NULL, &ticket, &why));
  OK(wherry_ticket_wait(ticket, 10 * SECONDS, &why));
  batch.offset = 1;
  batch.length = 1;
  OK(wherry_stream_post_arrow(stream, &batch, NULL, &ticket, &why));
  OK(wherry_ticket_wait(ticket, 10 * SECONDS, &why));
  CHECK(schema.private_data == NULL && fields[0].private_data == NULL);
  CHECK(batch.private_data == NULL && columns[0].private_data == NULL);

  REFUSED(wherry_stream_post_arrow(stream, NULL, NULL, &ticket, &why), WHERRY_INVALID_ARGUMENT, "batch is NULL");
  batch.n_children = 1;
  REFUSED(wherry_stream_post_arrow(stream, &batch, NULL, &ticket, &why), WHERRY_INVALID_ARGUMENT, "2 columns");
  const wherry_column plain[] = {{.values = values, .rows = 2}, {.values = values, .rows = 2}};
  REFUSED(wherry_stream_post(stream, plain, 2, NULL, &ticket, &why), WHERRY_INVALID_ARGUMENT, "s");
  OK(wherry_stream_close(stream, &why));

  schema.format = "i";
  REFUSED(wherry_stream_open(session, &options, &schema, &stream, &why), WHERRY_INVALID_ARGUMENT, "'+s'");
  REFUSED(wherry_stream_open(session, &options, NULL, &stream, &why), WHERRY_INVALID_ARGUMENT, "schema");
  REFUSED(wherry_stream_open(session, NULL, NULL, &stream, &why), WHERRY_INVALID_ARGUMENT, "options");
  OK(wherry_session_close(session, &why));
  return NULL;
}

/// Stream "raw": rows "hello" and "".
const char* c_raw(const char* session_file) {
  const wherry_buffer buffers[] = {{.data = "hello", .bytes = 5}, {.data = NULL, .bytes = 0}};
  const wherry_buffer bad = {.data = NULL, .bytes = 1};
  const wherry_column column = {.values = "hello", .rows = 5};
  struct ArrowArray batch = {.length = 2, .release = never};
  wherry_session* session = NULL;
  wherry_stream* stream = NULL;
  wherry_ticket ticket;
  wherry_stream_options options = named("raw");
  options.strategy = WHERRY_STRATEGY_RAW;
  OK(open_session(session_file, &session));
  OK(wherry_stream_open(session, &options, NULL, &stream, &why));
  OK(wherry_stream_post_raw(stream, buffers, 2, NULL, &ticket, &why));
  OK(wherry_ticket_wait(ticket, 10 * SECONDS, &why));
  REFUSED(wherry_stream_post_raw(stream, NULL, 1, NULL, &ticket, &why), WHERRY_INVALID_ARGUMENT, "buffers is NULL");
  REFUSED(wherry_stream_post_raw(stream, &bad, 1, NULL, &ticket, &why), WHERRY_INVALID_ARGUMENT, "buffer 0");
  REFUSED(wherry_stream_post(stream, &column, 1, NULL, &ticket, &why), WHERRY_INVALID_ARGUMENT, "post_raw");
  REFUSED(wherry_stream_post_arrow(stream, &batch, NULL, &ticket, &why), WHERRY_INVALID_ARGUMENT, "post_raw");
  OK(wherry_stream_close(stream, &why));
  OK(wherry_session_close(session, &why));
  return NULL;
}

/// Stream "bound": x of double, three frames of one bound step, with values 1000 * i + row. Stream "bound-raw":
/// "hello".
const char* c_steps(const char* session_file) {
  enum { kRows = 100 };
  static double x[kRows];
  const wherry_field fields[] = {{.name = "x", .format = "g"}};
  const wherry_column column = {.values = x, .rows = kRows};
  const wherry_buffer buffer = {.data = "hello", .bytes = 5};
  const void* buffers[] = {NULL, x};
  struct ArrowArray child = {.length = kRows, .n_buffers = 2, .buffers = buffers, .release = never};
  struct ArrowArray* children[] = {&child};
  struct ArrowArray batch = {
      .length = kRows, .n_buffers = 1, .buffers = buffers, .n_children = 1, .children = children, .release = never};
  wherry_session* session = NULL;
  wherry_stream* stream = NULL;
  wherry_stream* raw = NULL;
  wherry_step* step = NULL;
  wherry_step* arrow = NULL;
  wherry_ticket ticket;
  wherry_post_options post;
  OK(open_session(session_file, &session));
  wherry_stream_options options = named("bound");
  OK(wherry_stream_open_fields(session, &options, fields, 1, &stream, &why));
  options = named("bound-raw");
  options.strategy = WHERRY_STRATEGY_RAW;
  OK(wherry_stream_open(session, &options, NULL, &raw, &why));

  OK(wherry_stream_bind(stream, &column, 1, &step, &why));
  OK(wherry_stream_bind_arrow(stream, &batch, &arrow, &why));
  wherry_post_options_init(&post, sizeof post);
  for (int i = 0; i < 3; ++i) {
    for (int row = 0; row < kRows; ++row) x[row] = 1000 * i + row;
    post.tag = (uint64_t)i;
    OK(wherry_step_post(i == 1 ? arrow : step, &post, &ticket, &why));
    OK(wherry_ticket_wait(ticket, 10 * SECONDS, &why));
  }
  OK(wherry_step_release(arrow, &why));
  OK(wherry_stream_bind_raw(raw, &buffer, 1, &arrow, &why));
  OK(wherry_step_post(arrow, NULL, &ticket, &why));
  OK(wherry_ticket_wait(ticket, 10 * SECONDS, &why));
  OK(wherry_step_release(arrow, &why));
  OK(wherry_step_release(NULL, &why));

  REFUSED(wherry_stream_bind(stream, NULL, 1, &arrow, &why), WHERRY_INVALID_ARGUMENT, "columns is NULL");
  REFUSED(wherry_stream_bind(stream, &column, 1, NULL, &why), WHERRY_INVALID_ARGUMENT, "step is NULL");
  REFUSED(wherry_stream_bind(NULL, &column, 1, &arrow, &why), WHERRY_INVALID_ARGUMENT, "stream is NULL");
  REFUSED(wherry_stream_bind(raw, &column, 1, &arrow, &why), WHERRY_INVALID_ARGUMENT, "bind_raw");
  REFUSED(wherry_stream_bind_arrow(stream, NULL, &arrow, &why), WHERRY_INVALID_ARGUMENT, "batch is NULL");
  REFUSED(wherry_stream_bind_raw(raw, NULL, 1, &arrow, &why), WHERRY_INVALID_ARGUMENT, "buffers is NULL");
  REFUSED(wherry_stream_bind_raw(raw, NULL, 0, &arrow, &why), WHERRY_INVALID_ARGUMENT, "at least one buffer");
  REFUSED(wherry_step_post(NULL, NULL, &ticket, &why), WHERRY_INVALID_ARGUMENT, "step is NULL");
  OK(wherry_stream_close(raw, &why));
  OK(wherry_stream_close(stream, &why));
  REFUSED(wherry_step_post(step, NULL, &ticket, &why), WHERRY_FAILED_PRECONDITION, "is closed");
  REFUSED(wherry_session_close(session, &why), WHERRY_FAILED_PRECONDITION, "open");
  OK(wherry_step_release(step, &why));
  OK(wherry_session_close(session, &why));
  return NULL;
}

// ---------------------------------------------------------------- what is refused

const char* c_session_errors(const char* session_file) {
  wherry_session* session = NULL;
  wherry_session_options options;
  wherry_session_info info = {0};
  size_t count = 0;
  OK(wherry_session_options_init(&options, sizeof options));
  options.agent = "/nowhere/agent.json";
  CHECK(wherry_session_open(&options, &session, NULL) != WHERRY_OK);  // without a place for the text
  REFUSED(wherry_session_open(&options, &session, &why), WHERRY_NOT_FOUND, "/nowhere/agent.json");
  CHECK(session == NULL);
  REFUSED(wherry_session_open(&options, NULL, &why), WHERRY_INVALID_ARGUMENT, "session is NULL");
  options.agent = session_file;
  options.token = "wrong";
  REFUSED(wherry_session_open(&options, &session, &why), WHERRY_PERMISSION_DENIED, "");
  options.token = NULL;
  options.max_tickets = 3;
  REFUSED(wherry_session_open(&options, &session, &why), WHERRY_INVALID_ARGUMENT, "max_tickets = 3");
  options.max_tickets = 4;
  options.transport = 9;
  REFUSED(wherry_session_open(&options, &session, &why), WHERRY_INVALID_ARGUMENT, "transport = 9");
  const char* const arguments[] = {"--what", NULL};
  options.transport = WHERRY_TRANSPORT_AUTO;
  options.agent = "embedded";
  options.embedded_program = "/nowhere/wherryd";
  options.embedded_arguments = arguments;
  REFUSED(wherry_session_open(&options, &session, &why), WHERRY_NOT_FOUND, "/nowhere/wherryd");

  // An error text that is longer than its buffer is cut between two characters and terminated.
  static char endless[4000];
  for (size_t i = 0; i + 2 < sizeof endless; i += 2) memcpy(endless + i, "\xc3\xa9", 2);
  endless[0] = '/';
  endless[1] = 'x';
  options.agent = endless;
  CHECK(wherry_session_open(&options, &session, &why) != WHERRY_OK);
  const size_t length = strlen(why.message);
  CHECK(length > sizeof why.message - 4 && length < sizeof why.message);
  CHECK((unsigned char)why.message[length - 1] == 0xa9);

  OK(open_session(session_file, &session));
  REFUSED(wherry_session_get_info(session, &info, &why), WHERRY_INVALID_ARGUMENT, "info->size is 0");
  REFUSED(wherry_session_get_info(session, NULL, &why), WHERRY_INVALID_ARGUMENT, "info is NULL");
  REFUSED(wherry_session_get_info(NULL, &info, &why), WHERRY_INVALID_ARGUMENT, "session is NULL");
  REFUSED(wherry_session_in_flight(NULL, &count, &why), WHERRY_INVALID_ARGUMENT, "session is NULL");
  REFUSED(wherry_session_in_flight(session, NULL, &why), WHERRY_INVALID_ARGUMENT, "count is NULL");
  REFUSED(wherry_session_drain(NULL, 0, &why), WHERRY_INVALID_ARGUMENT, "session is NULL");
  OK(wherry_session_close(session, NULL));
  return NULL;
}

const char* c_memory_errors(const char* session_file) {
  wherry_session* session = NULL;
  wherry_memory* memory = NULL;
  wherry_region* region = NULL;
  void* data = NULL;
  OK(open_session(session_file, &session));
  REFUSED(wherry_memory_allocate(NULL, 1, &memory, &data, &why), WHERRY_INVALID_ARGUMENT, "session is NULL");
  REFUSED(wherry_memory_allocate(session, 0, &memory, &data, &why), WHERRY_INVALID_ARGUMENT, "allocate(0)");
  REFUSED(wherry_memory_allocate(session, 1, NULL, &data, &why), WHERRY_INVALID_ARGUMENT, "memory is NULL");
  REFUSED(wherry_memory_allocate(session, 1, &memory, NULL, &why), WHERRY_INVALID_ARGUMENT, "data is NULL");
  REFUSED(wherry_region_register(NULL, &data, 8, &region, &why), WHERRY_INVALID_ARGUMENT, "session is NULL");
  REFUSED(wherry_region_register(session, NULL, 8, &region, &why), WHERRY_INVALID_ARGUMENT, "address");
  REFUSED(wherry_region_register(session, &data, 8, NULL, &why), WHERRY_INVALID_ARGUMENT, "region is NULL");
  CHECK(memory == NULL && region == NULL && data == NULL);
  OK(wherry_memory_allocate(session, 1, &memory, &data, &why));
  REFUSED(wherry_session_close(session, &why), WHERRY_FAILED_PRECONDITION, "close them first");
  OK(wherry_memory_free(memory, NULL));
  OK(wherry_session_close(session, &why));
  return NULL;
}

const char* c_stream_errors(const char* session_file) {
  const wherry_field x = {.name = "x", .format = "g"};
  const wherry_field nameless = {.format = "g"};
  const wherry_field formless = {.name = "f"};
  const wherry_field text = {.name = "t", .format = "u"};
  const wherry_field unknown = {.name = "q", .format = "?"};
  const wherry_field wide = {.name = "w", .format = "g", .values_per_row = UINT32_MAX};
  static const double values[4] = {1, 2, 3, 4};
  wherry_column columns[2] = {{.values = values, .rows = 4}, {.values = values, .rows = 4}};
  wherry_session* session = NULL;
  wherry_stream* stream = NULL;
  wherry_stream* second = NULL;
  wherry_ticket ticket = {0};
  wherry_stream_options options = named("errors");
  OK(open_session(session_file, &session));
  REFUSED(wherry_stream_open_fields(NULL, &options, &x, 1, &stream, &why), WHERRY_INVALID_ARGUMENT, "session is NULL");
  REFUSED(wherry_stream_open(NULL, &options, NULL, &stream, &why), WHERRY_INVALID_ARGUMENT, "session is NULL");
  REFUSED(wherry_stream_open_fields(session, &options, &x, 1, NULL, &why), WHERRY_INVALID_ARGUMENT, "stream is NULL");
  REFUSED(wherry_stream_open(session, &options, NULL, NULL, &why), WHERRY_INVALID_ARGUMENT, "stream is NULL");
  REFUSED(wherry_stream_open_fields(session, NULL, &x, 1, &stream, &why), WHERRY_INVALID_ARGUMENT, "options");
  REFUSED(wherry_stream_open_fields(session, &options, NULL, 1, &stream, &why), WHERRY_INVALID_ARGUMENT, "fields");
  REFUSED(wherry_stream_open_fields(session, &options, &x, 0, &stream, &why), WHERRY_INVALID_ARGUMENT, "");
  REFUSED(wherry_stream_open_fields(session, &options, &nameless, 1, &stream, &why), WHERRY_INVALID_ARGUMENT,
          "name of");
  REFUSED(wherry_stream_open_fields(session, &options, &formless, 1, &stream, &why), WHERRY_INVALID_ARGUMENT, "format");
  options.operators = "[{\"name\": \"high\", \"steps\": [{\"filter\": [\">\", \"y\", 3]}]}]";
  REFUSED(wherry_stream_open_fields(session, &options, &x, 1, &stream, &why), WHERRY_INVALID_ARGUMENT,
          "operators: \"high\": step 0: there is no column \"y\"");
  options.operators = "[{\"name\": \"high\", \"steps\": [{\"filter\": [\">\", \"x\", 3]}]}]";
  OK(wherry_stream_open_fields(session, &options, &x, 1, &stream, &why));
  OK(wherry_stream_close(stream, &why));
  stream = NULL;
  options.operators = NULL;
  REFUSED(wherry_stream_open_fields(session, &options, &text, 1, &stream, &why), WHERRY_UNSUPPORTED, "ArrowSchema");
  REFUSED(wherry_stream_open_fields(session, &options, &unknown, 1, &stream, &why), WHERRY_INVALID_ARGUMENT, "q");
  REFUSED(wherry_stream_open_fields(session, &options, &wide, 1, &stream, &why), WHERRY_INVALID_ARGUMENT, "too large");
  options.name = NULL;
  REFUSED(wherry_stream_open_fields(session, &options, &x, 1, &stream, &why), WHERRY_INVALID_ARGUMENT, "name is NULL");
  options.name = "not a name";
  REFUSED(wherry_stream_open_fields(session, &options, &x, 1, &stream, &why), WHERRY_INVALID_ARGUMENT, "not a name");
  options.name = "errors";
  options.strategy = 6;
  REFUSED(wherry_stream_open_fields(session, &options, &x, 1, &stream, &why), WHERRY_INVALID_ARGUMENT, "strategy = 6");
  options.strategy = WHERRY_STRATEGY_IPC;
  options.when_full = -1;
  REFUSED(wherry_stream_open_fields(session, &options, &x, 1, &stream, &why), WHERRY_INVALID_ARGUMENT,
          "when_full = -1");
  options.when_full = WHERRY_EVICT;
  options.sink_format = 3;
  REFUSED(wherry_stream_open_fields(session, &options, &x, 1, &stream, &why), WHERRY_INVALID_ARGUMENT, "sink_format");
  options.sink_format = WHERRY_SINK_NONE;
  options.announced_count = 1;
  REFUSED(wherry_stream_open_fields(session, &options, &x, 1, &stream, &why), WHERRY_INVALID_ARGUMENT, "announced");
  const uint64_t announced = sizeof values;
  options.announced_bytes = &announced;
  options.reserved = 1;
  REFUSED(wherry_stream_open_fields(session, &options, &x, 1, &stream, &why), WHERRY_INVALID_ARGUMENT, "reserved");
  options.reserved = 0;
  CHECK(stream == NULL);
  OK(wherry_stream_open_fields(session, &options, &x, 1, &stream, &why));
  REFUSED(wherry_stream_open_fields(session, &options, &x, 1, &second, &why), WHERRY_ALREADY_EXISTS, "errors");

  REFUSED(wherry_stream_post(NULL, columns, 1, NULL, &ticket, &why), WHERRY_INVALID_ARGUMENT, "stream is NULL");
  REFUSED(wherry_stream_post(stream, NULL, 1, NULL, &ticket, &why), WHERRY_INVALID_ARGUMENT, "columns is NULL");
  REFUSED(wherry_stream_post(stream, columns, 2, NULL, &ticket, &why), WHERRY_INVALID_ARGUMENT, "");
  REFUSED(wherry_stream_post_raw(stream, NULL, 0, NULL, &ticket, &why), WHERRY_INVALID_ARGUMENT, "raw");
  columns[0].rows = -1;
  REFUSED(wherry_stream_post(stream, columns, 1, NULL, &ticket, &why), WHERRY_INVALID_ARGUMENT, "x");
  columns[0].rows = 4;
  columns[0].validity = (const uint8_t*)"\x0d";
  columns[0].null_count = 1;
  REFUSED(wherry_stream_post(stream, columns, 1, NULL, &ticket, &why), WHERRY_INVALID_ARGUMENT, "'x': 1 of its 4 rows");
  columns[0].null_count = 0;
  columns[0].values = NULL;
  REFUSED(wherry_stream_post(stream, columns, 1, NULL, &ticket, &why), WHERRY_INVALID_ARGUMENT, "x");
  CHECK(ticket.id == 0);
  CHECK(wherry_stream_post(stream, columns, 1, NULL, &ticket, NULL) == WHERRY_INVALID_ARGUMENT);
  REFUSED(wherry_session_close(session, &why), WHERRY_FAILED_PRECONDITION, "close them first");
  OK(wherry_stream_close(stream, &why));
  OK(wherry_session_close(session, &why));
  return NULL;
}

/// Two tickets, and a stream whose second frame waits until `read` has read the first. The agent's budget is 8 MiB.
const char* c_ticket_errors(const char* session_file, void (*read)(void)) {
  enum { kTooMany = 2 << 20 };
  const wherry_field x = {.name = "x", .format = "g"};
  static const double values[4] = {1, 2, 3, 4};
  wherry_column column = {.values = values, .rows = 4};
  const wherry_ticket none = {0};
  wherry_session* session = NULL;
  wherry_stream* stream = NULL;
  wherry_region* region = NULL;
  wherry_session_options options;
  wherry_post_options post;
  wherry_ticket first;
  wherry_ticket second;
  wherry_ticket third;
  uint64_t number = 5;
  size_t count = 0;
  int ready = 5;
  REFUSED(wherry_ticket_ready(none, &ready, &why), WHERRY_INVALID_ARGUMENT, "empty ticket");
  REFUSED(wherry_ticket_wait(none, 0, &why), WHERRY_INVALID_ARGUMENT, "empty ticket");
  REFUSED(wherry_ticket_sequence(none, &number, &why), WHERRY_INVALID_ARGUMENT, "empty ticket");
  REFUSED(wherry_ticket_transfer_ns(none, &number, &why), WHERRY_INVALID_ARGUMENT, "empty ticket");
  CHECK(number == 5 && ready == 5);

  OK(wherry_session_options_init(&options, sizeof options));
  options.agent = session_file;
  options.max_tickets = 2;
  OK(wherry_session_open(&options, &session, &why));
  OK(wherry_region_register(session, values, sizeof values, &region, &why));
  wherry_stream_options full = named("full");
  full.keep_frames = 1;
  full.when_full = WHERRY_WAIT_FOR_READER;
  OK(wherry_stream_open_fields(session, &full, &x, 1, &stream, &why));
  OK(wherry_stream_post(stream, &column, 1, NULL, &first, &why));
  OK(wherry_ticket_wait(first, 10 * SECONDS, &why));
  REFUSED(wherry_ticket_ready(first, NULL, &why), WHERRY_INVALID_ARGUMENT, "ready is NULL");
  REFUSED(wherry_ticket_sequence(first, NULL, &why), WHERRY_INVALID_ARGUMENT, "sequence is NULL");
  REFUSED(wherry_ticket_transfer_ns(first, NULL, &why), WHERRY_INVALID_ARGUMENT, "nanoseconds is NULL");

  OK(wherry_stream_post(stream, &column, 1, NULL, &second, &why));
  REFUSED(wherry_ticket_wait(second, SECONDS / 100, &why), WHERRY_DEADLINE_EXCEEDED, "offload 2");
  REFUSED(wherry_ticket_wait(second, -1, &why), WHERRY_DEADLINE_EXCEEDED, "offload 2");
  REFUSED(wherry_session_drain(session, 0, &why), WHERRY_DEADLINE_EXCEEDED, "in flight");
  REFUSED(wherry_ticket_sequence(second, &number, &why), WHERRY_FAILED_PRECONDITION, "in flight");
  OK(wherry_ticket_ready(second, &ready, &why));
  CHECK(ready == 0);
  OK(wherry_session_in_flight(session, &count, &why));
  CHECK(count == 1);
  REFUSED(wherry_region_unregister(region, &why), WHERRY_FAILED_PRECONDITION, "in flight");

  // The third post times out, so no ticket is free for a fourth post.
  OK(wherry_post_options_init(&post, sizeof post));
  post.deadline_ns = SECONDS / 50;
  OK(wherry_stream_post(stream, &column, 1, &post, &third, &why));
  post.wait_for_ticket_ns = SECONDS / 100;
  REFUSED(wherry_stream_post(stream, &column, 1, NULL, &first, &why), WHERRY_WOULD_BLOCK, "would block");
  REFUSED(wherry_stream_post(stream, &column, 1, &post, &first, &why), WHERRY_WOULD_BLOCK, "would block");
  CHECK(first.id == 1);  // written on success only
  REFUSED(wherry_ticket_wait(third, 10 * SECONDS, &why), WHERRY_CANCELLED, "deadline that was given");
  read();
  OK(wherry_ticket_wait(second, 10 * SECONDS, &why));
  REFUSED(wherry_ticket_wait(third, 10 * SECONDS, &why), WHERRY_CANCELLED, "deadline that was given");
  OK(wherry_ticket_ready(third, &ready, &why));
  CHECK(ready == 1);
  REFUSED(wherry_ticket_sequence(third, &number, &why), WHERRY_FAILED_PRECONDITION, "failed");
  REFUSED(wherry_ticket_sequence(first, &number, &why), WHERRY_NOT_FOUND, "too long ago");
  CHECK(number == 5);
  OK(wherry_region_unregister(region, &why));

  OK(wherry_stream_close(stream, &why));

  // This offload fails, and no wait reports it before drain.
  double* const large = calloc(kTooMany, sizeof *large);
  CHECK(large != NULL);
  const wherry_stream_options too_large = named("too_large");
  OK(wherry_stream_open_fields(session, &too_large, &x, 1, &stream, &why));
  column.values = large;
  column.rows = kTooMany;
  OK(wherry_stream_post(stream, &column, 1, NULL, NULL, &why));
  REFUSED(wherry_session_drain(session, 10 * SECONDS, &why), WHERRY_RESOURCE_EXHAUSTED, "budget");
  OK(wherry_session_drain(session, 10 * SECONDS, &why));  // told once
  free(large);
  OK(wherry_stream_close(stream, &why));
  OK(wherry_session_close(session, &why));
  return NULL;
}

/// `stop` ends the agent under the session.
const char* c_agent_dies(const char* session_file, void (*stop)(void)) {
  const wherry_field x = {.name = "x", .format = "g"};
  const double value = 1;
  const wherry_column column = {.values = &value, .rows = 1};
  wherry_session* session = NULL;
  wherry_stream* stream = NULL;
  wherry_memory* memory = NULL;
  void* data = NULL;
  wherry_ticket ticket = {0};
  OK(open_session(session_file, &session));
  const wherry_stream_options options = named("dies");
  OK(wherry_stream_open_fields(session, &options, &x, 1, &stream, &why));
  OK(wherry_memory_allocate(session, 4096, &memory, &data, &why));
  stop();
  memset(&why, 0, sizeof why);
  const int status = wherry_stream_post(stream, &column, 1, NULL, &ticket, &why);
  if (status == WHERRY_OK) {
    CHECK(wherry_ticket_wait(ticket, 10 * SECONDS, &why) != WHERRY_OK);
  }
  CHECK(why.status == WHERRY_UNAVAILABLE || why.status == WHERRY_CANCELLED);
  CHECK(wherry_stream_close(stream, &why) != WHERRY_OK);  // the handle is gone all the same
  OK(wherry_memory_free(memory, &why));
  OK(wherry_session_close(session, &why));
  return NULL;
}

// ---------------------------------------------------------------- programs of other versions

/// A struct of a later version, with fields at the end that this library does not know.
struct later_session_options {
  wherry_session_options now;
  uint64_t more[2];
};
struct later_info {
  wherry_session_info now;
  const char* more;
};

const char* c_struct_sizes(const char* session_file) {
  wherry_session* session = NULL;
  wherry_stream* stream = NULL;
  struct later_session_options later;
  struct later_info info;
  wherry_session_options options;
  wherry_stream_options stream_options;
  wherry_post_options post;
  const wherry_field x = {.name = "x", .format = "g"};
  const double value = 1;
  const wherry_column column = {.values = &value, .rows = 1};

  // A size that is too small: the struct was not initialised.
  CHECK(wherry_session_options_init(NULL, sizeof options) == WHERRY_INVALID_ARGUMENT);
  CHECK(wherry_session_options_init(&options, sizeof options - 1) == WHERRY_INVALID_ARGUMENT);
  CHECK(wherry_stream_options_init(&stream_options, 71) == WHERRY_INVALID_ARGUMENT);
  CHECK(wherry_post_options_init(&post, 0) == WHERRY_INVALID_ARGUMENT);
  memset(&options, 0, sizeof options);
  REFUSED(wherry_session_open(&options, &session, &why), WHERRY_INVALID_ARGUMENT, "wherry_session_options_init");

  // A larger size: init sets the unknown end to zero, and it must remain zero.
  memset(&later, 0xff, sizeof later);
  OK(wherry_session_options_init(&later.now, sizeof later));
  CHECK(later.now.size == sizeof later && later.more[0] == 0 && later.more[1] == 0);
  CHECK(later.now.max_tickets == 256 && later.now.embedded_core == -1 && later.now.embedded_flight == 1);
  CHECK(later.now.connect_timeout_ns == 10 * SECONDS && later.now.embedded_budget_bytes == UINT64_C(1) << 30);
  later.now.agent = session_file;
  later.more[1] = 1;
  REFUSED(wherry_session_open(&later.now, &session, &why), WHERRY_UNSUPPORTED, "does not know");
  later.more[1] = 0;
  OK(wherry_session_open(&later.now, &session, &why));

  memset(&info, 0xff, sizeof info);
  info.now.size = sizeof info;
  OK(wherry_session_get_info(session, &info.now, &why));
  CHECK(info.more == NULL && info.now.agent_pid > 0 && info.now.size == sizeof info);
  info.now.size = sizeof info.now - 1;
  REFUSED(wherry_session_get_info(session, &info.now, &why), WHERRY_INVALID_ARGUMENT, "info->size");

  stream_options = named("sizes");
  CHECK(stream_options.keep_frames == 16 && stream_options.strategy == WHERRY_STRATEGY_IPC);
  stream_options.size = 8;
  REFUSED(wherry_stream_open_fields(session, &stream_options, &x, 1, &stream, &why), WHERRY_INVALID_ARGUMENT,
          "size is 8");
  stream_options.size = sizeof stream_options;
  OK(wherry_stream_open_fields(session, &stream_options, &x, 1, &stream, &why));
  memset(&post, 0, sizeof post);
  REFUSED(wherry_stream_post(stream, &column, 1, &post, NULL, &why), WHERRY_INVALID_ARGUMENT,
          "wherry_post_options_init");
  OK(wherry_post_options_init(&post, sizeof post));
  OK(wherry_stream_post(stream, &column, 1, &post, NULL, &why));
  OK(wherry_session_drain(session, 10 * SECONDS, &why));
  OK(wherry_stream_close(stream, &why));
  OK(wherry_session_close(session, &why));
  return NULL;
}
