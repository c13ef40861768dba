// SPDX-License-Identifier: Apache-2.0
// Requests to open and close streams, and the end of a stream after its last offload.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/guarded.hpp"
#include "base/log.hpp"
#include "base/try.hpp"
#include "move/arrow_schema.hpp"
#include "move/operate/pipeline.hpp"
#include "move/service/sink_directory.hpp"
#include "move/service/state.hpp"

namespace wherry::move {
namespace {

constexpr std::uint32_t kPageAlignment = 4096;
constexpr std::uint32_t kIpcAlignment = 64;
constexpr std::size_t kMaxStreamsPerSession = 1024;
constexpr std::size_t kArrowBytes = std::size_t{1} << 20;  // more than a schema takes

/// Destination buffers are page-aligned (paper 004 section IV-B), except if the strategy requires the denser layout.
std::uint32_t alignment_of(Strategy strategy) { return strategy == Strategy::kIpc ? kIpcAlignment : kPageAlignment; }

/// Adds the streams that operators derive from `info`. They have the retention rule of `info`.
Status add_derived(StreamInfo& info, const std::string& operators) {
  WHERRY_ASSIGN(const auto schema, to_arrow(info.schema, info.schema_metadata));
  WHERRY_ASSIGN(std::vector<Derived> all, parse_operators(operators, schema));
  for (Derived& one : all) {
    auto derived = std::make_shared<StreamInfo>();
    derived->name = info.name + "." + one.name;
    if (!valid_stream_name(derived->name)) {
      return {StatusCode::kInvalidArgument,
              fmt::format("operators: \"{}\": the derived stream's name would be longer than 255", one.name)};
    }
    derived->source = info.name;
    derived->retention = info.retention;
    derived->parts = one.pipeline->parts();
    WHERRY_ASSIGN(derived->schema, from_arrow_schema(*one.pipeline->schema(), derived->schema_metadata));
    derived->pipeline = std::move(one.pipeline);
    info.derived.push_back(std::move(derived));
  }
  return ok_status();
}

Status check_announced(std::uint64_t bytes, std::size_t budget) {
  if (bytes <= budget) return ok_status();
  return {StatusCode::kResourceExhausted,
          fmt::format("offloads of {} bytes were announced; the agent's budget is {} bytes", bytes, budget)};
}

}  // namespace

Result<Bytes> OffloadEngine::on_request(session::Client& handle, std::string_view method, ByteView payload) {
  ClientState& client = *clients_.at(handle.id());
  if (method == "open" && draining_) return Status(StatusCode::kUnavailable, "the agent is shutting down");
  if (method == "open") return open_stream(client, payload);
  if (method == "status") return Bytes();
  if (method == "close") return close_stream(client, payload);
  return Status(StatusCode::kProtocol,
                fmt::format("the move service has no method '{}'", std::string(method.substr(0, 32))));
}

Result<Bytes> OffloadEngine::open_stream(ClientState& client, ByteView payload) {
  WHERRY_ASSIGN(OpenRequest request, decode_open(payload));
  const StreamOptions& options = request.options;
  const ByteView opened_with = payload.subspan(1);
  if (request.again) {
    if (const StreamState* before = opened_before(client, options, opened_with)) {
      Writer out;
      out.put(before->id);
      return std::move(out).take();
    }
  }
  if (client.streams.size() >= kMaxStreamsPerSession) {
    return Status(StatusCode::kResourceExhausted, fmt::format("a session may have {} streams", kMaxStreamsPerSession));
  }
  for (const std::uint64_t bytes : options.announced_bytes) WHERRY_TRY(check_announced(bytes, arena_->capacity()));
  auto made = std::make_unique<StreamState>();
  StreamState& stream = *made;
  stream.id = next_stream_;
  stream.client = &client;
  stream.part = options.part;
  stream.opened_with.assign(opened_with.begin(), opened_with.end());
  const auto joined = datasets_.find(options.name);
  if (joined != datasets_.end() && !left_behind(*joined->second, request)) {
    stream.dataset = joined->second;
    stream.info = stream.dataset->info();
    WHERRY_TRY(stream.dataset->check_agrees(request));
    WHERRY_TRY(open_part(client, std::move(made)));
  } else {
    WHERRY_ASSIGN(stream.info, make_info(request));
    WHERRY_TRY(open_new(client, std::move(made), request));
  }
  ++next_stream_;
  for (const std::uint64_t bytes : options.announced_bytes) prepare_memory(*stream.info, bytes);
  spdlog::info("stream '{}' opened by {} (pid {}): {}, {} columns{}", stream.info->name, client.handle->name(),
               client.handle->pid(), to_string(stream.info->strategy), stream.info->schema.size(),
               stream.dataset == nullptr ? "" : fmt::format(", part {} of {}", stream.part, stream.info->parts));
  Writer out;
  out.put(stream.id);
  return std::move(out).take();
}

/// Makes the properties that the stream's frames share.
Result<std::shared_ptr<const StreamInfo>> OffloadEngine::make_info(const OpenRequest& request) {
  auto info = std::make_shared<StreamInfo>();
  info->name = request.options.name;
  info->strategy = request.options.strategy;
  info->schema_metadata = request.options.schema_metadata;
  info->retention = request.options.retention;
  info->sink = request.options.sink;
  info->parts = request.options.parts;
  if (info->strategy == Strategy::kRaw) {
    if (!request.schema.empty())
      return Status(StatusCode::kInvalidArgument, "a raw stream has no schema: leave it empty");
    info->schema = {field("buffer", "Z")};
  } else {
    info->schema = request.schema;
  }
  WHERRY_ASSIGN(info->plan, make_plan(info->schema));
  require_memory(kArrowBytes);
  WHERRY_ASSIGN(info->ipc,
                IpcTemplate::make(info->schema, info->plan, alignment_of(info->strategy), info->schema_metadata));
  if (info->sink.format != Sink::Format::kNone) {
    if (options_.sink_needs_root && options_.sink_root.empty()) {
      return Status(StatusCode::kPermissionDenied,
                    "this agent serves a group of users (agent.group), and writes files only below its setting "
                    "sink.root, which is empty");
    }
    WHERRY_ASSIGN(info->files,
                  SinkDirectory::open(options_.sink_root, info->sink.directory, info->name, info->sink.format));
    info->sink.directory = info->files->path();
  }
  if (!request.options.operators.empty()) WHERRY_TRY(add_derived(*info, request.options.operators));
  return std::shared_ptr<const StreamInfo>(std::move(info));
}

/// Opens a stream, or the first part of one. On failure the name is free again, because the client would not close the
/// stream.
Status OffloadEngine::open_new(ClientState& client, std::unique_ptr<StreamState> made, OpenRequest request) {
  StreamState& stream = *made;
  client.streams.emplace(stream.id, std::move(made));
  Status s = guarded([&]() -> Status {
    if (request.options.parts != 0) {
      stream.dataset = std::make_shared<Dataset>(stream.info, std::move(request));
      WHERRY_TRY(stream.dataset->open_part(stream.part, owner(client)));
      datasets_.insert_or_assign(stream.info->name, stream.dataset);
    }
    return catalogue_.open(stream.info);
  });
  if (s) {
    if (stream.dataset != nullptr) note_dataset(*stream.dataset);
    return s;
  }
  if (stream.dataset != nullptr) datasets_.erase(stream.info->name);
  client.streams.erase(stream.id);
  return s;
}

Status OffloadEngine::open_part(ClientState& client, std::unique_ptr<StreamState> made) {
  StreamState& stream = *made;
  client.streams.emplace(stream.id, std::move(made));
  const Status s = guarded([&] { return stream.dataset->open_part(stream.part, owner(client)); });
  if (s)
    note_dataset(*stream.dataset);
  else
    client.streams.erase(stream.id);
  return s;
}

std::string OffloadEngine::owner(const ClientState& client) {
  return fmt::format("{}, pid {}", client.handle->name(), client.handle->pid());
}

/// Ends the dataset and returns true if all its open parts have ended and opening this part could not complete their
/// steps.
bool OffloadEngine::left_behind(Dataset& dataset, const OpenRequest& request) {
  if (!dataset.idle()) return false;
  if (request.options.part < dataset.info()->parts && dataset.awaited(request.options.part) &&
      dataset.check_agrees(request))
    return false;
  end_dataset(dataset);
  return true;
}

/// Finds the stream that an unanswered request of this client opened with equal options and schema. Closes a stream
/// with different ones.
const OffloadEngine::StreamState* OffloadEngine::opened_before(ClientState& client, const StreamOptions& options,
                                                               ByteView opened_with) {
  const auto it = std::ranges::find_if(client.streams, [&](const auto& entry) {
    const StreamState& stream = *entry.second;
    return stream.info->name == options.name && stream.part == options.part && stream.received == 0 && !stream.closing;
  });
  if (it == client.streams.end()) return nullptr;
  if (std::ranges::equal(it->second->opened_with, opened_with)) return it->second.get();
  it->second->closing = true;
  retire(*it->second);
  return nullptr;
}

Result<Bytes> OffloadEngine::close_stream(ClientState& client, ByteView payload) {
  Reader in(payload);
  const auto it = client.streams.find(in.get<std::uint32_t>());
  const auto posted = in.get<std::uint64_t>();
  if (!in.at_end() || it == client.streams.end()) return Status(StatusCode::kNotFound, "no such stream");
  StreamState& stream = *it->second;
  stream.closing = true;
  stream.close_after = posted;
  retire(stream);
  return Bytes();
}

/// Ends a stream whose last offload is done.
void OffloadEngine::retire(StreamState& stream) {
  if (!stream.finished()) return;
  end_stream(stream, false);
  if (stream.active) std::erase(active_, &stream);
  forget_bindings(*stream.client, stream);
  stream.client->streams.erase(stream.id);
}

/// Ends the stream for readers. A stream in parts ends with its last part.
void OffloadEngine::end_stream(StreamState& stream, bool gone) {
  if (stream.dataset == nullptr) {
    catalogue_.close(stream.info->name);
    stream.info->files.reset();
    return;
  }
  Dataset& dataset = *stream.dataset;
  dataset.close_part(stream.part, gone);
  note_dataset(dataset);
  if (dataset.over()) end_dataset(dataset);
}

void OffloadEngine::end_dataset(Dataset& dataset) {
  dataset.give_up();
  note_dataset(dataset);
  counters_.ended_discarded += dataset.status().discarded;
  catalogue_.close(dataset.info()->name);
  dataset.info()->files.reset();
  const auto it = datasets_.find(dataset.info()->name);
  if (it != datasets_.end() && it->second.get() == &dataset) datasets_.erase(it);
}

/// Frees memory of incomplete steps whose parts have ended while other parts were never opened. False: no such dataset
/// exists.
bool OffloadEngine::end_idle_dataset() {
  const auto idle = std::ranges::find_if(datasets_, [](const auto& entry) { return entry.second->idle(); });
  if (idle == datasets_.end()) return false;
  const std::shared_ptr<Dataset> dataset = idle->second;
  end_dataset(*dataset);
  return true;
}

void OffloadEngine::note_dataset(const Dataset& dataset) { catalogue_.note_parts(*dataset.info(), dataset.status()); }

}  // namespace wherry::move
