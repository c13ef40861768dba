// SPDX-License-Identifier: Apache-2.0
// Tests with a thread that behaves like QEMU's docs/specs/edu.txt. tools/guest/probe.py tests with QEMU's device.
#include "probe/device/edu.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "base/fd.hpp"
#include "probe/device/drive_testing.hpp"
#include "probe/device/pci_testing.hpp"

namespace wherry::probe {
namespace {
using testing_support::drive;

/// A model of the device. Its registers are a file that the path also maps. A bus address is a pointer.
class EduModel {
 public:
  explicit EduModel(const testing_support::PciFiles& files) {
    files.write_bytes("resource0", std::size_t{1} << 20);
    const Fd fd(::open(files.file("resource0").c_str(), O_RDWR | O_CLOEXEC));
    at_ = static_cast<std::byte*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0));
    EXPECT_NE(static_cast<void*>(at_), MAP_FAILED);
    thread_ = std::thread([this] { serve(); });
  }
  ~EduModel() {
    stop_ = true;
    thread_.join();
    munmap(at_, 4096);
  }
  /// `flip`: the transfer with a flipped byte, counted from now on (1: the next). `transfers`: their number so far.
  std::atomic<unsigned> flip{0};
  std::atomic<unsigned> transfers{0};

 private:
  volatile std::uint64_t& wide(std::size_t at) const { return *reinterpret_cast<volatile std::uint64_t*>(at_ + at); }
  void serve() {
    std::uint32_t last = 0;
    while (!stop_) {
      volatile std::uint32_t& liveness = *reinterpret_cast<volatile std::uint32_t*>(at_ + 4);
      if (const std::uint32_t now = liveness; now != last) liveness = last = ~now;
      if ((wide(0x98) & 1) == 0) {
        std::this_thread::yield();
        continue;
      }
      const bool to_memory = (wide(0x98) & 2) != 0;
      const std::uint64_t card = (to_memory ? wide(0x80) : wide(0x88)) - 0x40000,
                          memory = to_memory ? wide(0x88) : wide(0x80), bytes = wide(0x90);
      EXPECT_LT(card + bytes, sizeof buffer_);
      EXPECT_LE(bytes, 2048U);
      auto* const host = reinterpret_cast<std::byte*>(memory);
      std::byte* const to = to_memory ? host : buffer_ + card;
      std::memcpy(to, to_memory ? buffer_ + card : host, bytes);
      ++transfers;
      if (flip != 0 && --flip == 0) to[bytes / 2] ^= std::byte{2};
      wide(0x98) = wide(0x98) & ~std::uint64_t{1};
    }
  }
  std::byte* at_ = nullptr;
  std::byte buffer_[4096]{};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

struct Edu : testing::Test {
  std::vector<std::unique_ptr<Path>> paths() {
    DeviceSettings settings;
    settings.sysfs = files.sysfs();
    return edu_paths(settings, [](const std::byte* at) { return std::optional(reinterpret_cast<std::uint64_t>(at)); });
  }
  static Flow flow(const Path& path) { return path.info().id == "edu.h2c" ? Flow::kH2C : Flow::kC2H; }
  testing_support::PciFiles files{0x1234, 0x11E8};
  EduModel model{files};
};

TEST_F(Edu, Move_BothWays_ExpectItsBytes) {
  for (const auto& path : paths()) {
    ASSERT_EQ(path->info().absent, "");
    EXPECT_EQ(path->info().initiator, Initiator::kDevice);
    for (const std::size_t bytes : {1U, 64U, 1000U, 2048U}) {
      const Status status =
          drive(*path, {.bytes = bytes, .pattern = Pattern::kRandom, .flow = flow(*path)}, {.transfers = 5});
      EXPECT_TRUE(status.ok()) << status.message();
    }
    EXPECT_EQ(path->accepts({.bytes = 2049, .flow = flow(*path)}).code(), StatusCode::kUnsupported);
  }
}

TEST_F(Edu, Move_OneByteFlipped_ExpectWrongData) {
  for (const auto& path : paths()) {
    const Status status =
        drive(*path, {.bytes = 100, .flow = flow(*path)}, {.transfers = 5, .prepared = [&] { model.flip = 3; }});
    EXPECT_EQ(status.code(), StatusCode::kInternal);
    EXPECT_NE(status.message().find("wrong data: 1 bytes"), std::string::npos) << status.message();
  }
}

TEST_F(Edu, Spoil_AnyByte_ExpectWrongData) {
  for (const auto& path : paths())
    EXPECT_TRUE(testing_support::notices_spoiling(*path, {.bytes = 64, .flow = flow(*path)})) << path->info().id;
}

TEST_F(Edu, Open_DeviceMayNotMasterTheBus_ExpectTheRemedy) {
  files.flip("config", 4, 4);
  for (const auto& path : paths()) {
    const Status status = drive(*path, {.bytes = 100, .flow = flow(*path)});
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_NE(status.message().find("setpci"), std::string::npos);
  }
}

TEST(EduAddress, PhysicalAddress_OfThisProcess_ExpectNoneOrOfItsPage) {
  alignas(4096) static std::byte page[8192];
  page[0] = page[4096] = std::byte{1};
  const auto first = physical_address(page), within = physical_address(page + 100);
  if (!first) GTEST_SKIP() << "this user does not see physical addresses";
  EXPECT_EQ(*first % 4096, 0U);
  EXPECT_EQ(*within, *first + 100);
}

}  // namespace
}  // namespace wherry::probe
