// SPDX-License-Identifier: Apache-2.0
#include "kv/client/lane_session.hpp"

#include <utility>

namespace wherry::kv {
namespace {

constexpr Cycles kLook = 20 * kMillisecond;      ///< between looks at a connection that says nothing
constexpr Cycles kAgain = 50 * kMillisecond;     ///< after a connection was refused or lost
constexpr Cycles kConnect = 500 * kMillisecond;  ///< for a peer to accept one
/// Time to wait for an answer. The time doubles, up to kMostPatience, after each keeper that did not answer; an answer
/// resets it.
constexpr Cycles kPatience = 1000 * kMillisecond;
constexpr Cycles kMostPatience = 8000 * kMillisecond;

}  // namespace

LaneSession::LaneSession(std::vector<HostPort> keepers, std::string cluster, std::uint32_t lanes, std::uint64_t session)
    : keepers_(std::move(keepers)), patience_(kPatience) {
  wish_.cluster = std::move(cluster);
  wish_.lanes = lanes;
  wish_.session = session;
}

void LaneSession::turn(Cycles now) {
  if (!lines_) connect(now);
  if (lines_ && ask_at_ != 0 && now >= ask_at_) open(now);
  if (lines_) read(now);
  if (lines_) look_at_keeper(now);
  if (lines_ && lines_.wants_to_write() && !lines_.flush()) lose(now);
  if (lines_) next_ = ask_at_ != 0 ? std::min(ask_at_, now + kLook) : now + kLook;
}

void LaneSession::connect(Cycles now) {
  if (!connecting_) {
    if (now < next_) return;
    Result<Fd> socket = wherry::Status(StatusCode::kUnavailable, "not tried");
    if (const auto s = network_.run([&] { socket = start_connect_tcp(keepers_[turn_of_]); }); !s) {
      refusal_ = s.message();
      return lose(now);
    }
    if (!socket) return lose(now);
    connecting_ = *std::move(socket);
    give_up_at_ = now + kConnect;
  }
  const auto arrived = try_finish_connect_tcp(connecting_, keepers_[turn_of_]);
  if (!arrived || (!*arrived && now >= give_up_at_)) return lose(now);
  next_ = now + kMillisecond;
  if (!*arrived) return;
  notice_death(connecting_.get());
  lines_ = LineConnection(std::move(connecting_));
  questions_ = 0;
  open(now);
}

void LaneSession::look_at_keeper(Cycles now) {
  if (questions_ != 0) {
    if (now - heard_ <= patience_) return;
    refusal_ = "the keeper at " + keepers_[turn_of_].to_string() + " does not answer";
    patience_ = std::min(2 * patience_, kMostPatience);
    lose(now);
  } else if (granted_here_ && ask_at_ == 0 && now - verified_ >= granted_.ttl / 4) {
    verified_ = now;
    open(now);
  }
}

void LaneSession::open(Cycles now) {
  ask_at_ = 0;
  if (questions_++ == 0) heard_ = now;
  sent_ = now;
  // Ask for the same lanes only if they were held recently. Older ones may belong to another client, and a keeper that
  // has just started does not know it yet.
  wish_.resume = granted_.session != 0 && (granted_here_ || now < verified_ + granted_.ttl / 2);
  wish_.first = granted_.first;
  wish_.grant = granted_.grant;
  if (!lines_.send(encode(ToKeeper(wish_)))) lose(now);
}

void LaneSession::ask(Cycles now) {
  confirmed_ = false;
  if (lines_) open(now);
}

void LaneSession::read(Cycles now) {
  while (lines_) {
    const auto line = lines_.next();
    if (!line) return lose(now);
    if (!line->has_value()) return;
    const auto message = decode_from_keeper(**line);
    if (!message) {
      refusal_ = "what answers at " + keepers_[turn_of_].to_string() + " is not a keeper of this version";
      return lose(now);
    }
    heard_ = now;
    patience_ = kPatience;
    take(*message, now);
  }
}

void LaneSession::take(const FromKeeper& message, Cycles now) {
  if (questions_ > 0) --questions_;
  if (const auto* answer = std::get_if<Answer>(&message)) {
    refusal_ = answer->text;
    exhausted_ = answer->exhausted;
    refused_ = answer->lasting;
    return;  // it closes the connection
  }
  const auto* lanes = std::get_if<GrantedLanes>(&message);
  if (lanes == nullptr) return;
  if (lanes->session == 0) {
    ask_at_ = now + lanes->ttl;
    verified_ = answered_;
    confirmed_ = false;
    exhausted_ = refused_ = false;
    refusal_ = "it does not grant lanes yet: no node serves, or clients of the keeper before may still have them";
    return;
  }
  if (lanes->session != wish_.session || lanes->lanes != wish_.lanes) return;
  granted_ = *lanes;
  granted_here_ = true;
  if (questions_ == 0) {  // else this answers an earlier one than ask() sent
    confirmed_ = true;
    answered_ = verified_ = sent_;
  }
  exhausted_ = refused_ = false;
  refusal_.clear();
}

void LaneSession::lose(Cycles now) {
  lines_.close();
  connecting_.reset();
  ask_at_ = 0;
  questions_ = 0;
  confirmed_ = granted_here_ = false;
  turn_of_ = (turn_of_ + 1) % keepers_.size();
  next_ = now + kAgain;
}

void LaneSession::close() {
  if (!lines_) return;
  (void)lines_.send(encode(ToKeeper(CloseLanes{})));  // if it does not arrive, the keeper waits
  lines_.close();
}

}  // namespace wherry::kv
