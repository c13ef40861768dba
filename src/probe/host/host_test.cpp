// SPDX-License-Identifier: Apache-2.0
// The paths of this machine: each moves data, and each detects one flipped byte of the moved data.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "probe/driver.hpp"
#include "probe/host/child.hpp"
#include "probe/host/copy.hpp"
#include "probe/host/memory.hpp"
#include "probe/host/paths.hpp"
#include "probe/pattern.hpp"
#include "probe/suite.hpp"

namespace wherry::probe {
namespace {

/// Runs some transfers of a shape. The path stays open, and its data is not yet checked.
void move(Path& path, const Shape& shape, std::uint64_t seed) {
  const Work work = path.work(shape);
  const auto bound = path.open(shape);
  ASSERT_TRUE(bound) << bound.status().message();
  path.prepare(seed);
  MachineClock clock;
  const std::atomic<bool> go{false};
  Driver driver(clock, path, work, go);
  for (int batch = 0; batch < 3; ++batch) {
    path.restore();
    const std::uint64_t transfers = work.per_restore > 0 ? 1 : 2 * work.slots + 1;
    const auto ns = driver.closed_loop(transfers, nullptr);
    ASSERT_TRUE(ns) << path.info().id << ": " << ns.status().message();
  }
}

std::vector<Cell> cells_to_try(Path& path) {
  auto cells = cells_of(path, {.sizes = {1, 64, 1000, 4096, 70'000}, .depths = {1, 3}});
  for (const Cell& cell : cells_of(path, {.quick = false}))
    if (cell.shape.align != 0) cells.push_back(cell);
  return cells;
}

class HostPath : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    for (auto& one : host_paths())
      if (one->info().id == GetParam()) path = std::move(one);
    ASSERT_TRUE(path);
    ASSERT_EQ(path->info().absent, "");
  }
  std::unique_ptr<Path> path;
};

TEST_P(HostPath, MovesEverySize_ExpectTheData) {
  const auto cells = cells_to_try(*path);
  ASSERT_FALSE(cells.empty());
  for (const Cell& cell : cells) {
    ASSERT_NO_FATAL_FAILURE(move(*path, cell.shape, 11));
    const Status right = path->verify(11);
    EXPECT_TRUE(right) << cell.shape.bytes << " bytes, depth " << cell.shape.depth << ", align " << cell.shape.align
                       << ": " << right.message();
    EXPECT_FALSE(path->verify(12)) << "data of another round passes";
    path->close();
  }
}

TEST_P(HostPath, OneByteFlippedWhereItLanded_ExpectThatItIsNoticed) {
  const Shape shape = cells_to_try(*path).back().shape;
  for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{shape.bytes - 1}, std::uint64_t{shape.bytes / 2}}) {
    ASSERT_NO_FATAL_FAILURE(move(*path, shape, 5));
    ASSERT_TRUE(path->verify(5));
    ASSERT_TRUE(path->spoil(at));
    EXPECT_FALSE(path->verify(5)) << "byte " << at;
    path->close();
  }
}

TEST_P(HostPath, NothingMoved_ExpectThatDataIsMissed) {
  const Shape shape = cells_to_try(*path).front().shape;
  ASSERT_NO_FATAL_FAILURE(move(*path, shape, 5));
  path->prepare(6);
  EXPECT_FALSE(path->verify(5)) << "what moved in the round before";
  EXPECT_TRUE(path->verify(6)) << "nothing was posted, and nothing has landed";
  path->close();
}

TEST_P(HostPath, ShapesThatItCannotDo_ExpectAReason) {
  for (const Shape& shape : {Shape{.bytes = 0}, Shape{.depth = 1000}, Shape{.channels = 3},
                             Shape{.notice = Notice::kInterrupt}, Shape{.pattern = Pattern::kStrided}}) {
    const Status status = path->accepts(shape);
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    EXPECT_FALSE(status.message().empty());
    EXPECT_FALSE(path->open(shape));
    path->close();
  }
}

/// The ids of present paths. Another test checks that absent paths give a reason (Absent_ExpectAReason).
std::vector<std::string> ids() {
  std::vector<std::string> found;
  for (const auto& path : host_paths())
    if (path->info().absent.empty()) found.push_back(path->info().id);
  return found;
}
std::string name_of(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace(name, '.', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, HostPath, ::testing::ValuesIn(ids()), name_of);

TEST(HostPaths, Registry_ExpectAllOnce) {
  Registry registry;
  ASSERT_TRUE(registry.add(host_paths));
  EXPECT_EQ(registry.paths().size(), 27U);
  EXPECT_EQ(registry.matching("wake").size(), 6U);
}

/// Each machine that runs this test has all paths except these.
TEST(HostPaths, Absent_ExpectNumaAndRdmaAlone) {
  for (const auto& path : host_paths()) {
    const PathInfo& info = path->info();
    if (info.absent.empty()) continue;
    EXPECT_TRUE(info.id == "cpu.numa" || info.id.ends_with(".rdma") || info.id == "cpu.movsb") << info.id;
    EXPECT_GT(info.absent.size(), 20U) << "a reason";
  }
}

TEST(Destination, AnythingBesideTheData_ExpectThatItIsNoticed) {
  const Layout layout{.bytes = 100, .slots = 2, .align = 3};
  std::vector<std::byte> memory(layout.total());
  const auto fresh = [&] {
    fill_destination(memory, layout, 9);
    for (unsigned slot = 0; slot < 2; ++slot)
      fill_pattern({memory.data() + layout.offset(slot), layout.bytes}, 9, layout.offset(slot) - layout.align);
  };
  fresh();
  ASSERT_TRUE(check_destination(memory, layout, 9, 2));
  EXPECT_FALSE(check_destination(memory, layout, 9, 1)) << "the second slot was not posted";
  for (std::size_t i = 0; i < memory.size(); ++i) {
    fresh();
    memory[i] ^= std::byte{1};
    ASSERT_FALSE(check_destination(memory, layout, 9, 2)) << i;
  }
}

TEST(Source, AndDestination_ExpectTheSameBytesForASlot) {
  const Layout layout{.bytes = 64, .slots = 3, .align = 5};
  std::vector<std::byte> from(layout.total()), to(layout.total());
  fill_source(from, layout, 4);
  fill_destination(to, layout, 4);
  for (unsigned slot = 0; slot < 3; ++slot)
    std::memcpy(to.data() + layout.offset(slot), from.data() + layout.offset(slot), layout.bytes);
  EXPECT_TRUE(check_destination(to, layout, 4, 3));
  std::memcpy(to.data() + layout.offset(0), from.data() + layout.offset(1), layout.bytes);
  EXPECT_FALSE(check_destination(to, layout, 4, 3)) << "another slot's data";
}

TEST(Numa, NodesOfFiles_ExpectPresenceOrTheReason) {
  EXPECT_NE(make_numa("/nowhere")->info().absent.find("one NUMA node"), std::string::npos);
}

TEST(ChildTest, ThatEnds_ExpectThatItIsSeen) {
  auto child = Child::start([] {});
  ASSERT_TRUE(child);
  while (child->alive()) std::this_thread::yield();
  child->stop();
  EXPECT_EQ(child->pid(), -1);
}

TEST(ChildTest, WithoutEnd_ExpectThatStopEndsIt) {
  auto child = Child::start([] {
    for (;;) pause();
  });
  ASSERT_TRUE(child);
  EXPECT_TRUE(child->alive());
  child->stop();
  EXPECT_FALSE(child->alive());
}

TEST(Wake, OtherSide_ExpectCpuTimeOfTheChild) {
  const auto path = make_wake(Waiting::kSpin);
  ASSERT_NO_FATAL_FAILURE(move(*path, {.bytes = 64, .flow = Flow::kC2H}, 1));
  const auto before = path->other_side();
  std::uint64_t after = 0;
  do {
    const auto now = path->other_side();
    after = now.user_ns + now.system_ns;
  } while (after < before.user_ns + before.system_ns + 1'000'000);  // it spins: time passes
  path->close();
}

}  // namespace
}  // namespace wherry::probe
