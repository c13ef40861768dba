// SPDX-License-Identifier: Apache-2.0
#include "fabric/stream_address.hpp"
#include "base/socket.hpp"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

namespace wherry::fabric {
namespace {

constexpr std::size_t kMaxCandidates = 64;

/// An address of this machine with its network prefix.
struct Local {
  std::string interface, host;
  bool loopback = false;
  std::vector<std::uint8_t> bytes, mask;
};

std::vector<std::uint8_t> raw(const sockaddr* address) {
  if (address == nullptr) return {};
  const auto copy = [](const auto& in) {
    std::vector<std::uint8_t> bytes(sizeof in);
    std::memcpy(bytes.data(), &in, sizeof in);
    return bytes;
  };
  if (address->sa_family == AF_INET) return copy(reinterpret_cast<const sockaddr_in*>(address)->sin_addr);
  if (address->sa_family == AF_INET6) return copy(reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
  return {};
}

std::vector<Local> locals() {
  ifaddrs* first = nullptr;
  std::vector<Local> found;
  if (getifaddrs(&first) != 0) return found;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, freeifaddrs);
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    Local local{
        entry->ifa_name, {}, (entry->ifa_flags & IFF_LOOPBACK) != 0, raw(entry->ifa_addr), raw(entry->ifa_netmask)};
    if (local.bytes.empty() || (entry->ifa_flags & IFF_UP) == 0) continue;
    const int family = local.bytes.size() == 4 ? AF_INET : AF_INET6;
    if (family == AF_INET6 && local.bytes[0] == 0xfe && (local.bytes[1] & 0xc0) == 0x80) continue;  // needs a scope
    std::array<char, INET6_ADDRSTRLEN> text{};
    inet_ntop(family, local.bytes.data(), text.data(), text.size());
    local.host = text.data();
    found.push_back(std::move(local));
  }
  return found;
}

}  // namespace

Bytes encode(const StreamAddress& address) {
  Writer out;
  out.put(address.id);
  out.put_string(address.secret);
  out.put(static_cast<std::uint32_t>(address.candidates.size()));
  for (const HostPort& candidate : address.candidates) {
    out.put_string(candidate.host);
    out.put(candidate.port);
  }
  return std::move(out).take();
}

Result<StreamAddress> decode_stream_address(ByteView bytes) {
  Reader in(bytes);
  StreamAddress address;
  address.id = in.get<std::uint64_t>();
  address.secret = in.get_string();
  const auto count = in.get<std::uint32_t>();
  for (std::uint32_t i = 0; in.ok() && i < std::min<std::size_t>(count, kMaxCandidates); ++i) {
    std::string host = in.get_string();
    address.candidates.push_back({std::move(host), in.get<std::uint16_t>()});
  }
  // Accept only numeric addresses, because a name lookup would block.
  const auto numeric = [](const HostPort& candidate) {
    std::array<std::uint8_t, sizeof(in6_addr)> ignored;
    return inet_pton(AF_INET, candidate.host.c_str(), ignored.data()) == 1 ||
           inet_pton(AF_INET6, candidate.host.c_str(), ignored.data()) == 1;
  };
  if (!in.at_end() || address.candidates.empty() || address.secret.size() < 32 ||
      !std::ranges::all_of(address.candidates, numeric))
    return Status(StatusCode::kProtocol, "another process's network address cannot be read");
  return address;
}

Result<std::vector<std::string>> addresses_of(const std::string& wanted) {
  const std::vector<Local> all = locals();
  std::vector<std::string> hosts;
  const auto take = [&](auto fits) {
    for (const Local& local : all) {
      if (fits(local)) hosts.push_back(local.host);
    }
  };
  if (!wanted.empty() && wanted != "0.0.0.0" && wanted != "::") {
    take([&](const Local& local) { return local.host == wanted || local.interface == wanted; });
    if (hosts.empty()) {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("'{}' is neither an address nor a network interface of this machine", wanted));
    }
    hosts.resize(1);  // an interface's first; then the listener is there, and nowhere else
    return hosts;
  }
  take([](const Local& local) { return !local.loopback; });
  if (hosts.empty()) take([](const Local&) { return true; });
  if (hosts.empty()) return Status(StatusCode::kUnavailable, "this machine has no network address");
  return hosts;
}

Result<Fd> listen_on(const std::vector<std::string>& hosts) {
  if (hosts.size() == 1) return listen_tcp({hosts.front(), 0});
  const bool only_v6 = std::ranges::none_of(hosts, [](const std::string& host) { return host.find('.') != host.npos; });
  const bool any_v6 = std::ranges::any_of(hosts, [](const std::string& host) { return host.find(':') != host.npos; });
  // "::" accepts IPv4 and IPv6, unless the machine is configured otherwise.
  if (any_v6) {
    if (auto both = listen_tcp({"::", 0}); both || only_v6) return both;
  }
  return listen_tcp({"0.0.0.0", 0});
}

void nearest_first(std::vector<HostPort>& candidates) {
  const std::vector<Local> all = locals();
  const auto near = [&](const HostPort& candidate) {
    std::array<std::uint8_t, sizeof(in6_addr)> bytes{};
    const bool v4 = inet_pton(AF_INET, candidate.host.c_str(), bytes.data()) == 1;
    if (!v4 && inet_pton(AF_INET6, candidate.host.c_str(), bytes.data()) != 1) return false;
    return std::ranges::any_of(all, [&](const Local& local) {
      if (local.bytes.size() != (v4 ? 4U : 16U) || local.mask.size() != local.bytes.size()) return false;
      for (std::size_t i = 0; i < local.bytes.size(); ++i) {
        if (((local.bytes[i] ^ bytes[i]) & local.mask[i]) != 0) return false;
      }
      return true;
    });
  };
  std::ranges::stable_partition(candidates, near);
}

}  // namespace wherry::fabric
