// SPDX-License-Identifier: Apache-2.0
#include "bypass/functions.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "bypass/process/card_testing.hpp"

namespace wherry::bypass {
namespace {

using testing_support::CardModel;
using testing_support::ModelCardAccess;

constexpr EthernetAddress kMac{0x02, 0x11, 0x22, 0x33, 0x44, 0x55};
constexpr std::uint32_t kBase = 0x8000;

/// Offsets are taken from docs/reference/bypass-functions-registers.md.
struct Bench {
  CardModel card;
  ModelCardAccess access{card, [](std::chrono::microseconds) {}};
  Bench() { card.has_functions = true; }
  [[nodiscard]] std::uint32_t at(std::uint32_t offset) const { return card.value(kBase + offset); }
  Functions open() {
    auto found = Functions::open(access);
    EXPECT_TRUE(found) << found.status().message();
    return *found;
  }
};

FilterRule rule(std::string_view text) {
  auto found = parse_filter_rule(text);
  EXPECT_TRUE(found) << text;
  return *found;
}

/// Decides like the filter: each compared bit must be in the frame and have the required value.
bool matches(const FilterRule& rule, const std::vector<std::uint8_t>& frame) {
  for (std::size_t i = 0; i < kFilteredBytes; ++i)
    if (rule.mask.at(i) != 0 && (i >= frame.size() || ((frame[i] ^ rule.match.at(i)) & rule.mask.at(i)) != 0))
      return false;
  return true;
}

/// An IPv4 datagram with ports 1000 and `port`, in the layout of the RFCs.
std::vector<std::uint8_t> datagram(std::uint8_t protocol, std::uint16_t port, std::uint16_t fragment = 0) {
  std::vector<std::uint8_t> frame(60);
  frame[12] = 0x08;
  frame[14] = 0x45;
  frame[20] = static_cast<std::uint8_t>(fragment >> 8);
  frame[21] = static_cast<std::uint8_t>(fragment);
  frame[23] = protocol;
  frame[34] = 1000 >> 8;
  frame[35] = 1000 & 0xFF;
  frame[36] = static_cast<std::uint8_t>(port >> 8);
  frame[37] = static_cast<std::uint8_t>(port);
  return frame;
}

TEST(FilterRules, EachKind_ExpectItsFramesAndNoOthers) {
  std::vector<std::uint8_t> arp(60);
  arp[12] = 0x08;
  arp[13] = 0x06;
  auto options = datagram(17, 53);
  options[14] = 0x46;
  const struct {
    std::string_view text;
    bool arp, icmp, tcp80, udp53, later, options;
  } kinds[] = {
      {"pass:all", true, true, true, true, true, true},
      {"pass:arp", true, false, false, false, false, false},
      {"drop:ip", false, true, true, true, true, true},
      {"drop:icmp", false, true, false, false, false, false},
      {"pass:tcp", false, false, true, false, false, false},
      {"pass:udp", false, false, false, true, true, false},
      {"pass:udp:53", false, false, false, true, false, false},
      {"pass:tcp:53", false, false, false, false, false, false},
  };
  for (const auto& kind : kinds) {
    SCOPED_TRACE(kind.text);
    const FilterRule found = rule(kind.text);
    EXPECT_EQ(found.pass, kind.text.starts_with("pass"));
    EXPECT_EQ(matches(found, arp), kind.arp);
    EXPECT_EQ(matches(found, datagram(1, 0)), kind.icmp);
    EXPECT_EQ(matches(found, datagram(6, 80)), kind.tcp80);
    EXPECT_EQ(matches(found, datagram(17, 53)), kind.udp53);
    EXPECT_EQ(matches(found, datagram(17, 53, 185)), kind.later) << "a later fragment";
    EXPECT_EQ(matches(found, options), kind.options);
  }
}

TEST(FilterRules, DoNotFragmentAndMoreFragments_ExpectPortsCompared) {
  EXPECT_TRUE(matches(rule("pass:udp:53"), datagram(17, 53, 0x4000)));
  EXPECT_TRUE(matches(rule("pass:udp:53"), datagram(17, 53, 0x2000)));
}

TEST(FilterRules, WrongText_ExpectInvalidArgumentAndTheText) {
  for (const std::string_view text : {"", "pass", "pass:", "keep:arp", "pass:arp:1", "pass:udp:", "pass:udp:x",
                                      "pass:udp:65536", "pass:udp:7:8", "pass:all:1"}) {
    const auto found = parse_filter_rule(text);
    if (text == "pass:udp:") continue;  // no port is any port
    ASSERT_FALSE(found) << text;
    EXPECT_EQ(found.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(found.status().message().find(fmt::format("'{}'", text)), std::string::npos);
  }
}

TEST(Addresses, RightAndWrong_ExpectBytesOrInvalidArgument) {
  EXPECT_EQ(*parse_ethernet_address("02:11:22:33:44:55"), kMac);
  EXPECT_EQ(*parse_ipv4_address("10.0.1.255"), 0x0A0001FFU);
  for (const std::string_view text : {"", "02:11:22:33:44", "02:11:22:33:44:5", "02:11:22:33:44:55:66",
                                      "02:11:22:33:44:55:", "02-11-22-33-44-55", "02:11:22:33:44:5g"})
    EXPECT_FALSE(parse_ethernet_address(text)) << text;
  for (const std::string_view text : {"", "10.0.0", "10.0.0.256", "10.0.0.1.", "10.0.0.1.2", "10..0.1", "ten.0.0.1"})
    EXPECT_FALSE(parse_ipv4_address(text)) << text;
}

TEST(Functions, Names_ExpectEachToBeFoundByItsName) {
  for (const std::string& name : function_names()) {
    const auto found = function_of(name);
    ASSERT_TRUE(found) << name;
    EXPECT_EQ(name_of(*found), name);
  }
  EXPECT_FALSE(function_of("kv"));
}

TEST(Functions, Open_ExpectNotFoundWithoutThemAndTheirVersionMinded) {
  Bench bench;
  bench.card.has_functions = false;
  EXPECT_EQ(Functions::open(bench.access).status().code(), StatusCode::kNotFound);
  bench.card.has_functions = true;
  bench.card.functions_version = 2 << 16;
  EXPECT_EQ(Functions::open(bench.access).status().code(), StatusCode::kVersionMismatch);
  bench.card.gone = true;
  EXPECT_EQ(Functions::open(bench.access).status().code(), StatusCode::kUnavailable);
}

TEST(Functions, Echo_ExpectItsRegistersAndThatItRunsFromStartToStop) {
  Bench bench;
  Functions functions = bench.open();
  ASSERT_TRUE(functions.configure({.function = Function::kEcho, .ip = 0x0A000002, .udp_port = 9}, kMac, true));
  EXPECT_EQ(functions.running(), Function::kNone);
  EXPECT_EQ(bench.at(0x020), 0x22334455U);  // the last bytes on the wire
  EXPECT_EQ(bench.at(0x024), 0x0211U);
  EXPECT_EQ(bench.at(0x028), 0x0A000002U);
  EXPECT_EQ(bench.at(0x02C), 0x00090007U);  // ARP, ICMP, UDP, port 9
  EXPECT_EQ(bench.at(0x00C), 1U) << "counters are cleared";
  ASSERT_TRUE(functions.start());
  EXPECT_EQ(bench.at(0x010), 0x11U);  // streams and frames in place
  EXPECT_EQ(functions.running(), Function::kEcho);
  ASSERT_TRUE(functions.stop());
  EXPECT_EQ(functions.running(), Function::kNone);
}

TEST(Functions, Filter_ExpectRulesBuiltBeforeTheyAreEnabledAndAllElseDropped) {
  Bench bench;
  Functions functions = bench.open();
  ASSERT_TRUE(functions.configure({.function = Function::kFilter, .rules = {rule("drop:udp:53"), rule("pass:ip")}},
                                  kMac, false));
  ASSERT_TRUE(functions.start());
  EXPECT_EQ(functions.running(), Function::kFilter);
  EXPECT_EQ(bench.at(0x010), 1U);
  EXPECT_EQ(bench.at(0x02C), 0x10U) << "what passes goes back";
  EXPECT_EQ(bench.at(0x034), 1U) << "a frame that no rule matches is dropped";
  EXPECT_EQ(bench.at(0x040), 3U);
  EXPECT_EQ(bench.at(0x044), 1U);
  for (std::uint32_t i = 2; i < 8; ++i) EXPECT_EQ(bench.at(0x040 + 4 * i), 0U) << i;
  // The words of the built table: 16 per rule, with four bytes in each; the first byte is in the lowest bits.
  ASSERT_EQ(bench.card.filter.size(), 256U);
  for (std::uint32_t r = 0; r < 2; ++r) {
    const FilterRule wanted = rule(r == 0 ? "drop:udp:53" : "pass:ip");
    for (std::uint32_t byte = 0; byte < 64; ++byte) {
      EXPECT_EQ(bench.card.filter[16 * r + byte / 4] >> 8 * (byte % 4) & 0xFF, wanted.match.at(byte)) << byte;
      EXPECT_EQ(bench.card.filter[128 + 16 * r + byte / 4] >> 8 * (byte % 4) & 0xFF, wanted.mask.at(byte)) << byte;
    }
  }
  // Configuring another function removes all rules.
  ASSERT_TRUE(functions.configure({.function = Function::kReflect}, kMac, false));
  ASSERT_TRUE(functions.start());
  EXPECT_EQ(functions.running(), Function::kReflect);
  EXPECT_EQ(bench.at(0x034), 0U);
}

TEST(Functions, Generator_ExpectHeaderRateAndCheckerBehindIt) {
  Bench bench;
  Functions functions = bench.open();
  const GeneratorSetup generator{.to = {0x02, 0, 0, 0, 0, 0x09}, .bytes = 1514, .interval = 0x180000, .count = 1000};
  ASSERT_TRUE(functions.configure({.function = Function::kGenerator, .generator = generator}, kMac, false));
  EXPECT_EQ(bench.at(0x080), 0U) << "it sends before the NIC runs";
  ASSERT_TRUE(functions.start());
  EXPECT_EQ(bench.at(0x080), 1U);
  EXPECT_EQ(bench.at(0x010), 2U);
  EXPECT_EQ(bench.at(0x084), 1514U);
  EXPECT_EQ(bench.at(0x088), 0x180000U);
  EXPECT_EQ(bench.at(0x08C), 1000U);
  EXPECT_EQ(bench.at(0x0A0), 0x00000002U);  // to
  EXPECT_EQ(bench.at(0x0A4), 0x11020900U);  // to, then from
  EXPECT_EQ(bench.at(0x0A8), 0x55443322U);
  EXPECT_EQ(bench.at(0x0AC), 0x0000B588U);  // 0x88B5
  EXPECT_EQ(functions.running(), Function::kGenerator);
  ASSERT_TRUE(functions.stop());
  EXPECT_EQ(bench.at(0x080), 0U);
  ASSERT_TRUE(functions.configure({.function = Function::kChecker}, kMac, false));
  ASSERT_TRUE(functions.start());
  EXPECT_EQ(functions.running(), Function::kChecker);
  ASSERT_TRUE(functions.configure({.function = Function::kElsewhere}, kMac, false));
  ASSERT_TRUE(functions.start());
  EXPECT_EQ(functions.running(), Function::kElsewhere);
}

TEST(Functions, Counters_ExpectThoseThatAreBuiltIn) {
  Bench bench;
  bench.card.set(kBase + 0x104, 7);
  bench.card.set(kBase + 0x124, 3);
  bench.card.set(kBase + 0x1A8, 5);
  bench.card.set(kBase + 0x1AC, 1);
  const auto value = [&](std::string_view name) -> std::int64_t {
    const auto all = bench.open().counters();
    const auto found = std::ranges::find(all, name, [](const auto& one) { return one.first; });
    return found == all.end() ? -1 : static_cast<std::int64_t>(found->second);
  };
  EXPECT_EQ(value("echo_icmp"), 7);
  EXPECT_EQ(value("filter_hits[1]"), 3);
  EXPECT_EQ(value("latency_sum"), 0x1'0000'0005);
  bench.card.rules = 0;
  bench.card.has_generator = false;
  EXPECT_EQ(value("echo_icmp"), 7);
  EXPECT_EQ(value("filter_hits[1]"), -1);
  EXPECT_EQ(value("latency_sum"), -1);
}

TEST(Functions, WhatIsNotBuiltIn_ExpectUnsupportedAndNothingWritten) {
  Bench bench;
  bench.card.rules = 1;
  bench.card.has_generator = false;
  Functions functions = bench.open();
  const std::vector<FilterRule> two{rule("pass:ip"), rule("pass:arp")};
  const Status rules = functions.configure({.function = Function::kFilter, .rules = two}, kMac, false);
  EXPECT_EQ(rules.code(), StatusCode::kUnsupported);
  EXPECT_EQ(rules.message(), "the card's bitstream has a filter of 1 rules, want 2");
  const Status checker = functions.configure({.function = Function::kChecker}, kMac, false);
  EXPECT_EQ(checker.code(), StatusCode::kUnsupported);
  EXPECT_EQ(bench.at(0x024), 0U);
}

TEST(Functions, WhatIsMissingInASetup_ExpectTheOptionNamed) {
  const struct {
    FunctionSetup setup;
    bool in_place;
    std::string_view says;
  } wrong[] = {
      {{.function = Function::kEcho}, false, "--ip"},
      {{.function = Function::kFilter}, false, "--rule"},
      {{.function = Function::kReflect, .rules = {FilterRule{}}}, false, "reflect has no rules"},
      {{.function = Function::kGenerator}, false, "--to"},
      {{.function = Function::kGenerator, .generator = {.to = kMac, .bytes = 59}}, false, "59 bytes"},
      {{.function = Function::kGenerator, .generator = {.to = kMac}}, true, "--in-place"},
      {{.function = Function::kElsewhere}, true, "--in-place"},
  };
  for (const auto& one : wrong) {
    const Status status = check_function(one.setup, one.in_place);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << one.says;
    EXPECT_NE(status.message().find(one.says), std::string::npos) << status.message();
  }
}

TEST(Functions, ARegisterThatIsStuck_ExpectItsOffset) {
  for (const std::uint32_t offset : {0x020U, 0x02CU, 0x010U}) {
    Bench bench;
    bench.card.stuck = kBase + offset;
    Functions functions = bench.open();
    Status status = functions.configure({.function = Function::kEcho, .ip = 1}, kMac, false);
    if (status) status = functions.start();
    EXPECT_EQ(status.code(), StatusCode::kUnavailable) << offset;
    EXPECT_NE(status.message().find(fmt::format("{:#x}", kBase + offset)), std::string::npos) << status.message();
  }
}

}  // namespace
}  // namespace wherry::bypass
