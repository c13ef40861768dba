// SPDX-License-Identifier: Apache-2.0
#include "kv/node/driver/driver_client.hpp"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "kv/clock.hpp"
#include "kv/control/line_connection.hpp"
#include "kv/wait.hpp"

namespace wherry::kv {
namespace {

constexpr Cycles kAgain = 50 * kMillisecond;  // after a connection was refused or lost
constexpr Cycles kConnect = 200 * kMillisecond;

Cycles now() { return lease_clock(); }

}  // namespace

struct DriverClient::Impl final : DriverOutput {
  std::vector<HostPort> keepers;
  std::size_t turn_of = 0;
  LineConnection lines;
  Fd connecting;  // to keepers[turn_of]; given up at connect_at. Without it, the next begins then.
  Cycles connect_at = 0;
  bool broken = false;
  std::string said;  // the last refusal, logged once
  std::unique_ptr<Driver> driver;

  void send(const ToKeeper& message) override {
    if (!lines.send(encode(message))) broken = true;
  }
  std::uint64_t draw_boot() override {
    std::uint64_t boot = 0;
    while (boot == 0) {
      if (getrandom(&boot, sizeof boot, 0) != sizeof boot) boot = now_ns();
    }
    return boot;
  }

  void next_keeper() {
    connecting.reset();
    connect_at = now() + kAgain;
    turn_of = (turn_of + 1) % std::max<std::size_t>(1, keepers.size());
  }
  void disconnect() {
    lines.close();
    broken = false;
    driver->disconnected();
    if (!driver->refusal().empty() && driver->refusal() != said) {
      said = driver->refusal();
      spdlog::error("kv node: the keeper turned it away: {}", said);
    }
    next_keeper();
  }
  /// Never waits, because the node itself may have to carry this connection's frames.
  void connect() {
    if (lines || keepers.empty()) return;
    if (!connecting) {
      if (now() < connect_at) return;
      auto socket = start_connect_tcp(keepers[turn_of]);
      if (!socket) return next_keeper();
      connecting = *std::move(socket);
      connect_at = now() + kConnect;
    }
    const auto arrived = try_finish_connect_tcp(connecting, keepers[turn_of]);
    if (!arrived || (!*arrived && now() >= connect_at)) return next_keeper();
    if (!*arrived) return;
    notice_death(connecting.get());
    lines = LineConnection(std::move(connecting));
    driver->connected(now());
  }
  void read() {
    while (lines && !broken) {
      const auto line = lines.next();
      if (!line) {
        broken = true;
        return;
      }
      if (!line->has_value()) return;
      const auto message = decode_from_keeper(**line);
      if (!message) {
        spdlog::error("kv node: what calls itself the keeper is none: {}", message.status().message());
        broken = true;
        return;
      }
      driver->on_message(*message, now());
    }
  }
};

DriverClient::DriverClient(std::vector<HostPort> keepers, DriverOptions options, RegisterIo& core)
    : impl_(std::make_unique<Impl>()) {
  impl_->keepers = std::move(keepers);
  impl_->driver = std::make_unique<Driver>(std::move(options), core, *impl_, now());
}

DriverClient::~DriverClient() = default;
Driver& DriverClient::driver() noexcept { return *impl_->driver; }
bool DriverClient::connected() const noexcept { return static_cast<bool>(impl_->lines); }

void DriverClient::turn() {
  Impl& h = *impl_;
  h.connect();
  h.read();
  if (h.driver->next_time() <= now()) h.driver->on_time(now());
  if (h.lines && h.driver->keeper_silent(now())) h.broken = true;  // what had arrived was read
  if (h.lines && !h.broken && h.lines.wants_to_write() && !h.lines.flush()) h.broken = true;
  if (h.broken) h.disconnect();
}

void DriverClient::turn(int timeout_ms) {
  Impl& h = *impl_;
  const Cycles next = h.lines ? h.driver->next_time() : std::min(h.driver->next_time(), h.connect_at);
  const Cycles before = now();
  std::array p{h.connecting ? pollfd{h.connecting.get(), POLLOUT, 0} : h.lines.awaited()};
  wait_for(p, std::min(next - std::min(next, before), static_cast<Cycles>(timeout_ms) * kMillisecond));
  turn();
}

}  // namespace wherry::kv
