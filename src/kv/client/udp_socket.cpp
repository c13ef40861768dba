// SPDX-License-Identifier: Apache-2.0
#include "kv/client/udp_socket.hpp"

#include <fmt/core.h>
#include <netdb.h>
#include <poll.h>

#include <cerrno>
#include <cstring>
#include <ctime>

namespace wherry::kv {

Result<Endpoint> resolve_endpoint(const std::string& text) {
  HostPort at{text, kUdpPort};
  if (text.find(':') != std::string::npos) {
    auto parsed = parse_host_port(text);
    if (!parsed) return parsed.status();
    at = *std::move(parsed);
  }
  if (at.port == 0) return wherry::Status(StatusCode::kInvalidArgument, fmt::format("node '{}': port 0", text));
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(at.host.c_str(), nullptr, &hints, &found);
  if (error != 0) {
    return wherry::Status(StatusCode::kInvalidArgument,
                          fmt::format("node '{}': no IPv4 address: {}", text, gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  const auto* address = reinterpret_cast<const sockaddr_in*>(found->ai_addr);
  return Endpoint{.ip = ntohl(address->sin_addr.s_addr), .port = at.port};
}

UdpSocket::Batch::Batch() noexcept : vectors{}, addresses{}, headers{} {
  for (std::size_t i = 0; i < kBatch; ++i) {
    vectors[i] = {.iov_base = data[i].data(), .iov_len = data[i].size()};
    headers[i].msg_hdr.msg_name = &addresses[i];
    headers[i].msg_hdr.msg_namelen = sizeof addresses[i];
    headers[i].msg_hdr.msg_iov = &vectors[i];
    headers[i].msg_hdr.msg_iovlen = 1;
  }
}

Result<std::unique_ptr<UdpSocket>> UdpSocket::open() {
  Fd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return wherry::Status(StatusCode::kInternal, fmt::format("socket: {}", std::strerror(errno)));
  // As much as the system allows: a thousand answers may arrive at once.
  const int bytes = 4 << 20;
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  return std::unique_ptr<UdpSocket>(new UdpSocket(std::move(fd)));
}

void UdpSocket::send(const Endpoint& to, const Message& message) {
  const std::size_t bytes = pack_datagram(message, out_.data[waiting_]);
  if (bytes == 0) return;
  out_.vectors[waiting_].iov_len = bytes;
  sockaddr_in& address = out_.addresses[waiting_];
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(to.ip);
  address.sin_port = htons(to.port);
  if (++waiting_ == kBatch) flush();
}

void UdpSocket::flush() noexcept {
  bool waited = false;
  for (std::size_t sent = 0; sent < waiting_;) {
    const int n =
        ::sendmmsg(fd_.get(), out_.headers.data() + sent, static_cast<unsigned>(waiting_ - sent), MSG_NOSIGNAL);
    if (n > 0) {
      sent += static_cast<std::size_t>(n);
    } else if (errno == EAGAIN) {
      if (waited) break;
      waited = true;
      pollfd p{fd_.get(), POLLOUT, 0};
      ::poll(&p, 1, 1);
    } else if (errno != EINTR) {
      ++sent;  // no route to this one node, say
    }
  }
  waiting_ = 0;
}

std::size_t UdpSocket::receive_batch() noexcept {
  for (mmsghdr& header : in_.headers) header.msg_hdr.msg_namelen = sizeof(sockaddr_in);
  const int n = ::recvmmsg(fd_.get(), in_.headers.data(), kBatch, MSG_DONTWAIT, nullptr);
  return n > 0 ? static_cast<std::size_t>(n) : 0;
}

void UdpSocket::wait(std::chrono::nanoseconds time) noexcept {
  pollfd p{fd_.get(), POLLIN, 0};
  const timespec limit{time.count() / 1'000'000'000, time.count() % 1'000'000'000};
  ::ppoll(&p, 1, &limit, nullptr);
}

}  // namespace wherry::kv
