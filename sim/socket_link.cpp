// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <array>

#include "base/try.hpp"
#include "kv/net/frame_io.hpp"
#include "kv/net/udp_port.hpp"
#include "sim/live_link.hpp"

namespace wherry::kv::rtl {
namespace {

constexpr std::uint64_t kPeerMac = 0x020000000000;

class SocketLink final : public LiveLink {
 public:
  SocketLink(UdpPort port, const Endpoint& self) : port_(std::move(port)), self_(self), fd_{port_.fd()} {}

  std::size_t receive(Core& core) override {
    bool first = true;
    return port_.poll([&](const Endpoint& from, const Message& message) {
      if (first) core.set_clock(now_cycles());
      first = false;
      // A socket does not report MAC addresses; the core only sends this one back.
      const Endpoint sender{.mac = kPeerMac | from.ip, .ip = from.ip, .port = from.port};
      std::array<std::byte, kHeaderBytes + kMaxValueBytes> frame;
      const std::size_t size = build(frame, sender, self_, message, UdpChecksum::kNone);
      if (size != 0) core.put(Side::kNet, ByteView(frame).first(size));
    });
  }

  void send(Core& core) override {
    while (const auto frame = core.take(Side::kNet)) {
      if (frame->bytes.size() < kHeaderBytes) continue;
      const Endpoint to = destination_of(frame->bytes);
      Received read;
      if (parse(frame->bytes, to, &read) != Parsed::kOurs) {
        ++lost_;  // a receiver's kernel would drop it, too
        continue;
      }
      port_.send(to, read.message);
    }
    port_.flush();
  }

  [[nodiscard]] std::span<const int> fds() const noexcept override { return fd_; }
  [[nodiscard]] std::string describe() const override { return fmt::format("UDP port {}", port_.local().port); }

 private:
  UdpPort port_;
  Endpoint self_;
  std::array<int, 1> fd_;
};

}  // namespace

Result<std::unique_ptr<LiveLink>> open_socket_link(const Endpoint& self) {
  WHERRY_ASSIGN(auto port, UdpPort::open(self));
  return std::unique_ptr<LiveLink>(std::make_unique<SocketLink>(std::move(port), self));
}

}  // namespace wherry::kv::rtl
