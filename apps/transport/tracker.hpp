// SPDX-License-Identifier: Apache-2.0
// Flies particles through one rank's box and counts what happens.
#pragma once

#include <vector>

#include "transport/particle.hpp"
#include "transport/transport.hpp"

namespace wherry::apps {

class Tracker {
 public:
  Tracker(const TransportOptions& options, const Box& box);

  /// Particle `number` of the source, at its start, which may lie in any rank's box.
  [[nodiscard]] Particle emit(std::uint64_t number) const noexcept;

  enum class Fate : std::uint8_t { kEnded, kCensus, kLeftBox };
  /// Follows a particle until it ends, the time step does, or it enters a cell of another box. Particles that fission
  /// releases are appended to `born`.
  Fate fly(Particle& particle, std::vector<Particle>& born);

  Tallies tallies;
  HugeVector<CellTally> cells;  ///< by number in the box

 private:
  struct Facet {
    std::size_t axis;
    double distance;
  };
  [[nodiscard]] Facet next_facet(const Particle& particle) const noexcept;
  /// False: it escaped.
  bool cross(Particle& particle, std::size_t axis) noexcept;
  /// False: it was absorbed.
  bool collide(Particle& particle, std::vector<Particle>& born);

  TransportOptions options_;
  Box box_;
  double total_;  ///< cross section
  double units_per_length_;
};

}  // namespace wherry::apps
