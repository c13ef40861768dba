// SPDX-License-Identifier: Apache-2.0
// Reads from one of Wherry's nodes, with no more features than the other clients here: no library, no timers. It
// repeats lost requests when no more answers come.
#include <arpa/inet.h>
#include <fmt/core.h>
#include <sched.h>

#include <array>

#include "base/clock.hpp"
#include "base/cpu.hpp"
#include "base/try.hpp"
#include "kv/net/udp_port.hpp"
#include "kv/peers/peer.hpp"

namespace wherry::kv::bench {
namespace {

constexpr unsigned kTagBits = 10;
constexpr std::uint32_t kTags = 1U << kTagBits;  // --depth allows as many
constexpr std::uint64_t kLostNs = 20'000'000;

class Wherry final : public Peer {
 public:
  Wherry(UdpPort port, const Endpoint& node, std::uint32_t value_bytes)
      : port_(std::move(port)), node_(node), value_bytes_(value_bytes) {}

  void read(std::uint32_t tag, std::uint64_t key) override {
    asked_[tag] = {.key = key, .request = ++turn_ << kTagBits | tag, .open = true};
    ask(asked_[tag]);
  }
  void write(std::uint32_t /*tag*/, std::uint64_t /*key*/, ByteView /*value*/) override { refused_ = true; }

  wherry::Status flush() override {
    port_.flush();
    heard_ = now_ns();
    return {};
  }

  wherry::Status poll(std::vector<std::uint32_t>& ended) override {
    if (refused_) return {StatusCode::kUnsupported, "writes of our nodes need lanes: use kv_load"};
    wherry::Status status;
    const std::size_t count = port_.poll([&](const Endpoint& from, const Message& m) {
      if (from.ip == node_.ip && from.port == node_.port) take(m, ended, status);
    });
    if (count == 0 && ++quiet_ % 1024 == 0 && now_ns() - heard_ > kLostNs) {
      for (const Asked& asked : asked_)
        if (asked.open) ask(asked);
      return flush();
    }
    return status;
  }

  void wait(Idle how) const noexcept override {
    if (how == Idle::spin) cpu_relax();
    if (how != Idle::spin) sched_yield();
  }

 private:
  struct Asked {
    std::uint64_t key = 0;
    std::uint32_t request = 0;
    bool open = false;
  };

  void ask(const Asked& asked) {
    port_.send(node_,
               {.header = {.kind = static_cast<std::uint8_t>(Kind::read), .request = asked.request, .key = asked.key},
                .value = {}});
  }

  void take(const Message& m, std::vector<std::uint32_t>& ended, wherry::Status& status) {
    Asked& asked = asked_[m.header.request % kTags];
    if (!asked.open || asked.request != m.header.request || m.header.kind != static_cast<std::uint8_t>(Kind::read_done))
      return;  // it came twice
    const kv::Status said = status_of(m.header);
    if (said != kv::Status::ok || m.value.size() != value_bytes_)
      status = {StatusCode::kInternal,
                fmt::format("a read ended with status {} and {} bytes", static_cast<int>(said), m.value.size())};
    asked.open = false;
    ended.push_back(m.header.request % kTags);
  }

  UdpPort port_;
  Endpoint node_;
  std::size_t value_bytes_;
  std::array<Asked, kTags> asked_{};
  std::uint32_t turn_ = 0;
  std::uint64_t heard_ = 0, quiet_ = 0;
  bool refused_ = false;
};

}  // namespace

Result<std::unique_ptr<Peer>> connect_wherry(const std::string& at, std::uint32_t value_bytes) {
  const auto parsed = parse_host_port(at);
  in_addr address{};
  if (!parsed || inet_pton(AF_INET, parsed->host.c_str(), &address) != 1)
    return wherry::Status(StatusCode::kInvalidArgument, fmt::format("'{}': want a numeric address:port", at));
  const Endpoint node{.ip = ntohl(address.s_addr), .port = parsed->port};
  WHERRY_ASSIGN(auto port, UdpPort::open({}));
  return std::unique_ptr<Peer>(std::make_unique<Wherry>(std::move(port), node, value_bytes));
}

}  // namespace wherry::kv::bench
