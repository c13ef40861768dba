// SPDX-License-Identifier: Apache-2.0
#include "route/client/introduction.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/cpu.hpp"
#include "base/try.hpp"

namespace wherry::route {
namespace {

/// An unsigned number from the environment; `otherwise` if the variable is not set.
Result<std::uint32_t> number_from(const char* variable, std::uint32_t otherwise) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == 0) return otherwise;
  const std::string_view view(text);
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (error != std::errc() || end != view.data() + view.size())
    return Status(StatusCode::kInvalidArgument, fmt::format("{}='{}': want a whole number", variable, view));
  return value;
}

}  // namespace

Status check(const Options& options) {
  if (options.backlog_bytes < kMaxMessageBytes) {
    return {StatusCode::kInvalidArgument,
            fmt::format("Options::backlog_bytes is {}: want at least {}, so that the largest message fits",
                        options.backlog_bytes, kMaxMessageBytes)};
  }
  if (options.placement && *options.placement > Placement::kDpu) {
    return {StatusCode::kInvalidArgument,
            fmt::format("Options::placement is {}: want one of Placement", static_cast<unsigned>(*options.placement))};
  }
  return {};
}

Result<RingShape> resolve_shape(const Options& options) {
  RingShape shape;
  WHERRY_ASSIGN(auto bytes, number_from("WHERRY_ROUTE_BUFFER_BYTES", shape.buffer_bytes));
  WHERRY_ASSIGN(auto buffers, number_from("WHERRY_ROUTE_BUFFERS", shape.buffers));
  shape.buffer_bytes = options.buffer_bytes.value_or(bytes);
  shape.buffers = options.buffers.value_or(buffers);
  if (!shape.valid()) {
    return Status(
        StatusCode::kInvalidArgument,
        fmt::format("{} buffers of {} bytes: want a power of two from 2 to {}, and a multiple of 64 from 256 to "
                    "{}",
                    shape.buffers, shape.buffer_bytes, RingShape::kMaxBuffers, RingShape::kMaxBufferBytes));
  }
  return shape;
}

Result<Placement> resolve_placement(const Options& options) {
  if (options.placement) return *options.placement;
  const char* text = std::getenv("WHERRY_PLACEMENT");
  if (text == nullptr || *text == 0) return Placement::kInline;
  auto placement = parse_placement(text);
  if (!placement) return Status(placement.status().code(), "WHERRY_PLACEMENT: " + placement.status().message());
  return placement;
}

Result<fabric::StreamOptions> network_options() {
  fabric::StreamOptions options;
  if (const char* listen = std::getenv("WHERRY_ROUTE_LISTEN"); listen != nullptr) options.listen = listen;
  options.tls = fabric::tls_from_environment();
  WHERRY_ASSIGN(auto seconds,
                number_from("WHERRY_PEER_TIMEOUT_S", static_cast<std::uint32_t>(options.peer_timeout.count())));
  if (seconds < 3 || seconds > 3600) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("WHERRY_PEER_TIMEOUT_S={}: want 3 to 3600 seconds", seconds));
  }
  options.peer_timeout = std::chrono::seconds(seconds);
  return options;
}

Result<Introduction> introduce(const Options& options, const Bootstrap& bootstrap) {
  Introduction mine;
  mine.node = bootstrap.node();
  WHERRY_ASSIGN(mine.placement, resolve_placement(options));
  WHERRY_ASSIGN(mine.shape, resolve_shape(options));
  mine.host = host_identity();
  if (const char* between = std::getenv("WHERRY_ROUTE_BETWEEN"); between != nullptr && *between != 0) {
    auto transport = parse_transport(between);
    if (!transport) return Status(transport.status().code(), "WHERRY_ROUTE_BETWEEN: " + transport.status().message());
    mine.memory_between_nodes = *transport == Transport::kAuto || *transport == Transport::kShm;
    mine.network = *transport == Transport::kShm ? Transport::kAuto : *transport;
  }
  return mine;
}

Bytes encode(const Introduction& introduction) {
  Writer out;
  out.put(introduction.node);
  out.put(introduction.placement);
  out.put(introduction.shape.buffers);
  out.put(introduction.shape.buffer_bytes);
  out.put_string(introduction.host);
  out.put(static_cast<std::uint8_t>(introduction.memory_between_nodes));
  out.put(introduction.network);
  return std::move(out).take();
}

Result<std::vector<Introduction>> agree(const Introduction& mine, Rank rank, const std::vector<Bytes>& all) {
  std::vector<Introduction> result;
  for (std::size_t other = 0; other < all.size(); ++other) {
    Reader in(all[other]);
    Introduction theirs;
    theirs.node = in.get<std::uint32_t>();
    theirs.placement = in.get<Placement>();
    theirs.shape.buffers = in.get<std::uint32_t>();
    theirs.shape.buffer_bytes = in.get<std::uint32_t>();
    theirs.host = in.get_string();
    theirs.memory_between_nodes = in.get<std::uint8_t>() != 0;
    theirs.network = in.get<Transport>();
    if (!in.at_end() || theirs.node >= all.size() || theirs.placement > Placement::kDpu ||
        theirs.network > Transport::kRdma)
      return Status(StatusCode::kProtocol,
                    fmt::format("rank {} introduced itself in other words: is it of another version?", other));
    const auto differs = [&](std::string_view what) {
      return Status(
          StatusCode::kFailedPrecondition,
          fmt::format("ranks {} and {} were told different things: {}. Options and WHERRY_* variables must be "
                      "the same everywhere",
                      rank, other, what));
    };
    if (theirs.placement != mine.placement)
      return differs(fmt::format("placement {} and {}", to_string(mine.placement), to_string(theirs.placement)));
    if (theirs.shape != mine.shape) {
      return differs(fmt::format("{} buffers of {} bytes and {} of {}", mine.shape.buffers, mine.shape.buffer_bytes,
                                 theirs.shape.buffers, theirs.shape.buffer_bytes));
    }
    if (theirs.memory_between_nodes != mine.memory_between_nodes || theirs.network != mine.network)
      return differs("WHERRY_ROUTE_BETWEEN");
    result.push_back(std::move(theirs));
  }
  return result;
}

Topology topology_of(const std::vector<Introduction>& all) {
  std::vector<std::uint32_t> node_of_rank;
  for (const Introduction& rank : all) node_of_rank.push_back(rank.node);
  return Topology(std::move(node_of_rank));
}

bool reached_by_memory(const Introduction& a, const Introduction& b) noexcept {
  return a.host == b.host && (a.node == b.node || a.memory_between_nodes);
}

Result<Transport> choose_network(const Introduction& mine, const std::vector<Introduction>& all, Bootstrap& bootstrap,
                                 const Deadline& deadline, const std::function<Result<bool>()>& has_rdma) {
  if (mine.network != Transport::kAuto) return mine.network;
  // With agents a rank may be on another machine than its agent, which ranks do not see of each other.
  const bool between = mine.placement == Placement::kDpu || !std::ranges::all_of(all, [&](const Introduction& one) {
                         return reached_by_memory(all[0], one);
                       });
  if (!between) return Transport::kAuto;
  WHERRY_ASSIGN(auto here, has_rdma());
  Writer out;
  out.put(static_cast<std::uint8_t>(here));
  WHERRY_ASSIGN(auto everybodys, bootstrap.exchange(out.bytes(), deadline));
  const bool everywhere =
      std::ranges::all_of(everybodys, [](const Bytes& one) { return one.size() == 1 && one.front() == std::byte{1}; });
  return everywhere ? Transport::kRdma : Transport::kTcp;
}

}  // namespace wherry::route
