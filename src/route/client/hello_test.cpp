// SPDX-License-Identifier: Apache-2.0
// The agreement of ranks on the size of buffers, and on the transport between machines.
#include "route/client/hello.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/machine.hpp"
#include "base/temporary_directory.hpp"

namespace wherry::route {
namespace {

/// A job in which the other ranks give answers that the test has prepared.
class Recorded final : public Bootstrap {
 public:
  explicit Recorded(std::vector<Bytes> all) : all_(std::move(all)) {}
  [[nodiscard]] Rank rank() const noexcept override { return 0; }
  [[nodiscard]] Rank ranks() const noexcept override { return static_cast<Rank>(all_.size()); }
  [[nodiscard]] std::uint32_t node() const noexcept override { return 0; }
  [[nodiscard]] std::uint64_t job() const noexcept override { return 1; }
  Result<std::vector<Bytes>> exchange(ByteView mine, const Deadline&) override {
    ++exchanges;
    said.assign(mine.begin(), mine.end());
    return all_;
  }
  int exchanges = 0;
  Bytes said;

 private:
  std::vector<Bytes> all_;
};

constexpr std::byte kYes{1}, kNo{0};

std::vector<Hello> on_machines(const std::vector<std::string>& hosts) {
  std::vector<Hello> all;
  for (const std::string& host : hosts) {
    Hello one;
    one.node = static_cast<std::uint32_t>(all.size());
    one.host = host;
    all.push_back(one);
  }
  return all;
}

Transport chosen(const std::vector<Hello>& all, Recorded& bootstrap, bool has_rdma) {
  const auto network =
      choose_network(all[0], all, bootstrap, Deadline(std::chrono::seconds(1)), [&] { return Result<bool>(has_rdma); });
  EXPECT_TRUE(network) << network.status().message();
  return network ? *network : Transport::kShm;
}

TEST(ChooseNetwork, RdmaOnSomeMachinesOnly_ExpectTcpOnAllRanks) {
  const auto all = on_machines({"a", "b"});
  Recorded with({{kYes}, {kNo}}), without({{kYes}, {kNo}});
  EXPECT_EQ(chosen(all, with, true), Transport::kTcp);
  EXPECT_EQ(with.said, Bytes{kYes});
  EXPECT_EQ(chosen(all, without, false), Transport::kTcp);
  EXPECT_EQ(without.said, Bytes{kNo});
}

TEST(ChooseNetwork, RdmaOnAllMachines_ExpectRdma) {
  Recorded bootstrap({{kYes}, {kYes}, {kYes}});
  EXPECT_EQ(chosen(on_machines({"a", "b", "b"}), bootstrap, true), Transport::kRdma);
}

TEST(ChooseNetwork, AskedForByName_ExpectItWithoutAnExchange) {
  for (const Transport asked : {Transport::kTcp, Transport::kRdma}) {
    auto all = on_machines({"a", "b"});
    for (Hello& one : all) one.network = asked;
    Recorded bootstrap({{kYes}, {kNo}});
    EXPECT_EQ(chosen(all, bootstrap, false), asked) << "a transport that is named is had, or is an error";
    EXPECT_EQ(bootstrap.exchanges, 0);
  }
}

TEST(ChooseNetwork, OneMachine_ExpectNoExchange) {
  Recorded bootstrap({{kYes}, {kYes}});
  const auto all = on_machines({"a", "a"});
  const auto network = choose_network(all[0], all, bootstrap, Deadline(std::chrono::seconds(1)), []() -> Result<bool> {
    ADD_FAILURE() << "UCX was asked in vain";
    return true;
  });
  ASSERT_TRUE(network);
  EXPECT_EQ(*network, Transport::kAuto);
  EXPECT_EQ(bootstrap.exchanges, 0);
}

TEST(ChooseNetwork, OneMachineWithAgentsOnSmartNics_ExpectANetwork) {
  auto all = on_machines({"a", "a"});
  for (Hello& one : all) one.placement = Placement::kDpu;
  Recorded bootstrap({{kYes}, {kNo}});
  EXPECT_EQ(chosen(all, bootstrap, true), Transport::kTcp);
}

TEST(ChooseNetwork, OneMachineWithoutSharedMemoryBetweenNodes_ExpectANetwork) {
  auto all = on_machines({"a", "a"});
  for (Hello& one : all) one.memory_between_nodes = false;
  Recorded bootstrap({{kYes}, {kYes}});
  EXPECT_EQ(chosen(all, bootstrap, true), Transport::kRdma);
}

TEST(ChooseNetwork, AnotherRanksAnswerIsEmpty_ExpectTcp) {
  Recorded bootstrap({{kYes}, {}});
  EXPECT_EQ(chosen(on_machines({"a", "b"}), bootstrap, true), Transport::kTcp);
}

struct Said {
  ShapeFrom from;
  RingShape shape = {};
};

/// The result of each rank from the same hellos.
std::vector<Result<std::vector<Hello>>> agreed(const std::vector<Said>& ranks) {
  std::vector<Hello> all = on_machines(std::vector<std::string>(ranks.size(), "a"));
  std::vector<Bytes> told;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    all[i].shape = ranks[i].shape;
    all[i].shape_from = ranks[i].from;
    told.push_back(encode(all[i]));
  }
  std::vector<Result<std::vector<Hello>>> found;
  for (Rank rank = 0; rank < ranks.size(); ++rank) found.push_back(agree(all[rank], rank, told));
  return found;
}

void expect_all(const std::vector<Said>& ranks, RingShape shape) {
  for (const auto& of_rank : agreed(ranks)) {
    ASSERT_TRUE(of_rank) << of_rank.status().message();
    for (const Hello& one : *of_rank) {
      EXPECT_EQ(one.shape.buffer_bytes, shape.buffer_bytes);
      EXPECT_EQ(one.shape.buffers, shape.buffers);
    }
  }
}

constexpr RingShape kLarge{.buffers = 8, .buffer_bytes = 128 << 10};
constexpr RingShape kSmall{.buffers = 4, .buffer_bytes = 16 << 10};

TEST(Agree, NobodySetsBuffers_ExpectTheSmallestThatARankWouldTakeAlone) {
  expect_all({{ShapeFrom::kDefault}, {ShapeFrom::kDefault}}, {});
  expect_all({{ShapeFrom::kProfile, kLarge}, {ShapeFrom::kProfile, kLarge}}, kLarge);
  expect_all({{ShapeFrom::kProfile, kLarge}, {ShapeFrom::kProfile, kSmall}}, kSmall);
  expect_all({{ShapeFrom::kProfile, kLarge}, {ShapeFrom::kDefault}}, {});
  expect_all({{ShapeFrom::kDefault}, {ShapeFrom::kProfile, kSmall}, {ShapeFrom::kProfile, kLarge}}, kSmall);
  const RingShape few_large{.buffers = 2, .buffer_bytes = 64 << 10};
  expect_all({{ShapeFrom::kProfile, few_large}, {ShapeFrom::kProfile, kSmall}},
             {.buffers = 2, .buffer_bytes = 16 << 10});
}

TEST(Agree, APersonSetsBuffers_ExpectThemToWinOverProfiles) {
  expect_all({{ShapeFrom::kPerson, kSmall}, {ShapeFrom::kPerson, kSmall}}, kSmall);
  expect_all({{ShapeFrom::kPerson, RingShape{}}, {ShapeFrom::kProfile, kLarge}}, {});  // as without a profile
}

TEST(Agree, APersonSetsThemOnSomeRanks_ExpectEveryRankToRefuse) {
  for (const auto& of_rank : agreed({{ShapeFrom::kPerson, kSmall}, {ShapeFrom::kProfile, kLarge}})) {
    ASSERT_FALSE(of_rank);
    EXPECT_EQ(of_rank.status().code(), StatusCode::kFailedPrecondition);
    EXPECT_NE(of_rank.status().message().find("16384"), std::string::npos) << of_rank.status().message();
    EXPECT_NE(of_rank.status().message().find("32768"), std::string::npos) << of_rank.status().message();
  }
  for (const auto& of_rank : agreed({{ShapeFrom::kPerson, kSmall}, {ShapeFrom::kPerson, kLarge}}))
    EXPECT_FALSE(of_rank);
}

TEST(Agree, AHelloWithAbsurdBuffers_ExpectItRefused) {
  for (const RingShape absurd :
       {RingShape{.buffers = 0, .buffer_bytes = 1 << 10}, RingShape{.buffers = 3, .buffer_bytes = 1 << 10},
        RingShape{.buffers = 4, .buffer_bytes = 100}}) {
    const auto found = agreed({{ShapeFrom::kDefault}, {ShapeFrom::kProfile, absurd}});
    ASSERT_FALSE(found[0]);
    EXPECT_EQ(found[0].status().code(), StatusCode::kProtocol);
  }
  const auto unknown = agreed({{ShapeFrom::kDefault}, {static_cast<ShapeFrom>(9)}});
  EXPECT_FALSE(unknown[0]);
}

/// Options, variables and the profile of a rank.
class ResolveShape : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = TemporaryDirectory::create("shape");
    ASSERT_TRUE(made) << made.status().message();
    directory_ = *std::move(made);
    for (const char* name : kNames) unsetenv(name);
    file_ = directory_.file("profile.json");
    setenv("WHERRY_PROFILE", file_.c_str(), 1);
  }
  void TearDown() override {
    for (const char* name : kNames) unsetenv(name);
    setenv("WHERRY_PROFILE", "off", 1);
  }
  /// Writes a profile in which `value` is that of route.buffer_bytes.
  void write(const std::string& value, const std::string& file, std::string cpu = this_machine().cpu) {
    const MachineKey here = this_machine();
    std::ofstream(file) << fmt::format(
        R"({{"name": "wherry-profile", "schema": 1, "date": "today", "machine": {{"cpu": "{}", "kernel": "{}", "cores": {}}},
 "settings": {{"route.buffer_bytes": {{"value": "{}", "rule": "hand-over", "why": "a test"}}}}}})",
        cpu, here.kernel, here.cores, value);
    ASSERT_EQ(chmod(file.c_str(), 0600), 0);
  }
  static constexpr const char* kNames[] = {"WHERRY_PROFILE", "WHERRY_ROUTE_BUFFERS", "WHERRY_ROUTE_BUFFER_BYTES",
                                           "XDG_CACHE_HOME"};
  TemporaryDirectory directory_;
  std::string file_;
};

TEST_F(ResolveShape, AProfile_ExpectItUnlessAPersonSaysOtherwise) {
  write("65536", file_);
  const auto advised = resolve_shape({}, true);
  ASSERT_TRUE(advised) << advised.status().message();
  EXPECT_EQ(advised->shape.buffer_bytes, 65536U);
  EXPECT_EQ(advised->shape.buffers, RingShape{}.buffers);
  EXPECT_EQ(advised->from, ShapeFrom::kProfile);
  EXPECT_EQ(advised->why, file_);
  EXPECT_EQ(resolve_shape({})->from, ShapeFrom::kDefault) << "the launcher has read it";
  Options options;
  options.buffers = 8;
  EXPECT_EQ(resolve_shape(options, true)->from, ShapeFrom::kPerson);
  EXPECT_EQ(resolve_shape(options, true)->shape.buffer_bytes, RingShape{}.buffer_bytes);
  setenv("WHERRY_ROUTE_BUFFER_BYTES", "1024", 1);
  EXPECT_EQ(resolve_shape({}, true)->shape.buffer_bytes, 1024U);
  EXPECT_EQ(resolve_shape({}, true)->from, ShapeFrom::kPerson);
}

TEST_F(ResolveShape, AProfileThatAPersonNamedAndThatIsBad_ExpectAnError) {
  EXPECT_FALSE(resolve_shape({}, true)) << "there is none";
  for (const char* absurd : {"65", "-1", "much", "4294967296", "134217728"}) {
    write(absurd, file_);
    const auto found = resolve_shape({}, true);
    ASSERT_FALSE(found) << absurd;
    EXPECT_EQ(found.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(found.status().message().find("WHERRY_PROFILE"), std::string::npos);
  }
  write("65536", file_, "another");
  EXPECT_FALSE(resolve_shape({}, true));
  setenv("WHERRY_PROFILE", "off", 1);
  EXPECT_EQ(resolve_shape({}, true)->from, ShapeFrom::kDefault);
}

TEST_F(ResolveShape, ABadProfileInTheDefaultPlace_ExpectDefaultsAndWhy) {
  unsetenv("WHERRY_PROFILE");
  setenv("XDG_CACHE_HOME", directory_.path().c_str(), 1);
  EXPECT_EQ(resolve_shape({}, true)->why, "");
  std::filesystem::create_directory(directory_.path() / "wherry");
  const std::string file = directory_.file("wherry/profile.json");
  write("65536", file);
  EXPECT_EQ(resolve_shape({}, true)->shape.buffer_bytes, 65536U);
  write("65536", file, "another");
  const auto found = resolve_shape({}, true);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->shape, RingShape{});
  EXPECT_EQ(found->from, ShapeFrom::kDefault);
  EXPECT_NE(found->why.find("another machine"), std::string::npos) << found->why;
}

}  // namespace
}  // namespace wherry::route
