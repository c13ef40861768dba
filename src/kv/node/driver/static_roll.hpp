// SPDX-License-Identifier: Apache-2.0
// In mode static no keeper compares the nodes and remembers them, so the nodes' software calls the roll. Each node asks
// every other one over TCP whether it may enter epoch 1, and enters when all have agreed. A node refuses
//  - if the cluster files differ in a value that must be equal for all nodes, and
//  - after it has entered itself, if the asker is not the process that it knows under that number. The data of the
//    earlier process are lost, so the new one's empty table lacks acknowledged writes.
// All members acknowledge a write, so no write was acknowledged before all entered. Until a node has entered, others
// may restart. Frames are not affected, so cores in hardware need not know about the roll.
//
// Threads: one, which calls turn(). It does not wait for a peer.
#pragma once

#include <memory>

#include "kv/node/driver/served_node.hpp"

namespace wherry::kv {

class StaticRoll {
 public:
  /// Listens at the cluster file's `control`, else at the TCP port with the number of the node's UDP port. In a cluster
  /// of one node it does not listen. kInvalidArgument: the address is not available.
  static Result<StaticRoll> open(const ServedNode& node);
  StaticRoll(StaticRoll&& other) noexcept;
  StaticRoll& operator=(StaticRoll&& other) noexcept;
  ~StaticRoll();

  /// Does the work that is due; cheap if there is none. Makes the driver enter the epoch when all others agree.
  /// kInternal: the core has left the epoch again. The node cannot return, and its process ends.
  wherry::Status turn(Driver& driver, Cycles now);
  [[nodiscard]] bool entered() const noexcept;

 private:
  struct Impl;
  explicit StaticRoll(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry::kv
