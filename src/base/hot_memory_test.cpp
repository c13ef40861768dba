// SPDX-License-Identifier: Apache-2.0
#include "base/hot_memory.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <string>
#include <thread>

namespace wherry {
namespace {

/// Address space of this process, in bytes (proc(5), statm).
std::size_t mapped() {
  std::ifstream in("/proc/self/statm");
  std::size_t pages = 0;
  in >> pages;
  return pages * 4096;
}

void use_some() {
  HotVector<std::uint64_t> some;
  HotVector<char> others;
  for (std::uint64_t i = 0; i < 20; ++i) some.push_back(i), others.push_back('x');
}

TEST(HotMemory, ThreadsThatComeAndGo_ExpectTheSameMemoryUsedAgain) {
  constexpr int kThreads = 10'000;
  const auto run = [](int threads) {
    for (int i = 0; i < threads; ++i) std::thread(use_some).join();
  };
  run(100);  // what the first threads leave behind: stacks, arenas of malloc
  const std::size_t before = mapped();
  run(kThreads);
  // A separate pool for each thread would take more than a KiB.
  EXPECT_LT(mapped(), before + (std::size_t{6} << 20));
}

TEST(HotMemory, FreedByAnotherThread_ExpectTheSameMemoryUsedAgain) {
  const auto pass_on = [](int rounds) {
    for (int i = 0; i < rounds; ++i) {
      HotVector<char> bytes;
      std::thread([&] { bytes.resize(100'000, 'x'); }).join();
    }
  };
  pass_on(10);
  const std::size_t before = mapped();
  pass_on(500);
  EXPECT_LT(mapped(), before + (std::size_t{6} << 20));
}

TEST(HotMemory, LargePieces_ExpectThemGivenBack) {
  const auto large = [] {
    HotVector<char> bytes(std::size_t{10} << 20);
    std::memset(bytes.data(), 1, bytes.size());
  };
  large();
  const std::size_t before = mapped();
  for (int i = 0; i < 20; ++i) large();
  EXPECT_LT(mapped(), before + (std::size_t{12} << 20));
}

TEST(HotMemory, Alignment_ExpectWhatWasAskedFor) {
  for (const std::size_t alignment : {std::size_t{8}, std::size_t{64}, std::size_t{4096}}) {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{100}, std::size_t{5000}, std::size_t{3} << 20}) {
      void* const at = hot_memory().allocate(bytes, alignment);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at) % alignment, 0U) << bytes;
      std::memset(at, 1, bytes);
      hot_memory().deallocate(at, bytes, alignment);
    }
  }
}

}  // namespace
}  // namespace wherry
