// SPDX-License-Identifier: Apache-2.0
#include "transport/transport.hpp"

#include <cmath>
#include <mutex>

#include "common/testing.hpp"

namespace wherry::apps {
namespace {

using Boundary = TransportOptions::Boundary;

TEST(Mesh, BoxesOfAllRanks_ExpectEveryCellOnceWithItsOwner) {
  const Mesh mesh{.cells = {5, 7, 4}, .size = {1, 2, 3}};
  for (const Rank ranks : {1u, 2u, 3u, 4u, 6u, 8u, 12u, 27u}) {
    const auto domains = Domains::cut(mesh, ranks);
    if (ranks == 27) {
      EXPECT_TRUE(domains) << "3 x 3 x 3";
    }
    ASSERT_TRUE(domains) << domains.status().message();
    std::vector<int> seen(mesh.count());
    for (Rank rank = 0; rank < ranks; ++rank) {
      const Box box = domains->box(rank);
      for (std::uint64_t i = 0; i < box.count(); ++i) {
        const Cell cell = box.cell(i);
        EXPECT_EQ(box.number(cell), i);
        EXPECT_EQ(domains->owner(cell), rank);
        ++seen[mesh.number(cell)];
      }
    }
    EXPECT_EQ(seen, std::vector<int>(mesh.count(), 1)) << ranks;
  }
}

TEST(Mesh, MoreRanksThanCanBe_ExpectWhy) {
  const auto domains = Domains::cut({.cells = {2, 2, 2}, .size = {1, 1, 1}}, 7);
  ASSERT_FALSE(domains);
  EXPECT_EQ(domains.status().message(), "2 x 2 x 2 cells cannot be cut into 7 boxes: want more cells, or fewer ranks");
}

TEST(Mesh, PositionsOnTheEdge_ExpectACellOfTheMesh) {
  const Mesh mesh{.cells = {3, 3, 3}, .size = {1, 1, 1}};
  EXPECT_EQ(mesh.at({0, 1, std::nextafter(1.0, 2.0)}), (Cell{0, 2, 2}));
}

struct Whole {
  std::vector<std::uint64_t> flux, collisions;
  Tallies totals;
};

Whole over_ranks(const std::vector<std::uint32_t>& job, const TransportOptions& options) {
  Whole whole{std::vector<std::uint64_t>(options.mesh.count()), std::vector<std::uint64_t>(options.mesh.count()), {}};
  std::mutex mutex;
  run_ranks(job, [&](route::Runtime& runtime) {
    const auto result = simulate(runtime, options);
    ASSERT_TRUE(result) << result.status().message();
    const std::scoped_lock lock(mutex);
    whole.totals = result->totals;
    for (std::uint64_t i = 0; i < result->cells.size(); ++i) {
      const std::uint64_t cell = options.mesh.number(result->box.cell(i));
      whole.flux[cell] += result->cells[i].track_length;
      whole.collisions[cell] += result->cells[i].collisions;
    }
  });
  return whole;
}

TEST(Transport, FissionScatterCensusOverRanks_ExpectTheSameBits) {
  const TransportOptions options{.mesh = {.cells = {7, 6, 5}, .size = {7.5, 6, 3}},
                                 .boundary = {Boundary::kVacuum, Boundary::kReflect, Boundary::kVacuum},
                                 .absorb = 0.1,
                                 .scatter = 0.7,
                                 .fission = 0.05,
                                 .particles = 500,
                                 .steps = 4,
                                 .step_time = 1.5,
                                 .speed = 2,
                                 .seed = 9};
  const Whole expected = over_ranks({0}, options);
  EXPECT_GT(expected.totals.in_flight, 100u);
  EXPECT_GT(expected.totals.born, 100u);
  for (const auto& job : kJobs) {
    const Whole got = over_ranks(job, options);
    EXPECT_EQ(got.flux, expected.flux) << job.size() << " ranks";
    EXPECT_EQ(got.collisions, expected.collisions) << job.size() << " ranks";
    EXPECT_EQ(std::memcmp(&got.totals, &expected.totals, sizeof(Tallies)), 0) << job.size() << " ranks";
  }
}

TEST(Transport, BeamThroughASlab_ExpectExponentialTransmission) {
  const TransportOptions options{.mesh = {.cells = {8, 2, 2}, .size = {3, 1, 1}},
                                 .boundary = {Boundary::kVacuum, Boundary::kReflect, Boundary::kReflect},
                                 .absorb = 0.5,
                                 .scatter = 0,
                                 .source = TransportOptions::Source::kBeam,
                                 .particles = 20'000};
  const Whole got = over_ranks({0, 0}, options);
  const double through = std::exp(-0.5 * 3), n = 20'000;
  EXPECT_NEAR(static_cast<double>(got.totals.escaped[1]) / n, through, 4 * std::sqrt(through * (1 - through) / n));
  EXPECT_EQ(got.totals.escaped[1] + got.totals.captured, 20'000u);
}

}  // namespace
}  // namespace wherry::apps
