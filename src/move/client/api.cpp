// SPDX-License-Identifier: Apache-2.0
// The public classes of move.hpp. They are thin handles to StreamCore and SessionCore.
#include <fmt/core.h>

#include <filesystem>
#include <utility>

#include "base/hot.hpp"
#include "base/try.hpp"
#include "move/client/post.hpp"
#include "move/client/stream_core.hpp"

namespace wherry {

namespace {

/// Makes a relative directory absolute. The agent cannot do that, because its current directory is different.
Status complete(Sink& sink, const detail::SessionCore& core) {
  if (sink.format == Sink::Format::kNone || sink.directory.starts_with('/')) return ok_status();
  if (!core.agent_is_local()) {
    return {StatusCode::kInvalidArgument,
            fmt::format("sink directory '{}' is relative, and this session does not go through the Unix socket of an "
                        "agent on this machine: give the complete path of a directory of the agent's machine",
                        sink.directory)};
  }
  std::error_code error;
  const auto here = std::filesystem::current_path(error);
  if (error) {
    return {StatusCode::kInvalidArgument,
            fmt::format("sink directory '{}' is relative, and the current directory is unknown: {}", sink.directory,
                        error.message())};
  }
  sink.directory = (here / sink.directory).lexically_normal().string();
  return ok_status();
}

Status closed(const detail::StreamCore& stream) {
  return {StatusCode::kFailedPrecondition, fmt::format("stream '{}' is closed", stream.options.name)};
}

/// Refuses other posts between the two posts of a frame.
Status may_begin(const detail::StreamCore& stream) {
  if (stream.rest.empty()) return ok_status();
  return {StatusCode::kFailedPrecondition,
          fmt::format("stream '{}': the frame before was posted in part: post_rest comes first", stream.options.name)};
}

/// Refuses decreasing tags of a part, because it would wait for steps that are already complete.
Status check_tag(const detail::StreamCore& stream, std::uint64_t tag) {
  if (stream.options.parts == 0 || stream.posted == 0 || tag > stream.last_tag) return ok_status();
  return {StatusCode::kInvalidArgument,
          fmt::format("part {} of stream '{}': tag {} after tag {}: a part posts each step once, and its tags rise",
                      stream.options.part, stream.options.name, tag, stream.last_tag)};
}

void note_posted(detail::StreamCore& stream, std::uint64_t tag) noexcept {
  ++stream.posted;
  stream.last_tag = tag;
}

Status check_count(std::span<const std::span<const std::byte>> buffers) {
  if (buffers.size() <= move::kMaxOffloadBuffers) return ok_status();
  return {StatusCode::kInvalidArgument,
          fmt::format("{} buffers in one offload: at most {}", buffers.size(), move::kMaxOffloadBuffers)};
}

void fill(move::FlatOffload& flat, std::span<const std::span<const std::byte>> buffers) {
  flat.clear();
  for (const auto& buffer : buffers)
    flat.buffers.push_back({reinterpret_cast<std::uint64_t>(buffer.data()), buffer.size(), 0, 0, 0});
}

/// Checks that `flat` of post_rest() describes the frame whose first half post() sent.
Status check_rest(const detail::StreamCore& s) {
  bool same = s.flat.buffers.size() == s.rest.size();
  for (std::size_t i = 0; same && i < s.rest.size(); ++i) {
    same = s.flat.buffers[i].bytes == s.rest[i].bytes;
    if (same && s.rest[i].later && s.flat.buffers[i].address == 0 && s.rest[i].bytes != 0) {
      return {StatusCode::kInvalidArgument, "post_rest takes the values of every column that was to be given later"};
    }
  }
  if (same) return ok_status();
  return {StatusCode::kInvalidArgument, "post_rest takes columns of the same lengths as the post before it"};
}

}  // namespace

// ---------------------------------------------------------------- Stream

Result<Stream> Stream::open(Session& session, const StreamOptions& options, const Schema& schema) {
  detail::SessionCore& core = *session.core();
  if (!move::valid_stream_name(options.name)) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("stream name '{}': want 1 to 255 of A-Z a-z 0-9 . _ -", options.name.substr(0, 64)));
  }
  WHERRY_TRY(move::check_schema_metadata(options.schema_metadata));
  WHERRY_TRY(move::check_parts(options));
  WHERRY_TRY(move::check_operators(options));
  auto stream = std::shared_ptr<detail::StreamCore>(new detail::StreamCore);  // not make_shared: see InHotMemory
  stream->session = &core;
  stream->options = options;
  stream->schema = schema;
  if (options.strategy != Strategy::kRaw) {
    WHERRY_ASSIGN(stream->plan, move::make_plan(schema));
  }
  move::OpenRequest request{options, schema};
  WHERRY_TRY(complete(request.options.sink, core));
  WHERRY_ASSIGN(stream->id, move::open_stream(core, std::move(request)));
  return Stream(std::move(stream));
}

Stream::Stream(std::shared_ptr<detail::StreamCore> core) noexcept : core_(std::move(core)) {}
Stream::Stream(Stream&&) noexcept = default;
Stream& Stream::operator=(Stream&& other) noexcept {
  std::swap(core_, other.core_);
  return *this;
}
Stream::~Stream() {
  if (core_ && core_->open) (void)close();
}

Result<Ticket> Stream::post(std::span<const Column> columns, const OffloadOptions& options) {
  detail::StreamCore& s = *core_;
  if (!s.open) return closed(s);
  if (s.options.strategy == Strategy::kRaw)
    return Status(StatusCode::kInvalidArgument, "a raw stream has no columns: use post_raw");
  WHERRY_TRY(may_begin(s));
  WHERRY_TRY(check_tag(s, options.tag));
  prefetch_for_writing(&s, sizeof s);
  prefetch_for_writing(s.session, sizeof *s.session);
  prefetch_hot_code();
  prefetch(columns);
  prefetch(std::span(s.plan.nodes));
  prefetch(std::span(s.plan.buffers));
  prefetch(std::span(s.plan.sections));
  prefetch_for_writing(s.flat.nodes.data(), s.flat.nodes.size() * sizeof(move::NodeRef));
  prefetch_for_writing(s.flat.buffers.data(), s.flat.buffers.size() * sizeof(move::BufferRef));
  s.session->prefetch_for(s.hints, s.last_message_bytes);
  WHERRY_TRY(move::flatten(s.schema, s.plan, columns, s.flat));
  const std::uint64_t rows = static_cast<std::uint64_t>(columns.front().length);
  const move::Half half = s.flat.later == 0 ? move::Half::kWhole : move::Half::kFirst;
  WHERRY_ASSIGN(auto ticket, move::post(*s.session, s.id, rows, s.flat, s.hints, options, half));
  note_posted(s, options.tag);
  s.last_message_bytes = move::offload_bytes(s.flat, {}, {});
  if (half == move::Half::kFirst) {
    for (const move::BufferRef& buffer : s.flat.buffers)
      s.rest.push_back({buffer.bytes, buffer.bytes != 0 && buffer.address == 0});
  }
  return Ticket(s.session, ticket);
}

Result<Ticket> Stream::post_rest(std::span<const Column> columns, const OffloadOptions& options) {
  detail::StreamCore& s = *core_;
  if (!s.open) return closed(s);
  if (s.rest.empty()) {
    return Status(
        StatusCode::kFailedPrecondition,
        fmt::format("stream '{}': post_rest follows a post with columns that are given later", s.options.name));
  }
  WHERRY_TRY(move::flatten(s.schema, s.plan, columns, s.flat));
  WHERRY_TRY(check_rest(s));
  for (std::size_t i = 0; i < s.rest.size(); ++i) {
    if (!s.rest[i].later) s.flat.buffers[i].address = 0;
  }
  const std::uint64_t rows = static_cast<std::uint64_t>(columns.front().length);
  WHERRY_ASSIGN(auto ticket, move::post(*s.session, s.id, rows, s.flat, s.hints, options, move::Half::kRest));
  ++s.posted;
  s.rest.clear();
  return Ticket(s.session, ticket);
}

Result<Ticket> Stream::post_raw(std::span<const std::span<const std::byte>> buffers, const OffloadOptions& options) {
  detail::StreamCore& s = *core_;
  if (!s.open) return closed(s);
  if (s.options.strategy != Strategy::kRaw)
    return Status(StatusCode::kInvalidArgument, "only a raw stream takes buffers without columns: use post");
  WHERRY_TRY(check_tag(s, options.tag));
  WHERRY_TRY(check_count(buffers));
  fill(s.flat, buffers);
  WHERRY_ASSIGN(auto ticket, move::post(*s.session, s.id, buffers.size(), s.flat, s.hints, options));
  note_posted(s, options.tag);
  return Ticket(s.session, ticket);
}

Result<Step> Stream::bind(std::span<const Column> columns) {
  detail::StreamCore& s = *core_;
  if (!s.open) return closed(s);
  if (s.options.strategy == Strategy::kRaw)
    return Status(StatusCode::kInvalidArgument, "a raw stream has no columns: use bind_raw");
  auto step = std::make_unique<detail::StepCore>();
  WHERRY_TRY(move::flatten(s.schema, s.plan, columns, step->bound.flat));
  if (step->bound.flat.later != 0) {
    return Status(StatusCode::kInvalidArgument,
                  "bind takes whole frames: post and post_rest are for columns that are given later");
  }
  step->bound.flat.roots.clear();
  step->bound.rows = static_cast<std::uint64_t>(columns.front().length);
  return bound(std::move(step));
}

Result<Step> Stream::bind_raw(std::span<const std::span<const std::byte>> buffers) {
  detail::StreamCore& s = *core_;
  if (!s.open) return closed(s);
  if (s.options.strategy != Strategy::kRaw)
    return Status(StatusCode::kInvalidArgument, "only a raw stream takes buffers without columns: use bind");
  WHERRY_TRY(check_count(buffers));
  if (buffers.empty()) return Status(StatusCode::kInvalidArgument, "bind_raw: want at least one buffer");
  auto step = std::make_unique<detail::StepCore>();
  fill(step->bound.flat, buffers);
  step->bound.rows = buffers.size();
  return bound(std::move(step));
}

Result<Step> Stream::bound(std::unique_ptr<detail::StepCore> step) {
  WHERRY_TRY(move::bind(*core_->session, step->bound));
  step->stream = core_;
  return Step(std::move(step));
}

Status Stream::close() {
  if (!core_->open) return ok_status();
  core_->open = false;
  Writer out;
  out.put(core_->id);
  out.put(core_->posted);
  auto answer = core_->session->request(move::kServiceName, "close", out.bytes());
  return answer ? ok_status() : answer.status();
}

const std::string& Stream::name() const noexcept { return core_->options.name; }
const Schema& Stream::schema() const noexcept { return core_->schema; }

// ---------------------------------------------------------------- Step

Step::Step(std::unique_ptr<detail::StepCore> core) noexcept : core_(std::move(core)) {}
Step::Step(Step&&) noexcept = default;
Step& Step::operator=(Step&& other) noexcept {
  std::swap(core_, other.core_);
  return *this;
}
Step::~Step() { release(); }

void Step::release() noexcept {
  if (core_) core_->stream->session->drop_hold(core_->bound.hold);
  core_.reset();
}

Result<Ticket> Step::post(const OffloadOptions& options) {
  if (!core_) return Status(StatusCode::kFailedPrecondition, "the step was released: bind it again");
  detail::StepCore& step = *core_;
  detail::StreamCore& stream = *step.stream;
  prefetch_for_writing(&step, sizeof step);
  prefetch_for_writing(&stream, sizeof stream);
  prefetch_for_writing(stream.session, sizeof *stream.session);
  prefetch_hot_code();
  stream.session->prefetch_for({}, sizeof(move::OffloadHeader));
  if (!stream.open) return closed(stream);
  WHERRY_TRY(may_begin(stream));
  WHERRY_TRY(check_tag(stream, options.tag));
  WHERRY_ASSIGN(auto ticket, move::post(*stream.session, stream.id, step.bound, options));
  note_posted(stream, options.tag);
  return Ticket(stream.session, ticket);
}

std::size_t Step::in_flight() const noexcept {
  return core_ ? core_->stream->session->hold_in_flight(core_->bound.hold) : 0;
}

// ---------------------------------------------------------------- Ticket

bool Ticket::ready() const noexcept { return core_ != nullptr && core_->ready(id_); }

Status Ticket::wait(std::chrono::nanoseconds timeout) const {
  if (core_ == nullptr) return {StatusCode::kInvalidArgument, "an empty ticket: it was not made by post()"};
  return core_->wait(id_, timeout);
}

std::uint64_t Ticket::transfer_ns() const noexcept {
  const auto* record = core_ == nullptr ? nullptr : core_->outcome(id_);
  return record == nullptr ? 0 : record->transfer_ns;
}

std::uint64_t Ticket::sequence() const noexcept {
  const auto* record = core_ == nullptr ? nullptr : core_->outcome(id_);
  return record == nullptr ? 0 : record->sequence;
}

}  // namespace wherry
