// SPDX-License-Identifier: Apache-2.0
#include "kv/net/udp_port.hpp"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "kv/net/address.hpp"

namespace wherry::kv {
namespace {

sockaddr_in address_of(const Endpoint& at) noexcept {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(at.port);
  address.sin_addr.s_addr = htonl(at.ip);
  return address;
}

Endpoint endpoint_of(const sockaddr_in& address) noexcept {
  return {.ip = ntohl(address.sin_addr.s_addr), .port = ntohs(address.sin_port)};
}

bool enable(int socket, int level, int option, int value) noexcept {
  return setsockopt(socket, level, option, &value, sizeof value) == 0;
}

}  // namespace

Result<UdpPort> UdpPort::open(const Endpoint& at, const Options& options) {
  const auto failed = [&](const char* what) {
    return wherry::Status(errno == EADDRINUSE ? StatusCode::kAlreadyExists : StatusCode::kUnavailable,
                          fmt::format("UDP {}: {}: {}", to_string(at), what, std::strerror(errno)));
  };
  Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return failed("no socket");
  sockaddr_in address = address_of(at);
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return failed("cannot bind");
  socklen_t size = sizeof address;
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return failed("no name");
  // Large buffers help with bursts. If the kernel grants less, more datagrams are lost, which the protocol tolerates.
  enable(socket.get(), SOL_SOCKET, SO_RCVBUF, options.buffer_bytes);
  enable(socket.get(), SOL_SOCKET, SO_SNDBUF, options.buffer_bytes);
  // A reassembled datagram did not arrive as a single frame: docs/design/kv-protocol.md, section 3.
  if (!enable(socket.get(), IPPROTO_IP, IP_RECVFRAGSIZE, 1)) return failed("IP_RECVFRAGSIZE");
  enable(socket.get(), IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);  // never fragment what is sent
  const bool segments = options.segments && enable(socket.get(), IPPROTO_UDP, UDP_GRO, 1);
  return UdpPort(std::move(socket), endpoint_of(address), segments);
}

UdpPort::UdpPort(Fd socket, const Endpoint& local, bool segments)
    : socket_(std::move(socket)), local_(local), segments_(segments) {
  for (Side* side : {in_.get(), out_.get()}) {
    for (std::size_t i = 0; i < kBatch; ++i) {
      side->pieces[i] = {.iov_base = side->bytes.get() + i * kPacketBytes, .iov_len = kPacketBytes};
      msghdr& header = side->headers[i].msg_hdr;
      header.msg_name = &side->addresses[i];
      header.msg_namelen = sizeof(sockaddr_in);
      header.msg_iov = &side->pieces[i];
      header.msg_iovlen = 1;
      header.msg_control = &side->controls[i];
    }
  }
}

void UdpPort::send(const Endpoint& to, const Message& message) {
  const std::size_t size = Kv::kBytes + message.value.size();
  if (message.value.size() > kLongestValue) return (void)++counters_.send_failed;
  // Append to the last super-packet for this destination, so that it gets its datagrams in order. A leader writes to
  // all followers in turn, and a client to all leaders: each of them gets one super-packet.
  std::size_t at = used_;
  while (at != 0 && runs_[at - 1].to != to) --at;
  Run* run = at == 0 ? nullptr : &runs_[--at];
  if (run == nullptr || run->segment != size || run->count == (segments_ ? kSegments : 1) ||
      (run->count + 1) * size > kLongestRun) {
    if (used_ == kBatch) flush();
    at = used_++;
    run = &runs_[at];
    *run = {.to = to, .segment = size, .count = 0};
  }
  (void)pack_datagram(message, {out_->bytes.get() + at * kPacketBytes + run->count * size, size});
  ++run->count;
}

std::size_t UdpPort::flush() {
  const std::uint64_t before = counters_.sent;
  for (std::size_t i = 0; i < used_; ++i) {
    const Run& run = runs_[i];
    out_->addresses[i] = address_of(run.to);
    out_->pieces[i].iov_len = run.segment * run.count;
    msghdr& header = out_->headers[i].msg_hdr;
    header.msg_controllen = 0;
    if (run.count == 1) continue;
    header.msg_controllen = CMSG_SPACE(sizeof(std::uint16_t));
    cmsghdr* const control = CMSG_FIRSTHDR(&header);
    control->cmsg_level = IPPROTO_UDP;
    control->cmsg_type = UDP_SEGMENT;
    control->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
    const auto segment = static_cast<std::uint16_t>(run.segment);
    std::memcpy(CMSG_DATA(control), &segment, sizeof segment);
  }
  for (std::size_t first = 0; first < used_;) {
    const int sent = sendmmsg(socket_.get(), out_->headers.data() + first, static_cast<unsigned>(used_ - first), 0);
    const std::size_t done = sent > 0 ? static_cast<std::size_t>(sent) : 0;
    for (std::size_t i = 0; i < done; ++i) counters_.sent += runs_[first + i].count;
    first += done;
    if (sent < 0 && errno != EINTR) counters_.send_failed += runs_[first++].count;  // this one is lost, go on
  }
  used_ = 0;
  return counters_.sent - before;
}

int UdpPort::receive() {
  for (std::size_t i = 0; i < wanted_; ++i) {
    msghdr& header = in_->headers[i].msg_hdr;
    header.msg_namelen = sizeof(sockaddr_in);
    header.msg_controllen = sizeof(Control);
  }
  // A request for more than one packet makes the kernel look for a second one, which delays a single packet by a
  // quarter of a microsecond.
  const int packets = std::max(0, recvmmsg(socket_.get(), in_->headers.data(), wanted_, 0, nullptr));
  wanted_ = packets == static_cast<int>(wanted_) ? kBatch : 1;
  return packets;
}

UdpPort::Packet UdpPort::packet_at(int index) noexcept {
  const auto i = static_cast<std::size_t>(index);
  mmsghdr& header = in_->headers[i];
  Packet packet{.from = endpoint_of(in_->addresses[i]),
                .bytes = ByteView(in_->bytes.get() + i * kPacketBytes, header.msg_len),
                .segment = std::max<std::size_t>(header.msg_len, 1)};
  bool whole = (header.msg_hdr.msg_flags & MSG_TRUNC) == 0 && header.msg_len != 0;
  for (cmsghdr* control = CMSG_FIRSTHDR(&header.msg_hdr); control != nullptr;
       control = CMSG_NXTHDR(&header.msg_hdr, control)) {
    if (control->cmsg_level == IPPROTO_UDP && control->cmsg_type == UDP_GRO) {
      int segment = 0;
      std::memcpy(&segment, CMSG_DATA(control), sizeof segment);
      if (segment > 0) packet.segment = static_cast<std::size_t>(segment);
    } else if (control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_RECVFRAGSIZE) {
      whole = false;
    }
  }
  if (!whole) {
    ++counters_.bad_length;
    packet.bytes = {};
  }
  return packet;
}

}  // namespace wherry::kv
