// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kv/node/node.hpp"
#include "kv/udp_port.hpp"

namespace wherry::kv {

/// Hands the node what has arrived; how many datagrams.
///
/// The clock is read after the batch was taken from the socket, never before. A process may stand still between any two
/// instructions, for longer than its lease. A read that arrives meanwhile, answered by a clock that was read earlier,
/// would be answered as if the lease still held, from a table that the others may have long gone on without.
template <typename Clock>
std::size_t receive_all(UdpPort& port, Node& node, const Clock& clock) {
  Cycles now = 0;
  return port.poll([&](const Endpoint& from, const Message& message) {
    if (now == 0) now = clock();
    node.receive(from, message, now);
  });
}

}  // namespace wherry::kv
