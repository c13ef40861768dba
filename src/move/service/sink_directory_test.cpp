// SPDX-License-Identifier: Apache-2.0
#include "move/service/sink_directory.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

namespace wherry::move {
namespace {

namespace fs = std::filesystem;

class SinkDirectories : public ::testing::Test {
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
  static Result<std::shared_ptr<const SinkDirectory>> opened(const std::string& root, const std::string& directory,
                                                             const std::string& stream = "s") {
    return SinkDirectory::open(root, directory, stream, Sink::Format::kParquet);
  }
  /// The current path of an open directory.
  static fs::path place(const SinkDirectory& directory) {
    return fs::read_symlink("/proc/self/fd/" + std::to_string(directory.fd().get()));
  }
  static void expect(StatusCode code, const std::string& words, const Status& s) {
    EXPECT_EQ(s.code(), code) << s.message();
    EXPECT_NE(s.message().find(words), std::string::npos) << s.message();
  }
  fs::path base_ = fs::canonical(fs::temp_directory_path()) / ("wherry-sink-root-" + std::to_string(::getpid()));
};

TEST_F(SinkDirectories, NoRoot_ExpectTheDirectoryMadeWhereItWasAskedFor) {
  const auto made = opened("", at("new/deep"));
  ASSERT_TRUE(made) << made.status().message();
  EXPECT_EQ(place(**made), at("new/deep"));
  EXPECT_EQ((*made)->path(), at("new/deep"));
  EXPECT_EQ(place(**opened("", at("root/latest"))), at("root/runs")) << "a link of our own";
  expect(StatusCode::kInvalidArgument, "complete path", opened("", "relative").status());
  std::ofstream(at("file")) << "text";
  expect(StatusCode::kInvalidArgument, at("file"), opened("", at("file")).status());
  if (geteuid() != 0) return;
  ASSERT_EQ(lchown(at("root/latest").c_str(), 12345, 12345), 0);
  expect(StatusCode::kPermissionDenied, "of user 12345", opened("", at("root/latest")).status());
}

TEST_F(SinkDirectories, BelowTheRoot_ExpectItOpened) {
  for (const char* root : {"root", "root/", "link-to-root"}) {
    for (const std::string& path : {at("root/runs"), std::string("runs"), at("root/new/../runs/")}) {
      const auto made = opened(at(root), path);
      ASSERT_TRUE(made) << root << " " << path << ": " << made.status().message();
      EXPECT_EQ(place(**made), at("root/runs"));
    }
    EXPECT_EQ(place(**opened(at(root), at("root/new/deep"))), at("root/new/deep"));
    EXPECT_EQ(place(**opened(at(root), ".")), at("root"));
    EXPECT_EQ(place(**opened(at(root), at("root"))), at("root"));
  }
  EXPECT_EQ(place(**opened(at("link-to-root"), at("link-to-root/runs"))), at("root/runs"));
}

TEST_F(SinkDirectories, LeadingOut_ExpectRefusalThatNamesTheSetting) {
  for (const std::string& path : {at("outside"), at("root/out"), at("root/out/deep"), at("root/../outside"),
                                  at("root/new/../../outside"), at("rooted"), std::string("../outside"),
                                  std::string("/"), std::string("out/x"), std::string("latest"), at("root/latest/x")}) {
    expect(StatusCode::kPermissionDenied, "sink.root", opened(at("root"), path).status());
  }
  EXPECT_TRUE(fs::is_empty(at("outside")));
}

TEST_F(SinkDirectories, ALinkPutInItsPlaceAfterItWasOpened_ExpectFilesWhereItWas) {
  for (const std::string& root : {at("root"), std::string()}) {
    const auto made = opened(root, at("root/job"));
    ASSERT_TRUE(made) << made.status().message();
    fs::rename(at("root/job"), at("moved"));
    fs::create_directory_symlink(at("outside"), at("root/job"));
    EXPECT_EQ(place(**made), at("moved"));
    fs::remove(at("root/job"));
    fs::remove_all(at("moved"));
  }
}

TEST_F(SinkDirectories, ALinkWhereADirectoryIsMissing_ExpectRefusal) {
  fs::create_directory_symlink(at("outside/later"), at("root/dangling"));
  expect(StatusCode::kPermissionDenied, "symbolic link", opened(at("root"), "dangling/x").status());
  EXPECT_FALSE(fs::exists(at("outside/later")));
}

TEST_F(SinkDirectories, RootMissing_ExpectUnavailable) {
  expect(StatusCode::kUnavailable, "sink.root", opened(at("nowhere"), "x").status());
}

TEST_F(SinkDirectories, StreamNamesWhoseFilesHaveNoName_ExpectTheLimit) {
  // The longest suffix is "-18446744073709551615.parquet", and a file name may have 255 bytes.
  const std::size_t most = 255 - 29;
  EXPECT_TRUE(opened("", at("root/runs"), std::string(most, 'n')));
  expect(StatusCode::kInvalidArgument, "a name of 226 bytes",
         opened("", at("root/runs"), std::string(most + 1, 'n')).status());
  EXPECT_TRUE(SinkDirectory::open("", at("root/runs"), std::string(most + 2, 'n'), Sink::Format::kArrow));
}

TEST_F(SinkDirectories, NamesWithANul_ExpectRefusalAndNothingMade) {
  const std::string cut = at("cut") + std::string("\0more", 5);
  for (const char* root : {"", "root"})
    expect(StatusCode::kInvalidArgument, "NUL", opened(*root == 0 ? "" : at(root), cut).status());
  expect(StatusCode::kInvalidArgument, "NUL", opened("", at("new"), std::string("s\0t", 3)).status());
  EXPECT_FALSE(fs::exists(at("cut")));
}

TEST_F(SinkDirectories, FirstFileOfAnEarlierStream_ExpectAlreadyExists) {
  std::ofstream(at("root/runs/s-00000000.parquet")) << "earlier";
  expect(StatusCode::kAlreadyExists, "s-00000000.parquet", opened("", at("root/runs")).status());
  fs::remove(at("root/runs/s-00000000.parquet"));
  fs::create_symlink(at("nowhere"), at("root/runs/s-00000000.parquet"));
  expect(StatusCode::kAlreadyExists, "s-00000000.parquet", opened(at("root"), "runs").status());
  EXPECT_TRUE(SinkDirectory::open("", at("root/runs"), "s", Sink::Format::kArrow));
  EXPECT_TRUE(opened("", at("root/runs"), "t"));
}

TEST_F(SinkDirectories, ManyStreamsInOneDirectory_ExpectOneDescriptor) {
  std::vector<std::shared_ptr<const SinkDirectory>> all;
  for (int i = 0; i < 100; ++i) all.push_back(*opened("", at("root/runs"), "s" + std::to_string(i)));
  for (const auto& one : all) EXPECT_EQ(one->fd().get(), all.front()->fd().get());
}

TEST_F(SinkDirectories, MoreDirectoriesThanDescriptorsAllow_ExpectALimitThatIsGivenBack) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{80, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<std::shared_ptr<const SinkDirectory>> all;
  Status last;
  while (all.size() < 60) {
    auto one = opened("", at("root") + "/" + std::to_string(all.size()));
    last = one.status();
    if (!one) break;
    all.push_back(*std::move(one));
  }
  EXPECT_EQ(all.size(), 20U);
  expect(StatusCode::kResourceExhausted, "ulimit -n", last);
  EXPECT_TRUE(opened("", at("root/0"), "another"));
  all.clear();
  EXPECT_TRUE(opened("", at("root/runs")));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace wherry::move
