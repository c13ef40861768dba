// SPDX-License-Identifier: Apache-2.0
#include "route/client/hello.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "base/cpu.hpp"
#include "base/try.hpp"
#include "route/client/environment.hpp"
#include "route/client/settings.hpp"
#include "route/explain.hpp"

namespace wherry::route {
namespace {

Status different(Rank rank, std::size_t other, std::string_view what) {
  return {StatusCode::kFailedPrecondition,
          fmt::format("ranks {} and {} were told different things: {}. Options and WHERRY_* variables must be "
                      "the same on all ranks",
                      rank, other, what)};
}

}  // namespace

Result<Hello> make_hello(const Options& options, const Bootstrap& bootstrap) {
  Hello mine;
  mine.node = bootstrap.node();
  WHERRY_ASSIGN(mine.placement, resolve_placement(options));
  WHERRY_ASSIGN(auto resolved, resolve_shape(options, bootstrap.ranks_read_profile()));
  mine.shape = resolved.shape;
  mine.shape_from = resolved.from;
  mine.shape_why = std::move(resolved.why);
  mine.host = host_identity();
  if (const auto between = variable("WHERRY_ROUTE_BETWEEN")) {
    WHERRY_ASSIGN(const Transport transport, explain("WHERRY_ROUTE_BETWEEN", parse_transport(*between)));
    mine.memory_between_nodes = transport == Transport::kAuto || transport == Transport::kShm;
    mine.network = transport == Transport::kShm ? Transport::kAuto : transport;
  }
  return mine;
}

Bytes encode(const Hello& hello) {
  Writer out;
  out.put(hello.node);
  out.put(hello.placement);
  out.put(hello.shape.buffers);
  out.put(hello.shape.buffer_bytes);
  out.put(hello.shape_from);
  out.put_string(hello.host);
  out.put(static_cast<std::uint8_t>(hello.memory_between_nodes));
  out.put(hello.network);
  return std::move(out).take();
}

Result<std::vector<Hello>> agree(const Hello& mine, Rank rank, const std::vector<Bytes>& all) {
  std::vector<Hello> result;
  for (std::size_t other = 0; other < all.size(); ++other) {
    Reader in(all[other]);
    Hello theirs;
    theirs.node = in.get<std::uint32_t>();
    theirs.placement = in.get<Placement>();
    theirs.shape.buffers = in.get<std::uint32_t>();
    theirs.shape.buffer_bytes = in.get<std::uint32_t>();
    theirs.shape_from = in.get<ShapeFrom>();
    theirs.host = in.get_string();
    theirs.memory_between_nodes = in.get<std::uint8_t>() != 0;
    theirs.network = in.get<Transport>();
    if (!in.at_end() || theirs.node >= all.size() || theirs.placement > Placement::kDpu ||
        theirs.network > Transport::kRdma || theirs.shape_from > ShapeFrom::kPerson || !theirs.shape.valid())
      return Status(StatusCode::kProtocol,
                    fmt::format("the hello of rank {} is malformed: is it of another version?", other));
    const auto differs = [&](std::string_view what) { return different(rank, other, what); };
    if (theirs.placement != mine.placement)
      return differs(fmt::format("placement {} and {}", to_string(mine.placement), to_string(theirs.placement)));
    if (theirs.memory_between_nodes != mine.memory_between_nodes || theirs.network != mine.network)
      return differs("WHERRY_ROUTE_BETWEEN");
    result.push_back(std::move(theirs));
  }
  const auto said = [](const Hello& one) { return one.shape_from == ShapeFrom::kPerson; };
  if (std::ranges::any_of(result, said)) {
    for (Hello& one : result)
      if (!said(one)) one.shape = RingShape{};
    const RingShape shape = result.at(rank).shape;
    const auto other = std::ranges::find_if(result, [&](const Hello& one) { return one.shape != shape; });
    if (other == result.end()) return result;
    return different(rank, static_cast<std::size_t>(other - result.begin()),
                     fmt::format("{} buffers of {} bytes and {} of {}", shape.buffers, shape.buffer_bytes,
                                 other->shape.buffers, other->shape.buffer_bytes));
  }
  RingShape least = mine.shape;
  for (const Hello& one : result) {
    least.buffers = std::min(least.buffers, one.shape.buffers);
    least.buffer_bytes = std::min(least.buffer_bytes, one.shape.buffer_bytes);
  }
  for (Hello& one : result) one.shape = least;
  return result;
}

Topology topology_of(const std::vector<Hello>& all) {
  std::vector<std::uint32_t> node_of_rank;
  for (const Hello& rank : all) node_of_rank.push_back(rank.node);
  return Topology(std::move(node_of_rank));
}

bool reached_by_memory(const Hello& a, const Hello& b) noexcept {
  return a.host == b.host && (a.node == b.node || a.memory_between_nodes);
}

Result<Transport> choose_network(const Hello& mine, const std::vector<Hello>& all, Bootstrap& bootstrap,
                                 const Deadline& deadline, const std::function<Result<bool>()>& has_rdma) {
  if (mine.network != Transport::kAuto) return mine.network;
  // With placement dpu, a rank and its agent are on different machines, which the other ranks cannot see.
  const bool between = mine.placement == Placement::kDpu ||
                       !std::ranges::all_of(all, [&](const Hello& one) { return reached_by_memory(all[0], one); });
  if (!between) return Transport::kAuto;
  WHERRY_ASSIGN(auto here, has_rdma());
  Writer out;
  out.put(static_cast<std::uint8_t>(here));
  WHERRY_ASSIGN(const auto answers, bootstrap.exchange(out.bytes(), deadline));
  const bool everywhere =
      std::ranges::all_of(answers, [](const Bytes& one) { return one.size() == 1 && one.front() == std::byte{1}; });
  return everywhere ? Transport::kRdma : Transport::kTcp;
}

}  // namespace wherry::route
