// SPDX-License-Identifier: Apache-2.0
#include "kv/snapshot/key_window.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <thread>

#include "base/temporary_directory.hpp"
#include "kv/generated/registers.hpp"
#include "kv/snapshot/key_listing.hpp"

namespace wherry::kv {
namespace {

using std::chrono::seconds;

/// Registers as a node has them, and a table with one key per bucket.
struct FakeNode final : RegisterIo, TableLister {
  std::uint32_t bits = 11;
  std::atomic<std::uint32_t> epoch = 5;
  std::atomic<bool> serves = true;
  std::atomic<std::uint32_t> listed = 0;
  std::uint32_t leaves_at = ~0U;  ///< bucket
  bool settled = false;

  std::uint32_t read(std::uint32_t offset) override {
    if (offset == registers::kEpochOffset) return epoch;
    if (offset == registers::kStateOffset) return registers::kStateServing.set(0, serves ? 1 : 0);
    return offset == registers::kBucketBitsOffset ? bits : 0;
  }
  void write(std::uint32_t, std::uint32_t) override {}
  void settle() override { settled = true; }
  void list(std::uint32_t first, std::uint32_t buckets, std::vector<std::uint64_t>& keys) override {
    EXPECT_TRUE(settled);
    for (std::uint32_t bucket = first; bucket < first + buckets; ++bucket) keys.push_back(1000 + bucket / 2);
    listed = first + buckets;
    if (listed >= leaves_at) epoch = 0;
  }
};

/// The node's thread.
class Running {
 public:
  explicit Running(FakeNode& node) {
    auto opened = KeyWindow::open(path(), 3, SnapshotSource::hardware, node, node);
    EXPECT_TRUE(opened) << opened.status().message();
    thread_ = std::thread([this, window = *std::move(opened)]() mutable {
      while (!stop_) {
        window.turn();
        std::this_thread::yield();
      }
    });
  }
  ~Running() {
    stop_ = true;
    thread_.join();
  }
  [[nodiscard]] std::string path() const { return directory_.file("keys"); }
  [[nodiscard]] Result<KeyListing> list(
      const Progress& progress = [](auto...) { return true; }, seconds patience = seconds(60)) const {
    return list_keys(path(), Deadline(patience), progress);
  }

 private:
  TemporaryDirectory directory_ = *TemporaryDirectory::create("keys");
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

TEST(KvKeyWindow, Asked_ExpectEachKeyOnceInOrderAndWhoseTheyAre) {
  FakeNode node;
  const Running running(node);
  for (int round = 0; round < 2; ++round) {
    const auto listing = running.list();
    ASSERT_TRUE(listing) << listing.status().message();
    EXPECT_EQ(listing->greeting.node, 3);
    EXPECT_EQ(listing->greeting.epoch, 5U);
    EXPECT_EQ(listing->greeting.source, SnapshotSource::hardware);
    ASSERT_EQ(listing->keys.size(), 1024U);
    for (std::size_t i = 0; i < 1024; ++i) EXPECT_EQ(listing->keys[i], 1000 + i);
  }
}

TEST(KvKeyWindow, NodeDoesNotServeAtFirst_ExpectWaitedForIt) {
  FakeNode node;
  node.serves = false;
  const Running running(node);
  int seen = 0;
  const auto listing = running.list([&](auto...) {
    if (++seen == 5) node.serves = true;
    return true;
  });
  EXPECT_TRUE(listing) << listing.status().message();
}

TEST(KvKeyWindow, NodeNeverServes_ExpectItSaid) {
  FakeNode node;
  node.serves = false;
  const Running running(node);
  const auto listing = running.list([](auto...) { return true; }, seconds(0));
  EXPECT_EQ(listing.status().code(), StatusCode::kFailedPrecondition) << listing.status().message();
  EXPECT_EQ(node.listed, 0U);
}

/// The node's table may then be emptied, so the keys sent so far are not a complete list.
TEST(KvKeyWindow, NodeLeavesTheClusterMeanwhile_ExpectNoList) {
  FakeNode node;
  node.leaves_at = 1024;
  const Running running(node);
  const auto listing = running.list([](auto...) { return true; }, seconds(0));
  EXPECT_EQ(listing.status().code(), StatusCode::kFailedPrecondition) << listing.status().message();
}

TEST(KvKeyWindow, Interrupted_ExpectCancelledAndTheNodeToServeOthers) {
  FakeNode node;
  const Running running(node);
  EXPECT_EQ(running.list([](auto...) { return false; }).status().code(), StatusCode::kCancelled);
  EXPECT_TRUE(running.list());
}

TEST(KvKeyWindow, Socket_ExpectItsUsersAloneAndGoneAfterwards) {
  const TemporaryDirectory directory = *TemporaryDirectory::create("keys");
  const std::string path = key_window_path(directory.file("lab.toml"), 3);
  EXPECT_EQ(std::filesystem::path(path).filename(), "lab.toml.node3.keys");
  FakeNode node;
  {
    const auto window = KeyWindow::open(path, 3, SnapshotSource::software, node, node);
    ASSERT_TRUE(window);
    struct stat there{};
    ASSERT_EQ(::stat(path.c_str(), &there), 0);
    EXPECT_EQ(there.st_mode & 0777, 0600U);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(list_keys(path, Deadline(seconds(1)), [](auto...) { return true; }).status().code(),
            StatusCode::kUnavailable);
}

/// Only root can become another user temporarily.
TEST(KvKeyWindow, SocketOfAnotherUser_ExpectRefusal) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be two users";
  FakeNode node;
  const TemporaryDirectory directory = *TemporaryDirectory::create("keys");
  ASSERT_EQ(::chmod(directory.path().c_str(), 0755), 0);
  const std::string path = directory.file("keys");
  auto window = KeyWindow::open(path, 3, SnapshotSource::software, node, node);
  ASSERT_TRUE(window);
  const auto list_as = [&](uid_t user, mode_t mode) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    std::atomic<bool> ended = false;
    StatusCode code = StatusCode::kOk;
    std::thread reader([&] {
      EXPECT_EQ(::syscall(SYS_setresuid, user, user, -1), 0);  // of this thread
      code = list_keys(path, Deadline(seconds(0)), [](auto...) { return true; }).status().code();
      ended = true;
    });
    while (!ended) window->turn();
    reader.join();
    EXPECT_EQ(node.listed, 0U);
    EXPECT_NE(code, StatusCode::kOk);
  };
  constexpr uid_t kNobody = 65534;
  list_as(kNobody, 0600);  // the file's mode keeps it out
  list_as(kNobody, 0666);  // the node does
}

TEST(KvKeyStream, AnyPiecesAndRubbish_ExpectTheSameAndNoKeysOfRubbish) {
  Bytes all = pack_greeting({.node = 1, .bucket_bits = 9, .epoch = 2, .serves = true});
  const Bytes keys = pack_keys(512, {7, 8}), end = pack_key_end(true);
  all.insert(all.end(), keys.begin(), keys.end());
  all.insert(all.end(), end.begin(), end.end());
  KeyStreamParser parser;
  for (const std::byte byte : all) ASSERT_TRUE(parser.feed(ByteView(&byte, 1)));
  EXPECT_EQ(parser.state(), KeyStreamParser::State::complete);
  EXPECT_EQ(parser.keys(), (std::vector<std::uint64_t>{7, 8}));
  EXPECT_FALSE(parser.feed(end)) << "after the end";

  KeyStreamParser other;
  EXPECT_EQ(other.feed(Bytes(64)).code(), StatusCode::kProtocol);
  KeyStreamParser early;
  Bytes cut = pack_greeting({.bucket_bits = 9, .serves = true});
  cut.insert(cut.end(), end.begin(), end.end());
  EXPECT_EQ(early.feed(cut).code(), StatusCode::kProtocol) << "complete without its buckets";
}

}  // namespace
}  // namespace wherry::kv
