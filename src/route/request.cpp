// SPDX-License-Identifier: Apache-2.0
#include "route/request.hpp"
#include "base/try.hpp"

#include <algorithm>

namespace wherry::route {
namespace {

Status nonsense(const char* what) { return {StatusCode::kProtocol, std::string("a malformed request to ") + what}; }

void put_cards(const std::vector<Card>& cards, Writer& out) {
  out.put(static_cast<std::uint32_t>(cards.size()));
  for (const Card& card : cards) encode(card, out);
}

Result<std::vector<Card>> get_cards(Reader& in) {
  const auto count = in.get<std::uint32_t>();
  if (!in.ok() || count == 0 || count > kMaxThreads) return nonsense("connect");
  std::vector<Card> cards;
  for (std::uint32_t i = 0; i < count; ++i) {
    WHERRY_ASSIGN(auto card, decode_card(in));
    cards.push_back(std::move(card));
  }
  return cards;
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
  encode(request.card, out);
  return std::move(out).take();
}

Result<JoinRequest> decode_join(ByteView bytes) {
  Reader in(bytes);
  JoinRequest request;
  request.job = in.get<std::uint64_t>();
  request.rank = in.get<Rank>();
  const auto ranks = in.get<std::uint32_t>();
  if (!in.ok() || ranks > in.remaining() / 4 || request.rank >= ranks) return nonsense("join");
  // Nodes are numbered without gaps, or the tables that are made of them would not fit the job.
  std::vector<bool> seen(ranks);
  std::uint32_t nodes = 0, distinct = 0;
  for (std::uint32_t i = 0; i < ranks; ++i) {
    const auto node = in.get<std::uint32_t>();
    if (node >= ranks) return nonsense("join");
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
    return nonsense("join");
  WHERRY_ASSIGN(auto card, decode_card(in));
  request.card = std::move(card);
  if (!in.at_end() || request.card.inbox.ring != request.shape) return nonsense("join");
  return request;
}

Bytes encode(const ConnectRequest& request) {
  Writer out;
  out.put(request.job);
  out.put(static_cast<std::uint32_t>(request.agents.size()));
  for (const std::vector<Card>& agent : request.agents) put_cards(agent, out);
  return std::move(out).take();
}

Result<ConnectRequest> decode_connect(ByteView bytes) {
  Reader in(bytes);
  ConnectRequest request;
  request.job = in.get<std::uint64_t>();
  const auto nodes = in.get<std::uint32_t>();
  if (!in.ok() || nodes > in.remaining()) return nonsense("connect");
  for (std::uint32_t i = 0; i < nodes; ++i) {
    WHERRY_ASSIGN(auto cards, get_cards(in));
    request.agents.push_back(std::move(cards));
  }
  if (!in.at_end()) return nonsense("connect");
  return request;
}

Bytes encode(const std::vector<Card>& cards) {
  Writer out;
  put_cards(cards, out);
  return std::move(out).take();
}

Result<std::vector<Card>> decode_cards(ByteView bytes) {
  Reader in(bytes);
  auto cards = get_cards(in);
  if (cards && !in.at_end()) return nonsense("join");
  return cards;
}

}  // namespace wherry::route
