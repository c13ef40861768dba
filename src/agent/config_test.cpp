// SPDX-License-Identifier: Apache-2.0
#include "agent/config.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace wherry {
namespace {

TEST(Config, DumpFeedsBackToTheSame) {
  AgentConfig config;
  config.budget = 123456789;
  config.core = 1;
  config.transport = Transport::kTcp;
  config.flight = "off";
  config.log_file = "/a \"quoted\" \\ path";
  const std::string text = dump_toml(config);
  AgentConfig again;
  const Status s = load_toml_text(text, "dump", again);
  ASSERT_TRUE(s) << s.message();
  for (const Setting& setting : settings()) EXPECT_EQ(setting.get(again), setting.get(config)) << setting.key;
  EXPECT_EQ(dump_toml(again), text);
}

TEST(Config, FlagsAndVariablesAreUnique) {
  std::set<std::string> flags;
  std::set<std::string> variables;
  for (const Setting& s : settings()) {
    EXPECT_TRUE(flags.insert(s.flag()).second) << s.flag();
    EXPECT_TRUE(variables.insert(s.environment()).second) << s.environment();
  }
}

TEST(Config, UnknownSettingNamesItselfAndItsFile) {
  AgentConfig config;
  for (const char* text :
       {"[agent]\nbudgett = 1\n", "[agnet]\nbudget = 1\n", "budget = 1\n", "[agent]\nbudget = [1]\n", "[agent\n"}) {
    const Status s = load_toml_text(text, "some.toml", config);
    EXPECT_EQ(s.code(), StatusCode::kInvalidArgument) << text;
    EXPECT_NE(s.message().find("some.toml"), std::string::npos) << s.message();
  }
}

TEST(Config, WrongValuesSayWhatIsAllowed) {
  AgentConfig config;
  for (const char* text :
       {"[agent]\nbudget = 'much'\n", "[agent]\nbudget = '99999999999TiB'\n", "[agent]\ntransport = 'pigeon'\n",
        "[flight]\nlisten = 'nowhere'\n", "[poll]\nspin_us = -1\n", "[agent]\ncore = -2\n"}) {
    EXPECT_EQ(load_toml_text(text, "t", config).code(), StatusCode::kInvalidArgument) << text;
  }
  ASSERT_TRUE(load_toml_text("[agent]\nbudget = '2GiB'\n[move]\nwindow = '1MiB'\ntransfer_unit = 8192\n", "t", config));
  EXPECT_EQ(config.budget, 2ULL << 30);
  config.window = 4096;
  EXPECT_FALSE(check(config));
}

TEST(Config, SessionsThatNobodyChose_ExpectFourACoreAndNeverFewerThanOnASmallMachine) {
  EXPECT_EQ(default_max_sessions(-1), 64U);  // sysconf does not know
  EXPECT_EQ(default_max_sessions(2), 64U);
  EXPECT_EQ(default_max_sessions(17), 68U);
  EXPECT_EQ(default_max_sessions(192), 768U);
  EXPECT_EQ(AgentConfig().max_sessions, default_max_sessions(sysconf(_SC_NPROCESSORS_ONLN)));
}

TEST(Config, NumbersOutOfRange_ExpectTheRangeAndNoCrash) {
  for (const Setting& setting : settings()) {
    if (setting.quoted) continue;
    for (const char* number :
         {"18446744073709551615", "9223372036854775808", "99999999999999999999", "-9", "1e3", ""}) {
      AgentConfig config;
      const Status s = setting.set(config, number);
      EXPECT_EQ(s.code(), StatusCode::kInvalidArgument) << setting.key << " = " << number;
      EXPECT_NE(s.message().find(setting.key), std::string::npos) << s.message();
    }
  }
  AgentConfig config;
  EXPECT_FALSE(load_toml_text("[agent]\nmax_sessions = '18446744073709551615'\n", "t", config));
  EXPECT_FALSE(load_toml_text("[poll]\nnap_us = 1000001\n", "t", config));
  EXPECT_TRUE(load_toml_text("[poll]\nnap_us = 1000000\n", "t", config));
  EXPECT_TRUE(check(config));
}

TEST(Config, SettingsMadeInCode_ExpectTheSameChecks) {
  const auto wrong = [](auto change) {
    AgentConfig config;
    change(config);
    (void)dump_toml(config);  // of anything
    return check(config).code() == StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(wrong([](AgentConfig& c) { c.nap_us = 1'000'001; }));
  EXPECT_TRUE(wrong([](AgentConfig& c) { c.spin_us = ~0ULL; }));
  EXPECT_TRUE(wrong([](AgentConfig& c) { c.max_sessions = 0; }));
  EXPECT_TRUE(wrong([](AgentConfig& c) { c.max_tickets = ~0ULL; }));
  EXPECT_TRUE(wrong([](AgentConfig& c) { c.budget = ~0ULL; }));
  EXPECT_TRUE(wrong([](AgentConfig& c) { c.core = -7; }));
  EXPECT_TRUE(wrong([](AgentConfig& c) { c.listen = "here"; }));
  EXPECT_FALSE(wrong([](AgentConfig&) {}));
}

TEST(Config, EnvironmentOverridesAndUnknownVariablesAreErrors) {
  AgentConfig config;
  std::string good = "WHERRY_BUDGET=64MiB";
  std::string foreign = "WHERRY_AGENT=embedded";
  std::string of_a_job = "WHERRY_JOB_KEY=0123";
  std::string other = "PATH=/bin";
  char* environment[] = {good.data(), foreign.data(), of_a_job.data(), other.data(), nullptr};
  ASSERT_TRUE(load_environment(environment, config));
  EXPECT_EQ(config.budget, 64ULL << 20);
  std::string bad = "WHERRY_BUGDET=1";
  char* wrong[] = {bad.data(), nullptr};
  const Status s = load_environment(wrong, config);
  EXPECT_EQ(s.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(s.message().find("WHERRY_BUGDET"), std::string::npos);
}

TEST(Config, BytesWithUnits) {
  EXPECT_EQ(*parse_bytes("4096"), 4096U);
  EXPECT_EQ(*parse_bytes("512MiB"), 512ULL << 20);
  EXPECT_EQ(*parse_bytes("10 MB"), 10'000'000U);
  for (const char* wrong : {"", "GiB", "1 XB", "-1", "1.5GiB", "18446744073709551615GiB"})
    EXPECT_FALSE(parse_bytes(wrong)) << wrong;
}

}  // namespace
}  // namespace wherry
