// SPDX-License-Identifier: Apache-2.0
#include "sssp/sssp.hpp"

#include <cmath>
#include <limits>
#include <mutex>

#include "common/testing.hpp"

namespace wherry::apps {
namespace {

/// The algorithm of Bellman and Ford: relaxes every edge until nothing changes.
std::vector<double> plain(const RowMatrix& edges, std::uint64_t source) {
  std::vector<double> distance(edges.rows(), std::numeric_limits<double>::infinity());
  distance[source] = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::uint64_t i = 0; i < edges.local_rows(); ++i) {
      for (std::size_t k = 0; k < edges.columns_of(i).size(); ++k) {
        const double by = distance[i] + edges.values_of(i)[k];
        double& to = distance[edges.columns_of(i)[k]];
        if (by < to) to = by, changed = true;
      }
    }
  }
  return distance;
}

std::vector<double> over_ranks(const std::vector<std::uint32_t>& job, const InputOptions& input, double delta) {
  std::vector<double> distance(input.rows, -1);
  std::mutex mutex;
  run_ranks(job, [&](route::Runtime& runtime) {
    const auto edges = load(input, Shape::kWhole, runtime.rank(), runtime.ranks());
    ASSERT_TRUE(edges);
    const auto paths = shortest_paths(runtime, *edges, 17, delta);
    ASSERT_TRUE(paths) << paths.status().message();
    const std::scoped_lock lock(mutex);
    for (std::uint64_t i = 0; i < edges->local_rows(); ++i) distance[edges->row(i)] = paths->distance[i];
  });
  return distance;
}

TEST(Sssp, AnyRanksDistributionAndDelta_ExpectTheDistancesOfBellmanAndFord) {
  for (const bool real : {false, true}) {
    InputOptions input{.rows = 400, .degree = 3, .real = real, .seed = 11};
    const auto expected = plain(*load(input, Shape::kWhole, 0, 1), 17);
    ASSERT_TRUE(std::ranges::any_of(expected, [](double d) { return std::isinf(d); })) << "want some out of reach";
    for (const auto& job : kJobs) {
      EXPECT_EQ(over_ranks(job, input, 0), expected) << job.size() << " ranks";
    }
    input.distribution = Distribution::Kind::kBlock;
    for (const double delta : {1e-300, 0.05, 40.0, 1e9})
      EXPECT_EQ(over_ranks({0, 1, 1}, input, delta), expected) << delta;
  }
}

TEST(Sssp, WeightBelowZero_ExpectItRefusedOnEveryRank) {
  run_ranks({0, 0}, [](route::Runtime& runtime) {
    RowMatrix edges{.row_distribution = {Distribution::Kind::kCyclic, 2, 2}, .rank = runtime.rank(), .columns = 2};
    edges.offsets = {0, 1};
    edges.indices = {1 - runtime.rank()};
    edges.values = {runtime.rank() == 0 ? 1.0 : -2.0};
    const auto paths = shortest_paths(runtime, edges, 0);
    ASSERT_FALSE(paths);
    EXPECT_EQ(paths.status().message(), runtime.rank() == 0
                                            ? "another rank failed: its message says why"
                                            : "the edge from 2 to 1 has the weight -2: want weights of zero or more");
  });
}

}  // namespace
}  // namespace wherry::apps
