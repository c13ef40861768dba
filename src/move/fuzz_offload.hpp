// SPDX-License-Identifier: Apache-2.0
// For fuzz targets: offloads that match their plan, nearly match it, or do not match it at all.
#pragma once

#include <fuzzer/FuzzedDataProvider.h>

#include <cstdint>

#include "move/flatten.hpp"
#include "move/plan.hpp"

namespace wherry::move {

/// A number that is correct, almost correct, or arbitrary.
template <typename T>
T bend(FuzzedDataProvider& fuzz, T right, std::uint8_t sanity) {
  if (fuzz.ConsumeIntegral<std::uint8_t>() <= sanity) return right;
  if (fuzz.ConsumeBool())
    return static_cast<T>(static_cast<std::uint64_t>(right) +
                          static_cast<std::uint64_t>(fuzz.ConsumeIntegralInRange<int>(-2, 2)));
  return fuzz.ConsumeIntegral<T>();
}

inline void make_offload(FuzzedDataProvider& fuzz, const Plan& plan, std::uint64_t rows, FlatOffload& out) {
  const auto sanity = fuzz.ConsumeIntegral<std::uint8_t>();
  for (const NodeSpec& spec : plan.nodes) {
    std::int64_t length = static_cast<std::int64_t>(rows);
    if (spec.parent >= 0) {
      const NodeSpec& parent = plan.nodes[static_cast<std::size_t>(spec.parent)];
      const std::int64_t of_parent = out.nodes[static_cast<std::size_t>(spec.parent)].length;
      length = of_parent;
      if (parent.kind == Kind::kFixedSizeList) {
        length = static_cast<std::int64_t>(static_cast<std::uint64_t>(of_parent) * parent.list_size);
      } else if (parent.kind == Kind::kList) {
        length = of_parent == 0 ? 0 : fuzz.ConsumeIntegralInRange(0, 40);
      }
    } else if (spec.section + 1 != plan.sections.size()) {
      length = fuzz.ConsumeIntegralInRange(0, 40);
    }
    length = bend(fuzz, length, sanity);
    const std::int64_t nulls = spec.kind == Kind::kNull ? length : fuzz.ConsumeIntegralInRange(-1, 1);
    out.nodes.push_back({length, bend(fuzz, length == 0 ? std::int64_t{0} : nulls, sanity)});
  }
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const NodeRef& node = out.nodes[plan.buffers[i].node];
    const std::uint32_t width = plan.nodes[plan.buffers[i].node].width;
    const auto length = static_cast<std::uint64_t>(node.length);
    BufferRef buffer{4096, 0, 0, 0, 0};
    switch (plan.buffers[i].kind) {
      case BufferKind::kValidity:
        if (node.null_count == 0) continue;
        [[fallthrough]];
      case BufferKind::kBits:
        buffer.rebase = length == 0 ? 0 : fuzz.ConsumeIntegralInRange(0, 7);
        buffer.bytes = length == 0 ? 0 : (static_cast<std::uint64_t>(buffer.rebase) + length + 7) / 8;
        break;
      case BufferKind::kFixed:
        buffer.bytes = length * width;
        break;
      case BufferKind::kOffsets:
        buffer.bytes = length == 0 && fuzz.ConsumeBool() ? 0 : (length + 1) * width;
        buffer.rebase = fuzz.ConsumeIntegralInRange(0, 3);
        if (buffer.bytes == 0) buffer.rebase = 0;
        break;
      case BufferKind::kData:
        buffer.bytes = length == 0 ? 0 : fuzz.ConsumeIntegralInRange<std::uint64_t>(0, 40);
        break;
    }
    buffer.address = bend(fuzz, buffer.address, sanity);
    buffer.bytes = bend(fuzz, buffer.bytes, sanity);
    buffer.rebase = bend(fuzz, buffer.rebase, sanity);
    out.buffers.push_back(buffer);
  }
  if (fuzz.ConsumeIntegral<std::uint8_t>() > sanity && !out.buffers.empty()) out.buffers.pop_back();
  if (fuzz.ConsumeIntegral<std::uint8_t>() > sanity) out.buffers.emplace_back();
  if (fuzz.ConsumeIntegral<std::uint8_t>() > sanity) out.nodes.pop_back();
}

}  // namespace wherry::move
