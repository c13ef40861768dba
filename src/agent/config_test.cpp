// SPDX-License-Identifier: Apache-2.0
#include "agent/config.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/temporary_directory.hpp"

namespace wherry {
namespace {

/// As wherryd has it.
struct Configuration {
  AgentConfig agent;
  Services services = make_services();
  Settings table = settings(agent, services);
  [[nodiscard]] const Setting& at(std::string_view key) const { return *std::ranges::find(table, key, &Setting::key); }
};

TEST(Config, DumpFeedsBackToTheSame) {
  Configuration config;
  config.agent.budget = 123456789;
  config.agent.core = 1;
  config.agent.transport = Transport::kTcp;
  config.agent.log_file = "/a \"quoted\" \\ path";
  ASSERT_TRUE(config.at("flight.listen").set("off"));
  ASSERT_TRUE(config.at("route.routing_threads").set("7"));
  const std::string text = dump_toml(config.table);
  const Configuration again;
  const Status s = load_toml_text(text, "dump", again.table);
  ASSERT_TRUE(s) << s.message();
  for (const Setting& setting : config.table) EXPECT_EQ(again.at(setting.key).get(), setting.get()) << setting.key;
  EXPECT_EQ(dump_toml(again.table), text);
}

/// Writes profiles of this machine, as `wherry probe profile` does.
class ConfigProfile : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = TemporaryDirectory::create("config");
    ASSERT_TRUE(made) << made.status().message();
    directory_ = *std::move(made);
  }
  std::string write(const std::string& settings, const MachineKey& of = this_machine()) {
    const std::string path = directory_.file("profile.json");
    std::ofstream(path) << fmt::format(
        R"({{"name": "wherry-profile", "schema": 1, "date": "today", "settings": {{{}}},
            "machine": {{"cpu": "{}", "kernel": "{}", "cores": {}}}}})",
        settings, of.cpu, of.kernel, of.cores);
    return path;
  }
  static std::string advice(const std::string& key, const std::string& value) {
    return fmt::format(R"("{}": {{"value": "{}", "rule": "a rule", "why": "a path"}})", key, value);
  }
  TemporaryDirectory directory_;
};

TEST_F(ConfigProfile, ThatKnowsSettings_ExpectThemAndTheirOrigin) {
  const Configuration config;
  const auto used = use_profile(write(advice("move.transfer_unit", "1MiB") + "," + advice("poll.spin_us", "77") + "," +
                                      advice("route.spins", "9")),
                                config.table);
  ASSERT_TRUE(used) << used.status().message();
  EXPECT_EQ(config.agent.spin_us, 77U);
  EXPECT_EQ(config.at("move.transfer_unit").get(), "1048576");
  EXPECT_TRUE(used->warnings.empty());  // route.spins is for somebody else
  EXPECT_EQ(used->settings.size(), 2U);
  EXPECT_NE(profile_comments(*used, config.table).find("# poll.spin_us: from profile, by rule a rule: a path"),
            std::string::npos);
  ASSERT_TRUE(config.at("poll.spin_us").set("78"));
  EXPECT_NE(profile_comments(*used, config.table).find("# poll.spin_us: set by a person; the profile says 77"),
            std::string::npos);
  // load_toml_text can still read the dump with these comments.
  const Configuration again;
  const std::string text = dump_toml(config.table) + profile_comments(*used, config.table);
  ASSERT_TRUE(load_toml_text(text, "dump", again.table));
  EXPECT_EQ(dump_toml(again.table), dump_toml(config.table));
}

TEST_F(ConfigProfile, WithAbsurdValues_ExpectDefaultsAndASentence) {
  const Configuration config, untouched;
  const auto used = use_profile(write(advice("poll.spin_us", "-1") + "," + advice("move.window", "much") + "," +
                                      advice("poll.nap_us", "1000001")),
                                config.table);
  ASSERT_TRUE(used);
  EXPECT_EQ(used->warnings.size(), 3U);
  EXPECT_TRUE(used->settings.empty());
  EXPECT_EQ(dump_toml(config.table), dump_toml(untouched.table));
}

TEST_F(ConfigProfile, OfAnotherMachineOrNone_ExpectAnErrorIfAPersonNamedIt) {
  MachineKey other = this_machine();
  ++other.cores;
  const Configuration config;
  EXPECT_FALSE(use_profile(write(advice("poll.spin_us", "77"), other), config.table));
  EXPECT_FALSE(use_profile(directory_.file("none"), config.table));
  EXPECT_EQ(config.agent.spin_us, AgentConfig{}.spin_us);
  const auto off = use_profile("off", config.table);
  ASSERT_TRUE(off);
  EXPECT_TRUE(off->file.empty());
}

/// The names that programs and scripts rely on.
TEST(Config, Names_ExpectThoseThatTheyAlwaysHad) {
  const Configuration config;
  const std::map<std::string, std::string> flags{{"agent.listen", "--listen"},
                                                 {"agent.session_file", "--session-file"},
                                                 {"agent.group", "--group"},
                                                 {"agent.budget", "--budget"},
                                                 {"agent.reader_budget", "--reader-budget"},
                                                 {"agent.core", "--core"},
                                                 {"agent.transport", "--transport"},
                                                 {"agent.log_level", "--log-level"},
                                                 {"agent.log_file", "--log-file"},
                                                 {"agent.max_sessions", "--max-sessions"},
                                                 {"agent.max_tickets", "--max-tickets"},
                                                 {"agent.drain_ms", "--drain-ms"},
                                                 {"agent.profile", "--profile"},
                                                 {"poll.spin_us", "--spin-us"},
                                                 {"poll.nap_us", "--nap-us"},
                                                 {"flight.listen", "--flight"},
                                                 {"metrics.listen", "--metrics"},
                                                 {"metrics.public", "--metrics-public"},
                                                 {"tls.certificate", "--tls-certificate"},
                                                 {"tls.key", "--tls-key"},
                                                 {"tls.ca", "--tls-ca"},
                                                 {"sink.root", "--sink-root"},
                                                 {"move.transfer_unit", "--transfer-unit"},
                                                 {"move.window", "--window"},
                                                 {"move.streaming_copy_from", "--streaming-copy-from"},
                                                 {"route.buffer_budget", "--buffer-budget"},
                                                 {"route.routing_threads", "--routing-threads"},
                                                 {"route.peer_timeout_s", "--peer-timeout-s"}};
  std::map<std::string, std::string> found;
  for (const Setting& setting : config.table) found[setting.key] = setting.flag();
  EXPECT_EQ(found, flags);
  EXPECT_EQ(config.at("sink.root").environment(), "WHERRY_SINK_ROOT");
  EXPECT_EQ(config.at("flight.listen").environment(), "WHERRY_FLIGHT");
}

TEST(Config, SettingsOfServicesMadeInCode_ExpectThemSetOrTheErrorToNameThem) {
  const Configuration config;
  AgentConfig agent;
  agent.services = {{"move.window", "64MiB"}, {"flight.listen", "off"}};
  ASSERT_TRUE(configure(agent, config.services));
  EXPECT_EQ(config.at("move.window").get(), "67108864");
  EXPECT_EQ(config.at("flight.listen").get(), "off");
  for (const auto& [key, value] : {std::pair{"move.window", "much"}, std::pair{"move.widow", "1"}}) {
    agent.services = {{key, value}};
    const Status s = configure(agent, config.services);
    EXPECT_EQ(s.code(), StatusCode::kInvalidArgument) << key;
    EXPECT_NE(s.message().find(key), std::string::npos) << s.message();
  }
}

TEST(Config, FlagsAndVariablesAreUnique) {
  const Configuration config;
  std::set<std::string> flags;
  std::set<std::string> variables;
  for (const Setting& s : config.table) {
    EXPECT_TRUE(flags.insert(s.flag()).second) << s.flag();
    EXPECT_TRUE(variables.insert(s.environment()).second) << s.environment();
  }
}

TEST(Config, UnknownSettingNamesItselfAndItsFile) {
  const Configuration config;
  for (const char* text :
       {"[agent]\nbudgett = 1\n", "[agnet]\nbudget = 1\n", "budget = 1\n", "[agent]\nbudget = [1]\n", "[agent\n"}) {
    const Status s = load_toml_text(text, "some.toml", config.table);
    EXPECT_EQ(s.code(), StatusCode::kInvalidArgument) << text;
    EXPECT_NE(s.message().find("some.toml"), std::string::npos) << s.message();
  }
}

TEST(Config, WrongValuesSayWhatIsAllowed) {
  const Configuration config;
  for (const char* text :
       {"[agent]\nbudget = 'much'\n", "[agent]\nbudget = '99999999999TiB'\n", "[agent]\ntransport = 'pigeon'\n",
        "[flight]\nlisten = 'nowhere'\n", "[poll]\nspin_us = -1\n", "[agent]\ncore = -2\n"}) {
    EXPECT_EQ(load_toml_text(text, "t", config.table).code(), StatusCode::kInvalidArgument) << text;
  }
  ASSERT_TRUE(
      load_toml_text("[agent]\nbudget = '2GiB'\n[move]\nwindow = '1MiB'\ntransfer_unit = 8192\n", "t", config.table));
  EXPECT_EQ(config.agent.budget, 2ULL << 30);
  EXPECT_TRUE(check(config.services));
  ASSERT_TRUE(config.at("move.window").set("4096"));
  EXPECT_FALSE(check(config.services));
}

TEST(Config, SessionsThatNobodyChose_ExpectFourACoreAndNeverFewerThanOnASmallMachine) {
  EXPECT_EQ(default_max_sessions(-1), 64U);  // sysconf does not know
  EXPECT_EQ(default_max_sessions(2), 64U);
  EXPECT_EQ(default_max_sessions(17), 68U);
  EXPECT_EQ(default_max_sessions(192), 768U);
  EXPECT_EQ(AgentConfig().max_sessions, default_max_sessions(sysconf(_SC_NPROCESSORS_ONLN)));
}

TEST(Config, NumbersOutOfRange_ExpectTheRangeAndNoCrash) {
  const Configuration config;
  for (const Setting& setting : config.table) {
    if (setting.quoted) continue;
    const std::string before = setting.get();
    for (const char* number :
         {"18446744073709551615", "9223372036854775808", "99999999999999999999", "-9", "1e3", ""}) {
      const Status s = setting.set(number);
      EXPECT_EQ(s.code(), StatusCode::kInvalidArgument) << setting.key << " = " << number;
      EXPECT_NE(s.message().find(setting.key), std::string::npos) << s.message();
      EXPECT_EQ(setting.get(), before);
    }
  }
  EXPECT_FALSE(load_toml_text("[agent]\nmax_sessions = '18446744073709551615'\n", "t", config.table));
  EXPECT_FALSE(load_toml_text("[poll]\nnap_us = 1000001\n", "t", config.table));
  EXPECT_TRUE(load_toml_text("[poll]\nnap_us = 1000000\n", "t", config.table));
  EXPECT_TRUE(check(config.agent));
}

TEST(Config, SettingsMadeInCode_ExpectTheSameChecks) {
  const auto wrong = [](auto change) {
    AgentConfig config;
    change(config);
    (void)dump_toml(settings(config));  // of anything
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
  const Configuration config;
  std::string good = "WHERRY_BUDGET=64MiB";
  std::string foreign = "WHERRY_AGENT=embedded";
  std::string of_a_job = "WHERRY_JOB_KEY=0123";
  std::string other = "PATH=/bin";
  char* environment[] = {good.data(), foreign.data(), of_a_job.data(), other.data(), nullptr};
  ASSERT_TRUE(load_environment(environment, config.table));
  EXPECT_EQ(config.agent.budget, 64ULL << 20);
  std::string bad = "WHERRY_BUGDET=1";
  char* wrong[] = {bad.data(), nullptr};
  const Status s = load_environment(wrong, config.table);
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
