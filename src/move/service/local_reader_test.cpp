// SPDX-License-Identifier: Apache-2.0
#include "move/service/local_reader.hpp"

#include <arrow/ipc/reader.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/fd.hpp"
#include "move/service/local_connection.hpp"
#include "move/service/local_request.hpp"
#include "move/service/testing.hpp"

namespace wherry::move {
namespace {

using namespace std::chrono_literals;
using testing::particles;
using Json = nlohmann::json;

/// A reader as in another process, with plain system calls.
class Reader {
 public:
  explicit Reader(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    const timeval patience{20, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  ~Reader() {
    if (view_ != nullptr) ::munmap(view_, bytes_);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  bool send(const std::string& text) const {
    return ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  /// The next reply; nullopt if the agent has closed the connection.
  std::optional<Json> receive() {
    for (;;) {
      if (const auto end = in_.find('\n'); end != std::string::npos) {
        const std::string line = in_.substr(0, end);
        in_.erase(0, end + 1);
        return Json::parse(line);
      }
      std::array<char, 4096> chunk;
      iovec part{chunk.data(), chunk.size()};
      alignas(cmsghdr) std::array<char, 64> control{};
      msghdr message{};
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
      if (got <= 0) return std::nullopt;
      in_.append(chunk.data(), static_cast<std::size_t>(got));
      if (const cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr && header->cmsg_type == SCM_RIGHTS) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
        arena_ = Fd(fd);
      }
    }
  }
  std::optional<Json> ask(const Json& request) { return send(request.dump() + "\n") ? receive() : std::nullopt; }
  Json must(const Json& request) {
    auto reply = ask(request);
    EXPECT_TRUE(reply) << request;
    return reply ? *reply : Json::object();
  }
  bool greet(const std::string& token = "secret") {
    const Json reply = must({{"token", token}, {"version", kLocalVersion}});
    if (reply["ok"] != true) return false;
    bytes_ = reply["arena_bytes"];
    void* view = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, arena_.get(), 0);
    EXPECT_NE(view, MAP_FAILED);
    view_ = static_cast<std::byte*>(view);
    return true;
  }
  Json next(std::uint64_t sequence, int timeout_ms = 0, const std::string& stream = "s") {
    return must({{"op", "next"}, {"stream", stream}, {"sequence", sequence}, {"timeout_ms", timeout_ms}});
  }
  std::shared_ptr<arrow::RecordBatch> batch(const Json& reply) const {
    const auto buffer = std::make_shared<arrow::Buffer>(
        reinterpret_cast<const std::uint8_t*>(view_) + reply["offset"].get<std::uint64_t>(),
        reply["bytes"].get<std::int64_t>());
    return arrow::ipc::RecordBatchStreamReader::Open(std::make_shared<arrow::io::BufferReader>(buffer))
        .ValueOrDie()
        ->Next()
        .ValueOrDie();
  }
  [[nodiscard]] std::span<const std::byte> view() const { return {view_, bytes_}; }
  [[nodiscard]] int arena_fd() const { return arena_.get(); }
  [[nodiscard]] int fd() const { return socket_.get(); }

 private:
  Fd socket_, arena_;
  std::string in_;
  std::byte* view_ = nullptr;
  std::size_t bytes_ = 0;
};

class LocalReaderTest : public ::testing::Test {
 protected:
  std::shared_ptr<Arena> arena = *Arena::create(64 << 20);
  Catalogue catalogue;
  std::string path = "/tmp/wherry-local-test-" + std::to_string(::getpid()) + ".sock";
  std::unique_ptr<LocalReaderService> service;

  void SetUp() override {
    auto started = LocalReaderService::start(catalogue, arena, path, "secret");
    ASSERT_TRUE(started) << started.status().to_string();
    service = *std::move(started);
  }
  std::shared_ptr<const StreamInfo> opened(std::string name, Retention retention = {}) {
    auto info = testing::stream(std::move(name), retention);
    EXPECT_TRUE(catalogue.open(info));
    return info;
  }
  void publish(const std::shared_ptr<const StreamInfo>& info, std::uint64_t sequence, std::int64_t rows = 100) {
    catalogue.publish(testing::frame(arena, info, sequence, *particles(rows, static_cast<std::int64_t>(sequence))));
  }
  template <typename Condition>
  static bool soon(Condition&& condition) {
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(2ms);
    }
    return true;
  }
};

TEST_F(LocalReaderTest, FramesAreReadWhereTheyLie) {
  const auto info = opened("s");
  publish(info, 0);
  publish(info, 1, 5000);
  Reader reader(path);
  ASSERT_TRUE(reader.greet());
  for (std::uint64_t i = 0; i < 2; ++i) {
    const Json reply = reader.next(i);
    ASSERT_EQ(reply["what"], "frame") << reply;
    EXPECT_EQ(reply["sequence"], i);
    EXPECT_EQ(reply["tag"], 100 + i);
    EXPECT_EQ(reply["rows"], i == 0 ? 100 : 5000);
    EXPECT_EQ(reply["skipped"], 0);
    EXPECT_EQ(reply["transfer_ns"], 2000 + i);
    EXPECT_EQ(reply["source_bytes"], 1000 + i);
    const auto batch = reader.batch(reply);
    EXPECT_TRUE(batch->Equals(*particles(i == 0 ? 100 : 5000, static_cast<std::int64_t>(i)), true));
    const auto* at = reinterpret_cast<const std::byte*>(batch->column_data(0)->buffers[1]->data());
    EXPECT_TRUE(at >= reader.view().data() && at < reader.view().data() + reader.view().size());
  }
  EXPECT_EQ(reader.next(2, 1)["what"], "timeout");
  EXPECT_EQ(reader.next(0, 0, "nobody")["what"], "no_stream");
  catalogue.close("s");
  EXPECT_EQ(reader.next(2, 1000)["what"], "end");
}

TEST_F(LocalReaderTest, TheListIsTheCatalogue) {
  const auto info = opened("s", {.frames = 1});
  publish(info, 0);
  publish(info, 1);
  Reader reader(path);
  ASSERT_TRUE(reader.greet());
  const Json all = reader.must({{"op", "list"}});
  ASSERT_EQ(all["streams"].size(), 1u);
  const Json& one = all["streams"][0];
  EXPECT_EQ(one["name"], "s");
  EXPECT_EQ(one["strategy"], "ipc");
  EXPECT_EQ(one["open"], true);
  EXPECT_EQ(one["first"], 1);
  EXPECT_EQ(one["next"], 2);
  EXPECT_EQ(one["held_frames"], 1);
  EXPECT_EQ(one["held_bytes"], catalogue.find("s")->held_bytes);
  EXPECT_EQ(one["total_frames"], 2);
  EXPECT_EQ(one["total_bytes"], catalogue.find("s")->total_bytes);
}

TEST_F(LocalReaderTest, AskForOneStream_ExpectThatOneOrNone) {
  (void)opened("s", {.frames = 1});
  (void)opened("t", {.frames = 1});
  Reader reader(path);
  ASSERT_TRUE(reader.greet());
  EXPECT_EQ(reader.must({{"op", "list"}})["streams"].size(), 2u);
  const Json one = reader.must({{"op", "list"}, {"stream", "t"}});
  ASSERT_EQ(one["streams"].size(), 1u);
  EXPECT_EQ(one["streams"][0]["name"], "t");
  EXPECT_EQ(reader.must({{"op", "list"}, {"stream", "u"}})["streams"].size(), 0u);
}

/// A file path in the error need not be UTF-8.
TEST_F(LocalReaderTest, AnErrorIsNotUtf8_ExpectTheListAllTheSame) {
  const auto info = opened("s", {.frames = 1});
  publish(info, 0);
  const auto next = catalogue.next("s", 0, 0ms);
  ASSERT_TRUE(next.frame);
  catalogue.sunk(*next.frame, {StatusCode::kUnavailable,
                               "cannot write /gr\xf6\xdf"
                               "e/s.arrow"});
  Reader reader(path);
  ASSERT_TRUE(reader.greet());
  const Json all = reader.must({{"op", "list"}});
  ASSERT_EQ(all["streams"].size(), 1u);
  EXPECT_NE(all["streams"][0]["sink_error"].get<std::string>().find("cannot write /gr"), std::string::npos);
}

TEST_F(LocalReaderTest, ALeaseKeepsTheFrameAndItsReleaseMarksItRead) {
  const auto info = opened("s", {.frames = 1, .when_full = Retention::WhenFull::kWait});
  publish(info, 0);
  Reader reader(path);
  ASSERT_TRUE(reader.greet());
  const Json reply = reader.next(0);
  EXPECT_FALSE(catalogue.make_room(*info));
  EXPECT_EQ(reader.must({{"op", "release"}, {"lease", reply["lease"]}})["ok"], true);
  EXPECT_TRUE(catalogue.make_room(*info));
  EXPECT_EQ(arena->in_use(), 0u);
  const Json again = reader.must({{"op", "release"}, {"lease", reply["lease"]}});
  EXPECT_EQ(again["ok"], false);
  EXPECT_NE(again["error"].get<std::string>().find("lease"), std::string::npos);
}

TEST_F(LocalReaderTest, AnEvictedFrameStaysInPlaceForItsReader) {
  const auto info = opened("s", {.frames = 1});
  publish(info, 0);
  Reader reader(path);
  ASSERT_TRUE(reader.greet());
  const Json first = reader.next(0);
  for (std::uint64_t i = 1; i < 20; ++i) publish(info, i);
  EXPECT_TRUE(reader.batch(first)->Equals(*particles(100, 0)));
  const Json later = reader.next(1);
  EXPECT_EQ(later["sequence"], 19);
  EXPECT_EQ(later["skipped"], 18);
}

TEST_F(LocalReaderTest, AReaderThatGoesAwayLetsGoWithoutHavingRead) {
  const auto info = opened("s", {.frames = 1, .when_full = Retention::WhenFull::kWait});
  publish(info, 0);
  {
    Reader reader(path);
    ASSERT_TRUE(reader.greet());
    ASSERT_EQ(reader.next(0)["what"], "frame");
    ASSERT_TRUE(reader.send("{\"op\":\"next\",\"stream\":\"s\",\"sequence\":1,\"timeout_ms\":60000}\n"));
  }
  EXPECT_TRUE(soon([&] { return service->connections() == 0; }));
  EXPECT_FALSE(catalogue.make_room(*info));
  catalogue.close("s");
  (void)opened("s");
  EXPECT_EQ(arena->in_use(), 0u);
}

TEST_F(LocalReaderTest, AWaitingReaderGetsTheFrameWhenItComes) {
  const auto info = opened("s");
  Reader reader(path);
  ASSERT_TRUE(reader.greet());
  std::thread writer([&] {
    std::this_thread::sleep_for(250ms);  // longer than the slice in which the service waits
    publish(info, 0);
  });
  const Json reply = reader.next(0, 20'000);
  writer.join();
  EXPECT_EQ(reply["what"], "frame");
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(reader.next(1, 250)["what"], "timeout");
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 250ms);
}

TEST_F(LocalReaderTest, AGenerationTellsOneStreamFromTheNextOfThatName) {
  const auto info = opened("s");
  publish(info, 0);
  Reader reader(path);
  ASSERT_TRUE(reader.greet());
  const Json first = reader.next(0);
  catalogue.close("s");
  const auto again = opened("s");
  publish(again, 0);
  publish(again, 1);
  const Json request = {{"op", "next"}, {"stream", "s"}, {"sequence", 1}, {"generation", first["generation"]}};
  EXPECT_EQ(reader.must(request)["what"], "end");
  EXPECT_EQ(reader.next(1)["what"], "frame");
  EXPECT_TRUE(reader.batch(first)->Equals(*particles(100, 0)));
}

TEST_F(LocalReaderTest, WrongTokensAndVersionsAreTurnedAway) {
  const Json wrong[] = {{{"token", "secreT"}, {"version", kLocalVersion}},
                        {{"token", ""}, {"version", kLocalVersion}},
                        {{"token", "secret"}, {"version", kLocalVersion + 1}},
                        {{"token", "secret"}},
                        {{"op", "list"}},
                        {{"token", 7}, {"version", kLocalVersion}}};
  for (const Json& hello : wrong) {
    Reader reader(path);
    const Json reply = reader.must(hello);
    EXPECT_EQ(reply["ok"], false) << hello;
    EXPECT_FALSE(reply["error"].get<std::string>().empty());
    EXPECT_EQ(reader.arena_fd(), -1);
    EXPECT_FALSE(reader.receive()) << "the connection should be closed";
  }
}

TEST_F(LocalReaderTest, MalformedRequestsAreAnsweredAndTheConnectionStays) {
  Reader reader(path);
  ASSERT_TRUE(reader.greet());
  const std::pair<std::string, std::string> wrong[] = {
      {"", "JSON"},
      {"hello", "JSON"},
      {"[]", "JSON"},
      {"{}", "\"op\""},
      {R"({"op":"fly"})", "\"op\""},
      {R"({"op":7})", "\"op\""},
      {R"({"op":"next"})", "\"stream\""},
      {R"({"op":"next","stream":"s","sequence":-1})", "\"sequence\""},
      {R"({"op":"next","stream":"s","timeout_ms":1e99})", "\"timeout_ms\""},
      {R"({"op":"next","stream":"s","timeout_ms":99999999999})", "a day"},
      {R"({"op":"release"})", "\"lease\""},
      {R"({"token":"secret","version":2})", "already"},
      {"\xff\xfe", "JSON"},
      {std::string(60'000, '['), "JSON"}};
  for (const auto& [line, key] : wrong) {
    ASSERT_TRUE(reader.send(line + "\n"));
    const auto reply = reader.receive();
    ASSERT_TRUE(reply) << line.substr(0, 40);
    EXPECT_EQ((*reply)["ok"], false);
    EXPECT_NE((*reply)["error"].get<std::string>().find(key), std::string::npos) << *reply;
  }
  EXPECT_EQ(reader.must({{"op", "list"}})["ok"], true);
}

TEST_F(LocalReaderTest, AnOverlongLineEndsTheConnection) {
  Reader reader(path);
  ASSERT_TRUE(reader.greet());
  const Json longest = {{"op", "list"}, {"pad", std::string(kMaxLocalLine - 24, 'x')}};
  ASSERT_LE(longest.dump().size(), kMaxLocalLine);
  EXPECT_EQ(reader.must(longest)["ok"], true);
  ASSERT_TRUE(reader.send(std::string(kMaxLocalLine + 1, 'x')));
  const auto reply = reader.receive();
  ASSERT_TRUE(reply);
  EXPECT_EQ((*reply)["ok"], false);
  EXPECT_FALSE(reader.receive());
}

TEST_F(LocalReaderTest, RequestsMayComeInPiecesAndManyAtOnce) {
  const auto info = opened("s");
  publish(info, 0);
  Reader reader(path);
  for (const char c : std::string(R"({"token":"secret","version":2})")) ASSERT_TRUE(reader.send(std::string(1, c)));
  ASSERT_TRUE(reader.send("\n{\"op\":\"list\"}\n{\"op\":\"next\",\"stream\":\"s\"}\n{\"op\":\"li"));
  EXPECT_TRUE((*reader.receive()).contains("arena_bytes"));
  EXPECT_TRUE((*reader.receive()).contains("streams"));
  EXPECT_EQ((*reader.receive())["what"], "frame");
  ASSERT_TRUE(reader.send("st\"}\n"));
  EXPECT_TRUE((*reader.receive()).contains("streams"));
}

TEST_F(LocalReaderTest, MoreReadersThanTheLimitAreToldSo) {
  std::vector<std::unique_ptr<Reader>> readers;
  for (std::size_t i = 0; i < kMaxLocalReaders; ++i) {
    readers.push_back(std::make_unique<Reader>(path));
    ASSERT_TRUE(readers.back()->greet());
  }
  {
    Reader one_more(path);
    const Json reply = one_more.must({{"token", "secret"}, {"version", kLocalVersion}});
    EXPECT_EQ(reply["ok"], false);
    EXPECT_EQ(reply["error"], "the agent serves 64 local readers already: close one, or read through Arrow Flight");
    EXPECT_FALSE(one_more.receive()) << "the connection ends";
  }
  readers.pop_back();
  ASSERT_TRUE(soon([&] { return service->connections() < kMaxLocalReaders; }));
  Reader now(path);
  EXPECT_TRUE(now.greet());
}

TEST_F(LocalReaderTest, SilentConnectionsBeyondTheirLimit_ExpectReadersToBeServed) {
  std::vector<std::unique_ptr<Reader>> silent;
  for (std::size_t i = 0; i < 5 * kMaxSilentReaders; ++i) silent.push_back(std::make_unique<Reader>(path));
  std::vector<std::unique_ptr<Reader>> readers;
  for (std::size_t i = 0; i < kMaxLocalReaders; ++i) {
    readers.push_back(std::make_unique<Reader>(path));
    ASSERT_TRUE(readers.back()->greet()) << i;
  }
  EXPECT_LE(service->connections(), kMaxLocalReaders + 2 * kMaxSilentReaders);
}

TEST_F(LocalReaderTest, LeasesAreLimited) {
  const auto info = opened("s");
  publish(info, 0, 1);
  Reader reader(path);
  ASSERT_TRUE(reader.greet());
  for (std::size_t i = 0; i < kMaxLeases; ++i) ASSERT_EQ(reader.next(0)["what"], "frame");
  EXPECT_EQ(reader.next(0)["ok"], false);
  EXPECT_EQ(reader.must({{"op", "release"}, {"lease", 1}})["ok"], true);
  EXPECT_EQ(reader.next(0)["what"], "frame");
}

TEST_F(LocalReaderTest, ReaderHoldsAllThatReadersMay_ExpectAnErrorUntilItReleasesAndOthersToRead) {
  const auto info = opened("s");
  for (std::uint64_t i = 0; i < 6; ++i) publish(info, i);
  Reader keeps(path);
  ASSERT_TRUE(keeps.greet());
  ASSERT_EQ(keeps.next(0)["what"], "frame");
  const std::uint64_t bytes = catalogue.loans().bytes();
  catalogue.loans().limit(3 * bytes, 100 * bytes);
  EXPECT_EQ(keeps.next(1)["what"], "frame");
  EXPECT_EQ(keeps.next(2)["what"], "frame");
  const Json refused = keeps.next(3);
  EXPECT_EQ(refused["ok"], false);
  EXPECT_NE(refused["error"].get<std::string>().find("agent.reader_budget"), std::string::npos) << refused;
  Reader other(path);
  ASSERT_TRUE(other.greet());
  EXPECT_EQ(other.next(3)["what"], "frame") << "it holds none";
  EXPECT_EQ(keeps.must({{"op", "release"}, {"lease", 1}})["ok"], true);
  EXPECT_EQ(other.must({{"op", "release"}, {"lease", 1}})["ok"], true);
  EXPECT_EQ(keeps.next(3)["what"], "frame");
}

TEST_F(LocalReaderTest, OnlyTheOwnerMayConnect) {
  struct stat info{};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(LocalReaderTest, ASocketFileOfADeadAgentIsReplacedAndALiveOneIsNot) {
  EXPECT_EQ(LocalReaderService::start(catalogue, arena, path, "secret").status().code(), StatusCode::kAlreadyExists);
  service->stop();
  EXPECT_NE(::access(path.c_str(), F_OK), 0);
  {
    const Fd dead(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(dead.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  EXPECT_TRUE(LocalReaderService::start(catalogue, arena, path, "secret"));
  std::ofstream(path) << "a file of somebody's";
  EXPECT_EQ(LocalReaderService::start(catalogue, arena, path, "secret").status().code(), StatusCode::kAlreadyExists);
  EXPECT_TRUE(std::filesystem::exists(path));
  std::filesystem::remove(path);
  EXPECT_EQ(LocalReaderService::start(catalogue, arena, path, "").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(LocalReaderService::start(catalogue, arena, std::string(200, 'x'), "secret").status().code(),
            StatusCode::kInvalidArgument);
}

TEST_F(LocalReaderTest, StopIsPromptWhateverReadersDo) {
  (void)opened("s");
  Reader waiting(path), idle(path), silent(path);
  ASSERT_TRUE(waiting.greet());
  ASSERT_TRUE(idle.greet());
  ASSERT_TRUE(waiting.send("{\"op\":\"next\",\"stream\":\"s\",\"sequence\":0,\"timeout_ms\":60000}\n"));
  std::this_thread::sleep_for(20ms);
  const auto begin = std::chrono::steady_clock::now();
  service->stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s) << "it waited for what a reader waits for";
  service->stop();
  EXPECT_FALSE(idle.receive());
  EXPECT_FALSE(silent.receive());
}

TEST_F(LocalReaderTest, ManyReadersWhileFramesComeAndGo) {
  constexpr std::uint64_t kFrames = 200;
  const auto info = opened("s", {.frames = 4});
  std::vector<std::thread> threads;
  for (int r = 0; r < 4; ++r) {
    threads.emplace_back([&] {
      Reader reader(path);
      ASSERT_TRUE(reader.greet());
      std::uint64_t at = 0;
      for (;;) {
        const Json reply = reader.next(at, 1000);
        if (reply["what"] == "end") return;
        if (reply["what"] == "timeout") continue;
        ASSERT_EQ(reply["what"], "frame") << reply;
        const std::uint64_t sequence = reply["sequence"];
        ASSERT_EQ(sequence, at + reply["skipped"].get<std::uint64_t>());
        ASSERT_TRUE(reader.batch(reply)->Equals(*particles(20, static_cast<std::int64_t>(sequence))));
        ASSERT_EQ(reader.must({{"op", "release"}, {"lease", reply["lease"]}})["ok"], true);
        at = sequence + 1;
      }
    });
  }
  for (std::uint64_t i = 0; i < kFrames; ++i) {
    publish(info, i, 20);
    std::this_thread::sleep_for(300us);
  }
  catalogue.close("s");
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(soon([&] { return service->connections() == 0; }));
  while (catalogue.evict_one(*info)) {
  }
  EXPECT_EQ(arena->in_use(), 0u);
}

}  // namespace
}  // namespace wherry::move
