// SPDX-License-Identifier: Apache-2.0
#include "common/summary.hpp"

#include <gtest/gtest.h>

namespace wherry::apps {
namespace {

TEST(Summary, NumbersOfEverySize_ExpectGroupsOfThreeDigits) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1'000), "1,000");
  EXPECT_EQ(grouped(16'777'216), "16,777,216");
  EXPECT_EQ(grouped(~std::uint64_t{0}), "18,446,744,073,709,551,615");
}

TEST(Summary, RatesOfEverySize_ExpectThreeDigitsAndASuffix) {
  EXPECT_EQ(rounded(0), "0");
  EXPECT_EQ(rounded(0.123456), "0.123");
  EXPECT_EQ(rounded(999), "999");
  EXPECT_EQ(rounded(1'234), "1.23 k");
  EXPECT_EQ(rounded(9'999), "10.0 k");
  EXPECT_EQ(rounded(999'600), "1.00 M");
  EXPECT_EQ(rounded(31'676'543), "31.7 M");
  EXPECT_EQ(rounded(456e9), "456 G");
}

TEST(Summary, ALineOfAnApplication_ExpectWorkJobAndResults) {
  const nlohmann::ordered_json line{{"app", "triangle"},
                                    {"ranks", 4U},
                                    {"nodes", 1U},
                                    {"placement", "inline"},
                                    {"seconds", 0.5},
                                    {"checksum", "ff"},
                                    {"messages", 1U},
                                    {"bytes", 2'500'000U},
                                    {"edges", 1'000'000U},
                                    {"triangles", 12'345U},
                                    {"flux", 0.125},
                                    {"edges_per_second", 2e6},
                                    {"statistics", {{"sent", 1U}}}};
  EXPECT_EQ(summary(line, {"edge", "edges", 1'000'000}),
            "triangle: 1,000,000 edges in 0.5 s: 2.00 M edges a second\n"
            "  4 ranks on 1 node, placement inline: 1 message, 2.50 MB\n"
            "  triangles 12,345, flux 0.125, checksum ff\n");
  EXPECT_EQ(summary(line, {}).substr(0, 16), "triangle: 0.5 s\n");
}

TEST(Summary, WorkInNoTime_ExpectNoRate) {
  const nlohmann::ordered_json line{{"app", "histogram"}, {"ranks", 1U},     {"nodes", 1U},    {"placement", "inline"},
                                    {"seconds", 0.0},     {"checksum", "0"}, {"messages", 0U}, {"bytes", 0U}};
  EXPECT_EQ(summary(line, {"update", "updates", 1}).substr(0, 26), "histogram: 1 update in 0 s");
}

}  // namespace
}  // namespace wherry::apps
