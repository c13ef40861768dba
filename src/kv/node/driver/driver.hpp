// SPDX-License-Identifier: Apache-2.0
// The software side of a node. The driver obeys the keeper and uses the registers of docs/reference/kv-registers.md, of
// a software node or of a card. driver_client.hpp provides its sockets and its clock. The driver reads registers over a
// bus a few times a second, and a few hundred times a second while it catches up.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "kv/control/control.hpp"
#include "kv/generated/registers.hpp"
#include "kv/net/subnet.hpp"

namespace wherry::kv {

struct DriverOptions {
  std::string cluster;
  std::uint32_t node = 0;
  std::uint32_t bucket_bits = 21;
  std::uint32_t lanes = 4096;
  std::uint32_t retry_cycles = registers::kRetryCyclesReset;
  bool accept = false;
  std::array<Endpoint, kMaxNodes> nodes{};  ///< as the cluster file has them, for the keeper to compare
  /// Sources that the node answers, members included. For a core in hardware; the process of a software node has its
  /// own list.
  std::vector<Subnet> sources;
  /// Returns members that have not answered this node, as leader, for that time. Empty for a core in hardware, which
  /// does not report them. The driver then sees from counters that no member answers, and from `state.unanswered` which
  /// members are silent.
  std::function<NodeMask(Cycles)> silent_members;
  Cycles silence = 75'000'000;                   ///< for how long (300 ms)
  Cycles keeper_silence = 250'000'000;           ///< after so long without a word a keeper is given up (1 s)
  std::uint32_t chunk = std::uint32_t{1} << 16;  ///< buckets to fetch at a time
  Cycles busy_interval = 500'000;                ///< between looks while the core clears or fetches (2 ms)
  Cycles idle_interval = 25'000'000;             ///< between looks for a fault otherwise (100 ms)
};

/// Calls that the driver's functions make. They must not call back into the driver.
class DriverOutput {
 public:
  virtual void send(const ToKeeper& message) = 0;
  /// A random number, not 0, that no node of the cluster has ever had.
  virtual std::uint64_t draw_boot() = 0;

 protected:
  DriverOutput() = default;
  DriverOutput(const DriverOutput&) = default;
  DriverOutput& operator=(const DriverOutput&) = default;
  ~DriverOutput() = default;
};

class Driver {
 public:
  /// The constructor takes the core out of its epoch, and begins to empty it.
  Driver(DriverOptions options, RegisterIo& core, DriverOutput& output, Cycles now);

  /// For use without a keeper: when the core is empty, it enters this configuration, with a lease that never ends.
  void enter_static(const Configuration& configuration, Cycles now);
  /// True if the core has left that epoch since, and is empty. The core never enters that epoch again.
  [[nodiscard]] bool left_static() const noexcept { return left_static_; }

  void connected(Cycles now);
  void disconnected();
  void on_message(const FromKeeper& message, Cycles now);
  void on_time(Cycles now);
  [[nodiscard]] Cycles next_time() const noexcept;
  /// True if this connection's keeper sent nothing, or left a question unanswered, for longer than
  /// DriverOptions::keeper_silence. The keeper hangs, or its machine is gone. The caller then closes the connection and
  /// asks another keeper. Pass all received messages to on_message() before this call.
  [[nodiscard]] bool keeper_silent(Cycles now) const noexcept {
    return connected_ && now > silent_since() + options_.keeper_silence;
  }

  [[nodiscard]] std::uint64_t boot() const noexcept { return boot_; }
  [[nodiscard]] std::uint64_t epoch() const noexcept { return entered_ ? entered_->epoch : 0; }
  [[nodiscard]] const std::optional<Configuration>& entered() const noexcept { return entered_; }
  [[nodiscard]] bool complete() const noexcept { return complete_; }
  /// The requests of the options that the core cannot fulfil; empty if there are none. An unfit node sends nothing to
  /// the keeper.
  [[nodiscard]] const std::string& unfit() const noexcept { return unfit_; }
  /// The reason why the keeper refused this node; empty if it did not.
  [[nodiscard]] const std::string& refusal() const noexcept { return refusal_; }

 private:
  void on(const Ping& ping, Cycles now);
  void on(const Configure& configure, Cycles now);
  void on(const Grant& grant, Cycles now);
  void on(const Stop& stop, Cycles now);
  void on(const Resume& resume, Cycles now);
  void on(const Settled& settled, Cycles now);
  void on(const Answer& answer, Cycles now);
  void on(const GrantedLanes&, Cycles) {}  // for clients

  void begin(std::uint64_t ended, Cycles now);
  [[nodiscard]] bool leave();
  [[nodiscard]] bool entering();
  void tell_entered();
  void clear();
  void check_core();
  void tell_sources();
  bool look(Cycles now);
  void obey(const Configuration& configuration, Cycles now);
  void enter(const Configuration& configuration, Cycles now);
  void stage(const Configuration& configuration);
  void synchronise();
  void watch_answers(Cycles now);
  [[nodiscard]] std::uint32_t watch_fetching(Cycles now);
  void set_pace(std::uint32_t patience);
  void ask_lease(Cycles now);
  [[nodiscard]] Cycles silent_since() const noexcept {
    return unanswered_ != 0 ? std::min(heard_, unanswered_) : heard_;
  }
  void hello();
  void report(std::uint64_t ping);
  [[nodiscard]] bool serves() const noexcept { return entered_ && has(entered_->serving, options_.node); }
  [[nodiscard]] bool busy() const noexcept { return !ready_ || entering_ || (entered_ && !complete_); }
  [[nodiscard]] Cycles cycles();
  [[nodiscard]] std::uint64_t read_counter(std::uint32_t offset) { return core_.read(offset); }
  void write_lease(Cycles end);

  DriverOptions options_;
  RegisterIo& core_;
  DriverOutput& output_;
  std::uint64_t boot_ = 0;
  std::uint64_t ended_ = 0;
  std::optional<Configuration> entered_;  ///< or is entering
  std::optional<Configuration> next_;     ///< what the keeper said meanwhile
  bool entering_ = false;  ///< the core had not entered that when it was looked at; the keeper was not told
  std::optional<Configuration> static_;
  bool left_static_ = false;
  bool connected_ = false;
  Cycles heard_ = 0;       ///< the keeper's last word, or when it was connected to
  Cycles unanswered_ = 0;  ///< when the first of the lease questions was sent that nothing answered; 0: none
  bool left_ = false;      ///< the core is in no epoch, and empties its table or did
  bool ready_ = false;     ///< the core is empty, or was when it entered its first epoch
  bool fault_ = false;     ///< the core cannot be cleared, or does not answer
  bool stopped_ = false;   ///< the keeper asked for it
  bool settled_ = false;   ///< all members entered an epoch with this one as a member
  bool complete_ = false;  ///< has everything
  bool fetching_ = false;
  bool lanes_asked_ = false;
  std::uint64_t next_bucket_ = 0;
  std::uint32_t state_ = 0;  ///< register, as last read
  std::uint64_t asks_ = 0;
  std::uint64_t asked_ = 0;  ///< the request for a lease that is not answered yet; 0: none
  Cycles asked_cycles_ = 0;  ///< the core's clock before it was sent
  Cycles asked_at_ = 0;
  Cycles next_ask_ = 0;
  Cycles lease_ = 0;      ///< as last granted
  Cycles lease_end_ = 0;  ///< by the core's clock
  Cycles next_look_ = 0;
  std::uint64_t reports_ = 0;
  std::uint64_t answers_ = 0;         ///< of members, as counted by the core; it wraps
  Cycles unanswered_since_ = 0;       ///< writes wait, and none was answered since; 0: it is not so
  std::uint32_t patience_ = 0;        ///< retry_cycles is that of the options times 2^this
  std::uint32_t fetch_patience_ = 0;  ///< the part of it that is for questions of a node that catches up
  Cycles fetch_looked_ = 0;           ///< 0: not yet
  std::uint32_t fetch_repeated_ = 0, fetch_answered_ = 0;
  NodeMask silent_ = 0;
  Counters counters_;
  std::string refusal_;
  std::string unfit_;
};

}  // namespace wherry::kv
