// SPDX-License-Identifier: Apache-2.0
#include "transport/mesh.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

namespace wherry::apps {

Cell Mesh::at(const Vector& position) const noexcept {
  Cell cell{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const double index = std::clamp(position[axis] / width(axis), 0.0, static_cast<double>(cells[axis] - 1));
    cell[axis] = static_cast<std::uint32_t>(index);
  }
  return cell;
}

std::uint64_t Box::count() const noexcept {
  return std::uint64_t{last[0] - first[0]} * (last[1] - first[1]) * (last[2] - first[2]);
}

std::uint64_t Box::number(const Cell& cell) const noexcept {
  const std::uint64_t across = last[0] - first[0], along = last[1] - first[1];
  return ((cell[2] - first[2]) * along + (cell[1] - first[1])) * across + (cell[0] - first[0]);
}

Cell Box::cell(std::uint64_t number) const noexcept {
  const std::uint64_t across = last[0] - first[0], along = last[1] - first[1];
  return {static_cast<std::uint32_t>(first[0] + number % across),
          static_cast<std::uint32_t>(first[1] + number / across % along),
          static_cast<std::uint32_t>(first[2] + number / across / along)};
}

Result<Domains> Domains::cut(const Mesh& mesh, Rank ranks) {
  const auto& cells = mesh.cells;
  std::uint64_t fewest = std::numeric_limits<std::uint64_t>::max();
  Cell best{};
  for (Rank x = 1; x <= std::min(ranks, cells[0]); ++x) {
    if (ranks % x != 0) continue;
    for (Rank y = 1; y <= std::min(ranks / x, cells[1]); ++y) {
      if (ranks / x % y != 0) continue;
      const Rank z = ranks / x / y;
      if (z > cells[2]) continue;
      const std::uint64_t facets = std::uint64_t{x - 1} * cells[1] * cells[2] +
                                   std::uint64_t{y - 1} * cells[0] * cells[2] +
                                   std::uint64_t{z - 1} * cells[0] * cells[1];
      if (facets < fewest) fewest = facets, best = {x, y, z};
    }
  }
  if (fewest == std::numeric_limits<std::uint64_t>::max())
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{} x {} x {} cells cannot be cut into {} boxes: want more cells, or fewer ranks",
                              cells[0], cells[1], cells[2], ranks));
  return Domains(mesh, best);
}

Domains::Domains(const Mesh& mesh, const Cell& boxes) : cells_(mesh.cells), boxes_(boxes) {
  Rank stride = 1;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    for (Rank part = 0; part < boxes[axis]; ++part) {
      const Share share = Share::of(cells_[axis], part, boxes[axis]);
      part_[axis].insert(part_[axis].end(), share.last - share.first, part * stride);
    }
    stride *= boxes[axis];
  }
}

Box Domains::box(Rank rank) const noexcept {
  Box box{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const Share share = Share::of(cells_[axis], rank % boxes_[axis], boxes_[axis]);
    box.first[axis] = static_cast<std::uint32_t>(share.first);
    box.last[axis] = static_cast<std::uint32_t>(share.last);
    rank /= boxes_[axis];
  }
  return box;
}

}  // namespace wherry::apps
