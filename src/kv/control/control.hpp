// SPDX-License-Identifier: Apache-2.0
// Messages of nodes' drivers, operators and clients with the keeper: a JSON object a line, over TCP. Input is checked.
//
//   node      hello        cluster, node, boot; what it is in; which earlier boot of its own it saw end
//   keeper    ping         node: report                         each T
//   keeper    configure    node: entered                        a configuration, also to those that it leaves out
//   node      ask_lease    keeper: grant (0: no)
//   keeper    stop         node: stopped                        the lease is dropped, and none is asked for
//   keeper    resume                                            the stop is taken back
//   keeper    settled                                           all members have entered this epoch
//   operator  command      keeper: answer
//   client    open_lanes   keeper: lanes                        they are the client's while this connection lives, and
//                                                               for a while after that
//   client    close_lanes                                       it needs them no more
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "kv/control/configuration.hpp"

namespace wherry::kv {

inline constexpr std::size_t kMaxControlLine = std::size_t{64} << 10;
inline constexpr std::uint64_t kControlVersion = 1;
/// Upper limit of grant numbers. A number is the calendar time in ns at the keeper's start, plus one for each grant.
inline constexpr std::uint64_t kMaxGrantNumber = std::uint64_t{1} << 62;

struct Hello {
  std::string cluster;
  std::uint32_t node = 0;
  std::uint64_t boot = 0;
  std::uint64_t ended_boot = 0;  ///< 0 or the boot before, whose lease and epoch this driver took away itself
  bool ready = false;            ///< empty and cleared: may become a member
  bool complete = false;         ///< as in Report
  std::uint32_t lanes = 0;
  std::optional<Configuration> entered;  ///< in this boot
  // Settings that must be equal for all members, from this node's cluster file.
  std::uint32_t bucket_bits = 0;
  std::array<Endpoint, kMaxNodes> nodes{};
  bool accept = false;  ///< it acknowledges on acceptance, not after the store
  friend bool operator==(const Hello&, const Hello&) = default;
};

struct Counters {
  std::uint64_t frames = 0;
  std::uint64_t dropped = 0;
  std::uint64_t retries = 0;
  friend bool operator==(const Counters&, const Counters&) = default;
};

struct Report {
  std::uint64_t ping = 0;  ///< what it answers; 0: nothing, something changed
  std::uint64_t boot = 0;
  std::uint64_t epoch = 0;
  bool ready = false;
  bool fault = false;
  bool complete = false;    ///< as a member it got everything, and nothing is left over
  std::uint32_t state = 0;  ///< the register
  std::uint64_t buckets_left = 0;
  std::uint64_t lanes_left = 0;
  NodeMask silent = 0;  ///< members that do not answer this leader
  Counters counters;
  friend bool operator==(const Report&, const Report&) = default;
};

struct AskLease {
  std::uint64_t id = 0;
  std::uint64_t boot = 0;
  std::uint64_t epoch = 0;
  friend bool operator==(const AskLease&, const AskLease&) = default;
};
struct Entered {
  std::uint64_t boot = 0;
  std::uint64_t epoch = 0;
  friend bool operator==(const Entered&, const Entered&) = default;
};
struct Stopped {
  std::uint64_t boot = 0;
  std::uint64_t id = 0;
  friend bool operator==(const Stopped&, const Stopped&) = default;
};

enum class Op : std::uint8_t { status, remove, admit, move, stop, resume, start_over };
struct Command {
  Op op = Op::status;
  std::uint32_t node = 0;        ///< remove, admit, move
  std::uint32_t first_slot = 0;  ///< move
  std::uint32_t last_slot = 0;
  friend bool operator==(const Command&, const Command&) = default;
};

/// A client's request for new lanes, or for the lanes that it had.
struct OpenLanes {
  std::string cluster;        ///< empty: whichever it is
  std::uint32_t lanes = 1;    ///< how many
  std::uint64_t session = 0;  ///< a random number that the client drew, not 0: it has lanes back under it
  bool resume = false;        ///< those that it had, rather than any:
  std::uint32_t first = 0;    ///< where they began
  std::uint64_t grant = 0;    ///< its number, as GrantedLanes said it; absent: 0, older than any
  friend bool operator==(const OpenLanes&, const OpenLanes&) = default;
};
struct CloseLanes {
  friend bool operator==(const CloseLanes&, const CloseLanes&) = default;
};

using ToKeeper = std::variant<Hello, Report, AskLease, Entered, Stopped, Command, OpenLanes, CloseLanes>;

struct Ping {
  std::uint64_t ping = 0;
  friend bool operator==(const Ping&, const Ping&) = default;
};
struct Configure {
  Configuration configuration;
  friend bool operator==(const Configure&, const Configure&) = default;
};
struct Grant {
  std::uint64_t id = 0;
  Cycles lease = 0;  ///< from when it was asked for; 0: none
  friend bool operator==(const Grant&, const Grant&) = default;
};
struct Stop {
  std::uint64_t id = 0;
  friend bool operator==(const Stop&, const Stop&) = default;
};
struct Resume {
  friend bool operator==(const Resume&, const Resume&) = default;
};
struct Settled {
  std::uint64_t epoch = 0;
  friend bool operator==(const Settled&, const Settled&) = default;
};
/// The lanes of a client, and the addresses of the nodes.
struct GrantedLanes {
  std::uint64_t session = 0;  ///< 0: not yet; ask again after `ttl`
  std::uint32_t first = 0;
  std::uint32_t lanes = 0;
  Cycles ttl = 0;  ///< how long they stay the client's without a connection
  std::array<Endpoint, kMaxNodes> nodes{};
  std::uint64_t grant = 0;  ///< a later one's is higher; the client says it when it asks for these lanes again
  friend bool operator==(const GrantedLanes&, const GrantedLanes&) = default;
};
/// Sent to an operator, and to a refused node or client before its connection is closed.
struct Answer {
  bool ok = false;
  std::string text;        ///< of `status` JSON, else a sentence
  bool exhausted = false;  ///< there are too few lanes; absent: false
  bool lasting = false;    ///< the same will be refused again, however often it is asked; absent: false
  friend bool operator==(const Answer&, const Answer&) = default;
};

using FromKeeper = std::variant<Ping, Configure, Grant, Stop, Resume, Settled, Answer, GrantedLanes>;

/// Encodes a message as one line, without the newline.
std::string encode(const ToKeeper& message);
std::string encode(const FromKeeper& message);
/// kProtocol: the message names the wrong field.
Result<ToKeeper> decode_to_keeper(std::string_view line);
Result<FromKeeper> decode_from_keeper(std::string_view line);

/// Encodes a configuration alone, in the form stored in a file or in etcd.
std::string encode(const Configuration& configuration);
Result<Configuration> decode_configuration(std::string_view text);

}  // namespace wherry::kv
