// SPDX-License-Identifier: Apache-2.0
#include "fabric/session_file.hpp"

#include <grp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

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

  void write() { ASSERT_TRUE(write_session_file(path_, file_)); }
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
};

/// The pid of a process that has ended, waited for or not.
int ended_process(bool waited_for) {
  const pid_t pid = fork();
  if (pid == 0) _exit(0);
  siginfo_t how{};
  EXPECT_EQ(waitid(P_PID, static_cast<id_t>(pid), &how, WEXITED | (waited_for ? 0 : WNOWAIT)), 0);
  return pid;
}

TEST_F(SessionFiles, WrittenOne_ExpectTheSameBackAndNobodyElseReadsIt) {
  write();
  auto read = read_session_file(path_);
  ASSERT_TRUE(read) << read.status().message();
  EXPECT_EQ(read->port, 4100);
  EXPECT_EQ(read->token, "secret");
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  remove_session_file(path_, getpid() + 1);
  EXPECT_TRUE(fs::exists(path_)) << "of another agent";
  remove_session_file(path_, getpid());
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
  EXPECT_EQ(prepare_session_file(path_).code(), StatusCode::kPermissionDenied);
}

TEST_F(SessionFiles, ForAGroup_ExpectItsMembersToReadIt) {
  const group* const mine = getgrgid(getgid());
  ASSERT_NE(mine, nullptr);
  file_.group = mine->gr_name;
  const fs::path path = directory_ / "sub" / "agent.json";
  ASSERT_TRUE(prepare_session_file(path, file_.group));
  ASSERT_TRUE(write_session_file(path, file_));
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
  EXPECT_EQ(write_session_file(path, file_).code(), StatusCode::kInvalidArgument);
}

TEST_F(SessionFiles, OfAnotherUserForAGroup_ExpectItUsableWhereItWasNamed) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  file_.group = getgrgid(getgid())->gr_name;
  const fs::path path = directory_ / "wherry" / "agent.json";
  ASSERT_TRUE(prepare_session_file(path, file_.group));
  ASSERT_TRUE(write_session_file(path, file_));
  for (const fs::path& p : {path, path.parent_path()}) ASSERT_EQ(chown(p.c_str(), 12345, getgid()), 0);
  const Status named = read_session_file(path).status();
  EXPECT_TRUE(named) << named.message();
  // Where an agent is looked for when nobody says where, anybody could have been first.
  setenv("XDG_RUNTIME_DIR", directory_.c_str(), 1);
  EXPECT_EQ(read_session_file(path).status().code(), StatusCode::kPermissionDenied);
  unsetenv("XDG_RUNTIME_DIR");
}

TEST_F(SessionFiles, NotOne_ExpectItSaid) {
  for (const char* text : {"", "{", "[1]", "null", "{}", R"({"version": "1"})", R"({"version": 2, "pid": 1})"}) {
    write_text(text);
    expect(StatusCode::kProtocol, "is not a session file");
  }
  file_.token.clear();
  write();
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
  // A path need not be UTF-8; JSON must be.
  file_.local_socket = "/tmp/\xff";
  EXPECT_TRUE(parse_session(session_text(file_), "a file"));
}

TEST_F(SessionFiles, SocketsByName_ExpectThemBesideTheFileWhereverItIsSeen) {
  file_.control = "agent.json.control";
  file_.local_socket = "/run/readers.sock";
  const fs::path odd = directory_ / "not-\xff-utf8";
  fs::create_directory(odd);
  ASSERT_TRUE(write_session_file(odd / "agent.json", file_));
  fs::create_symlink(odd / "agent.json", path_);
  for (const fs::path& path : {odd / "agent.json", path_}) {
    const auto read = read_session_file(path);
    ASSERT_TRUE(read) << read.status().message();
    EXPECT_EQ(read->control, odd / "agent.json.control");
    EXPECT_EQ(read->local_socket, "/run/readers.sock");
  }
}

TEST_F(SessionFiles, AgentEnded_ExpectUnavailable) {
  file_.pid = ended_process(true);
  write();
  expect(StatusCode::kUnavailable, "is not running any more");
  EXPECT_TRUE(prepare_session_file(path_));
  file_.pid = ended_process(false);
  write();
  expect(StatusCode::kUnavailable, "is not running any more");
  waitpid(file_.pid, nullptr, 0);
}

TEST_F(SessionFiles, AgentOfAnotherMachine_ExpectItsPidIgnored) {
  file_.pid = ended_process(true);
  for (const char* host : {"192.0.2.7", "dpu0", "fe80::1"}) {
    file_.host = host;
    write();
    EXPECT_TRUE(status()) << host;
  }
  EXPECT_TRUE(prepare_session_file(path_)) << "an agent here that listens to the network and died";
  for (const char* host : {"127.0.0.2", "localhost", "::1"}) {
    file_.host = host;
    write();
    EXPECT_EQ(status().code(), StatusCode::kUnavailable) << host;
  }
}

TEST_F(SessionFiles, AgentRuns_ExpectNoOtherTakesOver) {
  EXPECT_TRUE(prepare_session_file(directory_ / "new" / "agent.json"));
  EXPECT_EQ(fs::status(directory_ / "new").permissions(), fs::perms::owner_all);
  file_.pid = getppid();
  for (const char* host : {"127.0.0.1", "192.0.2.7"}) {
    file_.host = host;
    write();
    EXPECT_EQ(prepare_session_file(path_).code(), StatusCode::kAlreadyExists);
  }
}

}  // namespace
}  // namespace wherry
