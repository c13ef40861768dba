// SPDX-License-Identifier: Apache-2.0
#include "kv/client/client_port.hpp"

#include <fmt/core.h>

#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "kv/neighbour.hpp"
#include "kv/udp_port.hpp"
#include "kv/xdp_interface.hpp"
#include "kv/xdp_port.hpp"

namespace wherry::kv {
namespace {

template <Port P>
class ClientPortOn : public ClientPort {
 public:
  explicit ClientPortOn(P port) : port_(std::move(port)) {}
  Output& output() noexcept final { return port_; }
  [[nodiscard]] int fd() const noexcept final { return port_.fd(); }
  std::size_t receive(ClientCore& core, Cycles now) final {
    return port_.poll([&](const Endpoint& from, const Message& message) { core.on_message(from, message, now); });
  }
  void flush() final { port_.flush(); }
  void look_after(Cycles /*now*/) override {}

 protected:
  P port_;
};

class XdpClientPort final : public ClientPortOn<XdpPort> {
 public:
  XdpClientPort(XdpPort port, UdpPort reserved) : ClientPortOn(std::move(port)), reserved_(std::move(reserved)) {}
  void look_after(Cycles now) override { port_.refresh(now * kCycleNs); }

 private:
  UdpPort reserved_;  ///< the kernel gives its number to nobody else
};

}  // namespace

Result<std::unique_ptr<ClientPort>> open_udp_client() {
  auto port = UdpPort::open({});
  if (!port) return port.status();
  return std::unique_ptr<ClientPort>(new ClientPortOn<UdpPort>(*std::move(port)));
}

Result<std::unique_ptr<ClientPort>> open_xdp_client(const std::string& interface, std::span<const Endpoint> nodes) {
  const auto parsed = XdpInterface::parse(interface);
  if (!parsed)
    return wherry::Status(StatusCode::kInvalidArgument,
                          fmt::format("xdp: '{}': want an interface, as eth0 or eth0:3", interface));
  const auto address = find_address(parsed->name);
  if (!address) return address.status();
  auto reserved = UdpPort::open({.ip = *address});
  if (!reserved) return reserved.status();
  auto port = XdpPort::open({.ip = *address, .port = reserved->local().port},
                            {.interface = parsed->name, .queue = parsed->queue});
  if (!port) return port.status();
  for (const Endpoint& node : nodes)
    if (node.port != 0)
      if (auto status = port->keep_neighbour(node.ip); !status) return status;
  // A node that is down has none: it may come later.
  for (const Deadline patience(std::chrono::milliseconds(100)); !port->refresh(now_ns()) && !patience.passed();)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return std::unique_ptr<ClientPort>(new XdpClientPort(*std::move(port), *std::move(reserved)));
}

}  // namespace wherry::kv
