// SPDX-License-Identifier: Apache-2.0
#include "kv/node/driver/member_driver.hpp"

#include <utility>

#include "base/try.hpp"

namespace wherry::kv {

Result<MemberDriver> MemberDriver::open(const ServedNode& node, DriverOptions options, RegisterIo& core) {
  MemberDriver member(std::make_unique<DriverClient>(node.keepers, std::move(options), core));
  if (const std::string& why = member.client_->driver().unfit(); !why.empty())
    return wherry::Status(StatusCode::kInvalidArgument, why);
  if (node.cluster.mode == ClusterMode::fixed) {
    WHERRY_ASSIGN(member.roll_, StaticRoll::open(node));
  }
  return member;
}

wherry::Status MemberDriver::turn(Cycles now) {
  client_->turn();
  return roll_ ? roll_->turn(client_->driver(), now) : wherry::ok_status();
}

}  // namespace wherry::kv
