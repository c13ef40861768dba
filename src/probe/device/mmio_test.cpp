// SPDX-License-Identifier: Apache-2.0
#include "probe/device/mmio.hpp"

#include <gtest/gtest.h>

#include "probe/device/drive_testing.hpp"
#include "probe/device/edu.hpp"
#include "probe/device/mapped_bar.hpp"
#include "probe/device/pci_testing.hpp"

namespace wherry::probe {
namespace {
using testing_support::drive;
using testing_support::PciFiles;

constexpr std::size_t kBar = 65536, kBase = 8192 + 64;

struct Mmio : testing::Test {
  Mmio() {
    files.write_bytes("resource2", kBar);
    // On hardware, both files access the same memory.
    std::filesystem::create_hard_link(files.file("resource2"), files.file("resource2_wc"));
    settings.sysfs = files.sysfs();
    settings.bar = settings.ivshmem =
        Target{.name = std::string(testing_support::kFunction) + "/2", .base = kBase, .bytes = 40000};
  }
  std::vector<std::unique_ptr<Path>> paths() { return mmio_paths(settings); }
  static Flow flow(const Path& path) { return path.info().from == "processor" ? Flow::kH2C : Flow::kC2H; }
  PciFiles files{kIvshmemVendor, kIvshmemDevice};
  DeviceSettings settings;
};

TEST_F(Mmio, Move_EveryPathSizeAndPattern_ExpectItsBytes) {
  for (const auto& path : paths()) {
    ASSERT_TRUE(path->info().absent.empty()) << path->info().absent;
    for (const std::size_t bytes : {4U, 8U, 64U, 256U})
      for (const Pattern pattern : {Pattern::kSequential, Pattern::kStrided, Pattern::kRandom}) {
        const Shape shape{
            .bytes = bytes, .depth = flow(*path) == Flow::kH2C ? 5U : 1U, .pattern = pattern, .flow = flow(*path)};
        const Status status = drive(*path, shape, {.transfers = 33, .seed = bytes});
        EXPECT_TRUE(status.ok()) << path->info().id << " " << status.message();
      }
  }
}

TEST_F(Mmio, Move_OnHardware_ExpectOnlyTheNamedRangeIsTouched) {
  files.write("resource2", std::string(kBar, 'x'));
  for (const auto& path : paths()) EXPECT_TRUE(drive(*path, {.bytes = 64, .flow = flow(*path)}).ok());
  std::ifstream stream(files.file("resource2"), std::ios::binary);
  const std::string after(std::istreambuf_iterator<char>(stream), {});
  EXPECT_EQ(after.substr(0, kBase), std::string(kBase, 'x'));
  EXPECT_EQ(after.substr(kBase + 40000), std::string(kBar - kBase - 40000, 'x'));
  EXPECT_NE(after, std::string(kBar, 'x'));
}

TEST_F(Mmio, Move_OneByteFlipped_ExpectWrongData) {
  for (const auto& path : paths()) {
    const bool writes = flow(*path) == Flow::kH2C;
    const Shape shape{.bytes = 64, .flow = flow(*path)};
    for (const std::size_t at : {std::size_t{64}, std::size_t{127}}) {  // of the first place, behind the guard
      testing_support::Round round{.transfers = 1};
      (writes ? round.moved : round.prepared) = [&] { files.flip("resource2", kBase + at); };
      EXPECT_EQ(drive(*path, shape, round).code(), StatusCode::kInternal) << path->info().id;
    }
    for (const std::size_t at :
         {std::size_t{0}, std::size_t{63}, std::size_t{64 + 4 * 64}})  // a guard, a place that has no transfer
      EXPECT_EQ(drive(*path, shape, {.transfers = 1, .moved = [&] { files.flip("resource2", kBase + at); }}).code(),
                StatusCode::kInternal)
          << path->info().id << at;
  }
}

TEST_F(Mmio, Spoil_AnyByte_ExpectWrongData) {
  for (const auto& path : paths())
    EXPECT_TRUE(testing_support::notices_spoiling(*path, {.bytes = 64, .flow = flow(*path)})) << path->info().id;
}

TEST_F(Mmio, Post_DepthUsed_ExpectNotNowUntilPolled) {
  const auto all = paths();
  Path& write = *all.at(1);
  ASSERT_EQ(write.info().id, "mmio.bar.write");
  ASSERT_TRUE(write.open({.bytes = 8, .depth = 2}));
  write.prepare(3);
  EXPECT_TRUE(write.try_post(0));
  EXPECT_TRUE(write.try_post(1));
  EXPECT_FALSE(write.try_post(0));
  unsigned done[2];
  const auto ended = write.poll(done);
  ASSERT_TRUE(ended);
  EXPECT_EQ(*ended, 2U);
  EXPECT_EQ(*write.poll(done), 0U);
  EXPECT_TRUE(write.verify(3).ok());
}

TEST_F(Mmio, Accepts_ShapeThatItCannot_ExpectUnsupported) {
  const auto all = paths();
  const Path& read = *all.at(0);
  for (const Shape& shape :
       {Shape{.bytes = 12, .flow = Flow::kC2H}, Shape{.bytes = 4, .flow = Flow::kH2C},
        Shape{.bytes = 4, .depth = 2, .flow = Flow::kC2H}, Shape{.bytes = 8, .flow = Flow::kC2H, .align = 4},
        Shape{.bytes = 4, .flow = Flow::kC2H, .align = 2},
        Shape{.bytes = 4, .flow = Flow::kC2H, .notice = Notice::kBlocking},
        Shape{.bytes = 4, .channels = 2, .flow = Flow::kC2H}})
    EXPECT_EQ(read.accepts(shape).code(), StatusCode::kUnsupported);
  EXPECT_TRUE(read.accepts({.bytes = 4, .flow = Flow::kC2H, .align = 4}).ok());
  EXPECT_EQ(read.accepts({.bytes = 65536, .flow = Flow::kC2H}).code(), StatusCode::kResourceExhausted);
}

TEST_F(Mmio, Make_RangeNotInTheRegister_ExpectAbsentWithItsSize) {
  settings.bar->bytes = kBar;
  EXPECT_NE(paths().at(0)->info().absent.find("65536"), std::string::npos);
  settings.bar->bytes = 4096;
  settings.bar->base = 4;
  EXPECT_FALSE(paths().at(0)->info().absent.empty());
}

TEST_F(Mmio, Make_NotPrefetchable_ExpectWriteCombinedIsAbsentAndSaysWhy) {
  std::filesystem::remove(files.file("resource2_wc"));
  const auto all = paths();
  EXPECT_TRUE(all.at(0)->info().absent.empty());
  EXPECT_NE(all.at(2)->info().absent.find("prefetchable"), std::string::npos);
}

TEST_F(Mmio, Make_MemorySwitchedOff_ExpectAbsentAndTheRemedy) {
  files.flip("config", 4, 2);
  EXPECT_NE(paths().at(0)->info().absent.find("enable"), std::string::npos);
}

TEST_F(Mmio, Make_NoRangeNamed_ExpectAbsentAndHowToNameIt) {
  settings.bar = settings.ivshmem = std::nullopt;
  const auto all = paths();
  EXPECT_NE(all.at(0)->info().absent.find("WHERRY_PROBE_BAR"), std::string::npos);
  EXPECT_NE(all.at(3)->info().absent.find("WHERRY_PROBE_IVSHMEM=0000:04:00.0/2"), std::string::npos)
      << all.at(3)->info().absent;
}

}  // namespace
}  // namespace wherry::probe
