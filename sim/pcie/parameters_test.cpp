// SPDX-License-Identifier: Apache-2.0
#include "sim/pcie/parameters.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <string>

namespace wherry::sim::pcie {
namespace {

/// Decimal gigabytes a second.
double gigabytes(std::uint32_t generation, std::uint32_t lanes, bool skip) {
  LinkOptions link{.generation = generation, .lanes = lanes};
  link.overhead.skip = skip;
  return 1000.0 * (1 << 20) / static_cast<double>(byte_time(link));
}

TEST(ByteTime, EachGeneration_ExpectTransferRateTimesEncoding) {
  // By hand: GT/s x encoding x lanes / 8.
  EXPECT_NEAR(gigabytes(1, 1, false), 0.25, 1e-6);
  EXPECT_NEAR(gigabytes(2, 8, false), 4.0, 1e-5);
  EXPECT_NEAR(gigabytes(3, 8, false), 7.8769231, 1e-5);
  EXPECT_NEAR(gigabytes(3, 16, false), 15.7538462, 1e-5);
  EXPECT_NEAR(gigabytes(4, 8, false), 15.7538462, 1e-5);
  EXPECT_NEAR(gigabytes(4, 16, false), 31.5076923, 1e-4);
  EXPECT_NEAR(gigabytes(5, 16, false), 63.0153846, 1e-3);
}

TEST(ByteTime, SkipOrderedSets_ExpectAQuarterOfAPercentLess) {
  EXPECT_NEAR(gigabytes(2, 8, true), 4.0 * (1 - 4.0 / 1538), 1e-5);
  EXPECT_NEAR(gigabytes(3, 8, true), 7.8769231 * 374 / 375, 1e-5);
}

// Spec revision 5.0, tables 2-46 to 2-48 and 3-7 to 3-9: symbol times at 2.5, 5 and 8 GT/s and beyond.
struct Latency {
  std::uint32_t generation, lanes, mps;
  std::int64_t symbols;
};
class DllpLatency : public testing::TestWithParam<Latency> {};
TEST_P(DllpLatency, TableOfTheSpecification_ExpectItsSymbolTimes) {
  const Latency& row = GetParam();
  const Time symbol = row.generation == 1 ? 4000 : row.generation == 2 ? 2000 : row.generation == 3 ? 1000 : 500;
  EXPECT_EQ(dllp_latency({.generation = row.generation, .lanes = row.lanes}, row.mps), row.symbols * symbol);
}
INSTANTIATE_TEST_SUITE_P(Spec, DllpLatency,
                         testing::Values(Latency{1, 1, 128, 237}, Latency{1, 4, 256, 118}, Latency{1, 8, 256, 107},
                                         Latency{1, 16, 512, 86}, Latency{1, 32, 128, 33}, Latency{2, 1, 256, 467},
                                         Latency{2, 8, 128, 118}, Latency{2, 8, 512, 137}, Latency{2, 16, 256, 123},
                                         Latency{3, 1, 4096, 4239}, Latency{3, 4, 512, 250}, Latency{3, 8, 128, 163},
                                         Latency{3, 8, 256, 203}, Latency{3, 16, 256, 168}, Latency{3, 16, 512, 182},
                                         Latency{4, 16, 512, 182}, Latency{4, 8, 1024, 246}));

TEST(LinkBytes, EachKind_ExpectHeaderFramingAndWholeDoublewords) {
  const LinkOverhead overhead;
  // research/bypass/model/budget.py: 24 bytes for requests to 64-bit addresses, 20 for completions.
  Tlp tlp{.kind = TlpKind::kWrite, .address = std::uint64_t{1} << 40, .bytes = 256};
  EXPECT_EQ(link_bytes(tlp, overhead), 256U + 24);
  tlp.address = 0x1000;
  EXPECT_EQ(link_bytes(tlp, overhead), 256U + 20);
  tlp.address = 0x1001;  // touches 65 doublewords
  EXPECT_EQ(link_bytes(tlp, overhead), 260U + 20);
  tlp = {.kind = TlpKind::kRead, .address = std::uint64_t{1} << 40, .bytes = 512};
  EXPECT_EQ(link_bytes(tlp, overhead), 24U);
  tlp = {.kind = TlpKind::kCompletion, .address = std::uint64_t{1} << 40, .bytes = 64};
  EXPECT_EQ(link_bytes(tlp, overhead), 64U + 20);
  tlp.bytes = 0;  // of a flush: one doubleword that means nothing
  EXPECT_EQ(link_bytes(tlp, overhead), 4U + 20);
  tlp.status = CompletionStatus::kUnsupportedRequest;
  EXPECT_EQ(link_bytes(tlp, overhead), 20U);
}

// A parameter without source and mark would be an arbitrary number.
TEST(Table, EachParameter_ExpectAMark) {
  std::ifstream file(WHERRY_PCIE_PARAMETERS);
  ASSERT_TRUE(file) << WHERRY_PCIE_PARAMETERS;
  const std::regex member(R"(^  (?:Time|bool|Credits|ReceiveBuffer|PeerToPeer|std::u?int\d+_t) (\w+)\s*(?:=|\{).*;.*)");
  const std::regex mark("given|chosen|fitted|see there");
  std::string comment;
  int parameters = 0;
  for (std::string line; std::getline(file, line);) {
    std::smatch match;
    if (line.starts_with("  ///")) {
      comment += line;
      continue;
    }
    if (std::regex_match(line, match, member) && match[1] != "headers" && match[1] != "data") {
      ++parameters;
      EXPECT_TRUE(std::regex_search(comment + line, mark)) << match[1] << " says neither given, chosen nor fitted";
    }
    comment.clear();
  }
  EXPECT_GE(parameters, 35);
}

}  // namespace
}  // namespace wherry::sim::pcie
