// SPDX-License-Identifier: Apache-2.0
#include "move/operate/arena_pool.hpp"

#include <arrow/buffer.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

namespace wherry::move {
namespace {

TEST(ArenaPool, Allocate_Free_ExpectMemoryOfTheArenaAndAllOfItBack) {
  const auto arena = *Arena::create(1 << 20);
  std::uint64_t counted = 0;
  const auto pool = ArenaPool::make(arena, {.take =
                                                [&](std::uint64_t bytes) {
                                                  counted += bytes;
                                                  return true;
                                                },
                                            .give_back = [&](std::uint64_t bytes) { counted -= bytes; }});
  auto buffer = *arrow::AllocateResizableBuffer(100, pool.get());
  const auto* data = reinterpret_cast<const std::byte*>(buffer->data());
  EXPECT_GE(data, arena->memory().data());
  EXPECT_LT(data, arena->memory().data() + arena->capacity());
  EXPECT_EQ(counted, 4096u);
  std::memset(buffer->mutable_data(), 7, 100);
  ASSERT_TRUE(buffer->Resize(50'000).ok());
  EXPECT_EQ(buffer->data()[99], 7);
  EXPECT_EQ(counted, arena->in_use());
  ASSERT_TRUE(buffer->Resize(10, /*shrink_to_fit=*/true).ok());
  EXPECT_EQ(buffer->data()[9], 7);
  EXPECT_EQ(arena->in_use(), 4096u);
  ASSERT_TRUE(buffer->Resize(0, true).ok());
  buffer.reset();
  EXPECT_EQ(counted, 0u);
  EXPECT_EQ(arena->in_use(), 0u);
  EXPECT_EQ(pool->bytes_allocated(), 0);
}

TEST(ArenaPool, Allocate_FullOrRefused_ExpectOutOfMemoryAndNothingTaken) {
  const auto arena = *Arena::create(1 << 20);
  bool may = false;
  int asked = 0;
  Extent frame = *arena->try_allocate(1 << 20);
  const auto pool = ArenaPool::make(arena, {.take = [&](std::uint64_t) { return may; },
                                            .make_room =
                                                [&] {
                                                  if (++asked == 2) frame = Extent();
                                                  return asked <= 2;
                                                }});
  EXPECT_TRUE(arrow::AllocateBuffer(100, pool.get()).status().IsOutOfMemory());
  EXPECT_EQ(asked, 0) << "frames went for a result that may not be";
  may = true;
  EXPECT_TRUE(arrow::AllocateBuffer(100, pool.get()).ok()) << "room was made";
  EXPECT_EQ(asked, 2);
  frame = *arena->try_allocate(1 << 20);
  EXPECT_TRUE(arrow::AllocateBuffer(100, pool.get()).status().IsOutOfMemory());
  EXPECT_TRUE(arrow::AllocateBuffer(2 << 20, pool.get()).status().IsCapacityError());
  EXPECT_EQ(pool->bytes_allocated(), 0);
}

TEST(ArenaPool, OwnerGone_ExpectThePoolStaysUntilItsLastBufferGoes) {
  const auto arena = *Arena::create(1 << 20);
  auto pool = ArenaPool::make(arena, {});
  auto buffer = *arrow::AllocateBuffer(100, pool.get());
  const std::weak_ptr<ArenaPool> seen = pool;
  pool.reset();
  EXPECT_FALSE(seen.expired());
  buffer.reset();
  EXPECT_TRUE(seen.expired());
  EXPECT_EQ(arena->in_use(), 0u);
}

TEST(ArenaPool, ManyThreads_ExpectAllMemoryBack) {
  const auto arena = *Arena::create(16 << 20);
  const auto pool = ArenaPool::make(arena, {});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        auto buffer = *arrow::AllocateResizableBuffer(1 + 37 * i, pool.get());
        std::memset(buffer->mutable_data(), t, static_cast<std::size_t>(buffer->size()));
        ASSERT_TRUE(buffer->Resize(2 * buffer->size()).ok());
        ASSERT_EQ(buffer->data()[37 * i], t);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(arena->in_use(), 0u);
}

}  // namespace
}  // namespace wherry::move
