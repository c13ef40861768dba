// SPDX-License-Identifier: Apache-2.0
// Decodes and plans arbitrary bytes as a schema, which may be refused. An accepted schema encodes to itself.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "move/plan.hpp"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void check_plan(const wherry::Schema& schema, const wherry::move::Plan& plan) {
  using namespace wherry::move;  // NOLINT(google-build-using-namespace)
  require(!plan.sections.empty() && plan.sections.back().dictionary_id == -1);
  std::uint32_t nodes = 0;
  std::uint32_t buffers = 0;
  for (std::uint32_t s = 0; s < plan.sections.size(); ++s) {
    const Section& section = plan.sections[s];
    require(section.first_node == nodes && section.first_buffer == buffers && section.node_count > 0);
    for (std::uint32_t i = nodes; i < nodes + section.node_count; ++i) {
      const NodeSpec& node = plan.nodes[i];
      require(node.section == s && node.first_buffer == buffers);
      require(node.parent < static_cast<std::int32_t>(i) &&
              (node.parent == -1 || node.parent >= static_cast<std::int32_t>(nodes)));
      require(node.dictionary_section < static_cast<std::int32_t>(s));
      for (std::uint32_t b = 0; b < node.buffer_count; ++b) require(plan.buffers[buffers + b].node == i);
      buffers += node.buffer_count;
    }
    nodes += section.node_count;
    require(buffers == section.first_buffer + section.buffer_count);
  }
  require(nodes == plan.nodes.size() && buffers == plan.buffers.size() && nodes <= kMaxNodes);
  node_path(schema, plan, 0);
  node_path(schema, plan, nodes - 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const wherry::ByteView input = std::as_bytes(std::span(data, size));
  wherry::Reader in(input);
  const wherry::Result<wherry::Schema> schema = wherry::move::decode_schema(in);
  if (!schema) {
    require(schema.status().code() == wherry::StatusCode::kProtocol);
    return 0;
  }
  wherry::Writer out;
  wherry::move::encode_schema(*schema, out);
  require(out.bytes().size() == size - in.remaining());
  wherry::Reader again(out.bytes());
  const wherry::Result<wherry::Schema> back = wherry::move::decode_schema(again);
  require(back.ok() && again.at_end() && *back == *schema);

  if (const wherry::Result<wherry::move::Plan> plan = wherry::move::make_plan(*schema)) check_plan(*schema, *plan);
  return 0;
}
