// SPDX-License-Identifier: Apache-2.0
// The driver of a node that a process serves, with its link to the other members: either a connection to the keeper or,
// in mode static, the roll. Thread: the node's own, which calls turn() besides its other work.
#pragma once

#include <memory>
#include <optional>

#include "kv/node/driver/driver_client.hpp"
#include "kv/node/driver/served_node.hpp"
#include "kv/node/driver/static_roll.hpp"

namespace wherry::kv {

class MemberDriver {
 public:
  /// `core` must outlive the driver. kInvalidArgument: the core does not support the options, or the address for mode
  /// static is not available.
  static Result<MemberDriver> open(const ServedNode& node, DriverOptions options, RegisterIo& core);

  /// Does the work that is due. It blocks only to resolve a name, and never with numeric addresses. After an error the
  /// node ends.
  wherry::Status turn(Cycles now);

 private:
  explicit MemberDriver(std::unique_ptr<DriverClient> client) : client_(std::move(client)) {}

  std::unique_ptr<DriverClient> client_;
  std::optional<StaticRoll> roll_;
};

}  // namespace wherry::kv
