// SPDX-License-Identifier: Apache-2.0
#include "bypass/process/record.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "base/temporary_directory.hpp"
#include "bypass/process/status_server.hpp"
#include "pci/tree_testing.hpp"

namespace wherry::bypass {
namespace {

using namespace std::chrono_literals;
using pci::testing_support::at;

Record some() {
  return {.pid = getpid(),
          .started = process_start(getpid()),
          .nic = at("03:00.0"),
          .card = at("04:00.0"),
          .lent = {{at("03:00.0"), "ixgbe"}, {at("04:00.0"), ""}}};
}

TEST(Record, WriteAndRead_ExpectTheSame) {
  const auto directory = TemporaryDirectory::create("record");
  ASSERT_TRUE(directory);
  const RecordStore store(directory->file("run"));
  EXPECT_TRUE(store.all().empty());
  EXPECT_FALSE(store.read(at("03:00.0"))->has_value());
  const Status written = store.write(some());
  ASSERT_TRUE(written) << written.message();
  const auto read = store.read(at("03:00.0"));
  ASSERT_TRUE(read && read->has_value());
  EXPECT_EQ((*read)->lent, some().lent);
  EXPECT_EQ((*read)->pid, getpid());
  EXPECT_TRUE(RecordStore::alive(**read));
  struct stat file{};
  ASSERT_EQ(::stat(store.file_of(at("03:00.0")).c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600U);
  store.remove(at("03:00.0"));
  EXPECT_TRUE(store.all().empty());
}

TEST(Record, ReadGarbage_ExpectFileAndRemedy) {
  for (const std::string text :
       {"", "{}", "[]", "{\"pid\": 1}", "{\"pid\":1,\"started\":2,\"nic\":\"x\",\"card\":\"04:00.0\",\"lent\":[]}",
        "{\"pid\":1,\"started\":2,\"nic\":\"03:00.0\",\"card\":\"04:00.0\",\"lent\":[{\"function\":\"03:00.0\","
        "\"driver\":\"../x\"}]}",
        "{\"pid\":\"1\",\"started\":2,\"nic\":\"03:00.0\",\"card\":\"04:00.0\",\"lent\":[]}"})
    EXPECT_FALSE(parse_record(text)) << text;
  const auto directory = TemporaryDirectory::create("record");
  std::ofstream(directory->file("0000:03:00.0.json")) << "{";
  const auto read = RecordStore(directory->path().string()).read(at("03:00.0"));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.status().code(), StatusCode::kProtocol);
  EXPECT_NE(read.status().message().find("remove it"), std::string::npos);
}

TEST(Record, AskForProcesses_ExpectOnlyThoseThatWereMeant) {
  EXPECT_NE(process_start(getpid()), 0U);
  EXPECT_EQ(process_start(0x3FFFFFFF), 0U);
  Record other = some();
  other.started += 1;  // its number was given to another
  EXPECT_FALSE(RecordStore::alive(other));
}

TEST(StatusServer, AskManyTimes_ExpectAnswersAndSleep) {
  const auto directory = TemporaryDirectory::create("status");
  const std::string socket = directory->file("socket");
  std::atomic<bool> stop{false};
  std::atomic<int> asked{0};
  Status served;
  std::thread server([&] {
    served = serve_status(socket, [&] { return std::string("{\"n\":") + std::to_string(++asked) + "}"; }, stop);
  });
  for (int i = 1; i <= 5; ++i) {
    Result<std::string> text = Status(StatusCode::kUnavailable, "not yet");
    for (int attempt = 0; attempt < 500 && !text; ++attempt) {
      text = ask_status(socket, 5s);
      if (!text) std::this_thread::sleep_for(10ms);
    }
    ASSERT_TRUE(text) << text.status().message();
    EXPECT_EQ(*text, "{\"n\":" + std::to_string(i) + "}");
  }
  stop = true;
  (void)ask_status(socket, 5s);  // wakes it; in the process a signal does
  server.join();
  EXPECT_TRUE(served);
  EXPECT_EQ(ask_status(socket, 1s).status().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace wherry::bypass
