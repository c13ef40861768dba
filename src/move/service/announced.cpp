// SPDX-License-Identifier: Apache-2.0
#include "move/service/announced.hpp"

#include <cmath>
#include <numeric>
#include <vector>

namespace wherry::move {
namespace {

constexpr double kItemsPerList = 4;   // what nobody can know
constexpr double kBytesPerText = 16;  //

/// The number of rows of each node per row of the batch.
std::vector<double> rows_per_row(const Plan& plan) {
  std::vector<double> rows(plan.nodes.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const NodeSpec& spec = plan.nodes[i];
    if (spec.parent < 0) {
      rows[i] = spec.section + 1 == plan.sections.size() ? 1 : 0;  // a dictionary does not grow with the rows
      continue;
    }
    const auto parent = static_cast<std::size_t>(spec.parent);
    const Kind kind = plan.nodes[parent].kind;
    rows[i] = rows[parent] * (kind == Kind::kFixedSizeList ? plan.nodes[parent].list_size
                              : kind == Kind::kList        ? kItemsPerList
                                                           : 1);
  }
  return rows;
}

double bits_per_row(BufferKind kind, std::uint32_t width) {
  switch (kind) {
    case BufferKind::kValidity:
    case BufferKind::kBits:
      return 1;
    case BufferKind::kFixed:
    case BufferKind::kOffsets:
      return 8.0 * width;
    case BufferKind::kData:
      return 8 * kBytesPerText;
  }
  return 0;
}

}  // namespace

std::uint64_t announced_frame_bytes(const StreamInfo& info, std::uint64_t bytes, bool validity) {
  const Plan& plan = info.plan;
  std::vector<NodeRef> nodes(plan.nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const bool nulls = validity && plan.nodes[i].nullable && plan.nodes[i].kind != Kind::kNull;
    nodes[i] = {0, nulls ? -1 : 0};  // place() asks for no lengths
  }
  const std::vector<double> rows = rows_per_row(plan);
  std::vector<double> bits;  // for one row of the batch, of each buffer that is there
  std::vector<BufferRef> buffers;
  for (const BufferSpec& spec : plan.buffers) {
    if (spec.kind == BufferKind::kValidity && nodes[spec.node].null_count == 0) continue;
    const std::uint32_t width = plan.nodes[spec.node].width;
    bits.push_back(rows[spec.node] * bits_per_row(spec.kind, width));
    // Each dictionary always has a few bytes, and each column with offsets has a last offset.
    buffers.push_back({0, spec.kind == BufferKind::kOffsets ? width : std::uint64_t{rows[spec.node] == 0}, 0, 0, 0});
  }
  const double all = std::accumulate(bits.begin(), bits.end(), 0.0);
  const double count = info.strategy == Strategy::kRaw ? 1
                       : all == 0                      ? 0
                                                       : std::round(8.0 * static_cast<double>(bytes) / all);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    buffers[i].bytes += static_cast<std::uint64_t>(std::ceil(bits[i] * count / 8));
  }
  if (info.strategy == Strategy::kRaw) buffers.back().bytes = bytes;  // offsets, then whatever it is
  FrameLayout layout;
  info.ipc->place(nodes, buffers, layout);
  return layout.total_bytes;
}

}  // namespace wherry::move
