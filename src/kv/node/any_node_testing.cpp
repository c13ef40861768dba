// SPDX-License-Identifier: Apache-2.0
#include "kv/node/any_node_testing.hpp"

#include "kv/node/node.hpp"

namespace wherry::kv::testing {

std::unique_ptr<AnyNode> make_node(const NodeOptions& options, Output& output, const NodeFaults& faults) {
  if (faults.any()) return make_faulty_node(options, output, faults);
  return std::make_unique<AnyNodeOf<Node>>(options, output);
}

}  // namespace wherry::kv::testing
