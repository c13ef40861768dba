// SPDX-License-Identifier: Apache-2.0
// The transport between machines that ranks with different devices agree on.
#include "route/client/hello.hpp"

#include <gtest/gtest.h>

namespace wherry::route {
namespace {

/// A job whose other ranks give the answers that the test has recorded.
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

}  // namespace
}  // namespace wherry::route
