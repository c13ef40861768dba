// SPDX-License-Identifier: Apache-2.0
#include "move/service/sink_directory.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace wherry::move {
namespace {

namespace fs = std::filesystem;

class SinkDirectory : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(base_ / "root/runs");
    fs::create_directories(base_ / "outside");
    fs::create_directories(base_ / "rooted");
    fs::create_directory_symlink(base_ / "outside", base_ / "root/out");
    fs::create_directory_symlink(base_ / "root/runs", base_ / "root/latest");
    fs::create_directory_symlink(base_ / "root", base_ / "link-to-root");
  }
  void TearDown() override { fs::remove_all(base_); }
  [[nodiscard]] std::string at(const char* path) const { return (base_ / path).string(); }
  fs::path base_ = fs::canonical(fs::temp_directory_path()) / ("wherry-sink-root-" + std::to_string(::getpid()));
};

TEST_F(SinkDirectory, NoRoot_ExpectWhatWasAskedFor) {
  EXPECT_EQ(*resolve_sink("", "/any/where"), "/any/where");
  EXPECT_EQ(*resolve_sink("", "relative"), "relative");
}

TEST_F(SinkDirectory, BelowTheRoot_ExpectItsRealPath) {
  for (const char* root : {"root", "root/", "link-to-root"}) {
    EXPECT_EQ(*resolve_sink(at(root), at("root/runs")), at("root/runs"));
    EXPECT_EQ(*resolve_sink(at(root), at("root/new/deep")), at("root/new/deep"));
    EXPECT_EQ(*resolve_sink(at(root), at("root/latest/x")), at("root/runs/x"));
    EXPECT_EQ(*resolve_sink(at(root), "runs"), at("root/runs"));
    EXPECT_EQ(*resolve_sink(at(root), at("link-to-root/runs")), at("root/runs"));
  }
}

TEST_F(SinkDirectory, LeadingOut_ExpectRefusalThatNamesTheSetting) {
  for (const std::string& path :
       {at("outside"), at("root/out"), at("root/out/deep"), at("root/../outside"), at("root/new/../../outside"),
        at("rooted"), std::string("../outside"), std::string("/"), std::string("out/x")}) {
    const auto refused = resolve_sink(at("root"), path);
    EXPECT_EQ(refused.status().code(), StatusCode::kPermissionDenied) << path;
    EXPECT_NE(refused.status().message().find("sink.root"), std::string::npos);
  }
}

TEST_F(SinkDirectory, RootMissing_ExpectUnavailable) {
  EXPECT_EQ(resolve_sink(at("nowhere"), "x").status().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace wherry::move
