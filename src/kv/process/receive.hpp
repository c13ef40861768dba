// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kv/net/port.hpp"
#include "kv/net/subnet.hpp"
#include "kv/node/node.hpp"

namespace wherry::kv {

/// Hands the node what has arrived; how many datagrams.
///
/// The clock is read after the batch was taken from the port, never before. A process may stand still between any two
/// instructions, for longer than its lease. A read that arrives meanwhile, answered by a clock that was read earlier,
/// would be answered as if the lease still held, from a table that the others may have long gone on without.
/// `allowed`: whom the node answers; everybody else's frames are dropped, and counted.
template <Port P, typename Clock>
std::size_t receive_all(P& port, Node& node, Subnets& allowed, const Clock& clock) {
  Cycles now = 0;
  return port.poll([&](const Endpoint& from, const Message& message) {
    if (now == 0) now = clock();
    if (!allowed.has(from.ip)) return node.count_dropped(Node::Drop::kSource);
    node.receive(from, message, now);
  });
}

/// What the port dropped since the last time, into the node's registers. `counted`: what they know of.
inline void count_drops(Node& node, const PortCounters& port, PortCounters& counted) {
  for (; counted.bad_length < port.bad_length; ++counted.bad_length) node.count_dropped(Node::Drop::kLength);
  for (; counted.bad_checksum < port.bad_checksum; ++counted.bad_checksum) node.count_dropped(Node::Drop::kChecksum);
}

}  // namespace wherry::kv
