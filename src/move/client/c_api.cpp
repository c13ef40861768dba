// SPDX-License-Identifier: Apache-2.0
// The C ABI: thin functions on the C++ classes. What they add: no exception passes, sized structs, and a session that
// counts what belongs to it, so that closing in the wrong order is an error instead of a crash.
#include <fmt/core.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "base/c_abi.hpp"
#include "move/c_import.hpp"
#include "move/client/session_core.hpp"
#include "move/format.hpp"
#include "wherry/move.hpp"
#include "wherry/wherry.h"

using wherry::ok_status;
using wherry::Result;
using wherry::Status;
using wherry::StatusCode;
using wherry::c_abi::give_defaults;
using wherry::c_abi::guarded;
using wherry::c_abi::invalid;
using wherry::c_abi::is_null;
using wherry::c_abi::take_options;

struct wherry_session {
  wherry::Session session;
  std::string text;          ///< of info
  std::size_t children = 0;  ///< memory, regions and streams that are open
};

struct wherry_memory {
  wherry_session* owner;
  wherry::Memory memory;
};

struct wherry_region {
  wherry_session* owner;
  wherry::Region region;
};

struct wherry_stream {
  wherry_session* owner;
  wherry::Stream stream;
  bool raw;
  // Reused, so that a warm post does not allocate.
  wherry::move::ColumnTree tree;
  std::vector<wherry::Column> columns, items;
  std::vector<std::span<const std::byte>> buffers;
};

namespace {

// ---------------------------------------------------------------- status and errors

static_assert(WHERRY_INTERNAL == static_cast<int>(StatusCode::kInternal));
static_assert(WHERRY_SOURCE_FAULT == static_cast<int>(StatusCode::kSourceFault));
static_assert(WHERRY_STRATEGY_C_ABI == static_cast<int>(wherry::Strategy::kCAbi));
static_assert(WHERRY_TRANSPORT_RDMA == static_cast<int>(wherry::Transport::kRdma));
static_assert(WHERRY_WAIT_FOR_READER == static_cast<int>(wherry::Retention::WhenFull::kWait));
static_assert(WHERRY_SINK_PARQUET == static_cast<int>(wherry::Sink::Format::kParquet));

// ---------------------------------------------------------------- sized structs

// Size of each struct in its first version: smaller ones were never initialised. When a field is appended, these stay.
constexpr std::size_t kSessionOptionsFirst = 80;
constexpr std::size_t kSessionInfoFirst = 64;
constexpr std::size_t kStreamOptionsFirst = 72;
constexpr std::size_t kPostOptionsFirst = 32;
static_assert(sizeof(wherry_session_options) == 80 && sizeof(wherry_session_info) == 64);
static_assert(sizeof(wherry_stream_options) == 72 && sizeof(wherry_post_options) == 32);
// These cannot grow within one WHERRY_ABI_VERSION.
static_assert(sizeof(wherry_error) == 1024 && sizeof(wherry_field) == 24 && sizeof(wherry_column) == 32);
static_assert(sizeof(wherry_ticket) == 16 && sizeof(wherry_buffer) == 16);

wherry_session_options session_defaults() noexcept {
  const wherry::SessionOptions d;
  wherry_session_options o{};
  o.connect_timeout_ns = std::chrono::nanoseconds(d.connect_timeout).count();
  o.max_tickets = d.max_tickets;
  o.transport = static_cast<std::int32_t>(d.transport);
  o.embedded_budget_bytes = d.embedded.budget_bytes;
  o.embedded_core = d.embedded.core;
  o.embedded_flight = d.embedded.flight ? 1 : 0;
  return o;
}

wherry_stream_options stream_defaults() noexcept {
  const wherry::StreamOptions d;
  wherry_stream_options o{};
  o.strategy = static_cast<std::int32_t>(d.strategy);
  o.keep_frames = d.retention.frames;
  o.keep_bytes = d.retention.bytes;
  o.when_full = static_cast<std::int32_t>(d.retention.when_full);
  o.sink_format = static_cast<std::int32_t>(d.sink.format);
  return o;
}

std::chrono::nanoseconds time(std::int64_t ns) noexcept {
  return std::chrono::nanoseconds(std::max<std::int64_t>(ns, 0));
}

/// An enum of the C++ API, if `value` is one of 0 .. last.
template <typename Enum>
Status take_enum(std::int32_t value, Enum last, const char* name, Enum& out) {
  if (value < 0 || value > static_cast<std::int32_t>(last))
    return invalid(fmt::format("{} = {}: want 0 to {}", name, value, static_cast<std::int32_t>(last)));
  out = static_cast<Enum>(value);
  return ok_status();
}

Result<wherry::SessionOptions> session_options(const wherry_session_options* given) {
  wherry_session_options o = session_defaults();
  if (Status s = take_options(given, kSessionOptionsFirst, "wherry_session_options", o); !s) return s;
  wherry::SessionOptions out;
  if (o.agent != nullptr) out.agent = o.agent;
  if (o.token != nullptr) out.token = o.token;
  if (o.name != nullptr) out.name = o.name;
  if (Status s = take_enum(o.transport, wherry::Transport::kRdma, "transport", out.transport); !s) return s;
  out.connect_timeout = std::chrono::duration_cast<std::chrono::milliseconds>(time(o.connect_timeout_ns));
  out.max_tickets = o.max_tickets;
  if (o.embedded_program != nullptr) out.embedded.program = o.embedded_program;
  for (const char* const* a = o.embedded_arguments; a != nullptr && *a != nullptr; ++a) {
    out.embedded.arguments.emplace_back(*a);
  }
  out.embedded.budget_bytes = o.embedded_budget_bytes;
  out.embedded.core = o.embedded_core;
  out.embedded.flight = o.embedded_flight != 0;
  return out;
}

Result<wherry::StreamOptions> stream_options(const wherry_stream_options* given) {
  if (given == nullptr) return is_null("options (a stream needs a name)");
  wherry_stream_options o = stream_defaults();
  if (Status s = take_options(given, kStreamOptionsFirst, "wherry_stream_options", o); !s) return s;
  if (o.name == nullptr) return is_null("options->name");
  if (o.announced_bytes == nullptr && o.announced_count != 0) return is_null("options->announced_bytes");
  if (o.reserved != 0) return invalid("options->reserved is not 0: was wherry_stream_options_init called?");
  wherry::StreamOptions out;
  out.name = o.name;
  if (Status s = take_enum(o.strategy, wherry::Strategy::kCAbi, "strategy", out.strategy); !s) return s;
  auto& when_full = out.retention.when_full;
  if (Status s = take_enum(o.when_full, wherry::Retention::WhenFull::kWait, "when_full", when_full); !s) return s;
  if (Status s = take_enum(o.sink_format, wherry::Sink::Format::kParquet, "sink_format", out.sink.format); !s) return s;
  out.retention.frames = o.keep_frames;
  out.retention.bytes = o.keep_bytes;
  if (o.sink_directory != nullptr) out.sink.directory = o.sink_directory;
  out.announced_bytes.assign(o.announced_bytes, o.announced_bytes + o.announced_count);
  return out;
}

// ---------------------------------------------------------------- streams and tickets

Result<wherry::Field> plain_field(const wherry_field& f, std::size_t at) {
  if (f.name == nullptr || f.format == nullptr)
    return is_null(fmt::format("{} of field {}", f.name == nullptr ? "name" : "format", at).c_str());
  const auto format = wherry::move::parse_format(f.format);
  if (format.verdict == wherry::move::Format::Verdict::kKnown && format.kind != wherry::move::Kind::kFixed &&
      format.kind != wherry::move::Kind::kBool) {
    return Status(StatusCode::kUnsupported,
                  fmt::format("field '{}': format '{}' has no fixed width: describe it by an ArrowSchema, "
                              "wherry_stream_open",
                              f.name, f.format));
  }
  if (f.values_per_row > INT_MAX) return invalid(fmt::format("field '{}': values_per_row is too large", f.name));
  const bool nullable = f.nullable != 0;
  if (f.values_per_row < 2) return wherry::field(f.name, f.format, nullable);
  return wherry::fixed_size_list(f.name, static_cast<int>(f.values_per_row), wherry::field("item", f.format), nullable);
}

Status open_stream(wherry_session* session, const wherry_stream_options* options, const wherry::Schema& schema,
                   wherry_stream** stream, std::string schema_metadata = {}) {
  auto full = stream_options(options);
  if (!full) return full.status();
  full->schema_metadata = std::move(schema_metadata);
  auto opened = session->session.open_stream(*full, schema);
  if (!opened) return opened.status();
  const bool raw = full->strategy == wherry::Strategy::kRaw;
  *stream = new wherry_stream{session, *std::move(opened), raw, {}, {}, {}, {}};
  ++session->children;
  return ok_status();
}

/// Views of the caller's columns by the stream's schema; only plain ones can be expressed, flatten refuses the others.
Status plain_columns(wherry_stream& stream, std::span<const wherry_column> given) {
  const wherry::Schema& schema = stream.stream.schema();
  stream.columns.resize(given.size());
  stream.items.resize(given.size());
  for (std::size_t i = 0; i < given.size(); ++i) {
    wherry::Column& column = stream.columns[i] = {};
    column.length = given[i].rows;
    column.null_count = given[i].null_count;
    column.validity = given[i].validity;
    if (i >= schema.size() || !schema[i].format.starts_with("+w:")) {
      column.values = given[i].values;
      continue;
    }
    wherry::Column& item = stream.items[i] = {};
    const std::int64_t per_row = wherry::move::parse_format(schema[i].format).list_size;
    if (__builtin_mul_overflow(given[i].rows, per_row, &item.length))
      return invalid(fmt::format("column '{}': {} rows are too many", schema[i].name, given[i].rows));
    item.values = given[i].values;
    column.children = std::span<const wherry::Column>(&item, 1);
  }
  return ok_status();
}

/// What the three kinds of post share. `body` posts with the options that it is given.
template <typename Body>
int post(wherry_stream* stream, const wherry_post_options* options, wherry_ticket* ticket, wherry_error* error,
         Body&& body) noexcept {
  return guarded(error, [&]() -> Status {
    if (stream == nullptr) return is_null("stream");
    wherry_post_options o{};
    if (Status s = take_options(options, kPostOptionsFirst, "wherry_post_options", o); !s) return s;
    Result<wherry::Ticket> posted =
        body({.tag = o.tag, .deadline = time(o.deadline_ns), .wait_for_ticket = time(o.wait_for_ticket_ns)});
    if (!posted) return posted.status();
    if (ticket != nullptr) *ticket = {posted->id(), stream->owner};
    return ok_status();
  });
}

Result<wherry::detail::SessionCore*> core_of(const wherry_ticket& ticket) {
  if (ticket.opaque == nullptr || ticket.id == 0) return invalid("an empty ticket: no post has filled it");
  return static_cast<wherry_session*>(ticket.opaque)->session.core();
}

/// The record of an offload that succeeded.
Result<const wherry::fabric::CompletionRecord*> record_of(const wherry_ticket& ticket) {
  auto core = core_of(ticket);
  if (!core) return core.status();
  if (!(*core)->ready(ticket.id))
    return Status(StatusCode::kFailedPrecondition, fmt::format("offload {} is still in flight", ticket.id));
  const auto* record = (*core)->outcome(ticket.id);
  if (record == nullptr)
    return Status(StatusCode::kNotFound,
                  fmt::format("offload {} is too long ago: its record was used again", ticket.id));
  if (static_cast<StatusCode>(record->word & 0xff) != StatusCode::kOk)
    return Status(StatusCode::kFailedPrecondition,
                  fmt::format("offload {} failed: wherry_ticket_wait says why", ticket.id));
  return record;
}

}  // namespace

// ---------------------------------------------------------------- library

const char* wherry_version(void) { return wherry::kVersion; }
int wherry_abi_version(void) { return WHERRY_ABI_VERSION; }

const char* wherry_status_name(int status) {
  // The texts are literals, so they end with a zero.
  return status < 0 || status > WHERRY_INTERNAL ? "unknown" : wherry::to_string(static_cast<StatusCode>(status)).data();
}

// ---------------------------------------------------------------- session

int wherry_session_options_init(wherry_session_options* options, size_t size) {
  return give_defaults(options, size, kSessionOptionsFirst, session_defaults());
}

int wherry_session_open(const wherry_session_options* options, wherry_session** session, wherry_error* error) {
  return guarded(error, [&]() -> Status {
    if (session == nullptr) return is_null("session");
    auto full = session_options(options);
    if (!full) return full.status();
    auto opened = wherry::Session::open(*full);
    if (!opened) return opened.status();
    std::string text = opened->info().to_string();
    *session = new wherry_session{*std::move(opened), std::move(text)};
    return ok_status();
  });
}

int wherry_session_close(wherry_session* session, wherry_error* error) {
  return guarded(error, [&]() -> Status {
    if (session != nullptr && session->children != 0) {
      return {StatusCode::kFailedPrecondition,
              fmt::format("{} streams, regions or pieces of memory of this session are open: close them first",
                          session->children)};
    }
    delete session;
    return ok_status();
  });
}

int wherry_session_get_info(const wherry_session* session, wherry_session_info* info, wherry_error* error) {
  return guarded(error, [&]() -> Status {
    if (session == nullptr) return is_null("session");
    if (info == nullptr) return is_null("info");
    const std::size_t size = info->size;
    const wherry::SessionInfo& from = session->session.info();
    wherry_session_info to{};
    to.agent_version = from.agent_version.c_str();
    to.transports = from.transports.c_str();
    to.session_file = from.session_file.c_str();
    to.flight_uri = from.flight_uri.c_str();
    to.text = session->text.c_str();
    to.agent_pid = from.agent_pid;
    to.heap_one_sided = from.heap == wherry::Verdict::kOneSided ? 1 : 0;
    to.allocated_one_sided = from.allocated == wherry::Verdict::kOneSided ? 1 : 0;
    to.mapped = from.mapped ? 1 : 0;
    if (give_defaults(info, size, kSessionInfoFirst, to) != WHERRY_OK)
      return invalid(fmt::format("info->size is {}: set it to sizeof(wherry_session_info)", size));
    return ok_status();
  });
}

int wherry_session_in_flight(wherry_session* session, size_t* count, wherry_error* error) {
  return guarded(error, [&]() -> Status {
    if (session == nullptr) return is_null("session");
    if (count == nullptr) return is_null("count");
    *count = session->session.in_flight();
    return ok_status();
  });
}

int wherry_session_drain(wherry_session* session, int64_t timeout_ns, wherry_error* error) {
  return guarded(error, [&]() -> Status {
    if (session == nullptr) return is_null("session");
    return session->session.drain(time(timeout_ns));
  });
}

// ---------------------------------------------------------------- memory

int wherry_memory_allocate(wherry_session* session, size_t bytes, wherry_memory** memory, void** data,
                           wherry_error* error) {
  return guarded(error, [&]() -> Status {
    if (session == nullptr) return is_null("session");
    if (memory == nullptr || data == nullptr) return is_null(memory == nullptr ? "memory" : "data");
    auto allocated = session->session.allocate(bytes);
    if (!allocated) return allocated.status();
    void* const at = allocated->bytes().data();
    *memory = new wherry_memory{session, *std::move(allocated)};
    *data = at;
    ++session->children;
    return ok_status();
  });
}

int wherry_memory_free(wherry_memory* memory, wherry_error* error) {
  return guarded(error, [&] {
    if (memory != nullptr) --memory->owner->children;
    delete memory;
    return ok_status();
  });
}

int wherry_region_register(wherry_session* session, const void* data, size_t bytes, wherry_region** region,
                           wherry_error* error) {
  return guarded(error, [&]() -> Status {
    if (session == nullptr) return is_null("session");
    if (region == nullptr) return is_null("region");
    auto registered = session->session.register_memory(data, bytes);
    if (!registered) return registered.status();
    *region = new wherry_region{session, *std::move(registered)};
    ++session->children;
    return ok_status();
  });
}

int wherry_region_unregister(wherry_region* region, wherry_error* error) {
  return guarded(error, [&]() -> Status {
    if (region == nullptr) return ok_status();
    if (Status s = region->region.unregister(); !s) return s;
    --region->owner->children;
    delete region;
    return ok_status();
  });
}

// ---------------------------------------------------------------- streams

int wherry_stream_options_init(wherry_stream_options* options, size_t size) {
  return give_defaults(options, size, kStreamOptionsFirst, stream_defaults());
}

int wherry_stream_open(wherry_session* session, const wherry_stream_options* options, const struct ArrowSchema* schema,
                       wherry_stream** stream, wherry_error* error) {
  return guarded(error, [&]() -> Status {
    if (session == nullptr) return is_null("session");
    if (stream == nullptr) return is_null("stream");
    if (schema == nullptr) {
      auto full = stream_options(options);
      if (!full) return full.status();
      if (full->strategy != wherry::Strategy::kRaw) return is_null("schema (only a raw stream has none)");
      return open_stream(session, options, {}, stream);
    }
    std::string metadata;
    auto fields = wherry::move::from_c_schema(*schema, &metadata);
    if (!fields) return fields.status();
    return open_stream(session, options, *fields, stream, std::move(metadata));
  });
}

int wherry_stream_open_fields(wherry_session* session, const wherry_stream_options* options, const wherry_field* fields,
                              size_t count, wherry_stream** stream, wherry_error* error) {
  return guarded(error, [&]() -> Status {
    if (session == nullptr) return is_null("session");
    if (stream == nullptr) return is_null("stream");
    if (fields == nullptr && count != 0) return is_null("fields");
    wherry::Schema schema;
    for (std::size_t i = 0; i < count; ++i) {
      auto field = plain_field(fields[i], i);
      if (!field) return field.status();
      schema.push_back(*std::move(field));
    }
    return open_stream(session, options, schema, stream);
  });
}

int wherry_stream_close(wherry_stream* stream, wherry_error* error) {
  if (stream == nullptr) return WHERRY_OK;
  const std::unique_ptr<wherry_stream> handle(stream);
  --handle->owner->children;
  return guarded(error, [&] { return handle->stream.close(); });
}

// ---------------------------------------------------------------- posting

int wherry_post_options_init(wherry_post_options* options, size_t size) {
  return give_defaults(options, size, kPostOptionsFirst, wherry_post_options{});
}

int wherry_stream_post(wherry_stream* stream, const wherry_column* columns, size_t count,
                       const wherry_post_options* options, wherry_ticket* ticket, wherry_error* error) {
  return post(stream, options, ticket, error, [&](const wherry::OffloadOptions& o) -> Result<wherry::Ticket> {
    if (columns == nullptr && count != 0) return is_null("columns");
    if (Status s = plain_columns(*stream, {columns, count}); !s) return s;
    return stream->stream.post(stream->columns, o);
  });
}

int wherry_stream_post_arrow(wherry_stream* stream, const struct ArrowArray* batch, const wherry_post_options* options,
                             wherry_ticket* ticket, wherry_error* error) {
  return post(stream, options, ticket, error, [&](const wherry::OffloadOptions& o) -> Result<wherry::Ticket> {
    if (batch == nullptr) return is_null("batch");
    if (!stream->raw) {
      Status s = wherry::move::columns_from_c_array(stream->stream.schema(), *batch, stream->tree);
      if (!s) return s;
    }
    return stream->stream.post(stream->tree.columns(), o);  // which refuses a raw stream
  });
}

int wherry_stream_post_raw(wherry_stream* stream, const wherry_buffer* buffers, size_t count,
                           const wherry_post_options* options, wherry_ticket* ticket, wherry_error* error) {
  return post(stream, options, ticket, error, [&](const wherry::OffloadOptions& o) -> Result<wherry::Ticket> {
    if (buffers == nullptr && count != 0) return is_null("buffers");
    stream->buffers.clear();
    for (std::size_t i = 0; i < count; ++i) {
      if (buffers[i].data == nullptr && buffers[i].bytes != 0)
        return is_null(fmt::format("data of buffer {}", i).c_str());
      stream->buffers.emplace_back(static_cast<const std::byte*>(buffers[i].data), buffers[i].bytes);
    }
    return stream->stream.post_raw(stream->buffers, o);
  });
}

int wherry_ticket_ready(wherry_ticket ticket, int* ready, wherry_error* error) {
  return guarded(error, [&]() -> Status {
    auto core = core_of(ticket);
    if (!core) return core.status();
    if (ready == nullptr) return is_null("ready");
    *ready = (*core)->ready(ticket.id) ? 1 : 0;
    return ok_status();
  });
}

int wherry_ticket_wait(wherry_ticket ticket, int64_t timeout_ns, wherry_error* error) {
  return guarded(error, [&]() -> Status {
    auto core = core_of(ticket);
    if (!core) return core.status();
    return (*core)->wait(ticket.id, time(timeout_ns));
  });
}

int wherry_ticket_transfer_ns(wherry_ticket ticket, uint64_t* nanoseconds, wherry_error* error) {
  return guarded(error, [&]() -> Status {
    if (nanoseconds == nullptr) return is_null("nanoseconds");
    auto record = record_of(ticket);
    if (!record) return record.status();
    *nanoseconds = (*record)->transfer_ns;
    return ok_status();
  });
}

int wherry_ticket_sequence(wherry_ticket ticket, uint64_t* sequence, wherry_error* error) {
  return guarded(error, [&]() -> Status {
    if (sequence == nullptr) return is_null("sequence");
    auto record = record_of(ticket);
    if (!record) return record.status();
    *sequence = (*record)->sequence;
    return ok_status();
  });
}
