// SPDX-License-Identifier: Apache-2.0
#include "kv/sim/wire.hpp"

#include "kv/net/datagram.hpp"
#include "kv/net/frame_io.hpp"

namespace wherry::kv::sim {

ByteView frame_of(const Endpoint& from, const Endpoint& to, ByteView datagram, FrameBuffer& buffer) noexcept {
  const auto message = unpack_datagram(datagram);
  if (!message) return {};
  return ByteView(buffer).first(build(buffer, from, to, *message, UdpChecksum::kNone));
}

void MessagePort::send(const Endpoint& to, const Message& message) {
  Datagram datagram;
  const std::size_t bytes = pack_datagram(message, datagram);
  if (bytes == 0) return;  // longer than a datagram may be
  network_.send(port_, to, ByteView(datagram).first(bytes));
}

/// Delivers what a socket would deliver for a frame: nothing if the kernel would drop it.
void MessagePort::receive(Cycles now, const Packet& packet) {
  if (packet.form == Form::kFrame) {
    Received received;
    if (parse(packet.bytes, network_.endpoint(port_), &received) == Parsed::kOurs)
      sink_.on_message(now, received.from, received.message);
  } else if (const auto message = unpack_datagram(packet.bytes)) {
    sink_.on_message(now, packet.from, *message);
  }
}

void FramePort::receive(Cycles now, const Packet& packet) {
  if (packet.form == Form::kFrame) return sink_.on_frame(now, packet.bytes);
  FrameBuffer buffer;
  sink_.on_frame(now, frame_of(packet.from, packet.to, packet.bytes, buffer));
}

}  // namespace wherry::kv::sim
