// SPDX-License-Identifier: Apache-2.0
// Particles through matter, by Monte Carlo, on a mesh that is cut into a box for each rank: the pattern of Quicksilver
// (https://github.com/LLNL/Quicksilver). A particle flies to its next event: the facet of its cell, a collision, or the
// end of the time step (census). A particle that enters another rank's box is a message to that rank.
//
// One group of particles of one speed; one material, in which a collision absorbs (capture), scatters into any
// direction, or splits a nucleus (fission). Analog: every particle counts one, so the counts are exact.
// A particle carries its own random numbers and all tallies are integers: the result does not depend on the number of
// ranks, nor on the order in which messages arrive, to the last bit.
#pragma once

#include <array>
#include <cstdint>

#include "common/huge_vector.hpp"
#include "transport/mesh.hpp"
#include "wherry/route.hpp"

namespace wherry::apps {

struct TransportOptions {
  enum class Boundary : std::uint8_t { kVacuum, kReflect };
  enum class Source : std::uint8_t {
    kUniform,  ///< anywhere in the mesh, into any direction
    kBeam,     ///< anywhere on the face x = 0, into the direction of x
  };
  Mesh mesh;
  std::array<Boundary, 3> boundary{};               ///< of the two faces across each axis
  double absorb = 0.2, scatter = 0.8, fission = 0;  ///< macroscopic cross sections: collisions per unit of length
  double neutrons = 2.4;                            ///< that a fission sets free, on average
  Source source = Source::kUniform;
  std::uint64_t particles = 100'000;  ///< that the source emits in each time step, at its start
  std::uint64_t steps = 1;
  double step_time = 1e9, speed = 1;
  std::uint64_t seed = 1;
};

/// A rank's counts in one of its cells.
struct CellTally {
  std::uint64_t track_length = 0;  ///< of all particles in it, in track_unit(mesh): the flux times volume and time
  std::uint64_t collisions = 0;
};
/// Lengths are counted in units so small that the rounding is far below the statistical noise.
double track_unit(const Mesh& mesh) noexcept;

/// Particles, of one rank or of all. emitted + born = captured + fissions + escaped + in flight.
struct Tallies {
  std::uint64_t emitted = 0, born = 0;  ///< by the source, by fission
  std::uint64_t captured = 0, fissions = 0, scattered = 0;
  std::array<std::uint64_t, 6> escaped{};  ///< through the lower and upper face across x, y, z
  std::uint64_t facets = 0;                ///< crossings into another cell
  std::uint64_t in_flight = 0;             ///< at the end of the last time step
  std::uint64_t track_length = 0;
};

struct Transport {
  Box box;                      ///< this rank's cells
  HugeVector<CellTally> cells;  ///< by their number in it
  Tallies totals;               ///< of all ranks
  Cell boxes;                   ///< ranks along each axis
  double seconds = 0;
};

/// kInternal, on all ranks: the particles do not add up.
Result<Transport> simulate(route::Runtime& runtime, const TransportOptions& options);

}  // namespace wherry::apps
