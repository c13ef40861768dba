// SPDX-License-Identifier: Apache-2.0
// Tests with a clock that the test moves, and with paths that follow its orders, including wrong results.
#include "probe/runner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "probe/driver.hpp"
#include "probe/suite.hpp"
#include "probe/testing.hpp"

namespace wherry::probe {
namespace {

using testing_support::FakeClock;
using testing_support::FakePath;

class Heard final : public Listener {
 public:
  void on_progress(std::size_t /*visits*/, std::size_t /*of*/, const Cell& next) override {
    visits.push_back(next.path->info().id);
    if (on_visit) on_visit(visits.size());
  }
  void on_row(const Cell& cell, const Row& row) override { rows[cell.path->info().id] = row; }
  void on_wrong(const Cell& cell, const std::string& why) override { wrong[cell.path->info().id] = why; }
  void on_failed(const Cell& cell, const std::string& why) override { failed[cell.path->info().id] = why; }

  std::vector<std::string> visits;
  std::map<std::string, Row> rows;
  std::map<std::string, std::string> wrong, failed;
  std::function<void(std::size_t)> on_visit;
};

class RunnerTest : public ::testing::Test {
 protected:
  Outcome run(const std::vector<Cell>& cells, RunOptions options = {.budget_ns = 50'000'000}) {
    Runner runner(clock, options, heard, stop);
    return runner.run(cells);
  }
  static Cell cell(Path& path, unsigned depth = 1) { return {.path = &path, .shape = {.bytes = 4096, .depth = depth}}; }

  FakeClock clock;
  Heard heard;
  std::atomic<bool> stop{false};
};

TEST_F(RunnerTest, TransfersOf5us_ExpectThatInEveryFigure) {
  FakePath path("a.b", "a", &clock);
  const Outcome outcome = run({cell(path)});
  ASSERT_EQ(outcome.measured, 1U);
  const Row& row = heard.rows["a.b"];
  for (const double ns : {row.p50_ns, row.p90_ns, row.p99_ns, row.p999_ns, row.max_ns, row.least, row.most})
    EXPECT_NEAR(ns, 5000, 5000 / 128.0);
  EXPECT_NEAR(row.transfers_per_s, 2e5, 1);
  EXPECT_NEAR(row.gbytes_per_s, 4096 * 2e5 / 1e9, 1e-6);
  EXPECT_EQ(row.rounds.size(), 7U);
  EXPECT_EQ(row.warm, 7U);
  EXPECT_EQ(row.batch, 1U);
  EXPECT_FALSE(row.unsettled);
  EXPECT_EQ(row.refused, "");
  EXPECT_EQ(path.opened, 7U);
  EXPECT_EQ(path.closed, 7U);
  EXPECT_EQ(path.verified, 7U);
  EXPECT_EQ(std::set(path.seeds.begin(), path.seeds.end()).size(), 7U) << "each round has data of its own";
}

TEST_F(RunnerTest, SeveralPaths_ExpectThatRoundsTakeTurnsAndEveryOtherGoesBack) {
  FakePath a("p.a", "p", &clock), b("p.b", "p", &clock), c("p.c", "p", &clock);
  run({cell(a), cell(b), cell(c)}, {.rounds = 3, .budget_ns = 10'000'000});
  EXPECT_EQ(heard.visits, (std::vector<std::string>{"p.a", "p.b", "p.c", "p.c", "p.b", "p.a", "p.a", "p.b", "p.c"}));
}

TEST_F(RunnerTest, RoundsOfDifferentSpeed_ExpectTheMedianOfTheirMediansAndUnsettled) {
  FakePath path("a.b", "a", &clock);
  path.ns_of = [&](std::uint64_t) { return 1000U * (path.opened == 7 ? 90U : path.opened); };
  run({cell(path)});
  const Row& row = heard.rows["a.b"];
  EXPECT_NEAR(row.p50_ns, 4000, 4000 / 128.0);
  EXPECT_NEAR(row.least, 1000, 1000 / 128.0);
  EXPECT_NEAR(row.most, 90'000, 90'000 / 128.0);
  EXPECT_TRUE(row.unsettled);
  EXPECT_GT(row.variation, kUnsettled);
}

TEST_F(RunnerTest, ShortTransfers_ExpectThatTheyAreTimedTogether) {
  FakePath path("a.b", "a", &clock);
  path.ns_of = [](std::uint64_t) { return 3; };
  run({cell(path)}, {.budget_ns = 700'000});
  const Row& row = heard.rows["a.b"];
  EXPECT_NEAR(row.p50_ns, 3, 0.05);
  EXPECT_GE(static_cast<double>(row.batch) * 3, clock.resolution_ns() * Runner::kResolutions);
}

TEST_F(RunnerTest, UnitsOfATransfer_ExpectFiguresOfOne) {
  FakePath path("a.b", "a", &clock);
  path.units = 100;
  run({cell(path)});
  EXPECT_NEAR(heard.rows["a.b"].p50_ns, 50, 1);
  EXPECT_NEAR(heard.rows["a.b"].transfers_per_s, 2e7, 100);
}

TEST_F(RunnerTest, DepthOfFour_ExpectLatencyOfTheQueueAndTheSameRate) {
  FakePath path("a.b", "a", &clock);
  run({cell(path, 4)});
  EXPECT_NEAR(heard.rows["a.b"].p50_ns, 20'000, 20'000 / 128.0) << "three others are served before";
  EXPECT_NEAR(heard.rows["a.b"].transfers_per_s, 2e5, 1);
}

TEST_F(RunnerTest, ALateTransfer_ExpectItInMaxButNotInTheMedian) {
  FakePath path("a.b", "a", &clock);
  path.ns_of = [](std::uint64_t n) { return n % 1000 == 999 ? 3'000'000U : 5000U; };
  run({cell(path)}, {.budget_ns = 500'000'000});
  EXPECT_NEAR(heard.rows["a.b"].p50_ns, 5000, 5000 / 128.0);
  EXPECT_NEAR(heard.rows["a.b"].max_ns, 3e6, 1);
}

TEST_F(RunnerTest, RestoreEveryTwoTransfers_ExpectThatNoneIsStale) {
  FakePath path("a.b", "a", &clock);
  path.per_restore = 2;
  run({cell(path)});
  EXPECT_GE(path.restored, 7U * Runner::kLeastSamples / 2);
  EXPECT_EQ(path.stale, 0U);
  EXPECT_EQ(heard.rows.size(), 1U);
}

TEST_F(RunnerTest, RestoreTooOftenForTheClock_ExpectFailure) {
  FakePath path("a.b", "a", &clock);
  path.per_restore = 2;
  path.ns_of = [](std::uint64_t) { return 3; };
  EXPECT_EQ(run({cell(path)}).failed, 1U);
  EXPECT_NE(heard.failed["a.b"].find("clock"), std::string::npos);
}

TEST_F(RunnerTest, WrongBytes_ExpectThatItIsToldAndHasNoRow) {
  FakePath liar("a.liar", "a", &clock), honest("a.honest", "a", &clock);
  liar.lies = true;
  const Outcome outcome = run({cell(liar), cell(honest)});
  EXPECT_EQ(outcome.wrong, 1U);
  EXPECT_EQ(outcome.measured, 1U);
  EXPECT_NE(heard.wrong["a.liar"].find("byte 0"), std::string::npos);
  EXPECT_EQ(heard.rows.count("a.liar"), 0U);
  EXPECT_EQ(liar.opened, 1U) << "it is not asked again";
  EXPECT_EQ(liar.closed, 1U);
}

TEST_F(RunnerTest, SpoiledData_ExpectWrong) {
  FakePath path("a.b", "a", &clock);
  EXPECT_EQ(run({cell(path)}, {.budget_ns = 10'000'000, .spoil = true}).wrong, 1U);
}

TEST_F(RunnerTest, FasterThanTheBound_ExpectRefusal) {
  FakePath fast("a.fast", "a", &clock), fair("a.fair", "a", &clock), often("a.often", "a", &clock);
  fast.bound = {.bytes_per_s = 4096 * 2e5 / 1.03, .why = "the link"};
  fair.bound = {.bytes_per_s = 4096 * 2e5 / 1.01, .why = "the link"};
  often.bound = {.transfers_per_s = 2e5 / 1.03, .why = "the ring"};
  const Outcome outcome = run({cell(fast), cell(fair), cell(often)});
  EXPECT_EQ(outcome.refused, 2U);
  EXPECT_EQ(outcome.measured, 1U);
  EXPECT_NE(heard.rows["a.fast"].refused.find("the link"), std::string::npos);
  EXPECT_NE(heard.rows["a.often"].refused.find("the ring"), std::string::npos);
  EXPECT_EQ(heard.rows["a.fair"].refused, "");
}

TEST_F(RunnerTest, NothingEnds_ExpectADeadline) {
  FakePath path("a.b", "a", &clock);
  path.hangs = true;
  EXPECT_EQ(run({cell(path)}).failed, 1U);
  EXPECT_NE(heard.failed["a.b"].find("no transfer has ended"), std::string::npos);
  EXPECT_EQ(path.closed, 1U);
}

TEST_F(RunnerTest, TransfersThatNobodyPosted_ExpectFailure) {
  FakePath path("a.b", "a", &clock);
  path.invents = true;
  EXPECT_EQ(run({cell(path, 4)}).failed, 1U);
  EXPECT_NE(heard.failed["a.b"].find("not under way"), std::string::npos);
}

TEST_F(RunnerTest, OpenOrPollFails_ExpectItsWords) {
  FakePath closed("a.closed", "a", &clock), broken("a.broken", "a", &clock);
  closed.open_says = {StatusCode::kUnsupported, "no such device"};
  broken.poll_says = {StatusCode::kUnavailable, "the link is down"};
  EXPECT_EQ(run({cell(closed), cell(broken)}).failed, 2U);
  EXPECT_EQ(heard.failed["a.closed"], "no such device");
  EXPECT_EQ(heard.failed["a.broken"], "the link is down");
}

TEST_F(RunnerTest, StoppedInTheMiddle_ExpectAnEndAndEveryPathClosed) {
  FakePath path("a.b", "a", &clock);
  heard.on_visit = [&](std::size_t visits) { stop = visits == 2; };
  const Outcome outcome = run({cell(path)});
  EXPECT_TRUE(outcome.stopped);
  EXPECT_EQ(outcome.measured, 0U);
  EXPECT_EQ(path.opened, path.closed);
  EXPECT_LE(path.opened, 2U);
}

TEST_F(RunnerTest, OpenLoop_ExpectLatencyFromTheIntendedStart) {
  // Transfers take 5 us, but every 100th takes as long as ten arrivals.
  // The transfers behind it wait, and their latency shows it.
  FakePath path("a.b", "a", &clock);
  path.ns_of = [](std::uint64_t n) { return n % 100 == 99 ? 100'000U : 5000U; };
  const std::atomic<bool> go{false};
  Driver driver(clock, path, {.slots = 16}, go);
  ASSERT_TRUE(path.open({.bytes = 64, .depth = 16}));
  path.prepare(1);
  auto histogram = std::make_unique<Histogram>();
  // The clock does not move while the driver waits for the next start, so each reading must advance it.
  class Ticking final : public Clock {
   public:
    explicit Ticking(FakeClock& clock) : clock_(clock) {}
    std::uint64_t now_ns() noexcept override {
      clock_.pass(10);
      return clock_.now_ns();
    }
    double resolution_ns() const noexcept override { return 10; }

   private:
    FakeClock& clock_;
  } ticking(clock);
  Driver paced(ticking, path, {.slots = 16}, go);
  ASSERT_TRUE(paced.open_loop(1000, 10'000, *histogram));
  EXPECT_EQ(histogram->count(), 1000U);
  EXPECT_NEAR(static_cast<double>(histogram->percentile(0.5)) / 1000, 5000, 300);
  // The transfers behind one of 100 us wait 95, 90, ... us. A hundred of a
  // thousand transfers wait for 50 us or more, and the next ones for 45 us.
  EXPECT_NEAR(static_cast<double>(histogram->percentile(0.9)) / 1000, 45'000, 1500);
  EXPECT_NEAR(static_cast<double>(histogram->max()) / 1000, 100'000, 3000);
}

TEST_F(RunnerTest, SimulatedPath_ExpectItsOwnTime) {
  FakePath path("sim.a", "sim", &clock);
  path.change().provenance = Provenance::kSimulated;
  path.ns_of = [&](std::uint64_t) {
    path.own += 777;
    return 100'000;
  };
  run({cell(path)});
  EXPECT_NEAR(heard.rows["sim.a"].p50_ns, 777, 777 / 128.0);
  EXPECT_NEAR(heard.rows["sim.a"].transfers_per_s, 1e9 / 777, 1);
}

TEST_F(RunnerTest, Budget_ExpectThatTimedPartsShareIt) {
  FakePath a("p.a", "p", &clock), b("p.b", "p", &clock);
  const Outcome outcome = run({cell(a), cell(b)}, {.budget_ns = 400'000'000});
  EXPECT_LT(outcome.elapsed_ns, 480'000'000U);
  EXPECT_GT(outcome.elapsed_ns, 300'000'000U);
}

TEST(HarnessCost, OfAClockThatStandsStill_ExpectNothing) {
  FakeClock clock;
  const HarnessCost cost = harness_cost(clock);
  EXPECT_EQ(cost.batched_ns, 0);
  EXPECT_EQ(cost.timed_ns, 0);
}

TEST(Median, OfEvenAndOddCounts_ExpectTheMiddle) {
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({4, 1}), 2.5);
  EXPECT_EQ(median({9, 1, 5}), 5);
  EXPECT_EQ(median({8, 2, 6, 4}), 5);
}

TEST(Suite, OfAPath_ExpectSizesAndDepthsThatItAccepts) {
  FakePath path("a.b", "a");
  const auto quick = cells_of(path, {.quick = true});
  std::set<std::size_t> sizes;
  for (const Cell& one : quick) {
    sizes.insert(one.shape.bytes);
    EXPECT_TRUE(path.accepts(one.shape));
    EXPECT_LE(path.work(one.shape).footprint, kMostFootprint);
  }
  EXPECT_EQ(sizes, (std::set<std::size_t>{64, 4096, 65536, 1 << 20}));
  EXPECT_LT(quick.size(), cells_of(path, {}).size());
  const auto chosen = cells_of(path, {.sizes = {100}, .depths = {2, 3}, .series = 2});
  const auto plain = std::ranges::count_if(chosen, [](const Cell& one) { return one.shape.notice == Notice::kPolled; });
  EXPECT_EQ(plain, 4) << "two depths, each twice";
}

TEST(Suite, OfAPathOfWords_ExpectWords) {
  class Words final : public Path {
   public:
    [[nodiscard]] const PathInfo& info() const override { return info_; }
    [[nodiscard]] Status accepts(const Shape& shape) const override {
      if (shape.bytes <= 8 && shape.depth == 1 && shape.notice == Notice::kPolled && shape.flow == Flow::kC2H &&
          shape.pattern == Pattern::kSequential && shape.cache == CacheState::kWarm)
        return ok_status();
      return {StatusCode::kUnsupported, "words"};
    }
    [[nodiscard]] Result<Bound> open(const Shape& /*shape*/) override { return Bound{}; }
    void prepare(std::uint64_t /*seed*/) override {}
    [[nodiscard]] bool try_post(unsigned /*slot*/) override { return false; }
    [[nodiscard]] Result<unsigned> poll(std::span<unsigned> /*done*/) override { return 0U; }
    [[nodiscard]] Status verify(std::uint64_t /*seed*/) override { return ok_status(); }
    void close() noexcept override {}

   private:
    PathInfo info_{.id = "mmio.read", .group = "mmio", .from = "a register", .to = "here"};
  } path;
  std::vector<std::size_t> sizes;
  for (const Cell& cell : cells_of(path, {.quick = true})) sizes.push_back(cell.shape.bytes);
  EXPECT_EQ(sizes, (std::vector<std::size_t>{4, 8}));
}

TEST(Suite, AbsentPath_ExpectNoCells) {
  FakePath absent("a.b", "a"), here("a.c", "a");
  absent.change().absent = "no device";
  for (const Cell& cell : interleaved({&absent, &here}, {.quick = true})) EXPECT_EQ(cell.path, &here);
}

}  // namespace
}  // namespace wherry::probe
