// SPDX-License-Identifier: Apache-2.0
#include "fabric/arena.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>

namespace wherry {
namespace {

constexpr std::size_t kKiB = 1024, kMiB = 1024 * kKiB;

std::shared_ptr<Arena> make_arena(std::size_t bytes) {
  auto arena = Arena::create(bytes);
  EXPECT_TRUE(arena) << arena.status().to_string();
  return *arena;
}

Extent allocate(const std::shared_ptr<Arena>& arena, std::size_t bytes) {
  auto extent = arena->try_allocate(bytes);
  EXPECT_TRUE(extent) << extent.status().to_string();
  return extent ? *std::move(extent) : Extent();
}

TEST(Arena, ClassesAreWholePagesFourPerDoubling) {
  const std::vector<std::pair<std::size_t, std::size_t>> pages = {{1, 1},   {2, 2},   {3, 3},   {4, 4},   {5, 5},
                                                                  {7, 7},   {8, 8},   {9, 10},  {10, 10}, {11, 12},
                                                                  {13, 14}, {15, 16}, {16, 16}, {17, 20}, {1025, 1280}};
  for (const auto& [wanted, given] : pages) EXPECT_EQ(Arena::class_size(wanted * 4096), given * 4096) << wanted;
  EXPECT_EQ(Arena::class_size(0), 4096u);
  EXPECT_EQ(Arena::class_size(1), 4096u);
  EXPECT_EQ(Arena::class_size(4097), 8192u);
  EXPECT_GT(Arena::class_size(~std::size_t{0}), std::size_t{1} << 60);  // saturates, does not wrap
  for (std::size_t bytes = 1; bytes < 8 * kMiB; bytes += 3777) {
    EXPECT_GE(Arena::class_size(bytes), bytes);
    EXPECT_LE(Arena::class_size(bytes), bytes + bytes / 4 + 4096);
    EXPECT_EQ(Arena::class_size(Arena::class_size(bytes)), Arena::class_size(bytes));
  }
}

TEST(Arena, ExtentsArePageAlignedAndOfTheirClassSize) {
  const auto arena = make_arena(kMiB);
  const Extent extent = allocate(arena, 5000);
  EXPECT_EQ(extent.bytes().size(), 8192u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(extent.bytes().data()) % 4096, 0u);
  EXPECT_EQ(extent.bytes().data(), arena->memory().data() + extent.offset());
  EXPECT_EQ(arena->in_use(), 8192u);
}

TEST(Arena, TheMostRecentlyFreedOfAClassComesBackFirst) {
  const auto arena = make_arena(kMiB);
  Extent a = allocate(arena, 10'000), b = allocate(arena, 10'000);
  const auto *at_a = a.bytes().data(), *at_b = b.bytes().data();
  a = Extent();
  b = Extent();
  EXPECT_EQ(arena->in_use(), 0u);
  const Extent c = allocate(arena, 9000), d = allocate(arena, 9000);
  EXPECT_EQ(c.bytes().data(), at_b);
  EXPECT_EQ(d.bytes().data(), at_a);
  EXPECT_EQ(arena->high_water(), 2 * Arena::class_size(10'000));
}

TEST(Arena, FullWouldBlockAndTooLargeIsExhausted) {
  const auto arena = make_arena(64 * kKiB);
  Extent half = allocate(arena, 32 * kKiB);
  EXPECT_TRUE(arena->try_allocate(40 * kKiB).status().is_would_block());
  EXPECT_EQ(arena->try_allocate(64 * kKiB + 1).status().code(), StatusCode::kResourceExhausted);
  half = Extent();
  EXPECT_EQ(allocate(arena, 64 * kKiB).bytes().size(), 64 * kKiB);
}

TEST(Arena, AllOfAnOddBudgetCanBeHad) {
  const auto arena = make_arena(9 * 4096);  // the class of 9 pages would be 10
  EXPECT_EQ(allocate(arena, 9 * 4096).bytes().size(), 9u * 4096);
  EXPECT_EQ(allocate(arena, 9 * 4096).bytes().size(), 9u * 4096);
}

TEST(Arena, FreedNeighboursBecomeOnePiece) {
  const auto arena = make_arena(64 * kKiB);
  std::vector<Extent> pages;
  for (int i = 0; i < 16; ++i) pages.push_back(allocate(arena, 4096));
  EXPECT_TRUE(arena->try_allocate(1).status().is_would_block());
  for (const std::size_t i : {4, 6, 5, 7, 12}) pages[i] = Extent();
  EXPECT_TRUE(arena->try_allocate(20 * kKiB).status().is_would_block());  // 20 KiB are free, but not in one piece
  const Extent four = allocate(arena, 16 * kKiB);
  EXPECT_EQ(four.offset(), 4u * 4096);
  const Extent one = allocate(arena, 4096);
  EXPECT_EQ(one.offset(), 12u * 4096);
}

TEST(Arena, BestFitSplitsTheSmallestPieceThatHolds) {
  const auto arena = make_arena(64 * kKiB);
  std::vector<Extent> pages;
  for (int i = 0; i < 16; ++i) pages.push_back(allocate(arena, 4096));
  for (const std::size_t i : {0, 1, 2, 3, 4, 8, 9, 10}) pages[i] = Extent();
  EXPECT_EQ(allocate(arena, 8192).offset(), 8u * 4096);
}

TEST(Arena, FreedSpaceJoinsTheFreshSpaceBehindIt) {
  const auto arena = make_arena(64 * kKiB);
  Extent low = allocate(arena, 16 * kKiB), high = allocate(arena, 32 * kKiB);
  EXPECT_EQ(arena->touched(), 48 * kKiB);
  high = Extent();
  const Extent large = allocate(arena, 48 * kKiB);
  EXPECT_EQ(large.offset(), 16 * kKiB);
  EXPECT_EQ(arena->touched(), 64 * kKiB);
}

TEST(Arena, TouchedExtentsAreResidentKeepTheirBytesAndAreReused) {
  const auto arena = make_arena(4 * kMiB);
  {
    const Extent a = allocate(arena, 256 * kKiB), b = allocate(arena, 256 * kKiB), c = allocate(arena, 256 * kKiB);
    std::memset(b.bytes().data(), 7, b.bytes().size());
    for (const Extent* extent : {&a, &b, &c}) Arena::touch(extent->bytes());
    EXPECT_EQ(b.bytes().front(), std::byte{7});
    EXPECT_EQ(b.bytes().back(), std::byte{7});
  }
  EXPECT_EQ(arena->in_use(), 0u);
  EXPECT_EQ(arena->touched(), 3 * 256 * kKiB);
  std::vector<unsigned char> resident(arena->capacity() / 4096);
  ASSERT_EQ(::mincore(arena->memory().data(), arena->capacity(), resident.data()), 0);
  EXPECT_EQ(std::count_if(resident.begin(), resident.end(), [](unsigned char c) { return (c & 1) != 0; }), 3 * 64);
  const Extent a = allocate(arena, 256 * kKiB), b = allocate(arena, 250 * kKiB), c = allocate(arena, 256 * kKiB);
  EXPECT_EQ(arena->touched(), 3 * 256 * kKiB);
}

TEST(Arena, AWarmExtentThatIsALittleTooLargeComesBeforeColdMemory) {
  const auto arena = make_arena(4 * kMiB);
  Extent large = allocate(arena, 256 * kKiB);
  const auto* const at = large.bytes().data();
  large = Extent();
  const Extent small = allocate(arena, 180 * kKiB);
  EXPECT_EQ(small.bytes().data(), at);
  EXPECT_EQ(small.bytes().size(), 256 * kKiB);  // it goes back whole
  EXPECT_EQ(arena->in_use(), 256 * kKiB);
  EXPECT_EQ(arena->touched(), 256 * kKiB);
  EXPECT_NE(allocate(arena, 128 * kKiB).bytes().data(), at);
  large = allocate(arena, 512 * kKiB);
  const auto* const much = large.bytes().data();
  large = Extent();
  EXPECT_NE(allocate(arena, 100 * kKiB).bytes().data(), much);  // far too large
}

TEST(Arena, TheReadOnlyDescriptorReadsAndDoesNotWrite) {
  const auto arena = make_arena(kMiB);
  const Extent extent = allocate(arena, 4096);
  std::memcpy(extent.bytes().data(), "wherry", 6);
  void* view = ::mmap(nullptr, arena->capacity(), PROT_READ, MAP_SHARED, arena->read_only_fd(), 0);
  ASSERT_NE(view, MAP_FAILED);
  EXPECT_EQ(std::memcmp(static_cast<std::byte*>(view) + extent.offset(), "wherry", 6), 0);
  EXPECT_EQ(::mprotect(view, 4096, PROT_READ | PROT_WRITE), -1);
  ::munmap(view, arena->capacity());
  EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, arena->read_only_fd(), 0), MAP_FAILED);
  EXPECT_EQ(::ftruncate(arena->read_only_fd(), 0), -1);
  // If the kernel has F_SEAL_FUTURE_WRITE, the file cannot be opened for writing even through /proc.
  const int again = ::open(("/proc/self/fd/" + std::to_string(arena->read_only_fd())).c_str(), O_RDWR | O_CLOEXEC);
  if (again >= 0) {
    if ((::fcntl(again, F_GET_SEALS) & 0x10) != 0) {
      EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0), MAP_FAILED);
    }
    EXPECT_EQ(::ftruncate(again, 0), -1);
    ::close(again);
  }
}

TEST(Arena, AnExtentKeepsItsArenaAlive) {
  Extent extent = allocate(make_arena(kMiB), 4096);
  std::memset(extent.bytes().data(), 1, 4096);
  Extent moved = std::move(extent);
  EXPECT_FALSE(extent);  // NOLINT(bugprone-use-after-move): empty is what it has to be
  EXPECT_EQ(moved.bytes()[4095], std::byte{1});
}

TEST(Arena, NonsenseBudgetsAreRefused) {
  EXPECT_EQ(Arena::create(0).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Arena::create(~std::size_t{0}).status().code(), StatusCode::kInvalidArgument);
}

TEST(Arena, FourThreadsNeverShareAByte) {
  const auto arena = make_arena(2 * kMiB);
  constexpr int kThreads = 4, kRounds = 100'000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&arena, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      std::vector<std::pair<Extent, std::uint64_t>> held;
      const auto check = [](const std::pair<Extent, std::uint64_t>& one) {
        std::uint64_t head = 0, tail = 0;
        std::memcpy(&head, one.first.bytes().data(), 8);
        std::memcpy(&tail, one.first.bytes().data() + one.first.bytes().size() - 8, 8);
        ASSERT_EQ(head, one.second);
        ASSERT_EQ(tail, one.second);
      };
      for (int i = 0; i < kRounds; ++i) {
        if (held.size() < 12 && random() % 2 == 0) {
          auto extent = arena->try_allocate(1 + random() % (96 * kKiB));
          if (!extent) {
            ASSERT_TRUE(extent.status().is_would_block());
            continue;
          }
          const std::uint64_t mark = (std::uint64_t(t) << 32) | std::uint64_t(i);
          std::memcpy(extent->bytes().data(), &mark, 8);
          std::memcpy(extent->bytes().data() + extent->bytes().size() - 8, &mark, 8);
          held.emplace_back(*std::move(extent), mark);
        } else if (!held.empty()) {
          const std::size_t which = random() % held.size();
          check(held[which]);
          std::swap(held[which], held.back());
          held.pop_back();
        }
      }
      for (const auto& one : held) check(one);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(arena->in_use(), 0u);
  EXPECT_LE(arena->high_water(), arena->capacity());
  EXPECT_EQ(allocate(arena, 2 * kMiB).bytes().size(), 2 * kMiB);  // everything came back in one piece
}

}  // namespace
}  // namespace wherry
