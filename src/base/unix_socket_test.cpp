// SPDX-License-Identifier: Apache-2.0
#include "base/unix_socket.hpp"
#include "base/testing.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/temporary_directory.hpp"

namespace wherry {
namespace {

using testing_support::kPatience;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

class UnixSockets : public testing::Test {
 protected:
  [[nodiscard]] Fd accepted(const Fd& listener) const { return Fd(accept(listener.get(), nullptr, nullptr)); }
  TemporaryDirectory directory_ = *TemporaryDirectory::create("test");
  std::string path_ = directory_.file("socket");
};

TEST_F(UnixSockets, Connect_ExpectCredentialsOfBothProcesses) {
  auto listener = listen_unix(path_);
  ASSERT_TRUE(listener) << listener.status().message();
  struct stat info{};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  const pid_t child = fork();
  if (child == 0) {
    auto socket = connect_unix(path_, Deadline(kPatience));
    char byte = 0;
    if (socket) (void)!read(socket->get(), &byte, 1);
    pause();
    _exit(0);
  }
  pollfd arrived{listener->get(), POLLIN, 0};
  ASSERT_EQ(poll(&arrived, 1, 60'000), 1);
  const Fd other = accepted(*listener);
  auto who = peer_credentials(other.get());
  ASSERT_TRUE(who) << who.status().message();
  EXPECT_EQ(who->pid, child);
  EXPECT_EQ(who->uid, getuid());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST_F(UnixSockets, NobodyListens_ExpectUnavailableAndThePath) {
  const auto missing = connect_unix(path_, Deadline(kPatience));
  EXPECT_EQ(missing.status().code(), StatusCode::kUnavailable);
  EXPECT_NE(missing.status().message().find(path_), std::string::npos);
  {
    auto gone = listen_unix(path_);
  }
  EXPECT_EQ(connect_unix(path_, Deadline(kPatience)).status().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(listen_unix(path_)) << "the file of a dead listener is replaced";
}

TEST_F(UnixSockets, PathTaken_ExpectRefusalAndTheFileUntouched) {
  auto first = listen_unix(path_);
  ASSERT_TRUE(first);
  EXPECT_EQ(listen_unix(path_).status().code(), StatusCode::kAlreadyExists);
  const std::string file = directory_.file("file");
  std::ofstream(file) << "kept";
  EXPECT_EQ(listen_unix(file).status().code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(fs::file_size(file), 4U);
}

TEST_F(UnixSockets, DirectoryLongerThanAnAddress_ExpectItToWork) {
  fs::path deep = directory_.path();
  while (deep.string().size() < 300) deep /= "a-directory-with-a-long-name";
  fs::create_directories(deep);
  const std::string path = deep / "agent.json.control";
  auto listener = listen_unix(path);
  ASSERT_TRUE(listener) << listener.status().message();
  EXPECT_TRUE(fs::is_socket(path));
  auto socket = connect_unix(path, Deadline(kPatience));
  EXPECT_TRUE(socket) << socket.status().message();
  EXPECT_EQ(listen_unix(path).status().code(), StatusCode::kAlreadyExists);
}

TEST_F(UnixSockets, NameTooLong_ExpectTheLimitAndTheName) {
  const std::string name(kMaxSocketName + 30, 'n');
  const Status s = listen_unix(directory_.file(name)).status();
  EXPECT_EQ(s.code(), StatusCode::kInvalidArgument);
  for (const std::string& part : {name, std::to_string(kMaxSocketName), std::to_string(name.size())})
    EXPECT_NE(s.message().find(part), std::string::npos) << s.message();
}

}  // namespace
}  // namespace wherry
