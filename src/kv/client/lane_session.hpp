// SPDX-License-Identifier: Apache-2.0
// A client's connection to the keeper. The keeper grants lanes as long as the connection lives, and some time longer.
// A session has no threads. turn() does the work that is due, and never waits for a peer (except to resolve a name).
//
// When the connection ends, the session keeps its lanes for half of the keeper's limit. In that time it asks this
// keeper or another one for the same lanes. After that, another client may own them, so the session asks for any lanes.
//
// A connection alone does not show that its keeper is alive. The kernel acknowledges data that a stopped process never
// reads, and another keeper may be elected meanwhile. So the session asks again after each quarter of the keeper's
// limit, and ends a connection on which a question stays unanswered. If turn() was not called for so long, the session
// asks in its next turn and keeps its lanes until then.
#pragma once

#include <poll.h>

#include <string>
#include <vector>

#include "base/network_namespace.hpp"
#include "base/socket.hpp"
#include "kv/control/control.hpp"
#include "kv/control/line_connection.hpp"

namespace wherry::kv {

class LaneSession {
 public:
  /// `session`: a random number other than 0.
  LaneSession(std::vector<HostPort> keepers, std::string cluster, std::uint32_t lanes, std::uint64_t session);
  LaneSession(const LaneSession&) = delete;
  LaneSession& operator=(const LaneSession&) = delete;
  ~LaneSession() = default;

  void turn(Cycles now);
  /// When to call turn() next. Call it earlier if fd() has news.
  [[nodiscard]] Cycles next_time() const noexcept { return next_; }
  void hurry() noexcept { next_ = 0; }
  [[nodiscard]] int fd() const noexcept { return connecting_ ? connecting_.get() : lines_.fd(); }
  /// For poll(2): ready when the connection has news.
  [[nodiscard]] pollfd awaited() const noexcept {
    return connecting_ ? pollfd{connecting_.get(), POLLOUT, 0} : lines_.awaited();
  }

  /// True while the lanes from first_lane() on belong to this client.
  [[nodiscard]] bool held(Cycles now) const noexcept {
    return granted_.session != 0 && now < verified_ + granted_.ttl / 2;
  }
  [[nodiscard]] std::uint16_t first_lane() const noexcept { return static_cast<std::uint16_t>(granted_.first); }
  /// Number of the grant. If it changes, other clients may have used the lanes in between, even if they are the same.
  [[nodiscard]] std::uint64_t grant() const noexcept { return granted_.grant; }
  [[nodiscard]] const std::array<Endpoint, kMaxNodes>& nodes() const noexcept { return granted_.nodes; }
  /// Asks the keeper again whether the lanes still belong to this client. confirmed() is false until the keeper has
  /// confirmed it.
  void ask(Cycles now);
  [[nodiscard]] bool confirmed() const noexcept { return confirmed_; }
  /// The keeper's latest reason for not granting lanes; empty if it gave none.
  [[nodiscard]] const std::string& refusal() const noexcept { return refusal_; }
  /// True if the reason was that too few lanes were free.
  [[nodiscard]] bool exhausted() const noexcept { return exhausted_; }
  /// True if a later question will also be refused: wrong cluster name, or more lanes than exist.
  [[nodiscard]] bool refused() const noexcept { return refused_; }
  /// Ends the session. No write may be in flight; so the keeper need not wait before it grants the lanes again.
  void close();

 private:
  void connect(Cycles now);
  void open(Cycles now);
  void look_at_keeper(Cycles now);
  void read(Cycles now);
  void take(const FromKeeper& message, Cycles now);
  void lose(Cycles now);

  std::vector<HostPort> keepers_;
  /// The network namespace of the keepers, for any thread that calls turn() later. (The client may have been created
  /// inside `up --xdp`.)
  NetworkNamespace network_ = NetworkNamespace::current();
  std::size_t turn_of_ = 0;
  OpenLanes wish_;
  GrantedLanes granted_;
  LineConnection lines_;
  Fd connecting_;
  Cycles give_up_at_ = 0;  ///< trying to connect
  Cycles ask_at_ = 0;      ///< "not yet" was the answer; 0: none is waited for
  Cycles next_ = 0;
  bool granted_here_ = false;    ///< over the present connection
  Cycles verified_ = 0;          ///< when the question was sent that was answered last, or that is not answered yet
  Cycles answered_ = 0;          ///< when the question was sent that was answered last
  Cycles sent_ = 0;              ///< when the last question was sent
  std::uint32_t questions_ = 0;  ///< not answered yet
  Cycles heard_ = 0;             ///< the keeper's last word, or when the first of those was sent
  Cycles patience_;              ///< for an answer
  bool confirmed_ = false;
  std::string refusal_;
  bool exhausted_ = false, refused_ = false;
};

}  // namespace wherry::kv
