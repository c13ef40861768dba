// SPDX-License-Identifier: Apache-2.0
// The direct-cache-access test of paper 001, section 6.0.2: messages of 64 KiB come in, and the receiver reads each
// byte. In the paper a NIC writes them. Here a thread on another core writes them. The size of its ring, or a flush of
// its lines, decides which cache or memory holds the data when the receiver reads them.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/event_counter.hpp"
#include "common/measure.hpp"
#include "probe/cache_bench.hpp"
#include "probe/memory_lines.hpp"
#include "probe/other_core.hpp"

namespace wherry::bench {
namespace {

constexpr std::size_t kMessage = 64 << 10;                      // paper 001, section 6.0.2
constexpr std::size_t kTotal = std::size_t{10'000} * kMessage;  // the same: 625 MiB

struct Place {
  const char* name;
  std::size_t ring_bytes;
  bool here;     // the receiver's own core writes
  bool flushed;  // the writer takes the lines out of all caches
};

struct Ring {
  explicit Ring(std::size_t bytes)
      : messages(bytes / kMessage),
        data(static_cast<std::byte*>(std::aligned_alloc(4096, messages * kMessage)), std::free),
        sums(messages) {
    if (data == nullptr) throw std::bad_alloc();
  }
  /// Writes message `number` into its slot. Each word differs from its neighbours and from those of the round before.
  void write(std::uint64_t number) {
    const std::size_t slot = number % messages;
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < kMessage; i += sizeof(std::uint64_t)) {
      const std::uint64_t word = (number * kMessage + i) * 0x9e3779b97f4a7c15U;  // 2^64 over the golden ratio
      std::memcpy(data.get() + slot * kMessage + i, &word, sizeof word);
      sum += word;
    }
    sums[slot] = sum;
  }
  std::size_t messages;
  std::unique_ptr<std::byte[], void (*)(void*)> data;
  std::vector<std::uint64_t> sums;
};

}  // namespace

void run_touch(CacheBench& bench) {
  // At most half of the level, to leave room for the rest of the process; or twice the last level.
  const std::size_t in_level2 = std::max(bench.level2() / 2 / kMessage, std::size_t{1}) * kMessage;
  const std::size_t in_last = std::max(bench.last_level() / 4 / kMessage, std::size_t{2}) * kMessage;
  const std::size_t beyond = 2 * bench.last_level() / kMessage * kMessage;
  const Place places[] = {{"own level 2", in_level2, true, false},
                          {"writer's level 2", in_level2, false, false},
                          {"last level", in_last, false, false},
                          {"beyond the last level", beyond, false, false},
                          {"flushed", in_last, false, true}};
  const int repetitions = bench.quick ? 3 : 7;
  const std::size_t total = bench.quick ? kTotal / 20 : kTotal / static_cast<std::size_t>(repetitions);
  OtherCore writer(bench.other_core);
  EventCounter misses = EventCounter::cache_misses();
  std::vector<std::vector<double>> ns_per_byte(std::size(places));
  std::vector<std::uint64_t> missed(std::size(places)), received(std::size(places));
  std::vector<std::unique_ptr<Ring>> rings;
  for (const Place& place : places) rings.push_back(std::make_unique<Ring>(place.ring_bytes));
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    for (std::size_t p = 0; p < std::size(places); ++p) {  // in turns
      check_interrupted();
      Ring& ring = *rings[p];
      const std::size_t turns = std::max<std::size_t>(total / (ring.messages * kMessage), 3);
      std::vector<double> turns_ns;
      std::uint64_t number = static_cast<std::uint64_t>(repetition) << 32;
      for (std::size_t turn = 0; turn <= turns; ++turn) {  // the first one warms up
        const auto fill = [&] {
          for (std::size_t i = 0; i < ring.messages; ++i) ring.write(number + i);
          if (places[p].flushed && !flush_lines(ring.data.get(), ring.messages * kMessage))
            throw std::runtime_error("this processor lets no program flush lines");
        };
        if (places[p].here) {
          fill();
        } else {
          writer.run_there(fill);
        }
        const std::uint64_t missed_before = misses.read().value_or(0);
        std::uint64_t sum = 0, expected = 0;
        const std::uint64_t begin = cpu_ns();
        for (std::size_t i = 0; i < ring.messages; ++i) sum += sum_words(ring.data.get() + i * kMessage, kMessage);
        const std::uint64_t end = cpu_ns();
        for (const std::uint64_t one : ring.sums) expected += one;
        if (sum != expected) throw std::runtime_error(std::string(places[p].name) + ": wrong data");
        number += ring.messages;
        if (turn == 0) continue;
        turns_ns.push_back(static_cast<double>(end - begin) / static_cast<double>(ring.messages * kMessage));
        missed[p] += misses.read().value_or(0) - missed_before;
        received[p] += ring.messages * kMessage;
      }
      ns_per_byte[p].push_back(median(turns_ns));
    }
  }
  for (std::size_t p = 0; p < std::size(places); ++p) {
    const Summary found = summarize(ns_per_byte[p]);
    Row row = {{"place", places[p].name},
               {"size", kMessage},
               {"ring_bytes", places[p].ring_bytes},
               {"received_bytes", received[p]},
               {"ns_per_line", found.median * CacheShape::kLine},
               {"least_ns", found.min * CacheShape::kLine},
               {"most_ns", found.max * CacheShape::kLine}};
    row["samples"] = ns_per_byte[p];
    // As in the paper: LLC misses times the line size, as a fraction of the received bytes.
    row["counted_share"] =
        misses.missing().empty()
            ? Row(static_cast<double>(missed[p] * CacheShape::kLine) / static_cast<double>(received[p]))
            : Row(nullptr);
    row["not_counted"] = misses.missing();
    bench.report.row("cache_touch", std::move(row));
  }
}

}  // namespace wherry::bench
