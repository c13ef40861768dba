// SPDX-License-Identifier: Apache-2.0
// A hop of a job: an inbox, a router, and the links to next hops. Each rank that is a process has one, and so does each
// routing thread of an agent. One thread.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "fabric/fabric.hpp"
#include "fabric/stream_worker.hpp"
#include "route/address.hpp"
#include "route/bridge.hpp"
#include "route/router.hpp"

namespace wherry::route {

/// Next hops are mapped (this process writes into their inboxes) or bridged (reached over a network).
class Hop {
 public:
  /// The time that a leaving process waits for others to take its messages.
  static constexpr std::chrono::seconds kPatience{10};
  struct Options {
    Rank mine = Router::kNobody;  ///< as in Router
    std::size_t lanes = 0;
    InboxShape inbox;
    bool network = false;                    ///< some next or previous hop is bridged
    Transport transport = Transport::kAuto;  ///< of the network
    fabric::StreamOptions stream;            ///< if that is TCP
  };
  static Result<std::unique_ptr<Hop>> create(const Options& options);
  ~Hop();
  Hop(const Hop&) = delete;
  Hop& operator=(const Hop&) = delete;

  [[nodiscard]] const Address& address() const noexcept { return address_; }
  [[nodiscard]] Router& router() noexcept { return *router_; }
  /// Whether this process and `other` can write into each other's inboxes without a network.
  [[nodiscard]] bool shares_memory(const Address& other) const noexcept { return other.host == address_.host; }
  /// Connects lane `lane` to input `input` of `next`, which is mapped or bridged. `who`: its name in errors.
  Status connect(std::size_t lane, const Address& next, std::uint32_t input, bool mapped, const std::string& who);
  /// Prepares input `input` to receive over a bridge from lane `lane` of `previous`. `who`: its name in errors.
  Status expect(std::uint32_t input, const Address& previous, std::uint32_t lane, const std::string& who);
  /// Waits until all TCP connections of this hop are established in both directions. kDeadlineExceeded: not in time.
  /// kUnavailable: another hop is unreachable.
  Status open(const Deadline& deadline);
  /// The presence of this hop.
  [[nodiscard]] Presence presence() const noexcept { return presence_; }
  /// The presence of a lane's reader; empty if the lane is bridged.
  [[nodiscard]] Presence presence_of(std::size_t lane) const noexcept { return presences_[lane]; }
  /// Closes the lanes whose readers have left or failed. Returns the first failure that a reader reports, if any.
  [[nodiscard]] JobFailure close_left() noexcept;
  /// Makes progress on the bridges. True: something happened.
  bool progress() noexcept;
  /// Whether the network has accepted the first `written` bytes of a lane, or never will. Mapped lanes: always true.
  [[nodiscard]] bool has_sent(std::size_t lane, std::uint64_t written) const noexcept {
    return !out_[lane] || out_[lane]->has_sent(written);
  }
  /// Whether the reader of a bridged lane has announced its departure.
  [[nodiscard]] bool has_left(std::size_t lane) const noexcept { return out_[lane] && out_[lane]->left(); }
  /// Whether all bridged messages have arrived or never can, or `patience` has passed since the first call.
  [[nodiscard]] bool settled(std::chrono::nanoseconds patience) noexcept;
  /// The names of bridged hops that have not taken all their messages; empty if there are none.
  [[nodiscard]] std::string unsettled();
  /// Tells bridged hops that this hop has left and no longer reads or sends. Blocks for at most a second. If it was not
  /// called, the destructor calls it.
  void leave() noexcept;
  /// Ok, or the first failure of a bridge.
  [[nodiscard]] Status health() const;
  /// The transports: "posix/memory", "tcp/eth0".
  [[nodiscard]] std::string transport() const;

 private:
  Hop() = default;
  static void on_bridge(void* self, ByteView data);
  void receive(ByteView data);

  // Declared in the order of creation, so that endpoints are destroyed before their workers.
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
  std::vector<BridgeOut*> bridges_out_;          ///< those that are not null
  std::vector<BridgeIn*> bridges_in_;
  std::unique_ptr<Router> router_;
  Address address_;
  bool received_ = false;  ///< something has come over a bridge since progress() began
  bool left_ = false;
  std::uint64_t settling_since_ = 0;  ///< now_ns() of the first settled(); 0: not called
  std::string transport_;
  Status status_;
};

}  // namespace wherry::route
