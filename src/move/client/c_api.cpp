// SPDX-License-Identifier: Apache-2.0
// The C ABI of move.hpp: streams, posting, tickets. session/c_api.cpp says what the C ABI adds to the C++ classes.
#include <fmt/core.h>

#include <climits>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/try.hpp"
#include "move/c_import.hpp"
#include "move/format.hpp"
#include "session/c_handles.hpp"
#include "session/session_core.hpp"
#include "wherry/move.hpp"

using wherry::ok_status;
using wherry::Result;
using wherry::Status;
using wherry::StatusCode;
using wherry::c_abi::give_defaults;
using wherry::c_abi::guarded;
using wherry::c_abi::invalid;
using wherry::c_abi::is_null;
using wherry::c_abi::take_enum;
using wherry::c_abi::take_options;
using wherry::c_abi::time;

struct wherry_stream {
  wherry_session* owner;
  wherry::Stream stream;
  bool raw;
  // Reused, so that a warm post does not allocate.
  wherry::move::ColumnTree tree;
  std::vector<wherry::Column> columns, items;
  std::vector<std::span<const std::byte>> buffers;
};

struct wherry_step {
  wherry_session* owner;
  wherry::Step step;
};

namespace {

static_assert(WHERRY_STRATEGY_C_ABI == static_cast<int>(wherry::Strategy::kCAbi));
static_assert(WHERRY_WAIT_FOR_READER == static_cast<int>(wherry::Retention::WhenFull::kWait));
static_assert(WHERRY_SINK_PARQUET == static_cast<int>(wherry::Sink::Format::kParquet));

// The size of each struct in its first version. A smaller size is not valid. Do not change them when a field is added.
constexpr std::size_t kStreamOptionsFirst = 72;
constexpr std::size_t kPostOptionsFirst = 32;
static_assert(sizeof(wherry_stream_options) == 88 && sizeof(wherry_post_options) == 32);
// These structs cannot grow within one WHERRY_ABI_VERSION.
static_assert(sizeof(wherry_field) == 24 && sizeof(wherry_column) == 32);
static_assert(sizeof(wherry_ticket) == 16 && sizeof(wherry_buffer) == 16);

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

Result<wherry::StreamOptions> stream_options(const wherry_stream_options* given) {
  if (given == nullptr) return is_null("options (a stream needs a name)");
  wherry_stream_options o = stream_defaults();
  WHERRY_TRY(take_options(given, kStreamOptionsFirst, "wherry_stream_options", o));
  if (o.name == nullptr) return is_null("options->name");
  if (o.announced_bytes == nullptr && o.announced_count != 0) return is_null("options->announced_bytes");
  if (o.reserved != 0) return invalid("options->reserved is not 0: was wherry_stream_options_init called?");
  wherry::StreamOptions out;
  out.name = o.name;
  WHERRY_TRY(take_enum(o.strategy, wherry::Strategy::kCAbi, "strategy", out.strategy));
  auto& when_full = out.retention.when_full;
  WHERRY_TRY(take_enum(o.when_full, wherry::Retention::WhenFull::kWait, "when_full", when_full));
  WHERRY_TRY(take_enum(o.sink_format, wherry::Sink::Format::kParquet, "sink_format", out.sink.format));
  out.retention.frames = o.keep_frames;
  out.retention.bytes = o.keep_bytes;
  out.part = o.part;
  out.parts = o.parts;
  if (o.operators != nullptr) out.operators = o.operators;
  if (o.sink_directory != nullptr) out.sink.directory = o.sink_directory;
  out.announced_bytes.assign(o.announced_bytes, o.announced_bytes + o.announced_count);
  return out;
}

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
  WHERRY_ASSIGN(auto full, stream_options(options));
  full.schema_metadata = std::move(schema_metadata);
  WHERRY_ASSIGN(auto opened, wherry::Stream::open(session->session, full, schema));
  const bool raw = full.strategy == wherry::Strategy::kRaw;
  *stream = new wherry_stream{session, std::move(opened), raw, {}, {}, {}, {}};
  ++session->children;
  return ok_status();
}

/// Converts the caller's structs to Columns by the stream's schema. Only for plain columns; flatten refuses others.
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

/// Checks the argument `columns` of plain_columns() and post.
Status check_columns(const wherry_column* columns, std::size_t count) {
  return columns == nullptr && count != 0 ? is_null("columns") : ok_status();
}

/// Views of the caller's buffers.
Status raw_buffers(wherry_stream& stream, const wherry_buffer* buffers, std::size_t count) {
  if (buffers == nullptr && count != 0) return is_null("buffers");
  stream.buffers.clear();
  for (std::size_t i = 0; i < count; ++i) {
    if (buffers[i].data == nullptr && buffers[i].bytes != 0)
      return is_null(fmt::format("data of buffer {}", i).c_str());
    stream.buffers.emplace_back(static_cast<const std::byte*>(buffers[i].data), buffers[i].bytes);
  }
  return ok_status();
}

/// The common part of the three kinds of bind. `body` makes the step.
template <typename Body>
int bind(wherry_stream* stream, wherry_step** step, wherry_error* error, Body&& body) noexcept {
  return guarded(error, [&]() -> Status {
    if (stream == nullptr) return is_null("stream");
    if (step == nullptr) return is_null("step");
    WHERRY_ASSIGN(wherry::Step bound, body());
    *step = new wherry_step{stream->owner, std::move(bound)};
    ++stream->owner->children;
    return ok_status();
  });
}

/// The common part of all posts of a stream or a step. `body` posts with the options that it gets.
template <typename Poster, typename Body>
int post(Poster* stream, const wherry_post_options* options, wherry_ticket* ticket, wherry_error* error,
         Body&& body) noexcept {
  return guarded(error, [&]() -> Status {
    if (stream == nullptr) return is_null(std::is_same_v<Poster, wherry_step> ? "step" : "stream");
    wherry_post_options o{};
    WHERRY_TRY(take_options(options, kPostOptionsFirst, "wherry_post_options", o));
    WHERRY_ASSIGN(const wherry::Ticket posted,
                  body({.tag = o.tag, .deadline = time(o.deadline_ns), .wait_for_ticket = time(o.wait_for_ticket_ns)}));
    if (ticket != nullptr) *ticket = {posted.id(), stream->owner};
    return ok_status();
  });
}

Result<wherry::detail::SessionCore*> core_of(const wherry_ticket& ticket) {
  if (ticket.opaque == nullptr || ticket.id == 0) return invalid("an empty ticket: no post has filled it");
  return static_cast<wherry_session*>(ticket.opaque)->session.core();
}

/// The completion record of a successful offload.
Result<const wherry::session::CompletionRecord*> record_of(const wherry_ticket& ticket) {
  WHERRY_ASSIGN(auto core, core_of(ticket));
  if (!core->ready(ticket.id))
    return Status(StatusCode::kFailedPrecondition, fmt::format("offload {} is still in flight", ticket.id));
  const auto* record = core->outcome(ticket.id);
  if (record == nullptr)
    return Status(StatusCode::kNotFound,
                  fmt::format("offload {} is too long ago: its record was used again", ticket.id));
  if (static_cast<StatusCode>(record->word & 0xff) != StatusCode::kOk)
    return Status(StatusCode::kFailedPrecondition,
                  fmt::format("offload {} failed: wherry_ticket_wait says why", ticket.id));
  return record;
}

}  // namespace

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
      WHERRY_ASSIGN(auto full, stream_options(options));
      if (full.strategy != wherry::Strategy::kRaw) return is_null("schema (only a raw stream has none)");
      return open_stream(session, options, {}, stream);
    }
    std::string metadata;
    WHERRY_ASSIGN(auto fields, wherry::move::from_c_schema(*schema, &metadata));
    return open_stream(session, options, fields, stream, std::move(metadata));
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
      WHERRY_ASSIGN(auto field, plain_field(fields[i], i));
      schema.push_back(std::move(field));
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
    WHERRY_TRY(check_columns(columns, count));
    WHERRY_TRY(plain_columns(*stream, {columns, count}));
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
    WHERRY_TRY(raw_buffers(*stream, buffers, count));
    return stream->stream.post_raw(stream->buffers, o);
  });
}

// ---------------------------------------------------------------- steps

int wherry_stream_bind(wherry_stream* stream, const wherry_column* columns, size_t count, wherry_step** step,
                       wherry_error* error) {
  return bind(stream, step, error, [&]() -> Result<wherry::Step> {
    WHERRY_TRY(check_columns(columns, count));
    WHERRY_TRY(plain_columns(*stream, {columns, count}));
    return stream->stream.bind(stream->columns);
  });
}

int wherry_stream_bind_arrow(wherry_stream* stream, const struct ArrowArray* batch, wherry_step** step,
                             wherry_error* error) {
  return bind(stream, step, error, [&]() -> Result<wherry::Step> {
    if (batch == nullptr) return is_null("batch");
    if (!stream->raw) WHERRY_TRY(wherry::move::columns_from_c_array(stream->stream.schema(), *batch, stream->tree));
    return stream->stream.bind(stream->tree.columns());  // which refuses a raw stream
  });
}

int wherry_stream_bind_raw(wherry_stream* stream, const wherry_buffer* buffers, size_t count, wherry_step** step,
                           wherry_error* error) {
  return bind(stream, step, error, [&]() -> Result<wherry::Step> {
    WHERRY_TRY(raw_buffers(*stream, buffers, count));
    return stream->stream.bind_raw(stream->buffers);
  });
}

int wherry_step_post(wherry_step* step, const wherry_post_options* options, wherry_ticket* ticket,
                     wherry_error* error) {
  return post(step, options, ticket, error, [&](const wherry::OffloadOptions& o) { return step->step.post(o); });
}

int wherry_step_release(wherry_step* step, wherry_error* error) {
  (void)error;
  if (step == nullptr) return WHERRY_OK;
  --step->owner->children;
  delete step;
  return WHERRY_OK;
}

// ---------------------------------------------------------------- tickets

int wherry_ticket_ready(wherry_ticket ticket, int* ready, wherry_error* error) {
  return guarded(error, [&]() -> Status {
    WHERRY_ASSIGN(auto core, core_of(ticket));
    if (ready == nullptr) return is_null("ready");
    *ready = core->ready(ticket.id) ? 1 : 0;
    return ok_status();
  });
}

int wherry_ticket_wait(wherry_ticket ticket, int64_t timeout_ns, wherry_error* error) {
  return guarded(error, [&]() -> Status {
    WHERRY_ASSIGN(auto core, core_of(ticket));
    return core->wait(ticket.id, time(timeout_ns));
  });
}

int wherry_ticket_transfer_ns(wherry_ticket ticket, uint64_t* nanoseconds, wherry_error* error) {
  return guarded(error, [&]() -> Status {
    if (nanoseconds == nullptr) return is_null("nanoseconds");
    WHERRY_ASSIGN(auto record, record_of(ticket));
    *nanoseconds = record->transfer_ns;
    return ok_status();
  });
}

int wherry_ticket_sequence(wherry_ticket ticket, uint64_t* sequence, wherry_error* error) {
  return guarded(error, [&]() -> Status {
    if (sequence == nullptr) return is_null("sequence");
    WHERRY_ASSIGN(auto record, record_of(ticket));
    *sequence = record->sequence;
    return ok_status();
  });
}
