// SPDX-License-Identifier: Apache-2.0
#include "triangle/triangle.hpp"

#include <mutex>
#include <set>

#include "common/testing.hpp"

namespace wherry::apps {
namespace {

TEST(Triangle, AnyRanksAndDistribution_ExpectWhatThreeLoopsCount) {
  InputOptions input{.rows = 300, .degree = 12, .seed = 3};
  const RowMatrix whole = *load(input, Shape::kLowerTriangle, 0, 1);
  std::set<std::pair<std::uint32_t, std::uint32_t>> edges;
  for (std::uint32_t i = 0; i < whole.local_rows(); ++i) {
    for (const std::uint32_t j : whole.columns_of(i)) {
      ASSERT_LT(j, i);
      edges.emplace(i, j);
    }
  }
  std::vector<std::uint64_t> expected(input.rows);
  for (const auto& [i, j] : edges) {
    for (const std::uint32_t k : whole.columns_of(i)) {
      if (k < j && edges.contains({j, k})) ++expected[j];
    }
  }
  std::uint64_t total = 0;
  for (const std::uint64_t count : expected) total += count;
  ASSERT_GT(total, 1000u);

  for (const auto kind : {Distribution::Kind::kCyclic, Distribution::Kind::kBlock}) {
    input.distribution = kind;
    for (const auto& job : kJobs) {
      std::vector<std::uint64_t> got(input.rows);
      std::mutex mutex;
      run_ranks(job, [&](route::Runtime& runtime) {
        const auto lower = load(input, Shape::kLowerTriangle, runtime.rank(), runtime.ranks());
        ASSERT_TRUE(lower);
        const auto triangles = count_triangles(runtime, *lower);
        ASSERT_TRUE(triangles) << triangles.status().message();
        EXPECT_EQ(triangles->total, total);
        const std::scoped_lock lock(mutex);
        for (std::uint64_t i = 0; i < lower->local_rows(); ++i) got[lower->row(i)] += triangles->at_vertex[i];
      });
      EXPECT_EQ(got, expected) << job.size() << " ranks";
    }
  }
}

}  // namespace
}  // namespace wherry::apps
