// SPDX-License-Identifier: Apache-2.0
#include "base/secure_directory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/absolute_path.hpp"
#include "base/temporary_directory.hpp"

namespace wherry {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kStranger = 12345;

class SecureDirectory : public testing::Test {
 protected:
  [[nodiscard]] std::string at(const char* name) const { return base_ / name; }
  static Status secured(const std::string& path, mode_t make = 0) {
    return secure_directory(path, make, "take another place").status();
  }
  static void expect_refusal(const std::string& path, const std::string& words) {
    const Status s = secured(path);
    EXPECT_EQ(s.code(), StatusCode::kPermissionDenied) << s.message();
    EXPECT_NE(s.message().find(words), std::string::npos) << s.message();
    EXPECT_NE(s.message().find("take another place"), std::string::npos) << s.message();
  }
  static std::string text_of(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  TemporaryDirectory temporary_ = *TemporaryDirectory::create("secure");
  fs::path base_ = fs::canonical(temporary_.path());
};

TEST_F(SecureDirectory, Missing_ExpectItMadeForThisUserAlone) {
  EXPECT_EQ(secured(at("a/b")).code(), StatusCode::kNotFound);
  ASSERT_TRUE(secured(at("a/b"), 0700));
  EXPECT_EQ(fs::status(at("a")).permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(at("a/b")).permissions(), fs::perms::owner_all);
  EXPECT_TRUE(secured(at("a/./b/../b/")));
}

TEST_F(SecureDirectory, UmaskTakesEverything_ExpectWhatIsMadeOpenToItsOwner) {
  const mode_t before = umask(0777);
  const Status made = secured(at("a/b"), 0700);
  const Status log = open_log_file(at("a/b/log")).status();
  const auto temporary = TemporaryDirectory::create("umask");
  umask(before);
  ASSERT_TRUE(made) << made.message();
  ASSERT_TRUE(log) << log.message();
  ASSERT_TRUE(temporary) << temporary.status().message();
  EXPECT_EQ(fs::status(at("a")).permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(at("a/b")).permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(at("a/b/log")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(fs::status(temporary->path()).permissions(), fs::perms::owner_all);
}

TEST(AbsolutePath, EmptyOrRelativeInADirectoryThatIsGone_ExpectASentence) {
  EXPECT_EQ(*absolute_path("/a/b"), "/a/b");
  EXPECT_EQ(*absolute_path("a"), fs::current_path() / "a");
  EXPECT_NE(absolute_path("").status().message().find("the path is empty"), std::string::npos);
  const fs::path here = fs::current_path();
  const std::string gone = std::string(TemporaryDirectory::create("gone")->path()) + "-more";
  fs::create_directory(gone);
  fs::current_path(gone);
  fs::remove(gone);
  const Status lost = absolute_path("a").status();
  fs::current_path(here);
  EXPECT_EQ(lost.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(lost.message().find("the current directory is unknown"), std::string::npos) << lost.message();
}

TEST_F(SecureDirectory, OthersMayWrite_ExpectRefusalUnlessItIsSticky) {
  fs::create_directory(at("open"));
  for (const mode_t mode : {0777U, 0770U, 0702U}) {
    ASSERT_EQ(chmod(at("open").c_str(), mode), 0);
    expect_refusal(at("open"), "chmod go-w");
  }
  ASSERT_EQ(chmod(at("open").c_str(), 01777), 0);
  EXPECT_TRUE(secured(at("open")));
}

TEST_F(SecureDirectory, OfAnotherUser_ExpectRefusal) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  fs::create_directory(at("theirs"));
  ASSERT_EQ(chown(at("theirs").c_str(), kStranger, kStranger), 0);
  expect_refusal(at("theirs"), "belongs to user 12345");
  // A directory of this user may lie beneath another user's directory.
  fs::create_directory(at("theirs/ours"));
  EXPECT_TRUE(secured(at("theirs/ours")));
}

TEST_F(SecureDirectory, SymbolicLink_ExpectOnlyThoseOnTheWayOfThisUserFollowed) {
  fs::create_directories(at("real/inner"));
  fs::create_directory_symlink("real", at("link"));
  fs::create_directory_symlink(at("real"), at("absolute"));
  expect_refusal(at("link"), "symbolic link");
  EXPECT_TRUE(secured(at("link/inner")));
  EXPECT_TRUE(secured(at("absolute/inner")));
  fs::create_directory_symlink("loop", at("loop"));
  EXPECT_EQ(secured(at("loop/x")).code(), StatusCode::kInvalidArgument);
  if (geteuid() != 0) return;
  ASSERT_EQ(lchown(at("link").c_str(), kStranger, kStranger), 0);
  expect_refusal(at("link/inner"), "of user 12345");
  EXPECT_EQ(open_directory(at("link/inner")).status().code(), StatusCode::kPermissionDenied);
  EXPECT_TRUE(open_directory(at("link/inner"), 0, kStranger));
}

TEST_F(SecureDirectory, NotADirectory_ExpectItSaid) {
  std::ofstream(at("file")) << "text";
  EXPECT_EQ(secured(at("file")).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(secured(at("file/x"), 0700).code(), StatusCode::kInvalidArgument);
}

TEST_F(SecureDirectory, Log_ExpectOnlyAFileOfOursWithOneName) {
  {
    const auto log = open_log_file(at("log"));
    ASSERT_TRUE(log) << log.status().message();
    ASSERT_EQ(write(log->get(), "one\n", 4), 4);
  }
  EXPECT_EQ(fs::status(at("log")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  {
    const auto log = open_log_file(at("log"));
    ASSERT_TRUE(log);
    ASSERT_EQ(write(log->get(), "two\n", 4), 4);
  }
  EXPECT_EQ(text_of(at("log")), "one\ntwo\n");
  EXPECT_TRUE(open_log_file("/dev/null"));

  std::ofstream(at("precious")) << "precious";
  fs::create_symlink(at("precious"), at("link"));
  fs::create_hard_link(at("precious"), at("hard"));
  ASSERT_EQ(mkfifo(at("fifo").c_str(), 0600), 0);
  for (const char* name : {"link", "hard", "fifo"}) {
    const Status s = open_log_file(at(name)).status();
    EXPECT_FALSE(s.ok()) << name;
    EXPECT_NE(s.message().find(name), std::string::npos) << s.message();
  }
  EXPECT_EQ(text_of(at("precious")), "precious");
  EXPECT_EQ(open_log_file(at("nowhere/log")).status().code(), StatusCode::kInvalidArgument);
  ASSERT_EQ(chmod(base_.c_str(), 0777), 0);
  EXPECT_EQ(open_log_file(at("log")).status().code(), StatusCode::kPermissionDenied);
}

TEST_F(SecureDirectory, RenameToAFreeName_ExpectNothingReplaced) {
  const auto directory = open_directory(base_);
  ASSERT_TRUE(directory);
  std::ofstream(at("new")) << "new";
  std::ofstream(at("old")) << "old";
  EXPECT_FALSE(rename_to_free_name(*directory, "new", "old"));
  EXPECT_EQ(errno, EEXIST);
  EXPECT_EQ(text_of(at("old")), "old");
  EXPECT_TRUE(rename_to_free_name(*directory, "new", "free"));
  EXPECT_EQ(text_of(at("free")), "new");
  EXPECT_FALSE(fs::exists(at("new")));
}

}  // namespace
}  // namespace wherry
