// SPDX-License-Identifier: Apache-2.0
#include "kv/client/client_port.hpp"

#include <fmt/core.h>

#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/try.hpp"
#include "kv/net/address.hpp"
#include "kv/net/neighbour.hpp"
#include "kv/net/udp_port.hpp"
#include "kv/net/xdp_interface.hpp"
#include "kv/net/xdp_port.hpp"
#include "kv/net/xdp_ports.hpp"

namespace wherry::kv {
namespace {

template <Port P>
class ClientPortOn : public ClientPort {
 public:
  explicit ClientPortOn(P port) : port_(std::move(port)) {}
  Output& output() noexcept final { return port_; }
  [[nodiscard]] int fd() noexcept final { return port_.fd(); }
  std::size_t receive(ClientCore& core, Cycles now) final {
    return port_.poll([&](const Endpoint& from, const Message& message) { core.on_message(from, message, now); });
  }
  void flush() final { port_.flush(); }
  void look_after(Cycles /*now*/) override {}

 protected:
  P port_;
};

template <typename P>
class XdpClientPort final : public ClientPortOn<P> {
 public:
  XdpClientPort(P port, UdpPort reserved) : ClientPortOn<P>(std::move(port)), reserved_(std::move(reserved)) {}
  void look_after(Cycles now) override { this->port_.refresh(now * kCycleNs); }

 private:
  UdpPort reserved_;  ///< the kernel gives its number to no other socket
};

template <typename P>
Result<std::unique_ptr<ClientPort>> meet(Result<P> port, UdpPort reserved, std::span<const Endpoint> nodes) {
  WHERRY_TRY(port);
  for (const Endpoint& node : nodes)
    if (node.port != 0) WHERRY_TRY(port->keep_neighbour(node.ip));
  // A node that is down has no known MAC address. The address may become known later.
  for (const Deadline patience(std::chrono::milliseconds(100)); !port->refresh(boot_ns()) && !patience.passed();)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return std::unique_ptr<ClientPort>(new XdpClientPort<P>(*std::move(port), std::move(reserved)));
}

/// Returns the address that all these interfaces share.
Result<std::uint32_t> address_of(std::span<const XdpInterface> interfaces) {
  auto first = find_address(interfaces.front().name);
  for (const XdpInterface& one : interfaces.subspan(1)) {
    const auto address = find_address(one.name);
    if (!first) break;
    WHERRY_TRY(address);
    if (*address == *first) continue;
    return wherry::Status(
        StatusCode::kInvalidArgument,
        fmt::format("xdp: {} has the address {}, and {} has {}: give them the same, as docs/guide/kv-xdp.md says",
                    interfaces.front().name, ip_to_string(*first), one.name, ip_to_string(*address)));
  }
  return first;
}

}  // namespace

Result<std::unique_ptr<ClientPort>> open_udp_client_port() {
  WHERRY_ASSIGN(auto port, UdpPort::open({}));
  return std::unique_ptr<ClientPort>(new ClientPortOn<UdpPort>(std::move(port)));
}

Result<std::unique_ptr<ClientPort>> open_xdp_client_port(const std::string& interfaces,
                                                         std::span<const Endpoint> nodes) {
  const auto parsed = XdpInterface::parse_all(interfaces);
  if (!parsed)
    return wherry::Status(StatusCode::kInvalidArgument,
                          fmt::format("xdp: '{}': {}", interfaces, XdpInterface::kWanted));
  WHERRY_ASSIGN(const auto address, address_of(*parsed));
  WHERRY_ASSIGN(auto reserved, UdpPort::open({.ip = address}));
  const Endpoint at{.ip = address, .port = reserved.local().port};
  std::vector<XdpPort::Options> each;
  for (const XdpInterface& one : *parsed) each.push_back({.interface = one.name, .queue = one.queue});
  if (each.size() == 1) return meet(XdpPort::open(at, each.front()), std::move(reserved), nodes);
  return meet(XdpPorts::open(at, each), std::move(reserved), nodes);
}

}  // namespace wherry::kv
