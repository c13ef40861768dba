// SPDX-License-Identifier: Apache-2.0
#include "kv/net/xdp_port.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/try.hpp"
#include "kv/net/neighbour.hpp"

namespace wherry::kv {
namespace {

/// A sender that leaves the checksum to its interface writes the pseudo header's sum there; the interface completes
/// it.
bool is_partial(ByteView frame) noexcept {
  const auto ip = Ipv4::unpack(frame.subspan<kIpv4Offset, Ipv4::kBytes>());
  const auto udp = Udp::unpack(frame.subspan<kUdpOffset, Udp::kBytes>());
  std::uint32_t sum = (ip.source >> 16) + (ip.source & 0xffff) + (ip.destination >> 16) + (ip.destination & 0xffff) +
                      kIpProtocolUdp + udp.length;
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return udp.checksum == sum;
}

/// Attaches the program in native mode, or else in generic mode if allowed. Returns whether it is native.
Result<bool> attach(XdpProgram& program, int interface, const XdpPort::Options& options) {
  using Attach = XdpPort::Attach;
  wherry::Status native;
  if (options.attach != Attach::generic) {
    native = program.attach(interface, XdpProgram::Mode::native);
    if (native) return true;
    const bool hopeless = native.code() == StatusCode::kPermissionDenied || native.code() == StatusCode::kAlreadyExists;
    if (options.attach == Attach::native || hopeless) return native;
    spdlog::info("{}: {}: trying generic mode", options.interface, native.message());
  }
  WHERRY_TRY(program.attach(interface, XdpProgram::Mode::generic));
  return false;
}

/// Binds in zero-copy mode if possible, else in copy mode. Returns whether it is zero-copy.
Result<bool> bind(XdpSocket& socket, int interface, const XdpPort::Options& options, bool native) {
  // If a node has died, the kernel frees its queue only after a moment. (A live owner's program was detected before.)
  const Deadline patience(std::chrono::seconds(1));
  for (;;) {
    if (options.zero_copy && native && socket.bind(interface, options.queue, true)) return true;
    const wherry::Status copy = socket.bind(interface, options.queue, false);
    if (copy) return false;
    if (copy.code() != StatusCode::kAlreadyExists || patience.passed()) return copy;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace

Result<XdpPort> XdpPort::open(Endpoint at, const Options& options) {
  if (at.ip == 0 || at.port == 0)
    return wherry::Status(StatusCode::kInvalidArgument, "AF_XDP takes frames of one address and one port: name both");
  const auto failed = [&](const wherry::Status& why) {
    return wherry::Status(why.code(), fmt::format("{}: {}", options.interface, why.message()));
  };
  WHERRY_ASSIGN(const auto interface, find_interface(options.interface));
  if (at.mac == 0) at.mac = interface.mac;

  auto socket = XdpSocket::open(options.frames);
  if (!socket) return failed(socket.status());
  auto program = XdpProgram::load(at, options.queue + 1);
  if (!program) return failed(program.status());
  const auto native = attach(*program, interface.index, options);
  if (!native) return failed(native.status());
  const auto zero_copy = bind(*socket, interface.index, options, *native);
  if (!zero_copy) return failed(zero_copy.status());
  // This is the last step: until now every frame went to the kernel.
  if (wherry::Status status = program->deliver(options.queue, socket->fd()); !status) return failed(status);

  XdpPort port(*std::move(socket), *std::move(program), at, options.interface);
  port.queue_ = options.queue;
  port.native_ = *native;
  port.zero_copy_ = *zero_copy;
  port.checksum_ = options.checksum;
  if (const std::uint32_t queues = receive_queues(options.interface); queues > 1)
    spdlog::warn("{} receives with {} queues, of which AF_XDP sees number {}: docs/guide/kv-xdp.md says what to do",
                 options.interface, queues, options.queue);
  return port;
}

std::string XdpPort::describe() const {
  return fmt::format("{} queue {}, {}, {}", interface_, queue_, native_ ? "native" : "generic",
                     zero_copy_ ? "zero-copy" : "copy");
}

wherry::Status XdpPort::add_neighbour(std::uint32_t ip) {
  WHERRY_ASSIGN(const auto mac, resolve_mac(interface_, ip));
  return add_neighbour(ip, mac);
}

void XdpPort::send(const Endpoint& to, const Message& message) {
  Endpoint whole = to;
  if (whole.mac == 0) whole.mac = neighbours_.find(to.ip).mac;
  if (whole.mac == 0) {
    ++counters_.no_neighbour;
    ++counters_.send_failed;
    return;
  }
  std::span<std::byte> frame = socket_.sending();
  if (frame.empty()) {
    flush();  // in copy mode that sends them
    frame = socket_.sending();
  }
  const std::size_t bytes = frame.empty() ? 0 : build(frame, local_, whole, message, checksum_);
  if (bytes == 0)
    ++counters_.send_failed;
  else
    socket_.send(bytes);
}

bool XdpPort::accept(ByteView frame, Received& out) noexcept {
  switch (parse(frame, local_, &out)) {
    case Parsed::kOurs:
      return true;
    case Parsed::kForeign:
      ++counters_.foreign;
      break;
    case Parsed::kBadChecksum:
      ++counters_.bad_checksum;
      if (is_partial(frame)) ++counters_.partial_checksum;
      break;
    case Parsed::kBadLength:
      ++counters_.bad_length;
      break;
  }
  return false;
}

}  // namespace wherry::kv
