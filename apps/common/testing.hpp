// SPDX-License-Identifier: Apache-2.0
// Runs ranks as threads of the test's process.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "route/client/runtime_access.hpp"

namespace wherry::apps {

/// Runs `body(runtime)` as each rank. The buffers are small, so lanes become full.
inline void run_ranks(const std::vector<std::uint32_t>& node_of_rank,
                      const std::function<void(route::Runtime&)>& body) {
  auto wirings = route::wire_threads(node_of_rank, {2, 1024});
  std::vector<std::thread> threads;
  for (auto& wiring : wirings) {
    threads.emplace_back([&body, w = std::move(wiring)]() mutable {
      route::Runtime runtime = route::detail::make_runtime(route::Options{}, std::move(w));
      body(runtime);
      EXPECT_TRUE(runtime.status()) << runtime.status().message();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// The jobs with which every application is tested, each as the list of its ranks' nodes.
inline const std::vector<std::vector<std::uint32_t>> kJobs{{0}, {0, 0}, {0, 0, 1, 1}, {0, 1, 2}, {0, 0, 0, 1, 1}};

}  // namespace wherry::apps
