// SPDX-License-Identifier: Apache-2.0
// The public classes: thin handles on SessionCore.
#include <fmt/core.h>

#include <filesystem>

#include "base/hot.hpp"
#include "move/client/session_core.hpp"

namespace wherry {

// ---------------------------------------------------------------- Session

Session::Session(std::unique_ptr<detail::SessionCore> core) noexcept : core_(std::move(core)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<Session> Session::open(const SessionOptions& options) {
  auto core = detail::SessionCore::open(options);
  if (!core) return core.status();
  return Session(*std::move(core));
}

const SessionInfo& Session::info() const noexcept { return core_->info(); }
std::size_t Session::in_flight() const noexcept { return core_->in_flight(); }
Status Session::drain(std::chrono::nanoseconds timeout) { return core_->drain(timeout); }

Status Session::close(std::chrono::nanoseconds timeout) {
  if (core_->closed()) return ok_status();
  Status s = core_->drain(timeout);
  (void)core_->leave();
  return s;
}

Result<Memory> Session::allocate(std::size_t bytes) {
  if (bytes == 0) return Status(StatusCode::kInvalidArgument, "allocate(0): want at least one byte");
  auto index = core_->allocate(bytes);
  if (!index) return index.status();
  Memory memory;
  memory.data_ = core_->region_data(*index);
  memory.size_ = bytes;
  memory.region_ = *index;
  memory.core_ = core_.get();
  return memory;
}

Result<Region> Session::register_memory(const void* data, std::size_t bytes) {
  if (data == nullptr || bytes == 0)
    return Status(StatusCode::kInvalidArgument, "register_memory: want an address and at least one byte");
  auto index = core_->register_memory(const_cast<void*>(data), bytes);
  if (!index) return index.status();
  Region region;
  region.core_ = core_.get();
  region.region_ = *index;
  return region;
}

namespace {

/// A directory that is relative starts where this process is: the agent, in another directory, must not be asked.
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

}  // namespace

Result<Stream> Session::open_stream(const StreamOptions& options, const Schema& schema) {
  if (!move::valid_stream_name(options.name)) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("stream name '{}': want 1 to 255 of A-Z a-z 0-9 . _ -", options.name.substr(0, 64)));
  }
  if (Status s = move::check_schema_metadata(options.schema_metadata); !s) return s;
  auto stream = std::make_unique<detail::StreamCore>();
  stream->session = core_.get();
  stream->options = options;
  stream->schema = schema;
  if (options.strategy != Strategy::kRaw) {
    auto plan = move::make_plan(schema);
    if (!plan) return plan.status();
    stream->plan = *std::move(plan);
  }
  move::OpenRequest request{options, schema};
  if (Status s = complete(request.options.sink, *core_); !s) return s;
  auto id = core_->open_stream(request);
  if (!id) return id.status();
  stream->id = *id;
  return Stream(std::move(stream));
}

// ---------------------------------------------------------------- Memory, Region

Memory::Memory(Memory&& other) noexcept
    : core_(std::exchange(other.core_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      region_(other.region_) {}

Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(core_, other.core_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(region_, other.region_);
  return *this;
}

Memory::~Memory() {
  if (core_ != nullptr) core_->remove_region_waiting(region_);
}

Region::Region(Region&& other) noexcept : core_(std::exchange(other.core_, nullptr)), region_(other.region_) {}

Region& Region::operator=(Region&& other) noexcept {
  std::swap(core_, other.core_);
  std::swap(region_, other.region_);
  return *this;
}

Region::~Region() {
  if (core_ != nullptr) core_->remove_region_waiting(region_);
}

Status Region::unregister() {
  if (core_ == nullptr) return {StatusCode::kFailedPrecondition, "this region is not registered"};
  Status s = core_->remove_region(region_);
  if (s) core_ = nullptr;
  return s;
}

// ---------------------------------------------------------------- Stream

Stream::Stream(std::unique_ptr<detail::StreamCore> core) noexcept : core_(std::move(core)) {}
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
  if (!s.open) return Status(StatusCode::kFailedPrecondition, fmt::format("stream '{}' is closed", s.options.name));
  if (s.options.strategy == Strategy::kRaw)
    return Status(StatusCode::kInvalidArgument, "a raw stream has no columns: use post_raw");
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
  if (Status flat = move::flatten(s.schema, s.plan, columns, s.flat); !flat) return flat;
  const std::uint64_t rows = static_cast<std::uint64_t>(columns.front().length);
  auto ticket = s.session->post(s.id, rows, s.flat, s.hints, options);
  if (!ticket) return ticket.status();
  ++s.posted;
  s.last_message_bytes = move::offload_bytes(s.flat, {}, {});
  return Ticket(s.session, *ticket);
}

Result<Ticket> Stream::post_raw(std::span<const std::span<const std::byte>> buffers, const OffloadOptions& options) {
  detail::StreamCore& s = *core_;
  if (!s.open) return Status(StatusCode::kFailedPrecondition, fmt::format("stream '{}' is closed", s.options.name));
  if (s.options.strategy != Strategy::kRaw)
    return Status(StatusCode::kInvalidArgument, "only a raw stream takes buffers without columns: use post");
  if (buffers.size() > move::kMaxOffloadBuffers) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{} buffers in one offload: at most {}", buffers.size(), move::kMaxOffloadBuffers));
  }
  s.flat.clear();
  for (const auto& buffer : buffers)
    s.flat.buffers.push_back({reinterpret_cast<std::uint64_t>(buffer.data()), buffer.size(), 0, 0, 0});
  auto ticket = s.session->post(s.id, buffers.size(), s.flat, s.hints, options);
  if (!ticket) return ticket.status();
  ++s.posted;
  return Ticket(s.session, *ticket);
}

Status Stream::close() {
  if (!core_->open) return ok_status();
  core_->open = false;
  Writer out;
  out.put(core_->id);
  out.put(core_->posted);
  auto answer = core_->session->request("close", out.bytes());
  return answer ? ok_status() : answer.status();
}

const std::string& Stream::name() const noexcept { return core_->options.name; }
const Schema& Stream::schema() const noexcept { return core_->schema; }

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
