// SPDX-License-Identifier: Apache-2.0
// Tests that every order that PCIe allows occurs, and none that it forbids. The judge knows the specification's table,
// and sees TLPs at the ends and in the buffers between them. It is independent of the code under test.
#include "sim/pcie/ordering.hpp"

#include <gtest/gtest.h>

#include <array>
#include <list>
#include <map>
#include <set>
#include <string>

#include "sim/pcie/testing.hpp"

namespace wherry::sim::pcie {
namespace {

using testing_support::Hierarchy;
using testing_support::kBarBytes;
using testing_support::MemoryDevice;
using testing_support::pattern;
using testing_support::seeds;

/// Spec 2.4.1, table "Ordering Rules Summary": "Row pass column?" for posted (P), read (R), completion (C); other rows
/// and columns are not modelled. a: the plain case; b: with the relaxation that the footnotes name.
enum Cell { kPP, kPR, kPC, kRP, kRR, kRC, kCP, kCR, kCC, kCells };
struct Rule {
  bool plain;             ///< a
  bool relaxed_ordering;  ///< with RO set in the later one
  bool id_ordering;       ///< with IDO set in the later one, and different IDs
};
constexpr std::array<Rule, kCells> kTable{{
    {false, true, true},   // A2: P after P: No; b: Y/N with RO or IDO
    {true, true, true},    // A3: Yes
    {true, true, true},    // A5: Y/N
    {false, false, true},  // B2: R after P: No; b: Y/N with IDO (RO does not help)
    {true, true, true},    // B3
    {true, true, true},    // B5
    {false, true, true},   // D2: C after P: No; b: Y/N with RO or IDO
    {true, true, true},    // D3: Yes
    {true, true, true},    // D5a: Y/N. D5b, of one request: No, below
}};

struct Seen {
  TlpKind kind;
  Attributes attributes;
  FunctionId requester, completer;
  std::uint16_t tag;
  std::uint32_t offset;
  std::uint64_t number;
};

class Judge final : public Observer {
 public:
  void on_tlp(Point point, std::uint32_t place, const Tlp& tlp, Time) override {
    shape(tlp);
    const Seen seen{tlp.kind, tlp.attributes, tlp.requester, tlp.completer, tlp.tag, tlp.offset, tlp.number};
    switch (point) {
      case Point::kEntered:
        buffers[place].push_back(seen);
        break;
      case Point::kLeft:
        leave(buffers[place], seen);
        break;
      case Point::kIssued:
        issued[tlp.number] = {next++, place, seen};
        break;
      case Point::kDelivered:
        deliver(place, seen);
        break;
      case Point::kDropped:
        break;
    }
  }

  /// Whether the table lets `later` pass `earlier`; counts the cell if it does.
  bool allowed(const Seen& later, const Seen& earlier, bool count) {
    const std::size_t cell = static_cast<std::size_t>(later.kind) * 3 + static_cast<std::size_t>(earlier.kind);
    if (cell == kCC && later.requester == earlier.requester && later.tag == earlier.tag) return false;  // D5b
    const Rule& rule = kTable[cell];
    const auto id = [](const Seen& s) { return s.kind == TlpKind::kCompletion ? s.completer : s.requester; };
    const bool other = id(later) != id(earlier);
    if (count) ++passed[cell];
    if (count && !rule.plain && later.attributes.relaxed_ordering && rule.relaxed_ordering) ++by_relaxed;
    if (count && !rule.plain && later.attributes.id_ordering && other && rule.id_ordering) ++by_id;
    return rule.plain || (rule.relaxed_ordering && later.attributes.relaxed_ordering) ||
           (rule.id_ordering && later.attributes.id_ordering && other);
  }

  /// Checks where requests and completions end (Spec 2.2.7, 2.3.1.1), for the MPS and MRRS of these tests.
  void shape(const Tlp& tlp) {
    const std::uint64_t end = tlp.address + tlp.bytes;
    const bool request = tlp.kind != TlpKind::kCompletion;
    if (request && tlp.bytes != 0 && tlp.address / 4096 != (end - 1) / 4096) fault = "a request crosses a page";
    if (tlp.kind != TlpKind::kRead && tlp.payload_bytes() > 256) fault = "a payload exceeds MPS";
    if (tlp.kind == TlpKind::kRead && tlp.dw() * 4 > 512) fault = "a read exceeds MRRS";
    const std::uint32_t boundary = tlp.completer == kHostId ? 64 : 128;
    if (!request && !tlp.last && end % boundary != 0) fault = "a completion ends off its boundary";
    if (!request && tlp.status == CompletionStatus::kSuccess && tlp.last != (tlp.remaining == tlp.bytes))
      fault = "the last completion is not the last";
  }

  std::string fault;
  std::array<std::uint64_t, kCells> passed{};
  std::uint64_t by_relaxed = 0, by_id = 0;
  std::map<std::uint32_t, std::list<Seen>> buffers;

 private:
  void leave(std::list<Seen>& buffer, const Seen& seen) {
    for (auto at = buffer.begin(); at != buffer.end(); ++at) {
      if (at->number == seen.number) {
        buffer.erase(at);
        return;
      }
      if (!allowed(seen, *at, true)) say(seen, *at, "in a buffer");
    }
    fault = "a TLP left a buffer that it had not entered";
  }

  /// From end to end, each pair of sender and receiver must keep the same rules, whatever parts are between them.
  void deliver(std::uint32_t place, const Seen& seen) {
    const auto at = issued.find(seen.number);
    if (at == issued.end()) return;  // made on the way: an error completion, or a part of a request that was cut
    const Issue& issue = at->second;
    auto& line = delivered[{issue.sender, place}];
    // TLPs that were issued later and arrived before. A root that cuts reads answers to its own tags and passes its
    // answers on under the requester's. Completions belong to one request if they do so at both ends.
    for (auto after = line.upper_bound(issue.turn); after != line.end(); ++after) {
      const auto& [as_issued, as_delivered] = after->second;
      if (!allowed(as_issued, issue.seen, false) && !allowed(as_delivered, seen, false)) {
        say(as_issued, issue.seen, "from end to end");
      }
    }
    line.emplace(issue.turn, std::pair(issue.seen, seen));
  }

  void say(const Seen& later, const Seen& earlier, const char* where) {
    if (!fault.empty()) return;
    fault = std::string(where) + ": kind " + std::to_string(static_cast<int>(later.kind)) + " passed kind " +
            std::to_string(static_cast<int>(earlier.kind)) + ", tags " + std::to_string(later.tag) + ", " +
            std::to_string(earlier.tag);
  }

  struct Issue {
    std::uint64_t turn;
    std::uint32_t sender;
    Seen seen;
  };
  std::uint64_t next = 0;
  std::map<std::uint64_t, Issue> issued;  ///< by number
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::map<std::uint64_t, std::pair<Seen, Seen>>> delivered;
};

/// Devices write to and read from each other and host memory for a while.
void traffic(Hierarchy& system, std::uint64_t seed, int operations, bool relaxed) {
  SplitMix64 random(seed);
  static const auto data = pattern(600);
  const auto count = static_cast<std::uint32_t>(system.devices.size());
  for (int i = 0; i < operations; ++i) {
    const std::uint32_t from = random.below(count);
    const std::uint32_t to = random.below(count + 1);  // the last: host memory
    if (to == from) continue;
    const std::uint64_t base = to == count ? 0x1000000 : system.bar(to);
    const std::uint64_t address = base + random.below(kBarBytes - 1024);
    Attributes attributes;
    if (relaxed) {
      attributes.relaxed_ordering = random.below(3) == 0;
      attributes.id_ordering = random.below(3) == 0;
    }
    const std::uint32_t bytes = 1 + random.below(random.below(2) == 0 ? 16 : 600);
    system.queue.call(
        random.below(600) * kNanosecond, [&system, from, address, attributes, bytes, read = random.below(2) == 0] {
          if (read) {
            system[from].port->post_read({.address = address, .bytes = bytes, .token = 0, .attributes = attributes});
          } else {
            system[from].port->post_write(address, std::span(data).first(bytes), attributes);
          }
        });
  }
}

Hierarchy::Shape shape_of(std::uint64_t seed) {
  SplitMix64 random(seed);
  Hierarchy::Shape shape;
  shape.fabric.seed = seed;
  shape.fabric.reordering = {.per_mille = 100 + random.below(700),
                             .longest_hold = (10 + random.below(1000)) * kNanosecond,
                             .split_anywhere = random.below(2) == 0};
  const std::uint32_t root = random.below(3);
  shape.fabric.root = root == 0 ? ideal_root() : root == 1 ? intel_xeon_4110() : amd_epyc_7402();
  shape.fabric.root.memory_jitter = 300 * kNanosecond;
  shape.with_switch = random.below(2) == 0;
  shape.devices = 2 + random.below(2);
  shape.link.generation = 1 + random.below(4);
  shape.link.lanes = 4;
  // With small receive buffers, TLPs wait for credits, too.
  shape.endpoint.buffer = {.posted = {4, 32}, .non_posted = {4, 4}};
  shape.switch_options.buffer = {.posted = {4, 32}, .non_posted = {4, 4}, .completion = {4, 32}};
  shape.function.tags = 32;
  return shape;
}

TEST(Ordering, TenThousandSeeds_ExpectNothingForbiddenAndEveryAllowedPassing) {
  std::array<std::uint64_t, kCells> passed{};
  std::uint64_t by_relaxed = 0, by_id = 0, buffers_left = 0;
  for (std::uint64_t seed = 1; seed <= seeds(10'000); ++seed) {
    Hierarchy system(shape_of(seed));
    Judge judge;
    system.fabric.observe(&judge);
    for (auto& device : system.devices) device->latency = static_cast<Time>(seed % 3) * 40 * kNanosecond;
    traffic(system, seed, 100, seed % 2 == 0);
    system.queue.run();
    ASSERT_EQ(judge.fault, "") << "seed " << seed;
    ASSERT_EQ(system.fabric.in_flight(), 0U) << "seed " << seed;
    for (auto& device : system.devices) {
      for (const auto& done : device->done) ASSERT_EQ(done.second, CompletionStatus::kSuccess) << "seed " << seed;
      ASSERT_EQ(device->port->counters().unexpected_completions, 0U) << "seed " << seed;
      ASSERT_EQ(device->port->reads_pending(), 0U) << "seed " << seed;
    }
    for (const auto& [place, buffer] : judge.buffers) buffers_left += buffer.size();
    for (std::size_t cell = 0; cell < kCells; ++cell) passed[cell] += judge.passed[cell];
    by_relaxed += judge.by_relaxed;
    by_id += judge.by_id;
  }
  EXPECT_EQ(buffers_left, 0U);
  for (std::size_t cell = 0; cell < kCells; ++cell) EXPECT_GT(passed[cell], 100U) << "cell " << cell;
  EXPECT_GT(by_relaxed, 100U);
  EXPECT_GT(by_id, 100U);
}

// The judge must find each forbidden order. Otherwise it is useless.
TEST(Judge, ForbiddenOrders_ExpectEachToBeTold) {
  const Attributes plain{};
  const auto tlp = [](TlpKind kind, std::uint64_t number, FunctionId requester, std::uint16_t tag, Attributes a) {
    return Tlp{.kind = kind,
               .last = true,
               .attributes = a,
               .tag = tag,
               .requester = requester,
               .completer = 9,
               .number = number};
  };
  const auto found = [&](const Tlp& first, const Tlp& second) {
    Judge judge;
    judge.on_tlp(Point::kEntered, 1, first, 0);
    judge.on_tlp(Point::kEntered, 1, second, 0);
    judge.on_tlp(Point::kLeft, 1, second, 0);
    Judge ends;
    ends.on_tlp(Point::kIssued, 1, first, 0);
    ends.on_tlp(Point::kIssued, 1, second, 0);
    ends.on_tlp(Point::kDelivered, 2, second, 0);
    ends.on_tlp(Point::kDelivered, 2, first, 0);
    EXPECT_EQ(judge.fault.empty(), ends.fault.empty());
    return !judge.fault.empty();
  };
  const Tlp write = tlp(TlpKind::kWrite, 1, 5, 0, plain);
  EXPECT_TRUE(found(write, tlp(TlpKind::kWrite, 2, 5, 0, plain)));
  EXPECT_TRUE(found(write, tlp(TlpKind::kRead, 2, 5, 0, plain)));
  EXPECT_TRUE(found(write, tlp(TlpKind::kRead, 2, 5, 0, {.relaxed_ordering = true})));
  EXPECT_TRUE(found(write, tlp(TlpKind::kCompletion, 2, 6, 0, plain)));
  EXPECT_TRUE(found(write, tlp(TlpKind::kWrite, 2, 5, 0, {.id_ordering = true})));
  EXPECT_FALSE(found(write, tlp(TlpKind::kWrite, 2, 6, 0, {.id_ordering = true})));
  EXPECT_FALSE(found(write, tlp(TlpKind::kWrite, 2, 5, 0, {.relaxed_ordering = true})));
  const Tlp completion = tlp(TlpKind::kCompletion, 1, 5, 3, plain);
  EXPECT_TRUE(found(completion, tlp(TlpKind::kCompletion, 2, 5, 3, {.relaxed_ordering = true})));
  EXPECT_FALSE(found(completion, tlp(TlpKind::kCompletion, 2, 5, 4, plain)));
}

// Compares the function that the buffers use with the table, for all pairs.
TEST(Passing, AllPairsOfKindsAndAttributes_ExpectTheTableOfTheSpecification) {
  Judge judge;
  const auto seen = [](const Tlp& t) {
    return Seen{t.kind, t.attributes, t.requester, t.completer, t.tag, t.offset, t.number};
  };
  std::set<Passing> outcomes;
  for (int pair = 0; pair < 9 * 16 * 16; ++pair) {
    const auto make = [](int kind, int bits, FunctionId requester) {
      return Tlp{.kind = static_cast<TlpKind>(kind),
                 .attributes = {.relaxed_ordering = (bits & 1) != 0, .id_ordering = (bits & 2) != 0},
                 .tag = static_cast<std::uint16_t>(bits >> 2 & 1),
                 .requester = static_cast<FunctionId>(requester + (bits >> 3 & 1)),
                 .completer = static_cast<FunctionId>(7 + (bits >> 3 & 1))};
    };
    const Tlp later = make(pair / 256 / 3, pair & 15, 7), earlier = make(pair / 256 % 3, pair >> 4 & 15, 7);
    EXPECT_EQ(passing(later, earlier) != Passing::kNo, judge.allowed(seen(later), seen(earlier), false)) << pair;
    outcomes.insert(passing(later, earlier));
    const bool must = earlier.kind == TlpKind::kRead && later.kind != TlpKind::kRead;  // A3, D3
    EXPECT_EQ(passing(later, earlier) == Passing::kMust, must) << pair;
  }
  EXPECT_EQ(outcomes.size(), 3U);
}

TEST(Ordering, WriteThenFlag_ExpectDataBeforeFlagUnderEverySeed) {
  // Payload goes in several TLPs, then a descriptor: a reader that sees the descriptor must find the payload.
  for (std::uint64_t seed = 1; seed <= seeds(500); ++seed) {
    Hierarchy::Shape shape = shape_of(seed);
    Hierarchy system(shape);
    const auto data = pattern(2000, seed);
    for (int i = 0; i < 8; ++i) {
      system[0].port->post_write(system.bar(1) + static_cast<std::uint64_t>(i) * 4096, data);
      system[0].port->post_write(system.bar(1) + 0x8000 + static_cast<std::uint64_t>(i) * 16, pattern(16));
    }
    std::uint64_t payload = 0;
    system.queue.run();
    std::uint64_t flags = 0;
    for (const MemoryDevice::Written& write : system[1].writes) {
      if (write.offset < 0x8000) {
        payload += write.bytes;
      } else {
        ++flags;
        ASSERT_GE(payload, flags * 2000) << "seed " << seed;
      }
    }
    ASSERT_EQ(flags, 8U);
  }
}

TEST(Ordering, SameSeed_ExpectTheSameHistory) {
  const auto history = [](std::uint64_t seed) {
    Hierarchy system(shape_of(seed));
    traffic(system, 5, 60, true);
    system.queue.run();
    std::vector<std::tuple<std::uint64_t, std::uint32_t, Time>> all;
    for (auto& device : system.devices) {
      for (const MemoryDevice::Written& write : device->writes) all.emplace_back(write.offset, write.bytes, write.at);
    }
    return all;
  };
  EXPECT_EQ(history(42), history(42));
  EXPECT_NE(history(42), history(45));
}

}  // namespace
}  // namespace wherry::sim::pcie
