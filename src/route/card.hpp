// SPDX-License-Identifier: Apache-2.0
// What a process tells others so that they can send to it.
#pragma once

#include <string>

#include "base/bytes.hpp"
#include "fabric/fabric.hpp"
#include "route/inbox.hpp"
#include "wherry/route_message.hpp"

namespace wherry::route {

struct Card {
  std::string host;  ///< host_identity(): who has the same may map the inbox
  std::uint32_t pid = 0;
  InboxShape inbox;
  fabric::RemoteKey key;     ///< of the inbox; size 0: it cannot be mapped by anybody
  Bytes shm_address;         ///< worker for mapping it
  Bytes net_address;         ///< worker for buffers that come over the network; empty: none do
  std::uint64_t secret = 0;  ///< in front of each of these
};

void encode(const Card& card, Writer& out);
/// kProtocol for what does not parse or cannot be.
Result<Card> decode_card(Reader& in);

}  // namespace wherry::route
