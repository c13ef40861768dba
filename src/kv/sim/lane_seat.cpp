// SPDX-License-Identifier: Apache-2.0
#include "kv/sim/lane_seat.hpp"

namespace wherry::kv::sim {

LaneSeat::LaneSeat(Network& network, KeeperSeat& keeper, StoreClient& client, std::uint32_t lanes,
                   std::uint64_t session, Cycles interval, Cycles ttl)
    : network_(network),
      keeper_(keeper),
      client_(client),
      lanes_(lanes),
      session_(session | 1),
      interval_(interval),
      ttl_(ttl),
      client_life_(client.life()) {}

/// The client's process has restarted. Only the keeper knows its former lanes, and lets them rest.
void LaneSeat::forget() {
  if (keeper_.alive() && holder_ != 0 && keeper_life_ == keeper_.life()) keeper_.close_lanes(holder_, false);
  client_life_ = client_.life();
  session_ += 2;
  holder_ = 0;
  granted_.reset();
}

void LaneSeat::look(Cycles now) {
  if (client_.life() != client_life_) forget();
  const bool connected = keeper_.alive() && holder_ != 0 && keeper_life_ == keeper_.life();
  if (connected) {
    verified_ = now;
    if (client_.core().disputes()) client_.core().protest(now);
  } else {
    holder_ = 0;
    if (granted_ && now >= verified_ + ttl_ / 2 && client_.core().has_lanes()) client_.lose_lanes();
    if (keeper_.alive()) {
      keeper_life_ = keeper_.life();
      const OpenLanes wish{.lanes = lanes_,
                           .session = session_,
                           .resume = granted_.has_value(),
                           .first = granted_ ? granted_->first : 0};
      const std::uint64_t holder = keeper_.new_holder();
      take(keeper_.open_lanes(holder, wish), now);
      if (granted_ && verified_ == now) holder_ = holder;
    }
  }
  network_.call_at(now + interval_, [this](Cycles then) { look(then); });
}

void LaneSeat::take(const FromKeeper& answer, Cycles now) {
  const auto* const lanes = std::get_if<GrantedLanes>(&answer);
  if (lanes == nullptr || lanes->session == 0) return;
  verified_ = now;
  const bool same = granted_ && granted_->first == lanes->first && client_.core().has_lanes();
  granted_ = *lanes;
  if (same) return;
  if (client_.core().has_lanes()) client_.lose_lanes();
  client_.give_lanes(static_cast<std::uint16_t>(lanes->first));
}

}  // namespace wherry::kv::sim
