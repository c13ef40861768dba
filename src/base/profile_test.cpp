// SPDX-License-Identifier: Apache-2.0
#include "base/profile.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <utility>

#include "base/temporary_directory.hpp"

namespace wherry {
namespace {

constexpr auto kText = R"({"name": "wherry-profile", "schema": 1, "date": "2026-11-26T01:02:03Z",
 "machine": {"cpu": "A", "kernel": "6.1", "cores": 2},
 "settings": {"move.window": {"value": "1MiB", "rule": "window", "why": "ucx.get.shm: 1.9 us, 11 GB/s"}},
 "paths": [{"id": "cpu.memcpy"}]})";

std::string with(const std::string& what, const std::string& instead) {
  std::string text = kText;
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), instead);
}

TEST(Profile, Parse_ExpectWhatTheTextSays) {
  const auto profile = parse_profile(kText);
  ASSERT_TRUE(profile) << profile.status().message();
  EXPECT_EQ(profile->date, "2026-11-26T01:02:03Z");
  EXPECT_EQ(profile->machine, (MachineKey{.cpu = "A", .kernel = "6.1", .cores = 2}));
  ASSERT_EQ(profile->settings.size(), 1U);
  const Profile::Advice& window = profile->settings.at("move.window");
  EXPECT_EQ(window.value, "1MiB");
  EXPECT_EQ(window.rule, "window");
  EXPECT_EQ(window.why, "ucx.get.shm: 1.9 us, 11 GB/s");
}

TEST(Profile, WhatIsNone_ExpectASentenceThatSaysWhy) {
  const auto refused = [](const std::string& text, const std::string& why) {
    const auto profile = parse_profile(text);
    ASSERT_FALSE(profile) << text;
    EXPECT_EQ(profile.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(profile.status().message().find(why), std::string::npos) << profile.status().message();
  };
  refused("", "JSON");
  refused("[]", "JSON");
  refused(std::string(kText).substr(0, 200), "JSON");
  refused(std::string(100'000, '['), "deep");
  refused(with("[{", std::string(64, '[') + "[{"), "deep");
  EXPECT_TRUE(parse_profile(with("[{\"id\": \"cpu.memcpy\"}]", std::string(64, '[') + std::string(64, ']'))));
  refused(kText + std::string("\0 ", 2), "byte of 0");
  refused(with("1MiB", "1\xC2\x9BMiB"), "control characters");
  EXPECT_TRUE(parse_profile(with("1MiB", "1\xC2\xA0MiB")));
  refused(std::string(kMaxProfileBytes + 1, ' '), "bytes");
  refused(with("wherry-profile", "bench-move"), "bench-move");
  refused(with("\"schema\": 1", "\"schema\": 2"), "measure again");
  refused(with("\"schema\": 1", "\"schema\": -1"), "schema");
  refused(with("\"cores\": 2", "\"cores\": 1e9"), "cores");
  refused(with("\"cores\": 2", "\"cores\": 70000"), "cores");
  refused(with("\"cpu\": \"A\"", "\"cpu\": 1"), "cpu");
  refused(with("\"machine\"", "\"engine\""), "machine");
  refused(with("move.window", "move window"), "characters");
  refused(with("move.window", ""), "characters");
  refused(with("1MiB", "1\\nMiB"), "control characters");
  refused(with("1MiB", std::string(513, '1')), "longer");
  refused(with("\"rule\": \"window\", ", ""), "rule");
}

class ProfileFile : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = TemporaryDirectory::create("profile");
    ASSERT_TRUE(made) << made.status().message();
    directory_ = *std::move(made);
    path_ = directory_.file("profile.json");
    std::ofstream(path_) << kText;
    ASSERT_EQ(chmod(path_.c_str(), 0644), 0);
  }
  TemporaryDirectory directory_;
  std::string path_;
  const MachineKey machine_{.cpu = "A", .kernel = "6.1", .cores = 2};
};

TEST_F(ProfileFile, OfThisMachine_ExpectIt) { EXPECT_TRUE(load_profile(path_, machine_)); }

TEST_F(ProfileFile, OfAnotherMachine_ExpectBothNamed) {
  for (const MachineKey& other : {MachineKey{"B", "6.1", 2}, MachineKey{"A", "6.2", 2}, MachineKey{"A", "6.1", 4}}) {
    const auto profile = load_profile(path_, other);
    ASSERT_FALSE(profile);
    EXPECT_EQ(profile.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(profile.status().message().find(to_string(other)), std::string::npos);
    EXPECT_NE(profile.status().message().find(to_string(machine_)), std::string::npos);
  }
}

TEST_F(ProfileFile, ThatOthersCanWrite_ExpectRefused) {
  ASSERT_EQ(chmod(path_.c_str(), 0666), 0);
  EXPECT_EQ(load_profile(path_, machine_).status().code(), StatusCode::kPermissionDenied);
}

TEST_F(ProfileFile, ThatIsNone_ExpectItsNameInTheError) {
  EXPECT_EQ(load_profile(path_ + "x", machine_).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(load_profile(directory_.path(), machine_).status().code(), StatusCode::kInvalidArgument);
  ASSERT_EQ(unlink(path_.c_str()), 0);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);  // does not wait for a writer
  const auto profile = load_profile(path_, machine_);
  EXPECT_NE(profile.status().message().find(path_), std::string::npos);
}

TEST(MachineKey, ToString_ExpectAllThatItIsOf) {
  EXPECT_EQ(to_string(MachineKey{.cpu = "A 1", .kernel = "6.1", .cores = 2}), "A 1 | 2 cores | Linux 6.1");
}

TEST(MachineKey, OfThisMachine_ExpectWhatTheKernelSays) {
  const MachineKey machine = this_machine();
  EXPECT_FALSE(machine.cpu.empty());
  EXPECT_GE(machine.cores, 1U);
  std::ifstream release("/proc/sys/kernel/osrelease");
  std::string kernel;
  std::getline(release, kernel);
  EXPECT_EQ(machine.kernel, kernel);
}

}  // namespace
}  // namespace wherry
