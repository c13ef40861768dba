// SPDX-License-Identifier: Apache-2.0
// What ranks ask of their agent, over the control connection of their session: service "route".
//   hello    nothing                                    -> how many routing threads the agent has
//   network  nothing                                    -> whether the agent has RDMA
//   join     who the rank is, its job, its inbox        -> the inboxes of the agent's threads
//   connect  the inboxes of all agents of the job       -> nothing; once, from the first rank of each node
//   abort    the job, why it cannot go on                -> nothing; every rank is told
//   leave    the job, collective rounds concluded        -> nothing; a session that ends without it has died
#pragma once

#include <vector>

#include "route/card.hpp"
#include "wherry/session.hpp"

namespace wherry::route {

inline constexpr std::uint32_t kMaxThreads = 256;

struct JoinRequest {
  std::uint64_t job = 0;
  Rank rank = 0;
  std::vector<std::uint32_t> node_of_rank;
  RingShape shape;
  bool memory_between_nodes = true;  ///< nodes of one machine may use its memory
  bool network = false;              ///< some agent is on another machine
  Transport transport = Transport::kAuto;
  Card card;
};

struct ConnectRequest {
  std::uint64_t job = 0;
  std::vector<std::vector<Card>> agents;  ///< by node, then by thread
};

Bytes encode(const JoinRequest& request);
Bytes encode(const ConnectRequest& request);
Bytes encode(const std::vector<Card>& cards);
/// kProtocol for what does not parse or cannot be.
Result<JoinRequest> decode_join(ByteView in);
Result<ConnectRequest> decode_connect(ByteView in);
Result<std::vector<Card>> decode_cards(ByteView in);

}  // namespace wherry::route
