// SPDX-License-Identifier: Apache-2.0
// Part of the library wherry_kv_faulty, in which Node is the class with faults.
#include "kv/node/any_node_testing.hpp"
#include "kv/node/node.hpp"

namespace wherry::kv::testing {

std::unique_ptr<AnyNode> make_faulty_node(const NodeOptions& options, Output& output, const NodeFaults& faults) {
  return std::make_unique<AnyNodeOf<Node>>(options, output, faults);
}

}  // namespace wherry::kv::testing
