// SPDX-License-Identifier: Apache-2.0
// In mode static no keeper compares the nodes and remembers them. So the nodes' software calls the roll. Each node asks
// every other one over TCP whether it may enter epoch 1, and enters when all have said yes. A node says no
//  - if the cluster files differ in a value that must be equal for all nodes, and
//  - once it has entered itself, if the asker is not the process that it knows under that number. The data of the
//    earlier process are lost, so its empty table lacks acknowledged writes.
// All members acknowledge a write, so none was acknowledged before all entered. Until a node has entered, others may
// start again. Frames are not affected, so cores in hardware need not know of it.
//
// Threads: one, which calls turn(). It never waits for a peer.
#pragma once

#include <memory>

#include "kv/node/driver/served_node.hpp"

namespace wherry::kv {

class StaticRoll {
 public:
  /// Listens at the cluster file's `control`, else at the TCP port with the number of the node's UDP port. A cluster of
  /// one node does not listen. kInvalidArgument: that address is not available.
  static Result<StaticRoll> open(const ServedNode& node);
  StaticRoll(StaticRoll&& other) noexcept;
  StaticRoll& operator=(StaticRoll&& other) noexcept;
  ~StaticRoll();

  /// Does the work that is due. Cheap if there is none. Makes the driver enter the epoch once all others agree.
  /// kInternal: the core has left it since. The node cannot come back, and its process ends.
  wherry::Status turn(Driver& driver, Cycles now);
  [[nodiscard]] bool entered() const noexcept;

 private:
  struct Impl;
  explicit StaticRoll(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry::kv
