// SPDX-License-Identifier: Apache-2.0
// One address and port on several interfaces, for machines that are cabled to each other without a switch:
// docs/guide/kv-xdp.md. It has the same interface as XdpPort, and contains one XdpPort per interface.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/socket.hpp"
#include "kv/net/neighbour_table.hpp"
#include "kv/net/port.hpp"
#include "kv/net/xdp_port.hpp"

namespace wherry::kv {

/// A message is answered through the interface on which it came. The interface's number, from 1, is in the upper 16
/// bits of Endpoint::mac, above the 48 bits of the address. A neighbour that was not heard yet is looked for on each
/// interface (keep_neighbour). A MAC without these bits, as in cluster files, belongs to an unknown interface, so it is
/// not used.
class XdpPorts final : public Output {
 public:
  using Counters = XdpPort::Counters;

  /// `at.mac` is not used: each interface has its own MAC. An error names the interface and the step that failed.
  static Result<XdpPorts> open(const Endpoint& at, std::span<const XdpPort::Options> interfaces);

  /// The address, without a MAC.
  [[nodiscard]] const Endpoint& local() const noexcept { return local_; }
  /// Readable when any of the ports is.
  [[nodiscard]] int fd() noexcept;
  /// The sum of all ports' counters.
  [[nodiscard]] Counters counters() const noexcept;
  [[nodiscard]] std::string describe() const;
  [[nodiscard]] std::uint64_t lost() const noexcept;

  /// As XdpPort's, for any of the interfaces. It also learns from the neighbour's frames, like a switch.
  wherry::Status keep_neighbour(std::uint32_t ip) { return neighbours_.keep(ip); }
  bool refresh(std::uint64_t now_ns) { return neighbours_.refresh(now_ns); }

  void send(const Endpoint& to, const Message& message) override;
  /// Begins with the interface of the first send(), so that an answer to a client does not wait for frames to other
  /// interfaces.
  std::size_t flush();

  /// Like XdpPort::poll(), for one interface: the next one that has frames. All frames taken had arrived before the
  /// first `take`, and no interface waits for another.
  template <typename Take>
  std::size_t poll(Take&& take) {
    for (std::size_t i = 0; i < ports_.size(); ++i) {
      const std::size_t interface = turn_;
      turn_ = turn_ + 1 == ports_.size() ? 0 : turn_ + 1;
      const std::size_t count = ports_[interface].poll([&](const Endpoint& from, const Message& message) {
        neighbours_.learn(from.ip, {.mac = from.mac, .interface = interface});
        Endpoint marked = from;
        marked.mac |= std::uint64_t{interface + 1} << kMacBits;
        take(marked, message);
      });
      if (count != 0) return count;
    }
    return 0;
  }

 private:
  static constexpr unsigned kMacBits = 48;
  static constexpr std::size_t kNone = ~std::size_t{0};

  XdpPorts(const Endpoint& local, NeighbourTable neighbours, Fd any)
      : any_(std::move(any)), local_(local), neighbours_(std::move(neighbours)) {}

  Fd any_;                ///< epoll(7) of all their sockets
  bool watched_ = false;  ///< it has them: only once a caller sleeps, since it costs each sender of a frame
  std::vector<XdpPort> ports_;
  Endpoint local_;
  NeighbourTable neighbours_;
  std::size_t turn_ = 0;
  std::size_t first_ = kNone;  ///< to send since the last flush()
  std::uint64_t no_neighbour_ = 0;
};
static_assert(Port<XdpPorts>);

}  // namespace wherry::kv
