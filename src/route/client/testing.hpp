// SPDX-License-Identifier: Apache-2.0
#pragma once
// The common part of tests of the runtime.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "route/client/runtime_access.hpp"

namespace wherry::route::testing_support {

/// Runs `body(runtime)` as each rank.
inline void run_ranks(const std::vector<std::uint32_t>& node_of_rank, const Options& options, RingShape shape,
                      const std::function<void(Runtime&)>& body) {
  auto wirings = wire_threads(node_of_rank, shape);
  std::vector<std::thread> threads;
  for (auto& wiring : wirings) {
    threads.emplace_back([&body, &options, w = std::move(wiring)]() mutable {
      Runtime runtime = detail::make_runtime(options, std::move(w));
      body(runtime);
      EXPECT_TRUE(runtime.status()) << runtime.status().message();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace wherry::route::testing_support
