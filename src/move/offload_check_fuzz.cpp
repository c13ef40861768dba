// SPDX-License-Identifier: Apache-2.0
// Checks arbitrary offloads with arbitrary schemas. Either check_offload refuses the offload, or its frame has a place
// for each buffer. Small frames then run the whole path with arbitrary bytes.
#include <fuzzer/FuzzedDataProvider.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "move/fuzz_offload.hpp"
#include "move/layout.hpp"

namespace {

using namespace wherry;        // NOLINT(google-build-using-namespace)
using namespace wherry::move;  // NOLINT(google-build-using-namespace)

void require(bool holds) {
  if (!holds) std::abort();
}

Field any_field(FuzzedDataProvider& fuzz, int depth) {
  static const char* const plain[] = {"n", "b", "c", "g", "d:60,2,256", "w:7", "w:268435455", "u", "Z", "tsn:UTC"};
  const int choice = fuzz.ConsumeIntegralInRange(0, depth > 0 ? 15 : 9);
  switch (choice) {
    case 10:
      return list("l", any_field(fuzz, depth - 1), true);
    case 11:
      return large_list("L", any_field(fuzz, depth - 1), true);
    case 12:
      return fixed_size_list("w", fuzz.ConsumeBool() ? fuzz.ConsumeIntegralInRange(0, 4) : 2147483647,
                             any_field(fuzz, depth - 1), true);
    case 13:
    case 14: {
      std::vector<Field> members;
      for (int i = fuzz.ConsumeIntegralInRange(0, 3); i > 0; --i) members.push_back(any_field(fuzz, depth - 1));
      return struct_("s", std::move(members), true);
    }
    case 15: {
      Field values = any_field(fuzz, depth - 1);
      return values.dictionary.empty() ? dictionary("d", "s", std::move(values), true) : values;
    }
    default:
      return field("p", plain[choice], true);
  }
}

void check_layout(const Plan& plan, const FlatOffload& offload, const FrameLayout& layout, std::uint32_t alignment) {
  require(layout.buffers.size() == plan.buffers.size());
  std::uint64_t end = 0;  // of everything so far: in order, so nothing overlaps
  std::size_t next = 0;
  for (std::size_t s = 0; s < plan.sections.size(); ++s) {
    const Section& section = plan.sections[s];
    require(layout.body_offset[s] > end && layout.body_offset[s] % alignment == 0 &&
            layout.body_bytes[s] % alignment == 0);
    end = layout.body_offset[s];
    for (std::uint32_t i = section.first_buffer; i < section.first_buffer + section.buffer_count; ++i) {
      const Placement& at = layout.buffers[i];
      const bool absent =
          plan.buffers[i].kind == BufferKind::kValidity && offload.nodes[plan.buffers[i].node].null_count == 0;
      std::uint64_t bytes = absent ? 0 : offload.buffers[next++].bytes;
      if (plan.buffers[i].kind == BufferKind::kOffsets && bytes == 0) bytes = plan.nodes[plan.buffers[i].node].width;
      require(at.bytes == bytes);
      require(at.offset % alignment == 0 && at.offset >= end && at.bytes <= (std::uint64_t{1} << 48));
      end = at.offset + at.bytes;
    }
    require(end <= layout.body_offset[s] + layout.body_bytes[s]);
    end = layout.body_offset[s] + layout.body_bytes[s];
  }
  require(next == offload.buffers.size());
  require(layout.total_bytes == end + 8);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider fuzz(data, size);
  Schema schema;
  for (int i = fuzz.ConsumeIntegralInRange(1, 4); i > 0; --i) schema.push_back(any_field(fuzz, 4));
  const Result<Plan> plan = make_plan(schema);
  require(plan.ok());

  const auto rows =
      fuzz.ConsumeBool() ? fuzz.ConsumeIntegralInRange<std::uint64_t>(0, 40) : fuzz.ConsumeIntegral<std::uint64_t>();
  const std::uint32_t alignment = fuzz.ConsumeBool() ? 64 : 4096;
  FlatOffload offload;
  make_offload(fuzz, *plan, rows, offload);
  if (const Status checked = check_offload(*plan, rows, offload.nodes, offload.buffers); !checked) {
    require(checked.code() == StatusCode::kInvalidArgument);
    return 0;
  }
  const Result<std::shared_ptr<const IpcTemplate>> ipc = IpcTemplate::make(schema, *plan, alignment);
  require(ipc.ok());
  FrameLayout layout;
  (*ipc)->place(offload.nodes, offload.buffers, layout);
  check_layout(*plan, offload, layout, alignment);
  if (layout.total_bytes > (1u << 20)) return 0;

  std::vector<std::byte> frame(layout.total_bytes,
                               std::byte{static_cast<unsigned char>(fuzz.ConsumeBool() ? 0xFF : 0)});
  const std::vector<std::uint8_t> bytes = fuzz.ConsumeRemainingBytes<std::uint8_t>();
  for (std::size_t i = 0, from = 0; i < layout.buffers.size() && from < bytes.size(); ++i) {
    const std::size_t count = std::min<std::size_t>(layout.buffers[i].bytes, bytes.size() - from);
    if (count != 0) std::memcpy(frame.data() + layout.buffers[i].offset, bytes.data() + from, count);
    from += count;
  }
  if (finish_buffers(*plan, offload.nodes, offload.buffers, layout, frame)) {
    for (const NodeRef& node : offload.nodes) require(node.null_count >= 0 && node.null_count <= node.length);
    (*ipc)->write_metadata(layout, offload.nodes, frame);
  }
  return 0;
}
