// SPDX-License-Identifier: Apache-2.0
#include "probe/cache_model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <random>

#include "base/temporary_directory.hpp"
#include "probe/agent_work.hpp"
#include "probe/memory_lines.hpp"

namespace wherry::bench {
namespace {

/// An independent model of one LRU cache, by stack distances (Mattson et al., IBM Systems Journal 9(2), 1970): an
/// access misses if at least `ways` other lines of its set were used after the last access to its line.
class StackDistances {
 public:
  explicit StackDistances(CacheShape shape) : shape_(shape) {}
  bool misses(std::uint64_t line) {
    std::deque<std::uint64_t>& stack = stacks_[line % shape_.sets()];
    const auto at = std::ranges::find(stack, line);
    const auto distance = static_cast<std::size_t>(at - stack.begin());
    const bool missed = at == stack.end() || distance >= shape_.ways;
    if (at != stack.end()) stack.erase(at);
    stack.push_front(line);
    return missed;
  }

 private:
  CacheShape shape_;
  std::map<std::uint64_t, std::deque<std::uint64_t>> stacks_;
};

TEST(CacheModel, Receive_random_accesses_Expect_the_misses_that_stack_distances_tell) {
  std::mt19937_64 random(5);
  for (const CacheShape shape :
       {CacheShape{4 << 10, 1}, CacheShape{8 << 10, 4}, CacheShape{3 << 10, 3}, CacheShape{2 << 10, 32}}) {
    CacheModel model(std::span(&shape, 1));
    StackDistances oracle(shape);
    std::uint64_t loads = 0, stores = 0;
    for (int i = 0; i < 20'000; ++i) {
      // A few lines are accessed often, most seldom.
      const std::uint64_t line = random() % 2 == 0 ? random() % 40 : random() % 400;
      const bool write = random() % 3 == 0;
      (write ? stores : loads) += oracle.misses(line) ? 1 : 0;
      if (write) {
        model.store(line * 64 + 8, 8);
      } else {
        model.load(line * 64, 4);
      }
    }
    EXPECT_EQ(model.counts().memory_loads(), loads);
    EXPECT_EQ(model.counts().memory_fills(), stores);
  }
}

TEST(CacheModel, Receive_accesses_to_two_levels_Expect_the_second_to_see_the_misses_of_the_first) {
  const CacheShape shapes[] = {{1 << 10, 2}, {16 << 10, 8}};
  CacheModel model(shapes);
  StackDistances first(shapes[0]), second(shapes[1]);
  std::mt19937_64 random(6);
  std::uint64_t misses[2] = {};
  for (int i = 0; i < 20'000; ++i) {  // loads only: nothing is written back, so that the second sees misses alone
    const std::uint64_t line = random() % 300;
    model.load(line * 64, 1);
    if (!first.misses(line)) continue;
    ++misses[0];
    misses[1] += second.misses(line) ? 1 : 0;
  }
  EXPECT_EQ(model.counts().levels[0].load_misses, misses[0]);
  EXPECT_EQ(model.counts().levels[1].loads, misses[0]);
  EXPECT_EQ(model.counts().memory_loads(), misses[1]);
  EXPECT_EQ(model.counts().written_back, 0U);
}

TEST(CacheModel, Receive_a_pass_of_stores_Expect_every_line_to_be_filled_once_and_written_back_once) {
  const CacheShape shapes[] = {{1 << 10, 2}, {4 << 10, 4}};
  CacheModel model(shapes);
  const std::uint64_t lines = 1000, held = 64;
  for (std::uint64_t line = 0; line < lines; ++line) model.store(line * 64, 64);
  EXPECT_EQ(model.counts().memory_fills(), lines);
  // All lines are written back except those still in the caches, at most their capacity.
  EXPECT_LE(model.counts().written_back, lines - held);
  EXPECT_GE(model.counts().written_back, lines - held - 16);
}

TEST(CacheModel, Receive_a_line_across_an_end_Expect_two) {
  const CacheShape shape{1 << 10, 2};
  CacheModel model(std::span(&shape, 1));
  model.load(60, 8);
  model.load(64, 0);
  EXPECT_EQ(model.counts().levels[0].loads, 2U);
}

TEST(CacheModel, Receive_what_a_device_delivers_Expect_memory_loads_only_without_direct_cache_access) {
  const CacheShape shapes[] = {{1 << 10, 2}, {64 << 10, 8}};
  for (const bool into_cache : {false, true}) {
    CacheModel model(shapes);
    for (int round = 0; round < 3; ++round) {
      model.deliver(0, 4096, into_cache);
      model.load(0, 4096);
      model.load(0, 4096);
    }
    EXPECT_EQ(model.counts().memory_loads(), into_cache ? 0U : 3U * 64);
    EXPECT_EQ(model.counts().levels[1].loads, 6U * 64) << "the first level holds 16 of 64 lines";
  }
}

TEST(CacheSystem, Receive_a_kernels_files_Expect_its_data_caches_in_order) {
  const auto folder = TemporaryDirectory::create("wherry-cache-");
  ASSERT_TRUE(folder) << folder.status().message();
  const std::filesystem::path root = folder->path();
  const auto cache = [&](int index, const char* level, const char* type, const char* size, const char* ways) {
    const auto at = root / "sys/devices/system/cpu/cpu3/cache" / ("index" + std::to_string(index));
    std::filesystem::create_directories(at);
    for (const auto& [name, text] : {std::pair("level", level),
                                     {"type", type},
                                     {"size", size},
                                     {"ways_of_associativity", ways},
                                     {"coherency_line_size", "64"}})
      std::ofstream(at / name) << text << '\n';
  };
  cache(0, "2", "Unified", "1024K", "8");
  cache(1, "1", "Instruction", "32K", "8");
  cache(2, "1", "Data", "48K", "12");
  cache(3, "3", "Unified", "24M", "12");
  const CacheSystem found = this_machine(3, root);
  EXPECT_EQ(found.levels, (std::vector<CacheShape>{{48 << 10, 12}, {1 << 20, 8}, {24 << 20, 12}}));
  EXPECT_TRUE(this_machine(4, root).levels.empty());
  cache(3, "3", "Unified", "24M", "0");  // as some hypervisors say
  EXPECT_TRUE(this_machine(3, root).levels.empty());
  EXPECT_FALSE(this_machine(3, root).source.empty());
}

TEST(CacheSystem, Receive_the_papers_machines_Expect_valid_shapes) {
  for (const CacheSystem& system : paper_systems()) {
    EXPECT_EQ(system.levels.size(), 3U);
    for (const CacheShape shape : system.levels) EXPECT_TRUE(shape.valid()) << system.name;
  }
}

TEST(AgentWork, Receive_filled_inputs_Expect_every_message_once_at_the_other_end) {
  for (const std::uint32_t payload : {8U, 56U, 1024U}) {
    AgentShape shape{.inputs = 3, .lanes = 5, .ring = {.buffers = 8, .buffer_bytes = 4096}, .payload = payload};
    shape.ring.buffer_bytes = 16 << 10;
    AgentWork work(shape, 3);
    for (int round = 0; round < 20; ++round) {
      std::size_t filled = 0;
      work.fill(2, [&](AgentWork::Filled part) { filled += part.bytes; });
      EXPECT_FALSE(work.complete());
      EXPECT_EQ(work.route(), filled);
      work.drain();
      EXPECT_TRUE(work.complete());
    }
  }
}

TEST(SumWords, Receive_memory_Expect_the_sum_of_its_words) {
  std::vector<std::uint64_t> words(64);
  std::iota(words.begin(), words.end(), 1);
  EXPECT_EQ(sum_words(reinterpret_cast<const std::byte*>(words.data()), words.size() * 8), 64U * 65 / 2);
  for (std::size_t i = 0; i < words.size(); ++i) {  // no word is left out
    words[i] += 1000;
    EXPECT_EQ(sum_words(reinterpret_cast<const std::byte*>(words.data()), words.size() * 8),
              64U * 65 / 2 + 1000 * (i + 1));
  }
}

TEST(FlushLines, Receive_memory_Expect_it_to_be_unchanged) {
  std::vector<std::uint64_t> words(512, 7);
  if (!flush_lines(reinterpret_cast<const std::byte*>(words.data()), words.size() * 8))
    GTEST_SKIP() << "neither x86-64 nor AArch64: no instruction that flushes a line";
  EXPECT_TRUE(std::ranges::all_of(words, [](std::uint64_t word) { return word == 7; }));
}

}  // namespace
}  // namespace wherry::bench
