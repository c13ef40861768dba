// SPDX-License-Identifier: Apache-2.0
// Requests about streams: opening, closing, and the end of one whose last offload is done.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/guarded.hpp"
#include "base/log.hpp"
#include "base/try.hpp"
#include "move/service/sink_directory.hpp"
#include "move/service/state.hpp"

namespace wherry::move {
namespace {

constexpr std::uint32_t kPageAlignment = 4096;
constexpr std::uint32_t kIpcAlignment = 64;
constexpr std::size_t kMaxStreamsPerSession = 1024;
constexpr std::size_t kArrowBytes = std::size_t{1} << 20;  // more than a schema takes

/// Destination buffers are page-aligned (paper 004 section IV-B) except where the strategy asks for the denser layout.
std::uint32_t alignment_of(Strategy strategy) { return strategy == Strategy::kIpc ? kIpcAlignment : kPageAlignment; }

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
  const ByteView opened_with = payload.subspan(1);
  if (request.again) {
    if (const StreamState* before = opened_before(client, request.options.name, opened_with)) {
      Writer out;
      out.put(before->info->id);
      return std::move(out).take();
    }
  }
  if (client.streams.size() >= kMaxStreamsPerSession) {
    return Status(StatusCode::kResourceExhausted, fmt::format("a session may have {} streams", kMaxStreamsPerSession));
  }
  auto info = std::make_shared<StreamInfo>();
  info->id = next_stream_;
  info->name = request.options.name;
  info->strategy = request.options.strategy;
  info->schema_metadata = request.options.schema_metadata;
  info->retention = request.options.retention;
  info->sink = request.options.sink;
  if (info->strategy == Strategy::kRaw) {
    if (!request.schema.empty())
      return Status(StatusCode::kInvalidArgument, "a raw stream has no schema: leave it empty");
    info->schema = {field("buffer", "Z")};
  } else {
    info->schema = std::move(request.schema);
  }
  WHERRY_ASSIGN(info->plan, make_plan(info->schema));
  require_memory(kArrowBytes);
  WHERRY_ASSIGN(info->ipc,
                IpcTemplate::make(info->schema, info->plan, alignment_of(info->strategy), info->schema_metadata));
  for (const std::uint64_t bytes : request.options.announced_bytes) {
    WHERRY_TRY(check_announced(bytes, arena_->capacity()));
  }
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
  auto stream = std::make_unique<StreamState>();
  stream->info = info;
  stream->client = &client;
  stream->opened_with.assign(opened_with.begin(), opened_with.end());
  const auto opened = client.streams.emplace(info->id, std::move(stream)).first;
  // A name is taken only for a stream that the client knows, and will close.
  if (Status s = guarded([&] { return catalogue_.open(info); }); !s) {
    client.streams.erase(opened);
    return s;
  }
  ++next_stream_;
  for (const std::uint64_t bytes : request.options.announced_bytes) prepare_memory(*info, bytes);
  spdlog::info("stream '{}' opened by {} (pid {}): {}, {} columns", info->name, client.handle->name(),
               client.handle->pid(), to_string(info->strategy), info->schema.size());
  Writer out;
  out.put(info->id);
  return std::move(out).take();
}

/// The stream that an unanswered request of this client opened, if it asked for the same. One with other options or
/// another schema makes way.
const OffloadEngine::StreamState* OffloadEngine::opened_before(ClientState& client, const std::string& name,
                                                               ByteView opened_with) {
  const auto it = std::ranges::find_if(client.streams, [&](const auto& entry) {
    const StreamState& stream = *entry.second;
    return stream.info->name == name && stream.received == 0 && !stream.closing;
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
  catalogue_.close(stream.info->name);
  stream.info->files.reset();
  if (stream.active) std::erase(active_, &stream);
  forget_bindings(*stream.client, stream);
  stream.client->streams.erase(stream.info->id);
}

}  // namespace wherry::move
