// SPDX-License-Identifier: Apache-2.0
#include "histogram/histogram.hpp"

#include <mutex>

#include "common/random.hpp"
#include "common/testing.hpp"

namespace wherry::apps {
namespace {

TEST(Histogram, AnyRanksAndDistribution_ExpectTheCountsOfOneLoop) {
  HistogramOptions options{.counters = 1003, .updates = 20'001, .seed = 7};
  std::vector<std::uint64_t> expected(options.counters);
  for (std::uint64_t u = 0; u < options.updates; ++u) ++expected[below(splitmix(options.seed, u), options.counters)];
  for (const auto kind : {Distribution::Kind::kCyclic, Distribution::Kind::kBlock}) {
    options.distribution = kind;
    for (const auto& job : kJobs) {
      std::vector<std::uint64_t> counts(options.counters);
      std::mutex mutex;
      run_ranks(job, [&](route::Runtime& runtime) {
        const auto histogram = run(runtime, options);
        ASSERT_TRUE(histogram) << histogram.status().message();
        const Distribution counters(kind, options.counters, runtime.ranks());
        const std::scoped_lock lock(mutex);
        for (std::size_t i = 0; i < histogram->counts.size(); ++i)
          counts[counters.element(runtime.rank(), i)] += histogram->counts[i];
      });
      EXPECT_EQ(counts, expected) << job.size() << " ranks";
    }
  }
}

}  // namespace
}  // namespace wherry::apps
