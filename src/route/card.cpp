// SPDX-License-Identifier: Apache-2.0
#include "route/card.hpp"

namespace wherry::route {

void encode(const Card& card, Writer& out) {
  out.put_string(card.host);
  out.put(card.pid);
  out.put(card.inbox.inputs);
  out.put(card.inbox.ring.buffers);
  out.put(card.inbox.ring.buffer_bytes);
  out.put(card.key.base);
  out.put(card.key.size);
  out.put_bytes(card.key.key);
  out.put_bytes(card.shm_address);
  out.put_bytes(card.net_address);
  out.put(card.secret);
}

Result<Card> decode_card(Reader& in) {
  Card card;
  const auto bytes = [&] {
    const ByteView view = in.get_bytes();
    return Bytes(view.begin(), view.end());
  };
  card.host = in.get_string();
  card.pid = in.get<std::uint32_t>();
  card.inbox.inputs = in.get<std::uint32_t>();
  card.inbox.ring.buffers = in.get<std::uint32_t>();
  card.inbox.ring.buffer_bytes = in.get<std::uint32_t>();
  card.key.base = in.get<std::uint64_t>();
  card.key.size = in.get<std::uint64_t>();
  card.key.key = bytes();
  card.shm_address = bytes();
  card.net_address = bytes();
  card.secret = in.get<std::uint64_t>();
  if (!in.ok() || !card.inbox.ring.valid() || card.inbox.inputs == 0 || card.inbox.inputs > 2 * kMaxRanks ||
      (card.key.size != 0 && card.key.size != card.inbox.bytes()))
    return Status(StatusCode::kProtocol, "what another process said of its inbox does not fit together");
  return card;
}

}  // namespace wherry::route
