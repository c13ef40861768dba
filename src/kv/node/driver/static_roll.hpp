// SPDX-License-Identifier: Apache-2.0
// Mode static, where no keeper compares the nodes and remembers them: the nodes' software calls the roll. Each node
// asks every other one over TCP whether it may enter epoch 1, and enters when all have said yes. A node says no
//  - if the cluster files differ in what all nodes must have alike, and
//  - once it has entered itself, if the asker is not the process that it knows under that number: what the process
//    before it had is lost, and writes were acknowledged that its empty table does not have.
// A write is acknowledged by all members, so none was before all entered: until a node has entered, others may start
// again. Frames are not concerned: cores in hardware need not know of it.
//
// Threads: one, which calls turn(). It never waits for a peer.
#pragma once

#include <memory>

#include "kv/node/driver/served_node.hpp"

namespace wherry::kv {

class StaticRoll {
 public:
  /// Listens where the cluster file says `control`, else at the TCP port with the number of the node's UDP port; a
  /// cluster of one node does not. kInvalidArgument: that address cannot be had.
  static Result<StaticRoll> open(const ServedNode& node);
  StaticRoll(StaticRoll&& other) noexcept;
  StaticRoll& operator=(StaticRoll&& other) noexcept;
  ~StaticRoll();

  /// Does what is due; cheap if nothing is. Has the driver enter the epoch once all others agree. kInternal: the core
  /// left it since; the node cannot come back, and its process ends.
  wherry::Status turn(Driver& driver, Cycles now);
  [[nodiscard]] bool entered() const noexcept;

 private:
  struct Impl;
  explicit StaticRoll(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry::kv
