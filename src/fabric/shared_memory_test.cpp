// SPDX-License-Identifier: Apache-2.0
#include "fabric/shared_memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "fabric/fabric.hpp"

namespace wherry::fabric {
namespace {

const std::size_t kPage = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

/// A file in memory that this process maps twice: as its owner and as a peer.
class File {
 public:
  File(std::size_t pages, std::size_t owners, std::size_t mine)
      : file_(memfd_create("test", MFD_CLOEXEC)), owners_(owners * kPage), mine_(mine * kPage) {
    resize(pages);
    base_ = map(owners_);
    here_ = map(mine_);
  }
  ~File() {
    munmap(base_, owners_);
    munmap(here_, mine_);
    close(file_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  void resize(std::size_t pages) { EXPECT_EQ(ftruncate(file_, static_cast<off_t>(pages * kPage)), 0); }
  [[nodiscard]] std::uint64_t base() const { return reinterpret_cast<std::uint64_t>(base_); }
  [[nodiscard]] const std::byte* here() const { return here_; }

 private:
  [[nodiscard]] std::byte* map(std::size_t bytes) const {
    return static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0));
  }
  int file_;
  std::size_t owners_, mine_;
  std::byte *base_, *here_;
};

std::size_t bytes_of(const File& file, std::size_t from = 0) {
  const auto bytes = shared_bytes(getpid(), file.base() + from, file.here() + from);
  EXPECT_TRUE(bytes) << bytes.status().message();
  return bytes ? *bytes : 0;
}

TEST(SharedBytes, MappedByBoth_ExpectWhatBothHave) {
  EXPECT_EQ(bytes_of(File(5, 5, 5)), 5 * kPage);
  EXPECT_EQ(bytes_of(File(5, 5, 5), 3 * kPage + 8), 2 * kPage - 8);
  EXPECT_EQ(bytes_of(File(5, 2, 5)), 2 * kPage);
  EXPECT_EQ(bytes_of(File(5, 5, 1)), kPage);
}

TEST(SharedBytes, FileShorterThanItsMappings_ExpectTheFile) {
  File file(3, 7, 7);
  EXPECT_EQ(bytes_of(file), 3 * kPage);
  EXPECT_EQ(bytes_of(file, kPage), 2 * kPage);
  file.resize(0);
  EXPECT_EQ(bytes_of(file), 0U);
}

TEST(SharedBytes, OtherMemoryOrNone_ExpectRefusal) {
  const File file(4, 4, 4);
  const File other(4, 4, 4);
  const std::vector<std::byte> heap(100 * kPage);
  const auto refused = [](std::uint64_t base, const std::byte* here) {
    EXPECT_EQ(shared_bytes(getpid(), base, here).status().code(), StatusCode::kInvalidArgument);
  };
  refused(file.base(), other.here());
  refused(file.base(), file.here() + kPage);
  refused(file.base() + kPage, file.here());
  refused(file.base(), heap.data());
  refused(reinterpret_cast<std::uint64_t>(heap.data()), heap.data());
  refused(0, nullptr);
}

TEST(SharedBytes, NoSuchProcess_ExpectWhichFileIsMissing) {
  const File file(1, 1, 1);
  const Status s = shared_bytes(-1, file.base(), file.here()).status();
  EXPECT_EQ(s.code(), StatusCode::kUnsupported);
  EXPECT_NE(s.message().find("/proc/-1/maps"), std::string::npos) << s.message();
}

/// A peer's memory, and this process that maps it.
class Announced : public testing::Test {
 protected:
  void SetUp() override {
    owners_ = *Context::create(Transport::kShm);
    owner_ = *Worker::create(owners_);
    memory_ = *owners_->allocate(kBytes);
    ASSERT_TRUE(memory_.pack_key(key_));
    context_ = *Context::create(Transport::kShm);
    worker_ = *Worker::create(context_);
    endpoint_ = *Endpoint::connect(*worker_, owner_->address());
  }
  [[nodiscard]] std::uint64_t base() const { return reinterpret_cast<std::uint64_t>(memory_.data()); }
  void expect_refusal(std::uint64_t at, std::uint64_t size, const std::string& words) const {
    const auto region = endpoint_.unpack(key_, at, size, getpid());
    EXPECT_EQ(region.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(region.status().message().find(words), std::string::npos) << region.status().message();
  }

  static constexpr std::size_t kBytes = 1 << 20;
  std::shared_ptr<Context> owners_, context_;
  std::unique_ptr<Worker> owner_, worker_;
  Region memory_;
  Bytes key_;
  Endpoint endpoint_;
};

TEST_F(Announced, AsItIs_ExpectItMapped) {
  memory_.data()[kBytes - 1] = std::byte{7};
  for (const std::size_t from : {std::size_t{0}, std::size_t{1001}}) {
    const auto region = endpoint_.unpack(key_, base() + from, kBytes - from, getpid());
    ASSERT_TRUE(region) << region.status().message();
    ASSERT_NE(region->mapped(base() + from), nullptr);
    EXPECT_EQ(*region->mapped(base() + kBytes - 1), std::byte{7});
  }
}

TEST_F(Announced, PartOfItRegisteredByItself_ExpectNoObjection) {
  const fabric::Region part = *owners_->register_memory(memory_.data() + 1001, 5000);
  Bytes key;
  ASSERT_TRUE(part.pack_key(key));
  const auto region = endpoint_.unpack(key, base() + 1001, 5000, getpid());
  EXPECT_TRUE(region) << region.status().message();
}

TEST_F(Announced, LargerThanItIs_ExpectBothNumbers) {
  expect_refusal(base(), 1 << 30, "with 1073741824 bytes");
  expect_refusal(base(), 1 << 30, "there are 1048576");
  expect_refusal(base() + kPage, kBytes, "there are " + std::to_string(kBytes - kPage));
}

TEST_F(Announced, WhereItIsNot_ExpectRefusal) {
  const Region other = *owners_->allocate(kBytes);
  expect_refusal(reinterpret_cast<std::uint64_t>(other.data()), 8, "has other memory there");
  expect_refusal(0, 8, "has other memory there");
}

}  // namespace
}  // namespace wherry::fabric
