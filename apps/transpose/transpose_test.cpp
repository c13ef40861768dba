// SPDX-License-Identifier: Apache-2.0
#include "transpose/transpose.hpp"

#include <map>
#include <mutex>

#include "common/testing.hpp"

namespace wherry::apps {
namespace {

using Entries = std::map<std::pair<std::uint64_t, std::uint64_t>, double>;

void collect(const RowMatrix& matrix, bool swapped, Entries& into) {
  for (std::uint64_t i = 0; i < matrix.local_rows(); ++i) {
    const auto columns = matrix.columns_of(i);
    const auto values = matrix.values_of(i);
    EXPECT_TRUE(std::ranges::is_sorted(columns));
    for (std::size_t k = 0; k < columns.size(); ++k) {
      const std::pair<std::uint64_t, std::uint64_t> at(matrix.row(i), columns[k]);
      EXPECT_TRUE(into.emplace(swapped ? std::pair(at.second, at.first) : at, values[k]).second);
    }
  }
}

TEST(Transpose, AnyRanksAndDistribution_ExpectRowsAndColumnsSwapped) {
  InputOptions input{.rows = 301, .degree = 9, .real = true, .seed = 5};
  Entries expected;
  collect(*load(input, Shape::kWhole, 0, 1), true, expected);
  ASSERT_GT(expected.size(), 2000u);
  for (const auto kind : {Distribution::Kind::kCyclic, Distribution::Kind::kBlock}) {
    input.distribution = kind;
    for (const auto& job : kJobs) {
      Entries got;
      std::mutex mutex;
      run_ranks(job, [&](route::Runtime& runtime) {
        const auto matrix = load(input, Shape::kWhole, runtime.rank(), runtime.ranks());
        ASSERT_TRUE(matrix);
        const auto result = transpose(runtime, *matrix, kind);
        ASSERT_TRUE(result) << result.status().message();
        const std::scoped_lock lock(mutex);
        collect(result->matrix, false, got);
      });
      EXPECT_EQ(got, expected) << job.size() << " ranks";
    }
  }
}

}  // namespace
}  // namespace wherry::apps
