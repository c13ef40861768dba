// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kv/net/port.hpp"
#include "kv/net/subnet.hpp"
#include "kv/node/node.hpp"

namespace wherry::kv {

/// Passes the received messages to the node. Returns their number.
///
/// The clock must be read after the batch was taken from the port. A process may pause between any two instructions for
/// longer than its lease, and a read may arrive in the pause. With an earlier clock reading, the lease would seem to
/// hold although the table may be old, because the other nodes may have continued without this one. `allowed`: the
/// sources that the node answers. Frames from other sources are dropped and counted.
template <Port P, typename Clock>
std::size_t receive_all(P& port, Node& node, Subnets& allowed, const Clock& clock) {
  Cycles now = 0;
  return port.poll([&](const Endpoint& from, const Message& message) {
    if (now == 0) now = clock();
    if (!allowed.has(from.ip)) return node.count_dropped(Node::Drop::kSource);
    node.receive(from, message, now);
  });
}

/// Adds the port's new drops to the node's registers. `counted`: the drops that the registers already
/// include.
inline void count_drops(Node& node, const PortCounters& port, PortCounters& counted) {
  for (; counted.bad_length < port.bad_length; ++counted.bad_length) node.count_dropped(Node::Drop::kLength);
  for (; counted.bad_checksum < port.bad_checksum; ++counted.bad_checksum) node.count_dropped(Node::Drop::kChecksum);
}

}  // namespace wherry::kv
