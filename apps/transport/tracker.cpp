// SPDX-License-Identifier: Apache-2.0
#include "transport/tracker.hpp"

#include <limits>

namespace wherry::apps {

double track_unit(const Mesh& mesh) noexcept {
  return std::max({mesh.width(0), mesh.width(1), mesh.width(2)}) * 0x1p-24;
}

Tracker::Tracker(const TransportOptions& options, const Box& box)
    : cells(box.count()),
      options_(options),
      box_(box),
      total_(options.absorb + options.scatter + options.fission),
      units_per_length_(1 / track_unit(options.mesh)) {}

Particle Tracker::emit(std::uint64_t number) const noexcept {
  const Mesh& mesh = options_.mesh;
  Particle particle{};
  particle.stream = splitmix(options_.seed, number);
  particle.time = options_.step_time;
  for (std::size_t axis = 0; axis < 3; ++axis) particle.position[axis] = mesh.size[axis] * particle.random_unit();
  if (options_.source == TransportOptions::Source::kBeam) {
    particle.position[0] = 0;
    particle.direction = {1, 0, 0};
  } else {
    particle.sample_direction();
  }
  particle.sample_flight();
  particle.cell = mesh.at(particle.position);
  return particle;
}

Tracker::Fate Tracker::fly(Particle& particle, std::vector<Particle>& born) {
  for (;;) {
    const Facet facet = next_facet(particle);
    const double to_collision =
        total_ > 0 ? particle.mean_free_paths / total_ : std::numeric_limits<double>::infinity();
    const double to_census = particle.time * options_.speed;
    const double distance = std::min({facet.distance, to_collision, to_census});

    CellTally& cell = cells[box_.number(particle.cell)];
    const auto length = static_cast<std::uint64_t>(std::llround(distance * units_per_length_));
    cell.track_length += length;
    tallies.track_length += length;
    for (std::size_t axis = 0; axis < 3; ++axis) particle.position[axis] += distance * particle.direction[axis];
    particle.time -= distance / options_.speed;
    particle.mean_free_paths -= distance * total_;

    if (distance == to_census) return Fate::kCensus;
    if (distance == to_collision) {
      ++cell.collisions;
      if (!collide(particle, born)) return Fate::kEnded;
      continue;
    }
    if (!cross(particle, facet.axis)) return Fate::kEnded;
    const std::uint32_t index = particle.cell[facet.axis];
    if (index < box_.first[facet.axis] || index >= box_.last[facet.axis]) return Fate::kLeftBox;
  }
}

Tracker::Facet Tracker::next_facet(const Particle& particle) const noexcept {
  Facet facet{0, std::numeric_limits<double>::infinity()};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const double along = particle.direction[axis];
    if (along == 0) continue;
    const double plane = options_.mesh.plane(axis, particle.cell[axis] + (along > 0 ? 1 : 0));
    // If rounding has carried the particle a little beyond the plane, it crosses at once.
    const double distance = std::max(0.0, (plane - particle.position[axis]) / along);
    if (distance < facet.distance) facet = {axis, distance};
  }
  return facet;
}

bool Tracker::cross(Particle& particle, std::size_t axis) noexcept {
  const bool up = particle.direction[axis] > 0;
  std::uint32_t& index = particle.cell[axis];
  particle.position[axis] = options_.mesh.plane(axis, index + (up ? 1 : 0));
  if (index == (up ? options_.mesh.cells[axis] - 1 : 0)) {
    if (options_.boundary[axis] == TransportOptions::Boundary::kVacuum) {
      ++tallies.escaped[2 * axis + (up ? 1 : 0)];
      return false;
    }
    particle.direction[axis] = -particle.direction[axis];
    return true;
  }
  index += up ? 1 : -1;
  ++tallies.facets;
  return true;
}

bool Tracker::collide(Particle& particle, std::vector<Particle>& born) {
  const double what = particle.random_unit() * total_;
  if (what < options_.scatter) {
    ++tallies.scattered;
    particle.sample_direction();
    particle.sample_flight();
    return true;
  }
  if (what >= options_.scatter + options_.fission) {
    ++tallies.captured;
    return false;
  }
  ++tallies.fissions;
  const auto count = static_cast<std::uint64_t>(options_.neutrons + particle.random_unit());
  tallies.born += count;
  for (std::uint64_t i = 0; i < count; ++i) {
    Particle neutron = particle;
    neutron.stream = particle.random();
    neutron.drawn = 0;
    neutron.sample_direction();
    neutron.sample_flight();
    born.push_back(neutron);
  }
  return false;
}

}  // namespace wherry::apps
