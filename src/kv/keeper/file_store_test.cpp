// SPDX-License-Identifier: Apache-2.0
// Tests the keeper's state file: it returns what was stored, and touches no other file of its user.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "base/temporary_directory.hpp"
#include "kv/keeper/configuration_store.hpp"

namespace wherry::kv {
namespace {

class KvFileStore : public testing::Test {
 protected:
  void SetUp() override {
    auto directory = TemporaryDirectory::create("kv-store");
    ASSERT_TRUE(directory);
    directory_ = *std::move(directory);
    precious_ = directory_.file("precious");
    state_ = directory_.file("state.json");
    std::ofstream(precious_) << "precious";
  }
  void expect_precious_untouched() const {
    std::ostringstream text;
    text << std::ifstream(precious_).rdbuf();
    EXPECT_EQ(text.str(), "precious");
  }
  static Configuration some() {
    Configuration c;
    c.epoch = 3;
    c.members = c.serving = 1;
    c.leaders = first_leaders(1);
    c.peers[0] = {0, 0x7f000001, 19286};
    c.boots[0] = 7;
    return c;
  }

  TemporaryDirectory directory_;
  std::string precious_, state_;
};

TEST_F(KvFileStore, Kept_ExpectItBackAndOneKeeperAtATime) {
  auto store = open_file_store(state_);
  ASSERT_TRUE(store) << store.status().message();
  EXPECT_FALSE((*store)->load()->has_value());
  EXPECT_TRUE((*store)->store(some()));
  EXPECT_EQ(open_file_store(state_).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(**(*store)->load(), some());
}

TEST_F(KvFileStore, LinkInPlaceOfAnyOfItsFiles_ExpectRefusalOrReplacedAndTheOtherFileUntouched) {
  const auto tried = [&] {
    if (auto store = open_file_store(state_); store && (*store)->load()) (void)(*store)->store(some());
    expect_precious_untouched();
    for (const char* const end : {"", ".lock", ".new"}) std::filesystem::remove(state_ + end);
  };
  for (const char* const end : {"", ".lock", ".new"}) {
    std::filesystem::create_symlink(precious_, state_ + end);
    tried();
    std::filesystem::create_hard_link(precious_, state_ + end);
    tried();
  }
}

TEST_F(KvFileStore, OthersMayWriteToTheDirectory_ExpectRefusalWithTheRemedy) {
  const std::string open = directory_.file("open");
  ASSERT_EQ(::mkdir(open.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(open.c_str(), 0777), 0);
  const auto store = open_file_store(open + "/state.json");
  EXPECT_EQ(store.status().code(), StatusCode::kPermissionDenied);
  EXPECT_NE(store.status().message().find("name another --state"), std::string::npos) << store.status().message();
}

TEST_F(KvFileStore, NoSuchDirectory_ExpectItNamed) {
  const auto store = open_file_store(directory_.file("none") + "/state.json");
  EXPECT_EQ(store.status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace wherry::kv
