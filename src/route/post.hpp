// SPDX-License-Identifier: Apache-2.0
// A process's, or a routing thread's, place in a job: its inbox, its router, and the ways to its next hops, mapped or
// bridged. One thread.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "fabric/fabric.hpp"
#include "fabric/stream_worker.hpp"
#include "route/bridge.hpp"
#include "route/card.hpp"
#include "route/router.hpp"

namespace wherry::route {

class Post {
 public:
  /// How long a process that leaves gives those that are slow to take what it sent.
  static constexpr std::chrono::seconds kPatience{10};
  struct Options {
    Rank mine = Router::kNobody;  ///< as in Router
    std::size_t lanes = 0;
    InboxShape inbox;
    bool network = false;                    ///< some hop is reached, or reaches us, over the network
    Transport transport = Transport::kAuto;  ///< of the network
    fabric::StreamOptions stream;            ///< where that is TCP
  };
  static Result<std::unique_ptr<Post>> create(const Options& options);
  ~Post();
  Post(const Post&) = delete;
  Post& operator=(const Post&) = delete;

  [[nodiscard]] const Card& card() const noexcept { return card_; }
  [[nodiscard]] Router& router() noexcept { return *router_; }
  /// Whether `other` can write into our inbox, and we into its, without a network.
  [[nodiscard]] bool shares_memory(const Card& other) const noexcept { return other.host == card_.host; }
  /// Lane `lane` leads to input `input` of `next`; `mapped`: through its memory. `who`: names it in errors.
  Status connect(std::size_t lane, const Card& next, std::uint32_t input, bool mapped, const std::string& who);
  /// What comes over the network for input `input` comes from lane `lane` of `source`.
  Status expect(std::uint32_t input, const Card& source, std::uint32_t lane, const std::string& who);
  /// Waits until all that this process is connected with over TCP is, both ways, and needs nothing of it for that any
  /// more. kDeadlineExceeded: not in time; kUnavailable: somebody cannot be reached.
  Status open(const Deadline& deadline);
  /// What this process says of itself to those that write into its inbox.
  [[nodiscard]] Presence presence() const noexcept { return presence_; }
  /// What the reader of a lane says of itself; none: it is reached over the network.
  [[nodiscard]] Presence presence_of(std::size_t lane) const noexcept { return presences_[lane]; }
  /// Closes the lanes whose readers have left. The first failure that one of them tells of, if there is one.
  [[nodiscard]] Breakdown close_left() noexcept;
  /// Network only; true if something happened.
  bool progress() noexcept;
  /// Whether the first `written` bytes of a lane have been handed to the network, or never will be. Memory: at once.
  [[nodiscard]] bool has_sent(std::size_t lane, std::uint64_t written) const noexcept {
    return !out_[lane] || out_[lane]->has_sent(written);
  }
  /// Whether the reader of a lane over the network has said that it reads no more.
  [[nodiscard]] bool has_left(std::size_t lane) const noexcept { return out_[lane] && out_[lane]->left(); }
  /// Whether all that was written for the network has arrived, or never will, or `patience` has passed since the first
  /// call.
  [[nodiscard]] bool settled(std::chrono::nanoseconds patience) noexcept;
  /// Names those that have not taken all that was written for them over the network; empty: none.
  [[nodiscard]] std::string unsettled();
  /// Tells those on the other side of a network that this process reads and sends nothing any more. Waits a second at
  /// most. Otherwise the destructor does it.
  void say_goodbye() noexcept;
  /// Ok, or the first failure of a bridge.
  [[nodiscard]] Status health() const;
  /// "posix/memory", "tcp/eth0"
  [[nodiscard]] std::string transport() const;

 private:
  Post() = default;
  static void on_bridge(void* self, ByteView data);
  void receive(ByteView data);

  // In the order of their making: endpoints go before their workers.
  std::shared_ptr<fabric::Context> shm_, net_;
  std::unique_ptr<fabric::Worker> shm_worker_, net_worker_;
  fabric::Region inbox_memory_;
  std::byte* inbox_ = nullptr;
  Presence presence_;
  std::vector<Presence> presences_;  ///< by lane
  std::vector<fabric::Endpoint> endpoints_;
  std::vector<fabric::RemoteRegion> regions_;
  std::vector<std::unique_ptr<BridgeOut>> out_;  ///< by lane; null: mapped
  std::vector<std::unique_ptr<BridgeIn>> in_;    ///< by input; null: mapped
  std::vector<BridgeOut*> bridges_out_;          ///< those that there are
  std::vector<BridgeIn*> bridges_in_;
  std::unique_ptr<Router> router_;
  Card card_;
  bool received_ = false;
  bool said_goodbye_ = false;
  std::uint64_t settling_since_ = 0;
  std::string transport_;
  Status status_;
};

}  // namespace wherry::route
