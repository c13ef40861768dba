// SPDX-License-Identifier: Apache-2.0
#include "bypass/path.hpp"

#include <gtest/gtest.h>

#include "pci/tree_testing.hpp"

namespace wherry::bypass {
namespace {

using pci::testing_support::at;
using pci::testing_support::FunctionFiles;
using pci::testing_support::Machine;

PathReport judge(Machine& machine, const PathOptions& options = {}) {
  machine.build();
  const auto tree = pci::PciTree::read(machine.sysfs.text());
  EXPECT_TRUE(tree);
  auto report = judge_path(*tree, at("03:00.0"), at("04:00.0"), options);
  EXPECT_TRUE(report) << report.status().message();
  return report ? *std::move(report) : PathReport{};
}

bool is_sentence(const std::string& text) {
  return text.size() > 20 && text.back() == '.' && text.find('\n') == std::string::npos;
}

void expect_cause(const PathReport& report, Cause cause, const std::vector<std::string>& words) {
  ASSERT_FALSE(report.findings.empty());
  const Finding& first = report.findings.front();
  EXPECT_EQ(first.cause, cause) << first.what;
  EXPECT_TRUE(is_sentence(first.what)) << first.what;
  EXPECT_TRUE(is_sentence(first.remedy)) << first.remedy;
  for (const std::string& word : words)
    EXPECT_NE((first.what + first.remedy).find(word), std::string::npos)
        << word << " in: " << first.what << " " << first.remedy;
}

TEST(Path, JudgeSwitchWithoutRedirect_ExpectDirect) {
  Machine machine;
  const PathReport report = judge(machine);
  EXPECT_EQ(report.route, Route::kDirect);
  EXPECT_EQ(report.common_port, at("01:00.0"));
  EXPECT_TRUE(report.findings.empty()) << report.findings.front().what;
  EXPECT_TRUE(report.unknown.empty());
  ASSERT_EQ(report.ports.size(), 2U);
  EXPECT_EQ(report.ports[0].at, at("02:00.0"));
  EXPECT_EQ(report.ports[0].type, pci::PortType::kSwitchDownstream);
  EXPECT_TRUE(report.ports[0].acs);
}

TEST(Path, JudgeSwitchWithoutAcs_ExpectDirect) {
  Machine machine;
  machine.has_acs = false;
  const PathReport report = judge(machine);
  EXPECT_EQ(report.route, Route::kDirect);
  EXPECT_TRUE(report.findings.empty());
  EXPECT_TRUE(report.ports[0].acs_known);
  EXPECT_FALSE(report.ports[0].acs);
}

TEST(Path, JudgeAcsRedirectOfOnePort_ExpectPortBitsAndParameter) {
  // The bits that Linux sets if there is an IOMMU: SV, RR, CR, UF.
  Machine machine;
  machine.card_acs = 0x1D;
  const PathReport report = judge(machine);
  EXPECT_EQ(report.route, Route::kRedirected);
  expect_cause(report, Cause::kAcsRedirect, {"0000:02:01.0 (RR CR)", "pci=disable_acs_redir=0000:00:01.0/00.0/01.0"});
  EXPECT_EQ(report.findings[0].what.find("02:00.0"), std::string::npos);
}

TEST(Path, JudgeAcsRedirectOfBothPorts_ExpectBothInParameter) {
  Machine machine;
  machine.nic_acs = 0x04;
  machine.card_acs = 0x20;
  expect_cause(judge(machine), Cause::kAcsRedirect,
               {"0000:02:00.0 (RR)", "0000:02:01.0 (EC)",
                "pci=disable_acs_redir=0000:00:01.0/00.0/00.0;0000:00:01.0/00.0/01.0"});
}

TEST(Path, JudgeAcsWithoutRedirectBits_ExpectDirect) {
  Machine machine;
  machine.nic_acs = machine.card_acs = 0x53;  // SV TB UF DT
  const PathReport report = judge(machine);
  EXPECT_EQ(report.route, Route::kDirect);
  EXPECT_TRUE(report.findings.empty());
}

TEST(Path, JudgeWithoutRoot_ExpectUnknownAcsAndTheRest) {
  Machine machine;
  machine.config_bytes = 64;
  machine.nic_acs = 0x1D;
  const PathReport report = judge(machine);
  EXPECT_EQ(report.route, Route::kDirect);
  ASSERT_EQ(report.unknown.size(), 2U);
  EXPECT_NE(report.unknown[0].find("as root"), std::string::npos);
  EXPECT_FALSE(report.ports[0].acs_known);
}

TEST(Path, JudgeDifferentRootPorts_ExpectNoCommonPort) {
  Machine machine;
  machine.card_path = "pci0000:00/0000:00:02.0/0000:04:00.0";
  const PathReport report = judge(machine);
  EXPECT_EQ(report.route, Route::kRootComplex);
  EXPECT_FALSE(report.common_port);
  expect_cause(report, Cause::kNoCommonPort, {"0000:03:00.0", "0000:04:00.0", "different root ports"});
}

TEST(Path, JudgeDifferentHostBridges_ExpectBothNamed) {
  Machine machine;
  machine.card_path = "pci0000:40/0000:40:01.0/0000:04:00.0";
  expect_cause(judge(machine), Cause::kNoCommonPort, {"pci0000:00 and pci0000:40"});
}

TEST(Path, JudgeBehindNestedSwitches_ExpectRedirectOfAnyPortOfTheBranches) {
  // Linux asks every bridge below the common one (p2pdma.c), and so does Wherry.
  Machine machine;
  machine.sysfs.add({.path = "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0/0000:05:00.0",
                     .vendor = 0x10B5,
                     .device = 0x8747,
                     .class_code = 0x060400,
                     .config = pci::testing_support::ConfigBytes()
                                   .bridge(0xE000'0000, 0xE0FF'FFFF, 0x38'0000'0000, 0x38'0FFF'FFFF)
                                   .express(5)});
  machine.sysfs.add({.path = "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0/0000:05:00.0/0000:06:03.0",
                     .vendor = 0x10B5,
                     .device = 0x8747,
                     .class_code = 0x060400,
                     .config = pci::testing_support::ConfigBytes()
                                   .bridge(0xE000'0000, 0xE0FF'FFFF, 0x38'0000'0000, 0x38'0FFF'FFFF)
                                   .express(6)
                                   .acs(0x1F, 0x08)});
  machine.nic_path = "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0/0000:05:00.0/0000:06:03.0/0000:03:00.0";
  const PathReport report = judge(machine);
  EXPECT_EQ(report.common_port, at("01:00.0"));
  expect_cause(report, Cause::kAcsRedirect, {"0000:06:03.0 (CR)", "=0000:00:01.0/00.0/00.0/00.0/03.0"});
}

TEST(Path, JudgeSmallWindow_ExpectBar) {
  Machine machine;
  machine.card_bytes = 1 << 20;
  expect_cause(judge(machine), Cause::kBar, {"BAR 2", "1048576", "8388608"});
}

TEST(Path, JudgeNarrowWindow_ExpectBar) {
  Machine machine;
  machine.card_window = 0xE080'0000;
  machine.card_bytes = 8 << 20;
  machine.card_flags = pci::testing_support::kMemory32;
  expect_cause(judge(machine), Cause::kBar, {"BAR 2", "32-bit", "64-bit"});
}

TEST(Path, JudgeUnassignedWindow_ExpectBar) {
  Machine machine;
  machine.card_window = 0;
  machine.card_flags |= 0x2000'0000;
  expect_cause(judge(machine), Cause::kBar, {"no address", "Above 4G"});
}

TEST(Path, JudgeWindowOutsideOfAPort_ExpectThatPort) {
  Machine machine;
  machine.window_last = 0x38'007F'FFFF;
  expect_cause(judge(machine), Cause::kBar, {"0x3800000000", "port 0000:00:01.0"});
}

TEST(Path, JudgeWithoutIommu_ExpectNoIommu) {
  Machine machine;
  machine.nic_group = machine.card_group = -1;
  expect_cause(judge(machine), Cause::kNoIommu, {"intel_iommu=on"});
}

TEST(Path, JudgeGroupWithOthers_ExpectTheirNamesAndDrivers) {
  Machine machine;
  machine.sysfs.add({.path = "pci0000:00/0000:00:02.0/0000:07:00.0",
                     .vendor = 1,
                     .device = 1,
                     .class_code = 0x010802,
                     .group = 11,
                     .driver = "nvme"});
  machine.sysfs.add(
      {.path = "pci0000:00/0000:00:02.0/0000:07:00.1", .vendor = 1, .device = 1, .class_code = 0x010802, .group = 11});
  machine.sysfs.add({.path = "pci0000:00/0000:00:02.0/0000:07:00.2",
                     .vendor = 1,
                     .device = 1,
                     .class_code = 0x010802,
                     .group = 11,
                     .driver = "vfio-pci"});
  const PathReport report = judge(machine);
  expect_cause(report, Cause::kGroup, {"group 11", "0000:07:00.0 (nvme)"});
  EXPECT_EQ(report.findings[0].what.find("07:00.1"), std::string::npos);
  EXPECT_EQ(report.findings[0].what.find("07:00.2"), std::string::npos);
}

TEST(Path, JudgeBothInOneGroup_ExpectNoFinding) {
  // The state after the kernel option pci=disable_acs_redir.
  Machine machine;
  machine.nic_group = machine.card_group = 7;
  EXPECT_TRUE(judge(machine).findings.empty());
}

TEST(Path, JudgeReservedAddress_ExpectRangeAndKind) {
  Machine machine;
  machine.build();
  machine.sysfs.reserve(10,
                        "0x00000000fee00000 0x00000000feefffff msi\n0x0000003800f00000 0x00000038010fffff direct\n");
  const auto tree = pci::PciTree::read(machine.sysfs.text());
  const auto report = judge_path(*tree, at("03:00.0"), at("04:00.0"));
  ASSERT_TRUE(report);
  expect_cause(*report, Cause::kReservedAddress,
               {"BAR 2 of the card", "0x3800f00000 to 0x38010fffff (direct)", "0000:03:00.0"});
}

TEST(Path, JudgeTouchingReservedRange_ExpectNoFinding) {
  Machine machine;
  machine.build();
  machine.sysfs.reserve(10,
                        "0x0000003801000000 0x00000038010fffff direct\n0x00000037fff00000 0x00000037ffffffff msi\n");
  const auto tree = pci::PciTree::read(machine.sysfs.text());
  EXPECT_TRUE(judge_path(*tree, at("03:00.0"), at("04:00.0"))->findings.empty());
}

TEST(Path, JudgeWrongNames_ExpectTheName) {
  Machine machine;
  machine.build();
  const auto tree = pci::PciTree::read(machine.sysfs.text());
  EXPECT_EQ(judge_path(*tree, at("03:00.0"), at("03:00.0")).status().code(), StatusCode::kInvalidArgument);
  const auto missing = judge_path(*tree, at("09:00.0"), at("04:00.0"));
  EXPECT_EQ(missing.status().code(), StatusCode::kNotFound);
  EXPECT_NE(missing.status().message().find("0000:09:00.0"), std::string::npos);
}

TEST(Path, NameAcsBits_ExpectThoseOfLspci) {
  EXPECT_EQ(acs_text(0x7F), "SV TB RR CR UF EC DT");
  EXPECT_EQ(acs_text(0), "-");
}

}  // namespace
}  // namespace wherry::bypass
