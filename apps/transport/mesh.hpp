// SPDX-License-Identifier: Apache-2.0
// A box of equal cells, and how it is cut into boxes, one for each rank.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "common/distribution.hpp"
#include "wherry/status.hpp"

namespace wherry::apps {

using Cell = std::array<std::uint32_t, 3>;
using Vector = std::array<double, 3>;

struct Mesh {
  Cell cells{16, 16, 16};
  Vector size{16, 16, 16};

  [[nodiscard]] double width(std::size_t axis) const noexcept { return size[axis] / cells[axis]; }
  /// Position of the plane below cell `index` of an axis. Every rank computes the same bits.
  [[nodiscard]] double plane(std::size_t axis, std::uint32_t index) const noexcept { return index * width(axis); }
  [[nodiscard]] Cell at(const Vector& position) const noexcept;
  [[nodiscard]] std::uint64_t count() const noexcept { return std::uint64_t{cells[0]} * cells[1] * cells[2]; }
  [[nodiscard]] std::uint64_t number(const Cell& cell) const noexcept {
    return (std::uint64_t{cell[2]} * cells[1] + cell[1]) * cells[0] + cell[0];
  }
};

/// From `first` to before `last`, along each axis.
struct Box {
  Cell first, last;

  [[nodiscard]] std::uint64_t count() const noexcept;
  /// Index among the box's own cells.
  [[nodiscard]] std::uint64_t number(const Cell& cell) const noexcept;
  [[nodiscard]] Cell cell(std::uint64_t number) const noexcept;
};

class Domains {
 public:
  /// One box for each rank, with the fewest possible facets between boxes. kInvalidArgument: no such cut.
  static Result<Domains> cut(const Mesh& mesh, Rank ranks);
  [[nodiscard]] Box box(Rank rank) const noexcept;
  [[nodiscard]] Rank owner(const Cell& cell) const noexcept {
    return part_[0][cell[0]] + part_[1][cell[1]] + part_[2][cell[2]];
  }
  /// Boxes along each axis.
  [[nodiscard]] const Cell& boxes() const noexcept { return boxes_; }

 private:
  Domains(const Mesh& mesh, const Cell& boxes);

  Cell cells_, boxes_;
  std::array<std::vector<Rank>, 3> part_;  ///< what an index along an axis adds to the number of the owner
};

}  // namespace wherry::apps
