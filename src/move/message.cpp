// SPDX-License-Identifier: Apache-2.0
#include "move/message.hpp"

#include <fmt/core.h>

#include <cstring>

#include "base/try.hpp"
#include "move/format.hpp"

namespace wherry::move {
namespace {

constexpr std::size_t kMaxAnnounced = 64;

constexpr std::size_t padded(std::size_t bytes) { return (bytes + 7) & ~std::size_t{7}; }

template <typename T>
std::span<const T> view_of(ByteView bytes) {
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

void append(std::byte*& to, const void* data, std::size_t bytes) {
  if (bytes != 0) std::memcpy(to, data, bytes);
  to += bytes;
}

}  // namespace

std::string limit_text(std::uint64_t detail) {
  const std::uint64_t allowed = detail & ((std::uint64_t{1} << 56) - 1);
  switch (static_cast<Limit>(detail >> 56)) {
    case Limit::kBudget:
      return fmt::format(
          "it does not fit into the agent's budget of {} bytes: raise the budget or send fewer rows at a "
          "time",
          allowed);
    case Limit::kOffloads:
      return fmt::format("{} offloads of this session wait at the agent, and it takes no more: wait for tickets first",
                         allowed);
    case Limit::kQueuedBytes:
      return fmt::format(
          "the lists of buffers that wait at the agent are over its limit of {} bytes a session: wait "
          "for tickets first, or send fewer and larger buffers",
          allowed);
    case Limit::kRegionBytes:
      return fmt::format(
          "the regions of memory that were announced are over the agent's limit of {} bytes a session: "
          "register large pieces once instead of many small ones",
          allowed);
  }
  return "it is over a limit of the agent, whose log says which";
}

Status parse_offload(ByteView message, OffloadView& out) {
  out.regions.clear();
  Reader in(message);
  const ByteView header = in.take(sizeof(OffloadHeader));
  if (!in.ok()) return {StatusCode::kProtocol, "an offload message is shorter than its header"};
  std::memcpy(&out.header, header.data(), sizeof(OffloadHeader));
  const OffloadHeader& h = out.header;
  if (h.node_count > kMaxOffloadNodes || h.buffer_count > kMaxOffloadBuffers || h.ticket == 0) {
    return {StatusCode::kProtocol, "an offload message has absurd counts"};
  }
  if (h.half > Half::kRest || h.zero != 0) {
    return {StatusCode::kProtocol, "an offload message says something of itself that this agent does not know"};
  }
  if (h.half != Half::kWhole && h.binding != 0) {
    return {StatusCode::kProtocol, "an offload message names a bound step and is half of a frame"};
  }
  out.nodes = view_of<NodeRef>(in.take(std::size_t{h.node_count} * sizeof(NodeRef)));
  out.buffers = view_of<BufferRef>(in.take(std::size_t{h.buffer_count} * sizeof(BufferRef)));
  out.dropped = view_of<std::uint32_t>(in.take(padded(std::size_t{h.dropped_count} * sizeof(std::uint32_t))));
  if (in.ok()) out.dropped = out.dropped.first(h.dropped_count);
  for (std::uint32_t i = 0; i < h.region_count && in.ok(); ++i) {
    const ByteView raw = in.take(sizeof(RegionHeader));
    if (!in.ok()) break;
    RegionHeader r;
    std::memcpy(&r, raw.data(), sizeof r);
    const ByteView key = in.take(padded(r.key_bytes));
    if (!in.ok() || r.key_bytes == 0 || r.key_bytes > kMaxKeyBytes || r.base + r.size < r.base) {
      return {StatusCode::kProtocol, "an offload message has a malformed region"};
    }
    out.regions.push_back({r.id, r.base, r.size, key.first(r.key_bytes)});
  }
  if (!in.at_end()) return {StatusCode::kProtocol, "an offload message's length does not match its counts"};
  return ok_status();
}

std::size_t offload_bytes(const FlatOffload& flat, std::span<const std::uint32_t> dropped,
                          std::span<const NewRegion> regions) noexcept {
  std::size_t bytes = sizeof(OffloadHeader) + flat.nodes.size() * sizeof(NodeRef) +
                      flat.buffers.size() * sizeof(BufferRef) + padded(dropped.size_bytes());
  for (const NewRegion& region : regions) bytes += sizeof(RegionHeader) + padded(region.key.size());
  return bytes;
}

void write_offload(const OffloadHeader& header, const FlatOffload& flat, std::span<const std::uint32_t> dropped,
                   std::span<const NewRegion> regions, std::byte* to) noexcept {
  static constexpr std::uint64_t kZero = 0;
  append(to, &header, sizeof header);
  append(to, flat.nodes.data(), flat.nodes.size() * sizeof(NodeRef));
  append(to, flat.buffers.data(), flat.buffers.size() * sizeof(BufferRef));
  append(to, dropped.data(), dropped.size_bytes());
  append(to, &kZero, padded(dropped.size_bytes()) - dropped.size_bytes());
  for (const NewRegion& region : regions) {
    const RegionHeader r{region.id, static_cast<std::uint32_t>(region.key.size()), region.base, region.size};
    append(to, &r, sizeof r);
    append(to, region.key.data(), region.key.size());
    append(to, &kZero, padded(region.key.size()) - region.key.size());
  }
}

void build_offload(const OffloadHeader& header, const FlatOffload& flat, std::span<const std::uint32_t> dropped,
                   std::span<const NewRegion> regions, Bytes& out) {
  out.resize(offload_bytes(flat, dropped, regions));
  write_offload(header, flat, dropped, regions, out.data());
}

bool valid_stream_name(std::string_view name) noexcept {
  if (name.empty() || name.size() > 255 || name == "." || name == "..") return false;
  for (const char c : name) {
    const bool ok =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
    if (!ok) return false;
  }
  return true;
}

Status check_parts(const StreamOptions& options) {
  if (options.parts > kMaxParts) {
    return {StatusCode::kInvalidArgument,
            fmt::format("{} parts of one stream: want {} at most", options.parts, kMaxParts)};
  }
  if (options.part == 0 || options.part < options.parts) return ok_status();
  return {StatusCode::kInvalidArgument,
          options.parts == 0 ? fmt::format("part {} of a stream of which `parts` was not given", options.part)
                             : fmt::format("part {} of {}: parts are numbered from 0 to {}", options.part,
                                           options.parts, options.parts - 1)};
}

Status check_schema_metadata(std::string_view metadata) {
  if (metadata.empty() || metadata_bytes(metadata) == static_cast<std::int64_t>(metadata.size())) return ok_status();
  return {StatusCode::kInvalidArgument,
          "StreamOptions::schema_metadata is not in the C data interface's binary encoding"};
}

Status check_operators(const StreamOptions& options) {
  if (options.operators.size() <= kMaxOperatorsBytes) return ok_status();
  return {StatusCode::kInvalidArgument, fmt::format("operators: {} bytes of JSON are over the limit of {}",
                                                    options.operators.size(), kMaxOperatorsBytes)};
}

Bytes encode(const OpenRequest& m) {
  Writer out;
  out.put(static_cast<std::uint8_t>(m.again));
  out.put_string(m.options.name);
  out.put(m.options.strategy);
  out.put(m.options.retention.frames);
  out.put(m.options.retention.bytes);
  out.put(m.options.retention.when_full);
  out.put(m.options.sink.format);
  out.put_string(m.options.sink.directory);
  out.put(static_cast<std::uint32_t>(m.options.announced_bytes.size()));
  for (const std::uint64_t bytes : m.options.announced_bytes) out.put(bytes);
  out.put(m.options.part);
  out.put(m.options.parts);
  out.put_string(m.options.schema_metadata);
  out.put_string(m.options.operators);
  encode_schema(m.schema, out);
  return std::move(out).take();
}

Result<OpenRequest> decode_open(ByteView bytes) {
  Reader in(bytes);
  OpenRequest m;
  const auto again = in.get<std::uint8_t>();
  m.again = again != 0;
  m.options.name = in.get_string();
  m.options.strategy = in.get<Strategy>();
  m.options.retention.frames = in.get<std::uint64_t>();
  m.options.retention.bytes = in.get<std::uint64_t>();
  m.options.retention.when_full = in.get<Retention::WhenFull>();
  m.options.sink.format = in.get<Sink::Format>();
  m.options.sink.directory = in.get_string();
  const auto announced = in.get<std::uint32_t>();
  if (!in.ok() || again > 1 || m.options.strategy > Strategy::kCAbi ||
      m.options.retention.when_full > Retention::WhenFull::kWait || m.options.sink.format > Sink::Format::kParquet) {
    return Status(StatusCode::kProtocol, "malformed open request");
  }
  if (announced > kMaxAnnounced) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{} announced sizes are over the limit of {}", announced, kMaxAnnounced));
  }
  for (unsigned i = 0; i < announced; ++i) m.options.announced_bytes.push_back(in.get<std::uint64_t>());
  m.options.part = in.get<std::uint32_t>();
  m.options.parts = in.get<std::uint32_t>();
  WHERRY_TRY(check_parts(m.options));
  m.options.schema_metadata = in.get_string();
  WHERRY_TRY(check_schema_metadata(m.options.schema_metadata));
  m.options.operators = in.get_string();
  WHERRY_TRY(check_operators(m.options));
  if (!valid_stream_name(m.options.name)) {
    return Status(StatusCode::kInvalidArgument, "a stream name is 1 to 255 of A-Z a-z 0-9 . _ -, and not . or ..");
  }
  WHERRY_ASSIGN(m.schema, decode_schema(in));
  if (!in.at_end()) return Status(StatusCode::kProtocol, "malformed open request");
  return m;
}

}  // namespace wherry::move
