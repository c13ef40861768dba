// SPDX-License-Identifier: Apache-2.0
#pragma once
// The address of a hop, which it gives to the hops that send to it.
#include <string>

#include "base/bytes.hpp"
#include "fabric/fabric.hpp"
#include "route/inbox.hpp"
#include "wherry/route_message.hpp"

namespace wherry::route {

struct Address {
  std::string host;  ///< host_identity(): processes with the same one can map the inbox
  std::uint32_t pid = 0;
  InboxShape inbox;
  fabric::RemoteKey key;     ///< of the inbox; size 0: it cannot be mapped
  Bytes shm_worker;          ///< address of the worker through which it is mapped
  Bytes net_worker;          ///< address of the worker that receives over the network; empty: there is none
  std::uint64_t secret = 0;  ///< comes first in all that is sent to net_worker
};

void encode(const Address& address, Writer& out);
/// kProtocol: the bytes cannot be decoded, or fields contradict each other.
Result<Address> decode_address(Reader& in);

}  // namespace wherry::route
