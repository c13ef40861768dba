// SPDX-License-Identifier: Apache-2.0
// Requests of ranks to their agent, over the control connection of their session: service "route".
//   method   payload                                       reply
//   threads  nothing                                       the number of the agent's routing threads
//   network  nothing                                       whether the agent has RDMA
//   join     rank, job, the rank's address                 the addresses of the agent's routing threads
//   connect  the addresses of all agents of the job        nothing; once, from the first rank of each node
//   abort    the job, why it has failed                    nothing; the agent tells every rank
//   leave    the job, collective rounds concluded          nothing; a session that ends without it has died
#pragma once

#include <vector>

#include "route/address.hpp"
#include "wherry/session.hpp"

namespace wherry::route {

inline constexpr std::uint32_t kMaxThreads = 256;

struct JoinRequest {
  std::uint64_t job = 0;
  Rank rank = 0;
  std::vector<std::uint32_t> node_of_rank;
  RingShape shape;
  bool memory_between_nodes = true;  ///< nodes of one machine may share memory
  bool network = false;              ///< some agent is on another machine
  Transport transport = Transport::kAuto;
  Address address;
};

struct ConnectRequest {
  std::uint64_t job = 0;
  std::vector<std::vector<Address>> agents;  ///< by node, then by thread
};

Bytes encode(const JoinRequest& request);
Bytes encode(const ConnectRequest& request);
Bytes encode(const std::vector<Address>& addresses);
/// kProtocol: the bytes cannot be decoded, or fields contradict each other.
Result<JoinRequest> decode_join(ByteView in);
Result<ConnectRequest> decode_connect(ByteView in);
Result<std::vector<Address>> decode_addresses(ByteView in);

}  // namespace wherry::route
