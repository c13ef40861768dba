// SPDX-License-Identifier: Apache-2.0
#include "move/service/catalogue.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <thread>

namespace wherry::move {
namespace {

using namespace std::chrono_literals;
using What = Catalogue::Next::What;
using WhenFull = Retention::WhenFull;

std::shared_ptr<const StreamInfo> stream(std::string name, Retention retention = {}, Sink sink = {}) {
  auto info = std::make_shared<StreamInfo>();
  info->name = std::move(name);
  info->retention = retention;
  info->sink = std::move(sink);
  return info;
}

/// A frame of `bytes` bytes, in which every word is its sequence number.
FramePtr frame(const std::shared_ptr<Arena>& arena, std::shared_ptr<const StreamInfo> info, std::uint64_t sequence,
               std::size_t bytes = 64) {
  auto extent = arena->try_allocate(bytes);
  if (!extent) return nullptr;
  auto made = std::make_shared<Frame>();
  made->stream = std::move(info);
  made->sequence = sequence;
  made->rows = 10;
  made->extent = *std::move(extent);
  made->layout.total_bytes = bytes;
  for (std::size_t at = 0; at + 8 <= bytes; at += 8) std::memcpy(made->extent.bytes().data() + at, &sequence, 8);
  made->set_ipc_written();
  return made;
}

/// A stream, and its derived stream "NAME.made". The catalogue ignores how that is computed.
std::shared_ptr<StreamInfo> with_derived(const std::string& name, Retention retention = {}) {
  auto source = std::make_shared<StreamInfo>();
  source->name = name;
  source->retention = retention;
  auto made = std::make_shared<StreamInfo>();
  made->name = name + ".made";
  made->source = name;
  made->retention = retention;
  source->derived = {std::move(made)};
  return source;
}

class CatalogueTest : public ::testing::Test {
 protected:
  std::shared_ptr<Arena> arena = *Arena::create(16 << 20);
  Catalogue catalogue;

  std::shared_ptr<const StreamInfo> opened(std::string name, Retention retention = {}, Sink sink = {}) {
    auto info = stream(std::move(name), retention, std::move(sink));
    EXPECT_TRUE(catalogue.open(info));
    return info;
  }
  void publish(const std::shared_ptr<const StreamInfo>& info, std::uint64_t from, std::uint64_t to,
               std::size_t bytes = 64) {
    for (; from < to; ++from) catalogue.publish(frame(arena, info, from, bytes));
  }
};

TEST_F(CatalogueTest, FramesComeBackInOrder) {
  const auto info = opened("s");
  publish(info, 0, 5);
  for (std::uint64_t i = 0; i < 5; ++i) {
    const auto next = catalogue.next("s", i, 0ms);
    ASSERT_EQ(next.what, What::kFrame);
    EXPECT_EQ(next.frame->sequence, i);
    EXPECT_EQ(next.skipped, 0u);
  }
  EXPECT_EQ(catalogue.next("s", 5, 1ms).what, What::kTimeout);
  const auto status = catalogue.find("s");
  ASSERT_TRUE(status);
  EXPECT_EQ(status->first, 0u);
  EXPECT_EQ(status->next, 5u);
  EXPECT_EQ(status->held_frames, 5u);
  EXPECT_EQ(status->held_rows, 50u);
  EXPECT_EQ(status->held_bytes, 5u * 64);
  EXPECT_EQ(status->total_bytes, 5u * 64);
  EXPECT_TRUE(status->open);
}

TEST_F(CatalogueTest, EvictionKeepsTheNewestAndCountsWhatWasSkipped) {
  const auto info = opened("s", {.frames = 3});
  publish(info, 0, 2);
  catalogue.mark_read(*catalogue.next("s", 0, 0ms).frame);
  publish(info, 2, 10);
  const auto next = catalogue.next("s", 4, 0ms);
  ASSERT_EQ(next.what, What::kFrame);
  EXPECT_EQ(next.frame->sequence, 7u);
  EXPECT_EQ(next.skipped, 3u);
  EXPECT_EQ(catalogue.find("s")->evicted_unread, 6u);  // of seven that went, one had been read
  EXPECT_EQ(catalogue.find("s")->first, 7u);
  EXPECT_TRUE(catalogue.make_room(*info));
  EXPECT_EQ(catalogue.find("s")->held_frames, 3u);  // readers keep them until the next one is there
}

TEST_F(CatalogueTest, ABytesLimitNeverTakesTheNewest) {
  const auto info = opened("s", {.frames = 0, .bytes = 1000});
  publish(info, 0, 4, 400);
  EXPECT_EQ(catalogue.find("s")->held_frames, 2u);
  publish(info, 4, 5, 2000);
  EXPECT_EQ(catalogue.find("s")->held_frames, 1u);
  EXPECT_EQ(catalogue.find("s")->held_bytes, 2000u);
}

TEST_F(CatalogueTest, AFrameThatIsReadIsNotTakenAway) {
  const auto info = opened("s", {.frames = 1});
  publish(info, 0, 1, 4096);
  const auto held = catalogue.next("s", 0, 0ms).frame;
  publish(info, 1, 100, 4096);
  std::uint64_t word = 1;
  std::memcpy(&word, held->ipc().data(), 8);
  EXPECT_EQ(word, 0u);
  EXPECT_EQ(arena->in_use(), 2u * 4096);
}

TEST_F(CatalogueTest, AWaitingStreamLetsOnlyReadFramesGo) {
  const auto info = opened("s", {.frames = 2, .when_full = WhenFull::kWait});
  EXPECT_TRUE(catalogue.make_room(*info));
  publish(info, 0, 2);
  EXPECT_FALSE(catalogue.make_room(*info));
  EXPECT_FALSE(catalogue.evict_one(*info));
  catalogue.mark_read(*catalogue.next("s", 1, 0ms).frame);
  EXPECT_TRUE(catalogue.make_room(*info));  // 1 has gone, though 0 is older
  publish(info, 2, 3);
  EXPECT_FALSE(catalogue.make_room(*info));
  const auto first = catalogue.next("s", 0, 0ms), second = catalogue.next("s", 1, 0ms);
  EXPECT_EQ(first.frame->sequence, 0u);
  EXPECT_EQ(second.frame->sequence, 2u);
  EXPECT_EQ(second.skipped, 1u);
  EXPECT_EQ(catalogue.find("s")->evicted_unread, 0u);
  // Frames of offloads that were already in flight are kept, so no frame is lost.
  publish(info, 3, 5);
  EXPECT_EQ(catalogue.find("s")->held_frames, 4u);
  catalogue.mark_read(*first.frame);
  EXPECT_FALSE(catalogue.make_room(*info));
  EXPECT_TRUE(catalogue.find("s")->held_frames == 3u);
}

TEST_F(CatalogueTest, EvictOneTakesTheOldestOfThatStream) {
  const auto info = opened("s"), other = opened("t");
  publish(info, 0, 2);
  publish(other, 0, 1);
  EXPECT_TRUE(catalogue.evict_one(*info));
  EXPECT_EQ(catalogue.find("s")->first, 1u);
  EXPECT_TRUE(catalogue.evict_one(*info));
  EXPECT_EQ(catalogue.find("t")->held_frames, 1u);
}

TEST_F(CatalogueTest, WhoHasNothingToGiveTakesFromTheClosedThenFromTheOldestThenFromWhatNobodyMayEverRead) {
  const auto poor = opened("poor"), rich = opened("rich"), gone = opened("gone");
  const Retention wait{.frames = 9, .when_full = WhenFull::kWait};
  const auto kept = opened("kept", wait), left = opened("left", wait);
  publish(left, 0, 2);
  publish(kept, 0, 2);
  publish(rich, 0, 2);
  publish(gone, 0, 1);
  catalogue.close("gone");
  catalogue.close("left");
  const auto held = [&](const char* name) { return catalogue.find(name)->held_frames; };
  EXPECT_TRUE(catalogue.evict_one(*poor));
  EXPECT_EQ(held("gone"), 0u);
  catalogue.mark_read(*catalogue.next("kept", 1, 0ms).frame);  // free to go, and older than those of "rich"
  EXPECT_TRUE(catalogue.evict_one(*poor));
  EXPECT_EQ(held("kept"), 1u);
  EXPECT_TRUE(catalogue.evict_one(*poor));
  EXPECT_EQ(catalogue.find("rich")->first, 1u);
  EXPECT_TRUE(catalogue.evict_one(*poor));
  EXPECT_EQ(held("rich"), 0u);
  EXPECT_EQ(held("left"), 2u);
  EXPECT_TRUE(catalogue.evict_one(*poor));
  EXPECT_TRUE(catalogue.evict_one(*poor));
  EXPECT_EQ(held("left"), 0u);
  EXPECT_EQ(catalogue.find("left")->evicted_unread, 2u);
  EXPECT_FALSE(catalogue.evict_one(*poor)) << "a live stream that waits keeps what nobody read";
  EXPECT_EQ(held("kept"), 1u);
}

TEST_F(CatalogueTest, AFrameInSomebodysHandsIsNotGivenUpForMemory) {
  const auto info = opened("s");
  publish(info, 0, 3);
  const auto reading = catalogue.next("s", 0, 0ms).frame;
  EXPECT_TRUE(catalogue.evict_one(*info));
  EXPECT_EQ(catalogue.next("s", 1, 0ms).frame->sequence, 2u);
  EXPECT_TRUE(catalogue.evict_one(*info));
  EXPECT_FALSE(catalogue.evict_one(*info));
  EXPECT_EQ(catalogue.find("s")->first, 0u);
}

TEST_F(CatalogueTest, ClosedStreamsAreForgottenInTheEndAndTheirFollowersSeeTheEnd) {
  const auto info = opened("first");
  publish(info, 0, 2);
  const std::uint64_t generation = catalogue.next("first", 0, 0ms).generation;
  catalogue.close("first");
  EXPECT_TRUE(catalogue.evict_one(*info) && catalogue.evict_one(*info));
  EXPECT_EQ(catalogue.next("first", 0, 0ms, generation).skipped, 2u);
  const auto holds = opened("holds");
  publish(holds, 0, 1);
  catalogue.close("holds");
  for (std::uint64_t i = 0; i < 3 * kRememberedStreams; ++i) {
    (void)opened("s" + std::to_string(i));
    catalogue.close("s" + std::to_string(i));
  }
  EXPECT_LE(catalogue.list().size(), 2 * kRememberedStreams + 2);
  EXPECT_FALSE(catalogue.find("first"));
  EXPECT_EQ(catalogue.next("first", 1, 10s, generation).what, What::kEnd);
  EXPECT_EQ(catalogue.next("first", 1, 10s).what, What::kNoStream);
  EXPECT_EQ(catalogue.next("holds", 0, 0ms).what, What::kFrame) << "what can be read stays";
  for (std::uint64_t i = 0; i < kClosedStreams + kRememberedStreams; ++i) {
    (void)opened("t");
    catalogue.close("t");
  }
  EXPECT_FALSE(catalogue.find("holds"));
}

TEST_F(CatalogueTest, ASinkThatLagsTakesNoMoreAndItsFirstFailureIsKept) {
  std::vector<FramePtr> slow;
  catalogue.set_sink_hook([&](const FramePtr& one) {
    slow.push_back(one);
    return ok_status();
  });
  const auto info = opened("s", {.frames = 2}, {Sink::Format::kArrow, "/tmp"}), plain = opened("p", {.frames = 2});
  publish(info, 0, kSinkQueue - 1);
  EXPECT_TRUE(catalogue.make_room(*info));
  publish(info, kSinkQueue - 1, kSinkQueue);
  EXPECT_FALSE(catalogue.make_room(*info));
  EXPECT_TRUE(catalogue.make_room(*plain));
  catalogue.sunk(*slow[0], ok_status());
  EXPECT_TRUE(catalogue.make_room(*info));
  catalogue.sunk(*slow[1], {StatusCode::kUnavailable, "the disk is full"});
  catalogue.sunk(*slow[2], {StatusCode::kUnavailable, "the disk is still full"});
  EXPECT_EQ(catalogue.find("s")->sink_errors, 2u);
  EXPECT_EQ(catalogue.find("s")->sink_error, "the disk is full");
}

TEST_F(CatalogueTest, ANameIsOpenOnceAndReplacedWhenClosed) {
  const auto info = opened("s");
  publish(info, 0, 3);
  EXPECT_EQ(catalogue.open(stream("s")).code(), StatusCode::kAlreadyExists);
  const std::uint64_t generation = catalogue.next("s", 0, 0ms).generation;
  catalogue.close("s");
  catalogue.close("nobody");
  EXPECT_EQ(catalogue.next("s", 2, 0ms).what, What::kFrame);  // kept frames stay readable
  EXPECT_EQ(catalogue.next("s", 3, 10s).what, What::kEnd);
  EXPECT_FALSE(catalogue.find("s")->open);

  const auto again = opened("s");
  EXPECT_EQ(arena->in_use(), 0u);
  EXPECT_EQ(catalogue.find("s")->next, 0u);
  publish(info, 3, 4);  // one that was in flight for the old stream
  EXPECT_EQ(catalogue.find("s")->next, 0u);
  publish(again, 0, 1);
  EXPECT_EQ(catalogue.next("s", 0, 0ms, generation).what, What::kEnd);
  EXPECT_EQ(catalogue.next("s", 0, 0ms).frame->stream, again);
}

/// Whether a thread of this process sleeps within ten seconds after it has stored its id in `thread`.
bool eventually_sleeps(const std::atomic<pid_t>& thread) {
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  while (std::chrono::steady_clock::now() < deadline) {
    std::string stat;
    std::getline(std::ifstream("/proc/self/task/" + std::to_string(thread) + "/stat"), stat);
    if (stat.find(") S ") != std::string::npos) return true;
    std::this_thread::yield();
  }
  return false;
}

TEST_F(CatalogueTest, WaitersWakeForFramesEndsReplacementsAndShutDown) {
  const auto info = opened("s");
  const auto wait = [&](std::uint64_t sequence, auto&& act) {
    Catalogue::Next got{};
    std::atomic<pid_t> thread = 0;
    std::thread reader([&] {
      thread = gettid();
      got = catalogue.next("s", sequence, 20s);
    });
    EXPECT_TRUE(eventually_sleeps(thread));
    act();
    reader.join();
    return got.what;
  };
  EXPECT_EQ(wait(0, [&] { publish(info, 0, 1); }), What::kFrame);
  EXPECT_EQ(wait(1, [&] { catalogue.close("s"); }), What::kEnd);
  (void)opened("s");
  EXPECT_EQ(wait(7,
                 [&] {
                   catalogue.close("s");
                   (void)opened("s");
                 }),
            What::kEnd);
  EXPECT_EQ(wait(0, [&] { catalogue.shut_down(); }), What::kEnd);
  EXPECT_EQ(catalogue.open(stream("t")).code(), StatusCode::kUnavailable);
  EXPECT_EQ(catalogue.next("t", 0, 20s).what, What::kNoStream);
}

TEST_F(CatalogueTest, TimeoutsOfAnyLengthAreTaken) {
  const auto info = opened("s");
  EXPECT_EQ(catalogue.next("s", 0, -5ms).what, What::kTimeout);
  publish(info, 0, 1);
  EXPECT_EQ(catalogue.next("s", 0, std::chrono::milliseconds::max()).what, What::kFrame);
}

TEST_F(CatalogueTest, HooksAreCalledWithoutTheLock) {
  std::atomic<int> rooms = 0, sunk = 0;
  catalogue.set_room_hook([&] {
    (void)catalogue.list();
    ++rooms;
  });
  catalogue.set_sink_hook([&](const FramePtr& one) {
    EXPECT_TRUE(catalogue.find(one->stream->name));
    ++sunk;
    return ok_status();
  });
  const auto info = opened("s", {.frames = 1});
  const auto kept = opened("k", {.frames = 1, .when_full = WhenFull::kWait}, {Sink::Format::kArrow, "/tmp"});
  publish(info, 0, 1);
  EXPECT_EQ(rooms, 0);
  publish(info, 1, 2);
  EXPECT_EQ(rooms, 1);
  EXPECT_EQ(sunk, 0);
  publish(kept, 0, 1);
  EXPECT_EQ(sunk, 1);
  const int before = rooms;
  auto lent = catalogue.next("k", 0, 0ms).frame;
  catalogue.mark_read(*lent);
  EXPECT_EQ(rooms, before + 1);
  EXPECT_TRUE(catalogue.make_room(*kept));
  EXPECT_EQ(rooms, before + 2);
  // A lent frame's memory is freed when its reader ends, and the room hook is called then.
  EXPECT_EQ(arena->in_use(), 2u * 4096);
  lent.reset();
  EXPECT_EQ(rooms, before + 3);
  EXPECT_EQ(arena->in_use(), 4096u);
  catalogue.set_room_hook({});
  catalogue.set_sink_hook({});
  publish(kept, 1, 2);
  publish(info, 2, 4);
  EXPECT_EQ(rooms, before + 3);
}

TEST_F(CatalogueTest, FollowersSeeEveryFrameOrKnowThatItWasSkipped) {
  constexpr std::uint64_t kFrames = 4000;
  constexpr int kStreams = 2, kFollowers = 3;
  std::vector<std::shared_ptr<const StreamInfo>> infos;
  for (int s = 0; s < kStreams; ++s) infos.push_back(opened("s" + std::to_string(s), {.frames = 8}));
  std::vector<std::thread> threads;
  std::atomic<bool> done = false;
  for (const auto& info : infos) {
    threads.emplace_back([&, info] {
      for (std::uint64_t i = 0; i < kFrames; ++i) {
        FramePtr made;
        while ((made = frame(arena, info, i, 256)) == nullptr) std::this_thread::yield();
        ASSERT_TRUE(catalogue.make_room(*info));
        catalogue.publish(std::move(made));
        if (i % 64 == 0) std::this_thread::yield();
      }
      catalogue.close(info->name);
    });
    for (int f = 0; f < kFollowers; ++f) {
      threads.emplace_back([&, name = info->name] {
        std::uint64_t at = 0, seen = 0, skipped = 0;
        for (;;) {
          const auto next = catalogue.next(name, at, 50ms);
          if (next.what == What::kTimeout) continue;
          skipped += next.skipped;
          if (next.what == What::kEnd) break;
          ASSERT_EQ(next.what, What::kFrame);
          ASSERT_EQ(next.frame->sequence, at + next.skipped);
          for (std::size_t word = 0; word < 256; word += 8) {
            std::uint64_t value = 0;
            std::memcpy(&value, next.frame->ipc().data() + word, 8);
            ASSERT_EQ(value, next.frame->sequence);
          }
          catalogue.mark_read(*next.frame);
          ++seen;
          at = next.frame->sequence + 1;
        }
        EXPECT_EQ(seen + skipped, kFrames);
      });
    }
  }
  std::thread evictor([&] {
    std::mt19937 random(7);
    while (!done) {
      (void)catalogue.evict_one(*infos[random() % kStreams]);
      (void)catalogue.list();
      std::this_thread::sleep_for(100us);
    }
  });
  for (auto& thread : threads) thread.join();
  done = true;
  evictor.join();
  for (const auto& info : infos) {
    while (catalogue.evict_one(*info)) {
    }
  }
  EXPECT_EQ(arena->in_use(), 0u);
}

TEST_F(CatalogueTest, AWaitingStreamLosesNothingAcrossThreads) {
  constexpr std::uint64_t kFrames = 4000;
  const auto info = opened("s", {.frames = 4, .when_full = WhenFull::kWait});
  std::mutex mutex;
  std::condition_variable room;
  std::uint64_t rooms = 0;
  catalogue.set_room_hook([&] {
    {
      const std::lock_guard lock(mutex);
      ++rooms;
    }
    room.notify_one();
  });
  std::thread writer([&] {
    for (std::uint64_t i = 0; i < kFrames; ++i) {
      for (;;) {
        std::unique_lock lock(mutex);
        const std::uint64_t seen = rooms;
        lock.unlock();
        if (catalogue.make_room(*info)) break;
        lock.lock();
        ASSERT_TRUE(room.wait_for(lock, 20s, [&] { return rooms != seen; })) << "nobody said that there is room";
      }
      catalogue.publish(frame(arena, info, i));
    }
    catalogue.close("s");
  });
  std::uint64_t at = 0;
  for (;;) {
    const auto next = catalogue.next("s", at, 20s);
    if (next.what == What::kEnd) break;
    ASSERT_EQ(next.what, What::kFrame);
    ASSERT_EQ(next.frame->sequence, at);
    ASSERT_EQ(next.skipped, 0u);
    catalogue.mark_read(*next.frame);
    ++at;
  }
  writer.join();
  catalogue.set_room_hook({});
  EXPECT_EQ(at, kFrames);
}

TEST_F(CatalogueTest, EvictForReader_ExpectReadFramesFirstAndNothingLostThatNothingReplaces) {
  const auto lossless = opened("lossless", {.frames = 8, .when_full = WhenFull::kWait});
  const auto ended = opened("ended", {.frames = 8});
  const auto open = opened("open", {.frames = 8});
  for (const auto& info : {lossless, ended, open}) publish(info, 0, 2);
  catalogue.close("lossless");
  catalogue.close("ended");
  catalogue.mark_read(*catalogue.next("ended", 1, 0ms).frame);
  const auto held = [&](const char* name) {
    std::vector<std::uint64_t> all;
    for (std::uint64_t at = 0;;) {
      const auto next = catalogue.next(name, at, 0ms);
      if (next.what != What::kFrame) return all;
      all.push_back(next.frame->sequence);
      at = next.frame->sequence + 1;
    }
  };
  EXPECT_TRUE(catalogue.evict_for_reader());
  EXPECT_EQ(held("ended"), std::vector<std::uint64_t>{0}) << "the one that had been read";
  const auto read_now = catalogue.next("open", 0, 0ms);
  EXPECT_TRUE(catalogue.evict_for_reader());
  EXPECT_EQ(held("open"), std::vector<std::uint64_t>{0}) << "that of the open stream which nobody reads now";
  EXPECT_FALSE(catalogue.evict_for_reader());
  EXPECT_EQ(held("lossless"), (std::vector<std::uint64_t>{0, 1}));
  EXPECT_EQ(held("ended"), std::vector<std::uint64_t>{0});
}

TEST_F(CatalogueTest, OpenAStreamWithDerivedOnes_ExpectAllOrNone) {
  const auto taken = opened("a.made");
  EXPECT_EQ(catalogue.open(with_derived("a")).code(), StatusCode::kAlreadyExists);
  EXPECT_FALSE(catalogue.find("a"));
  catalogue.close("a.made");
  const auto first = with_derived("a");
  ASSERT_TRUE(catalogue.open(first));
  EXPECT_EQ(catalogue.open(stream("a.made")).code(), StatusCode::kAlreadyExists);
  // When "a" is opened again, the old derived stream is replaced, although it is open.
  catalogue.close("a");
  const auto second = with_derived("a");
  ASSERT_TRUE(catalogue.open(second));
  EXPECT_EQ(catalogue.find("a.made")->info, second->derived.front());
  catalogue.close(*first->derived.front());
  EXPECT_TRUE(catalogue.find("a.made")->open);
  catalogue.close(*second->derived.front());
  EXPECT_FALSE(catalogue.find("a.made")->open);
}

TEST_F(CatalogueTest, UnderWait_ExpectAFrameToStayUntilOperatorsAreDone) {
  const auto source = with_derived("a", {.frames = 1, .when_full = WhenFull::kWait});
  ASSERT_TRUE(catalogue.open(source));
  const FramePtr only = frame(arena, source, 0);
  catalogue.publish(only);
  catalogue.mark_read(*only);
  EXPECT_FALSE(catalogue.make_room(*source)) << "read, but no operator has come to it";
  EXPECT_EQ(catalogue.find("a")->operator_lag, 1U);
  catalogue.operated(*only, ok_status(), 0);
  EXPECT_EQ(catalogue.find("a")->operator_lag, 0U);
  EXPECT_TRUE(catalogue.make_room(*source));
  EXPECT_EQ(catalogue.find("a")->held_frames, 0U);
}

TEST_F(CatalogueTest, UnderWait_ExpectOperatorsDoneToCountAsReadAndAFailureNot) {
  const auto source = with_derived("a", {.frames = 1, .when_full = WhenFull::kWait});
  ASSERT_TRUE(catalogue.open(source));
  const FramePtr good = frame(arena, source, 0);
  catalogue.publish(good);
  catalogue.operated(*good, ok_status(), 0);
  EXPECT_TRUE(catalogue.make_room(*source));
  const FramePtr bad = frame(arena, source, 1);
  catalogue.publish(bad);
  catalogue.operated(*bad, {StatusCode::kInvalidArgument, "broken"}, 0);
  EXPECT_FALSE(catalogue.make_room(*source)) << "nobody has read it";
  EXPECT_EQ(catalogue.find("a")->operator_errors, 1U);
  EXPECT_EQ(catalogue.find("a")->operator_error, "broken");
}

TEST_F(CatalogueTest, ALagAboveItsLimit_ExpectNoRoomUnlessFramesMayGo) {
  catalogue.limit_lag(100'000);
  const auto lossless = with_derived("a", {.frames = 0, .when_full = WhenFull::kWait});
  const auto evicts = with_derived("b", {.frames = 0});
  for (const auto& source : {lossless, evicts}) {
    ASSERT_TRUE(catalogue.open(source));
    publish(source, 0, 1, 200'000);
  }
  EXPECT_FALSE(catalogue.make_room(*lossless));
  EXPECT_TRUE(catalogue.make_room(*evicts));
  catalogue.end_operators(*lossless, ok_status(), 0);
  EXPECT_TRUE(catalogue.make_room(*lossless));
}

}  // namespace
}  // namespace wherry::move
