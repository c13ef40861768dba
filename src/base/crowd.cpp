// SPDX-License-Identifier: Apache-2.0
#include "base/crowd.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

namespace wherry {

std::string source_of(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  if (address.ss_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &address, sizeof in);
    return {reinterpret_cast<const char*>(&in.sin_addr), sizeof in.sin_addr};
  }
  if (address.ss_family == AF_INET6) {
    sockaddr_in6 in{};
    std::memcpy(&in, &address, sizeof in);
    const char* const bytes = reinterpret_cast<const char*>(&in.sin6_addr);
    // A single IPv6 host may use all addresses of its /64 network.
    return IN6_IS_ADDR_V4MAPPED(&in.sin6_addr) ? std::string(bytes + 12, 4) : std::string(bytes, 8);
  }
  ucred user{};
  size = sizeof user;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &user, &size) != 0) return {};
  return "uid " + std::to_string(user.uid);
}

}  // namespace wherry
