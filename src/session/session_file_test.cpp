// SPDX-License-Identifier: Apache-2.0
#include "session/session_file.hpp"

#include <grp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "base/temporary_directory.hpp"

namespace wherry {
namespace {

namespace fs = std::filesystem;

class SessionFiles : public testing::Test {
 protected:
  SessionFiles() {
    path_ = directory_ / "agent.json";
    file_.pid = getpid();
    file_.host = "127.0.0.1";
    file_.port = 4100;
    file_.token = "secret";
  }

  /// Writes the file as a running agent does.
  void write() {
    claim_ = {};
    auto claim = SessionFileClaim::make(path_, file_.group);
    ASSERT_TRUE(claim) << claim.status().message();
    claim_ = *std::move(claim);
    const Status s = claim_.publish(file_);
    ASSERT_TRUE(s) << s.message();
  }
  /// Writes the file like an agent that was killed: the file remains without its lock.
  void write_and_die() {
    write();
    claim_ = {};
  }
  [[nodiscard]] Status claimed() const { return SessionFileClaim::make(path_).status(); }
  void write_text(const std::string& text) const {
    std::ofstream(path_) << text;
    chmod(path_.c_str(), 0600);
  }
  [[nodiscard]] Status status() const { return read_session_file(path_).status(); }
  void expect(StatusCode code, const std::string& words) const {
    const Status s = status();
    EXPECT_EQ(s.code(), code) << s.message();
    EXPECT_NE(s.message().find(words), std::string::npos) << s.message();
    EXPECT_NE(s.message().find(directory_.string()), std::string::npos) << s.message();
    EXPECT_EQ(s.message().find("secret"), std::string::npos) << "the token is nobody's business";
  }

  TemporaryDirectory temporary_ = *TemporaryDirectory::create("test");
  fs::path directory_ = temporary_.path();
  fs::path path_;
  SessionFile file_;
  SessionFileClaim claim_;
};

TEST_F(SessionFiles, UmaskTakesEverything_ExpectTheFileOpenToItsOwner) {
  const mode_t before = umask(0777);
  write();
  umask(before);
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(SessionFiles, NoName_ExpectASentence) {
  EXPECT_EQ(read_session_file("").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(SessionFileClaim::make("").status().code(), StatusCode::kInvalidArgument);
}

TEST_F(SessionFiles, WrittenOne_ExpectTheSameBackAndNobodyElseReadsIt) {
  write();
  auto read = read_session_file(path_);
  ASSERT_TRUE(read) << read.status().message();
  EXPECT_EQ(read->port, 4100);
  EXPECT_EQ(read->token, "secret");
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  claim_.withdraw();
  expect(StatusCode::kNotFound, "wherry agent start");
}

TEST_F(SessionFiles, OthersMayReadIt_ExpectRefusal) {
  write();
  for (const mode_t mode : {0640U, 0604U, 0620U}) {
    chmod(path_.c_str(), mode);
    expect(StatusCode::kPermissionDenied, "chmod 600");
  }
}

TEST_F(SessionFiles, OfAnotherUser_ExpectRefusalOfFileAndDirectory) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  write();
  ASSERT_EQ(chown(path_.c_str(), 12345, 12345), 0);
  expect(StatusCode::kPermissionDenied, "belongs to user 12345");
  ASSERT_EQ(chown(path_.c_str(), 0, 0), 0);
  ASSERT_TRUE(status());
  ASSERT_EQ(chown(directory_.c_str(), 12345, 12345), 0);
  expect(StatusCode::kPermissionDenied, "$WHERRY_SESSION");
  EXPECT_EQ(claimed().code(), StatusCode::kPermissionDenied);
}

TEST_F(SessionFiles, ForAGroup_ExpectItsMembersToReadIt) {
  const group* const mine = getgrgid(getgid());
  ASSERT_NE(mine, nullptr);
  file_.group = mine->gr_name;
  const fs::path path = directory_ / "sub" / "agent.json";
  auto claim = SessionFileClaim::make(path, file_.group);
  ASSERT_TRUE(claim) << claim.status().message();
  ASSERT_TRUE(claim->publish(file_));
  struct stat info{};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640U);
  EXPECT_EQ(info.st_gid, getgid());
  EXPECT_EQ(fs::status(directory_ / "sub").permissions(),
            fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec);
  auto read = read_session_file(path);
  ASSERT_TRUE(read) << read.status().message();
  EXPECT_EQ(read->group, file_.group);
  for (const mode_t mode : {0660U, 0644U, 0650U}) {
    chmod(path.c_str(), mode);
    EXPECT_EQ(read_session_file(path).status().code(), StatusCode::kPermissionDenied) << mode;
  }
  file_.group = "no-such-group";
  claim->withdraw();
  EXPECT_EQ(claim->publish(file_).code(), StatusCode::kInvalidArgument);
}

TEST_F(SessionFiles, OfAnotherUserForAGroup_ExpectItUsableWhereItWasNamed) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  file_.group = getgrgid(getgid())->gr_name;
  const fs::path path = directory_ / "wherry" / "agent.json";
  auto claim = SessionFileClaim::make(path, file_.group);
  ASSERT_TRUE(claim) << claim.status().message();
  ASSERT_TRUE(claim->publish(file_));
  for (const fs::path& p : {path, path.parent_path()}) ASSERT_EQ(chown(p.c_str(), 12345, getgid()), 0);
  const Status named = read_session_file(path).status();
  EXPECT_TRUE(named) << named.message();
  // At the default paths, another user could have created the directory first.
  setenv("XDG_RUNTIME_DIR", directory_.c_str(), 1);
  EXPECT_EQ(read_session_file(path).status().code(), StatusCode::kPermissionDenied);
  unsetenv("XDG_RUNTIME_DIR");
}

TEST_F(SessionFiles, NotOne_ExpectItSaid) {
  for (const char* text : {"", "{", "[1]", "null", "{}", R"({"version": "1"})", R"({"version": 2, "pid": 1})"}) {
    write_text(text);
    expect(StatusCode::kProtocol, "is not a session file");
  }
  EXPECT_EQ(claimed().code(), StatusCode::kProtocol) << "an agent replaces session files only";
  file_.token.clear();
  write_text(session_text(file_));
  expect(StatusCode::kProtocol, "is not a session file");
  write_text(R"({"version": 3, "pid": 1})");
  expect(StatusCode::kVersionMismatch, "of version 3");
  fs::remove(path_);
  fs::create_directory(path_);
  expect(StatusCode::kInvalidArgument, "is not a file");
}

TEST_F(SessionFiles, NumbersThatDoNotFit_ExpectThemRefusedNotBent) {
  const std::string text = session_text(file_);
  auto read = parse_session(text, "a file");
  ASSERT_TRUE(read) << read.status().message();
  EXPECT_EQ(*read, file_);
  const auto with = [&](const std::string& key, const std::string& value) {
    const std::size_t at = text.find("\"" + key + "\": ") + key.size() + 4;
    return text.substr(0, at) + value + text.substr(text.find_first_of(",\n", at));
  };
  for (const char* key : {"port", "pid", "version"}) {
    for (const char* value : {"-1", "1.5", "true", "null", "\"1\""})
      EXPECT_EQ(parse_session(with(key, value), "a file").status().code(), StatusCode::kProtocol) << key << value;
  }
  EXPECT_EQ(parse_session(with("port", "70000"), "a file").status().code(), StatusCode::kProtocol);
  EXPECT_EQ(parse_session(with("pid", "4294967297"), "a file").status().code(), StatusCode::kProtocol);
  // A path may contain bytes that are not UTF-8, but JSON must be UTF-8.
  file_.local_socket = "/tmp/\xff";
  EXPECT_TRUE(parse_session(session_text(file_), "a file"));
}

TEST_F(SessionFiles, SocketsByName_ExpectThemBesideTheFileWhereverItIsSeen) {
  file_.control = "agent.json.control";
  file_.local_socket = "/run/readers.sock";
  const fs::path odd = directory_ / "not-\xff-utf8";
  fs::create_directory(odd);
  auto claim = SessionFileClaim::make(odd / "agent.json");
  ASSERT_TRUE(claim) << claim.status().message();
  ASSERT_TRUE(claim->publish(file_));
  fs::create_symlink(odd / "agent.json", path_);
  for (const fs::path& path : {odd / "agent.json", path_}) {
    const auto read = read_session_file(path);
    ASSERT_TRUE(read) << read.status().message();
    EXPECT_EQ(read->control, odd / "agent.json.control");
    EXPECT_EQ(read->local_socket, "/run/readers.sock");
  }
}

TEST_F(SessionFiles, AgentEnded_ExpectUnavailableWhateverRunsUnderItsPid) {
  for (const int pid : {1, static_cast<int>(getpid()), static_cast<int>(getppid())}) {  // all of them run
    file_.pid = pid;
    write_and_die();
    expect(StatusCode::kUnavailable, "is not running any more");
    EXPECT_TRUE(claimed()) << pid;
  }
}

TEST_F(SessionFiles, AgentOfAnotherMachine_ExpectOnlyAConnectionToTell) {
  for (const char* host : {"192.0.2.7", "dpu0", "fe80::1"}) {
    file_.host = host;
    write_and_die();
    EXPECT_TRUE(status()) << host;
  }
  EXPECT_TRUE(claimed()) << "an agent here that listens to the network and died";
  for (const char* host : {"127.0.0.2", "localhost", "::1"}) {
    file_.host = host;
    write_and_die();
    EXPECT_EQ(status().code(), StatusCode::kUnavailable) << host;
  }
}

TEST_F(SessionFiles, AgentRuns_ExpectNoOtherTakesOver) {
  EXPECT_TRUE(SessionFileClaim::make(directory_ / "new" / "agent.json"));
  EXPECT_EQ(fs::status(directory_ / "new").permissions(), fs::perms::owner_all);
  for (const char* host : {"127.0.0.1", "192.0.2.7"}) {
    file_.host = host;
    file_.pid = 1'999'999'999;  // no process has that
    write();
    EXPECT_EQ(claimed().code(), StatusCode::kAlreadyExists);
  }
}

TEST_F(SessionFiles, TwoAgentsStartAtOnce_ExpectOneToGetTheFile) {
  for (const bool stale : {false, true}) {
    if (stale) write_and_die();
    std::array<Result<SessionFileClaim>, 2> claims{SessionFileClaim::make(path_), SessionFileClaim::make(path_)};
    std::array<Status, 2> published;
    for (std::size_t i = 0; i < 2; ++i) {
      ASSERT_TRUE(claims[i]) << claims[i].status().message();
      file_.port = static_cast<std::uint16_t>(5000 + i);
      published[i] = claims[i]->publish(file_);
    }
    EXPECT_TRUE(published[0]) << published[0].message();
    EXPECT_EQ(published[1].code(), StatusCode::kAlreadyExists) << published[1].message();
    EXPECT_EQ(read_session_file(path_)->port, 5000);
    claims[1]->withdraw();
    EXPECT_TRUE(fs::exists(path_)) << "the other one's";
    claims[0]->withdraw();
    EXPECT_FALSE(fs::exists(path_));
    EXPECT_TRUE(fs::is_empty(directory_)) << "temporary files";
  }
}

TEST_F(SessionFiles, ManyTakeOverAStaleOneWhileReadersLook_ExpectOneToGetIt) {
  constexpr std::size_t kAgents = 6;
  for (int round = 0; round < 20; ++round) {
    write_and_die();
    std::atomic<bool> stop{false};
    std::atomic<int> winners{0};
    std::thread reader([&] {
      while (!stop) (void)read_session_file(path_);
    });
    std::vector<Result<SessionFileClaim>> claims;
    for (std::size_t i = 0; i < kAgents; ++i) claims.push_back(SessionFileClaim::make(path_));
    std::vector<std::thread> agents;
    for (auto& claim : claims) {
      agents.emplace_back([&] {
        if (claim->publish(file_)) ++winners;
      });
    }
    for (std::thread& agent : agents) agent.join();
    stop = true;
    reader.join();
    EXPECT_EQ(winners.load(), 1);
    EXPECT_EQ(claimed().code(), StatusCode::kAlreadyExists);
  }
}

TEST_F(SessionFiles, SomethingElseInItsPlace_ExpectItLeftAlone) {
  std::ofstream(directory_ / "thesis.tex") << "thesis";
  chmod((directory_ / "thesis.tex").c_str(), 0600);
  EXPECT_EQ(SessionFileClaim::make(directory_ / "thesis.tex").status().code(), StatusCode::kProtocol);
  fs::create_symlink(directory_ / "thesis.tex", path_);
  EXPECT_EQ(claimed().code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(status().code(), StatusCode::kProtocol);
  EXPECT_EQ(fs::file_size(directory_ / "thesis.tex"), 6U);
  if (geteuid() != 0) return;
  ASSERT_EQ(lchown(path_.c_str(), 12345, 12345), 0);
  EXPECT_EQ(status().code(), StatusCode::kPermissionDenied) << "a link of somebody else";
}

TEST_F(SessionFiles, DirectoryThatOthersMayWriteTo_ExpectRefusalByAgentAndReader) {
  write();
  ASSERT_EQ(chmod(directory_.c_str(), 0777), 0);
  expect(StatusCode::kPermissionDenied, "chmod go-w");
  EXPECT_EQ(claimed().code(), StatusCode::kPermissionDenied);
  ASSERT_EQ(chmod(directory_.c_str(), 0700), 0);
}

}  // namespace
}  // namespace wherry
