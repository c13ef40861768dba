// SPDX-License-Identifier: Apache-2.0
// One particle: the message by which it changes ranks.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

#include "common/random.hpp"
#include "transport/mesh.hpp"

namespace wherry::apps {

struct Particle {
  Vector position, direction;
  double time;             ///< left until census
  double mean_free_paths;  ///< left until it collides
  std::uint64_t stream;    ///< of its random numbers
  std::uint32_t drawn;     ///< of them
  Cell cell;

  std::uint64_t random() noexcept { return splitmix(stream, drawn++); }
  double random_unit() noexcept { return unit(random()); }

  void sample_flight() noexcept { mean_free_paths = -std::log(1 - random_unit()); }
  /// All directions alike.
  void sample_direction() noexcept {
    const double cosine = 2 * random_unit() - 1, angle = 2 * std::numbers::pi * random_unit();
    const double sine = std::sqrt(std::max(0.0, 1 - cosine * cosine));
    direction = {sine * std::cos(angle), sine * std::sin(angle), cosine};
  }
};
static_assert(sizeof(Particle) == 88);

}  // namespace wherry::apps
