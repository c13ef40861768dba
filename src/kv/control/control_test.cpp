// SPDX-License-Identifier: Apache-2.0
#include "kv/control/control.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace wherry::kv {
namespace {

Configuration example() {
  Configuration c;
  c.epoch = (std::uint64_t{1} << 40) + 7;
  c.members = 0b1011;
  c.serving = 0b0011;
  c.bucket_bits = 21;
  c.leaders = first_leaders(c.serving);
  for (std::uint32_t node = 0; node < kMaxNodes; ++node)
    c.peers[node] = {std::uint64_t{0x02000000ff00} + node, 0x0a000001 + node, 19286};
  c.boots = {1, ~std::uint64_t{0}, 0, 77, 0, 0, 0, 0};
  return c;
}

TEST(Control, EveryMessageToTheKeeper_ExpectTheSameAgain) {
  Hello hello{"a cluster", 3, 99, 98, true, false, 4096, std::nullopt, 21, example().peers, true};
  Hello entered = hello;
  entered.entered = example();
  Report report{7, 99, 12, true, false, true, 0xffffffff, std::uint64_t{1} << 32, 4096, 5, {1, 2, 3}};
  const std::vector<ToKeeper> all{hello,
                                  entered,
                                  report,
                                  AskLease{1, 2, 3},
                                  Entered{4, 5},
                                  Stopped{6, 7},
                                  Command{Op::status, 0, 0, 0},
                                  Command{Op::move, 7, 10, 255},
                                  OpenLanes{"a cluster", 64, ~std::uint64_t{0}, true, 1024},
                                  CloseLanes{}};
  for (const ToKeeper& message : all) {
    const auto again = decode_to_keeper(encode(message));
    ASSERT_TRUE(again) << again.status().message();
    EXPECT_TRUE(*again == message) << encode(message);
  }
}

TEST(Control, EveryMessageFromTheKeeper_ExpectTheSameAgain) {
  const std::vector<FromKeeper> all{Ping{1},
                                    Configure{example()},
                                    Grant{2, 75'000'000},
                                    Stop{3},
                                    Resume{},
                                    Settled{4},
                                    Answer{false, "no \"such\" \n node"},
                                    GrantedLanes{},
                                    GrantedLanes{77, 1024, 64, 750'000'000, example().peers}};
  for (const FromKeeper& message : all) {
    const std::string line = encode(message);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    const auto again = decode_from_keeper(line);
    ASSERT_TRUE(again) << again.status().message();
    EXPECT_TRUE(*again == message) << line;
  }
}

TEST(Control, WrongLines_ExpectRefusedWithTheField) {
  const auto error = [](std::string_view line) {
    const auto message = decode_to_keeper(line);
    EXPECT_FALSE(message) << line;
    return message ? std::string() : message.status().message();
  };
  EXPECT_NE(error("").find("JSON object"), std::string::npos);
  EXPECT_NE(error("[1]").find("JSON object"), std::string::npos);
  EXPECT_NE(error("{}").find("\"type\""), std::string::npos);
  EXPECT_NE(error(R"({"type":"grant"})").find("unknown type"), std::string::npos);
  EXPECT_NE(error(R"({"type":"entered","boot":1})").find("\"epoch\""), std::string::npos);
  EXPECT_NE(error(R"({"type":"entered","boot":-1,"epoch":1})").find("\"boot\""), std::string::npos);
  EXPECT_NE(error(R"({"type":"entered","boot":1.5,"epoch":1})").find("\"boot\""), std::string::npos);
  EXPECT_NE(error(R"({"type":"entered","boot":18446744073709551616,"epoch":1})").find("\"boot\""), std::string::npos);
  EXPECT_NE(error(R"({"type":"command","op":"explode","node":0,"first_slot":0,"last_slot":0})").find("\"op\""),
            std::string::npos);
  EXPECT_NE(error(R"({"type":"command","op":"move","node":8,"first_slot":0,"last_slot":0})").find("\"node\""),
            std::string::npos);
  EXPECT_NE(error(R"({"type":"command","op":"move","node":1,"first_slot":9,"last_slot":8})").find("last_slot"),
            std::string::npos);
  EXPECT_NE(error(std::string(kMaxControlLine + 1, ' ')).find("64 KiB"), std::string::npos);
  EXPECT_NE(error(std::string(60'000, '[')).find("JSON object"), std::string::npos);

  EXPECT_NE(error(R"({"type":"open_lanes","version":1,"cluster":"","lanes":0,"session":1,"resume":false,"first":0})")
                .find("\"lanes\""),
            std::string::npos);
  EXPECT_NE(error(R"({"type":"open_lanes","version":1,"cluster":"","lanes":1,"session":0,"resume":false,"first":0})")
                .find("\"session\""),
            std::string::npos);
  EXPECT_NE(error(R"({"type":"open_lanes","version":9})").find("version 9"), std::string::npos);

  Hello hello{"c", 3, 99, 0, true, false, 16, example()};
  hello.entered->leaders[5] = 3;  // a member that does not serve
  EXPECT_NE(error(encode(ToKeeper(hello))).find("slot 5"), std::string::npos);
  std::string other = encode(ToKeeper(Hello{"c", 3, 99, 0, true, false, 16, std::nullopt}));
  other.replace(other.find("\"version\":1"), 11, "\"version\":2");
  EXPECT_EQ(decode_to_keeper(other).status().code(), StatusCode::kVersionMismatch);
}

TEST(Control, ConfigurationAlone_ExpectTheSameAgainOrRefused) {
  const auto again = decode_configuration(encode(example()));
  ASSERT_TRUE(again);
  EXPECT_TRUE(*again == example());
  EXPECT_FALSE(decode_configuration("{}"));
  EXPECT_FALSE(decode_configuration("null"));
  EXPECT_FALSE(decode_configuration(encode(example()).substr(1)));
}

}  // namespace
}  // namespace wherry::kv
