// SPDX-License-Identifier: Apache-2.0
#include "route/request.hpp"
#include "base/try.hpp"

#include <algorithm>

namespace wherry::route {
namespace {

Status malformed(const char* method) {
  return {StatusCode::kProtocol,
          std::string("a malformed request or reply, ") + method + ": are library and agent of one version?"};
}

void put_addresses(const std::vector<Address>& addresses, Writer& out) {
  out.put(static_cast<std::uint32_t>(addresses.size()));
  for (const Address& address : addresses) encode(address, out);
}

Result<std::vector<Address>> get_addresses(Reader& in) {
  const auto count = in.get<std::uint32_t>();
  if (!in.ok() || count == 0 || count > kMaxThreads) return malformed("connect");
  std::vector<Address> addresses;
  for (std::uint32_t i = 0; i < count; ++i) {
    WHERRY_ASSIGN(auto address, decode_address(in));
    addresses.push_back(std::move(address));
  }
  return addresses;
}

}  // namespace

Bytes encode(const JoinRequest& request) {
  Writer out;
  out.put(request.job);
  out.put(request.rank);
  out.put(static_cast<std::uint32_t>(request.node_of_rank.size()));
  for (const std::uint32_t node : request.node_of_rank) out.put(node);
  out.put(request.shape.buffers);
  out.put(request.shape.buffer_bytes);
  out.put(static_cast<std::uint8_t>(request.memory_between_nodes));
  out.put(static_cast<std::uint8_t>(request.network));
  out.put(request.transport);
  encode(request.address, out);
  return std::move(out).take();
}

Result<JoinRequest> decode_join(ByteView bytes) {
  Reader in(bytes);
  JoinRequest request;
  request.job = in.get<std::uint64_t>();
  request.rank = in.get<Rank>();
  const auto ranks = in.get<std::uint32_t>();
  if (!in.ok() || ranks > in.remaining() / 4 || request.rank >= ranks) return malformed("join");
  // Nodes must be numbered without gaps, because tables are indexed by node.
  std::vector<bool> seen(ranks);
  std::uint32_t nodes = 0, distinct = 0;
  for (std::uint32_t i = 0; i < ranks; ++i) {
    const auto node = in.get<std::uint32_t>();
    if (node >= ranks) return malformed("join");
    nodes = std::max(nodes, node + 1);
    if (!seen[node]) ++distinct;
    seen[node] = true;
    request.node_of_rank.push_back(node);
  }
  request.shape.buffers = in.get<std::uint32_t>();
  request.shape.buffer_bytes = in.get<std::uint32_t>();
  request.memory_between_nodes = in.get<std::uint8_t>() != 0;
  request.network = in.get<std::uint8_t>() != 0;
  request.transport = in.get<Transport>();
  if (!in.ok() || nodes != distinct || !request.shape.valid() || request.transport > Transport::kRdma)
    return malformed("join");
  WHERRY_ASSIGN(auto address, decode_address(in));
  request.address = std::move(address);
  if (!in.at_end() || request.address.inbox.ring != request.shape) return malformed("join");
  return request;
}

Bytes encode(const ConnectRequest& request) {
  Writer out;
  out.put(request.job);
  out.put(static_cast<std::uint32_t>(request.agents.size()));
  for (const std::vector<Address>& agent : request.agents) put_addresses(agent, out);
  return std::move(out).take();
}

Result<ConnectRequest> decode_connect(ByteView bytes) {
  Reader in(bytes);
  ConnectRequest request;
  request.job = in.get<std::uint64_t>();
  const auto nodes = in.get<std::uint32_t>();
  if (!in.ok() || nodes > in.remaining()) return malformed("connect");
  for (std::uint32_t i = 0; i < nodes; ++i) {
    WHERRY_ASSIGN(auto addresses, get_addresses(in));
    request.agents.push_back(std::move(addresses));
  }
  if (!in.at_end()) return malformed("connect");
  return request;
}

Bytes encode(const std::vector<Address>& addresses) {
  Writer out;
  put_addresses(addresses, out);
  return std::move(out).take();
}

Result<std::vector<Address>> decode_addresses(ByteView bytes) {
  Reader in(bytes);
  auto addresses = get_addresses(in);
  if (addresses && !in.at_end()) return malformed("join");
  return addresses;
}

}  // namespace wherry::route
