// SPDX-License-Identifier: Apache-2.0
// Does the work of a client's LaneSession in virtual time: gets lanes from the simulated keeper, holds them for a while
// when the keeper has gone, and asks again.
#pragma once

#include <cstdint>
#include <optional>

#include "kv/sim/keeper_seat.hpp"
#include "kv/sim/store_client.hpp"

namespace wherry::kv::sim {

class LaneSeat final {
 public:
  LaneSeat(Network& network, KeeperSeat& keeper, StoreClient& client, std::uint32_t lanes, std::uint64_t session,
           Cycles interval, Cycles ttl);
  LaneSeat(const LaneSeat&) = delete;  // the network has its address
  LaneSeat& operator=(const LaneSeat&) = delete;
  ~LaneSeat() = default;

  void start() { look(network_.now()); }
  [[nodiscard]] bool holds(std::uint16_t lane) const noexcept {
    return granted_ && lane >= granted_->first && lane < granted_->first + lanes_;
  }

 private:
  void look(Cycles now);
  void take(const FromKeeper& answer, Cycles now);
  void forget();

  Network& network_;
  KeeperSeat& keeper_;
  StoreClient& client_;
  std::uint32_t lanes_;
  std::uint64_t session_;
  Cycles interval_, ttl_;
  std::uint64_t holder_ = 0;       ///< its connection; 0: none
  std::uint64_t keeper_life_ = 0;  ///< of the keeper that it is to
  std::uint64_t client_life_ = 0;  ///< of the client that it is for
  Cycles verified_ = 0;
  std::optional<GrantedLanes> granted_;
};

}  // namespace wherry::kv::sim
