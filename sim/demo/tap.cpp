// SPDX-License-Identifier: Apache-2.0
#include "sim/demo/tap.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/try.hpp"

namespace wherry::sim {
namespace {

Status failed(const std::string& what) {
  const std::string why = fmt::format("{}: {}", what, std::strerror(errno));
  switch (errno) {
    case EPERM:
    case EACCES:
      return {StatusCode::kPermissionDenied, why + ": a TAP device takes root, or CAP_NET_ADMIN and /dev/net/tun"};
    case EBUSY:
      return {StatusCode::kAlreadyExists, why + ": another process has a device of this name"};
    case ENOENT:
    case ENODEV:
      return {StatusCode::kUnsupported, why + ": the kernel has no TAP devices (modprobe tun)"};
    default:
      return {StatusCode::kInternal, why};
  }
}

ifreq request_for(const std::string& name) {
  ifreq request{};
  std::memcpy(request.ifr_name, name.data(), name.size());
  return request;
}

struct Address {
  in_addr address{};
  in_addr mask{};
};

Result<Address> parse(const std::string& text) {
  constexpr unsigned kBits = 32;
  const std::size_t slash = text.find('/');
  Address parsed;
  unsigned bits = 0;
  const char* const begin = slash == std::string::npos ? text.data() : text.data() + slash + 1;
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), bits);
  if (slash == std::string::npos || error != std::errc() || end != text.data() + text.size() || bits == 0 ||
      bits > kBits || inet_pton(AF_INET, text.substr(0, slash).c_str(), &parsed.address) != 1)
    return Status(StatusCode::kInvalidArgument, fmt::format("address '{}': want one as 10.90.0.1/24", text));
  parsed.mask.s_addr = htonl(~0U << (kBits - bits));
  return parsed;
}

void set_address(sockaddr& field, in_addr address) {
  sockaddr_in in{.sin_family = AF_INET, .sin_port = 0, .sin_addr = address, .sin_zero = {}};
  std::memcpy(&field, &in, sizeof in);
}

Status switch_on(int socket, const std::string& name) {
  ifreq request = request_for(name);
  if (::ioctl(socket, SIOCGIFFLAGS, &request) != 0) return failed("interface " + name);
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  if (::ioctl(socket, SIOCSIFFLAGS, &request) != 0) return failed("interface " + name);
  return {};
}

Result<Fd> any_socket() {
  Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return failed("a socket");
  return socket;
}

/// Has no effect if this kernel has no IPv6.
void switch_ipv6_off(const std::string& name) {
  const Fd file(::open(fmt::format("/proc/sys/net/ipv6/conf/{}/disable_ipv6", name).c_str(), O_WRONLY | O_CLOEXEC));
  if (file) (void)!::write(file.get(), "1", 1);
}

}  // namespace

Result<Fd> make_tap(const TapSetup& setup) {
  if (setup.name.empty() || setup.name.size() >= IFNAMSIZ)
    return Status(StatusCode::kInvalidArgument, fmt::format("TAP '{}': want a name of 1 to 15 letters", setup.name));
  WHERRY_ASSIGN(const Address address, parse(setup.address));
  WHERRY_ASSIGN(const Fd socket, any_socket());
  Fd tap(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!tap) return failed("/dev/net/tun");
  ifreq request = request_for(setup.name);
  // Refuse it: TUNSETIFF would attach to another user's persistent device, which would outlive this process.
  if (::ioctl(socket.get(), SIOCGIFFLAGS, &request) == 0)
    return Status(StatusCode::kAlreadyExists, fmt::format("there is an interface {} already", setup.name));
  request = request_for(setup.name);
  request.ifr_flags = IFF_TAP | IFF_NO_PI;  // no offloads: the kernel computes checksums
  if (::ioctl(tap.get(), TUNSETIFF, &request) != 0) return failed("TAP " + setup.name);
  switch_ipv6_off(setup.name);
  request = request_for(setup.name);
  set_address(request.ifr_addr, address.address);
  if (::ioctl(socket.get(), SIOCSIFADDR, &request) != 0) return failed("address of " + setup.name);
  set_address(request.ifr_netmask, address.mask);
  if (::ioctl(socket.get(), SIOCSIFNETMASK, &request) != 0) return failed("netmask of " + setup.name);
  WHERRY_TRY(switch_on(socket.get(), setup.name));
  return tap;
}

Status switch_loopback_on() {
  WHERRY_ASSIGN(const Fd socket, any_socket());
  return switch_on(socket.get(), "lo");
}

}  // namespace wherry::sim
