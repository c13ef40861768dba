// SPDX-License-Identifier: Apache-2.0
#include "kv/node/driver/static_roll.hpp"

#include <fmt/core.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <list>
#include <utility>

#include "base/log.hpp"
#include "base/patiently.hpp"
#include "base/try.hpp"
#include "kv/control/line_connection.hpp"
#include "kv/control/terms.hpp"
#include "kv/net/address.hpp"

namespace wherry::kv {
namespace {

constexpr Cycles kLookOften = 5 * kMillisecond;          ///< between looks while others are missing
constexpr Cycles kLookSeldom = 50 * kMillisecond;        ///< and after that
constexpr Cycles kAskAgain = 50 * kMillisecond;          ///< after a connection was refused or lost
constexpr Cycles kAskRefused = 500 * kMillisecond;       ///< after a refusal: an operator has to act first
constexpr Cycles kPatienceOfRoll = 2000 * kMillisecond;  ///< for a connection, and for an answer
constexpr Cycles kMissingTime = 3000 * kMillisecond;     ///< until a warning names the missing nodes
constexpr std::size_t kMostGuests = 32;

}  // namespace

struct StaticRoll::Impl {
  struct Peer {
    HostPort at;
    bool agrees = false;
    std::uint64_t boot = 0;  ///< of the process that introduced itself; 0: none did
    Fd connecting;
    LineConnection lines;  ///< on which an answer is waited for
    Cycles due = 0;        ///< when to ask, or to give up
    std::string said;      ///< the last no, logged once
  };
  struct Guest {
    LineConnection lines;
    Cycles end = 0;
  };

  ClusterFile cluster;
  std::uint32_t number = 0;
  ClusterTerms terms;
  Hello hello;
  Fd listener;
  std::array<Peer, kMaxNodes> peers;
  NodeMask others = 0;
  std::list<Guest> guests;
  bool entered = false;
  bool warned = false;
  Cycles first = 0;
  Cycles next = 0;
  std::array<std::string, kMaxNodes> refused;  ///< what each was told last, logged once

  [[nodiscard]] bool all_agree() const {
    for (std::uint32_t node = 0; node < kMaxNodes; ++node)
      if (has(others, node) && !peers[node].agrees) return false;
    return true;
  }

  // ---- others ask

  Answer judge(const Hello& theirs) {
    if (theirs.node == number || !has(others, theirs.node))
      return {.ok = false,
              .text = fmt::format("this is node {} of cluster '{}', which has no other node {}", number, cluster.name,
                                  theirs.node)};
    if (std::string why = mismatch(terms, theirs, fmt::format("node {}", number)); !why.empty())
      return {.ok = false, .text = std::move(why)};
    Peer& peer = peers[theirs.node];
    if (entered && peer.boot != 0 && peer.boot != theirs.boot)
      return {.ok = false,
              .text = fmt::format("node {} was in this cluster before, and what it held is lost. A cluster in mode "
                                  "static takes no node back: stop all its nodes and start them again, with an empty "
                                  "store; or use a keeper (mode \"keeper\"), which takes nodes back",
                                  theirs.node)};
    peer.boot = theirs.boot;
    return {.ok = true, .text = {}};
  }

  void take(Guest& guest, const std::string& line) {
    const auto message = decode_to_keeper(line);
    const Hello* theirs = message ? std::get_if<Hello>(&*message) : nullptr;
    Answer answer{.ok = false, .text = "this is a node in mode static, and no keeper"};
    if (theirs != nullptr) {
      answer = judge(*theirs);
      std::string& told = refused[theirs->node % kMaxNodes];
      if (!answer.ok && answer.text != told) spdlog::error("kv node {}: a node is refused: {}", number, answer.text);
      told = answer.text;
    }
    (void)guest.lines.send(encode(FromKeeper(answer)));
    guest.end = 0;
  }

  void serve(Cycles now) {
    while (guests.size() <= kMostGuests) {
      Fd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) break;
      guests.push_back({.lines = LineConnection(std::move(socket)), .end = now + kPatienceOfRoll});
      if (guests.size() > kMostGuests) guests.pop_front();
    }
    for (Guest& guest : guests) {
      const auto line = guest.lines.next();
      if (!line)
        guest.end = 0;
      else if (line->has_value())
        take(guest, **line);
    }
    std::erase_if(guests, [now](const Guest& guest) { return now >= guest.end; });
  }

  // ---- asking others

  static void rest(Peer& peer, Cycles until) {
    peer.connecting.reset();
    peer.lines.close();
    peer.due = until;
  }

  void ask(Peer& peer, Cycles now) {
    if (!peer.connecting && !peer.lines) {
      if (now < peer.due) return;
      auto socket = start_connect_tcp(peer.at);
      if (!socket) return rest(peer, now + kAskAgain);
      peer.connecting = *std::move(socket);
      peer.due = now + kPatienceOfRoll;
    }
    if (peer.connecting) {
      const auto arrived = try_finish_connect_tcp(peer.connecting, peer.at);
      if (!arrived || (!*arrived && now >= peer.due)) return rest(peer, now + kAskAgain);
      if (!*arrived) return;
      peer.lines = LineConnection(std::move(peer.connecting));
      peer.due = now + kPatienceOfRoll;
      if (!peer.lines.send(encode(ToKeeper(hello)))) return rest(peer, now + kAskAgain);
    }
    const auto line = peer.lines.next();
    if (!line) return rest(peer, now + kAskAgain);
    if (!line->has_value()) {
      if (now >= peer.due) rest(peer, now + kAskAgain);
      return;
    }
    const auto message = decode_from_keeper(**line);
    const Answer* answer = message ? std::get_if<Answer>(&*message) : nullptr;
    peer.agrees = answer != nullptr && answer->ok;
    const std::string said = answer == nullptr ? "what answers there is not a node of kv in mode static" : answer->text;
    if (!peer.agrees && said != peer.said)
      spdlog::error("kv node {}: refused by {}: {}", number, peer.at.to_string(), said);
    peer.said = said;
    rest(peer, now + kAskRefused);
  }

  void warn(Cycles now) {
    if (first == 0) first = now;
    if (warned || now < first + kMissingTime) return;
    warned = true;
    std::string missing;
    for (std::uint32_t node = 0; node < kMaxNodes; ++node)
      if (has(others, node) && !peers[node].agrees)
        missing += fmt::format("{}node {} at {} (TCP)", missing.empty() ? "" : ", ", node, peers[node].at.to_string());
    spdlog::warn("kv node {}: it serves when all nodes agree, and waits for {}", number, missing);
  }

  wherry::Status turn(Driver& driver, Cycles now) {
    if (driver.left_static()) {
      return {StatusCode::kInternal,
              fmt::format("node {}: its core failed, and what it held is lost. A cluster in mode static takes no node "
                          "back: stop all its nodes and start them again, with an empty store",
                          number)};
    }
    if (now < next) return {};
    if (listener) serve(now);
    if (entered) {
      next = now + kLookSeldom;
      return {};
    }
    next = now + kLookOften;
    if (hello.boot != driver.boot()) {
      hello.boot = driver.boot();
      for (Peer& peer : peers) {
        peer.agrees = false;
        rest(peer, now);
      }
    }
    for (std::uint32_t node = 0; node < kMaxNodes; ++node)
      if (has(others, node) && !peers[node].agrees) ask(peers[node], now);
    if (!all_agree()) {
      warn(now);
      return {};
    }
    entered = true;
    driver.enter_static(static_configuration(cluster), now);
    if (others != 0) spdlog::info("kv node {}: all nodes agree: it serves", number);
    return {};
  }
};

StaticRoll::StaticRoll(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
StaticRoll::StaticRoll(StaticRoll&& other) noexcept = default;
StaticRoll& StaticRoll::operator=(StaticRoll&& other) noexcept = default;
StaticRoll::~StaticRoll() = default;

Result<StaticRoll> StaticRoll::open(const ServedNode& node) {
  auto impl = std::make_unique<Impl>();
  impl->cluster = node.cluster;
  impl->number = node.number;
  const DriverOptions options = driver_options(node);
  impl->hello = {.cluster = options.cluster,
                 .node = options.node,
                 .lanes = options.lanes,
                 .bucket_bits = options.bucket_bits,
                 .nodes = options.nodes,
                 .accept = options.accept};
  impl->terms = {.cluster = options.cluster,
                 .nodes = options.nodes,
                 .bucket_bits = options.bucket_bits,
                 .lanes = options.lanes,
                 .policy = node.cluster.policy};
  HostPort here;
  for (std::uint32_t i = 0; i < kMaxNodes; ++i) {
    const ClusterNode& one = node.cluster.nodes[i];
    if (!one.configured) continue;
    HostPort at{ip_to_string(one.endpoint.ip), one.endpoint.port};
    if (!one.control.empty()) {
      WHERRY_ASSIGN(at, parse_host_port(one.control));
    }
    (i == node.number ? here : impl->peers[i].at) = at;
    if (i != node.number) impl->others |= mask_of(i);
  }
  if (impl->others != 0) {
    auto listener = patiently([&] { return listen_tcp(here); });
    if (!listener) {
      return wherry::Status(
          StatusCode::kInvalidArgument,
          fmt::format("node {}: {}. Nodes in mode static talk over TCP before they serve: free that port, or name "
                      "another address with 'control'",
                      node.number, listener.status().message()));
    }
    impl->listener = *std::move(listener);
  }
  return StaticRoll(std::move(impl));
}

wherry::Status StaticRoll::turn(Driver& driver, Cycles now) { return impl_->turn(driver, now); }
bool StaticRoll::entered() const noexcept { return impl_->entered; }

}  // namespace wherry::kv
