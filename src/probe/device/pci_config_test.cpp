// SPDX-License-Identifier: Apache-2.0
#include "probe/device/pci_config.hpp"

#include <gtest/gtest.h>

#include "probe/device/drive_testing.hpp"
#include "probe/device/link_bound.hpp"
#include "probe/device/pci_testing.hpp"

namespace wherry::probe {
namespace {
using testing_support::drive;
using testing_support::kFunction;
using testing_support::PciFiles;

struct PciConfig : testing::Test {
  std::unique_ptr<Path> path() {
    DeviceSettings settings;
    settings.sysfs = files.sysfs();
    return pci_config_path(settings);
  }
  PciFiles files;
};

TEST_F(PciConfig, Read_EachSizeAndPattern_ExpectTheHeader) {
  const auto config = path();
  EXPECT_TRUE(config->info().absent.empty());
  EXPECT_NE(config->info().from.find("10ee:9038"), std::string::npos);
  for (const std::size_t bytes : {4U, 8U, 64U})
    for (const Pattern pattern : {Pattern::kSequential, Pattern::kStrided, Pattern::kRandom})
      EXPECT_TRUE(drive(*config, {.bytes = bytes, .pattern = pattern, .flow = Flow::kC2H}, {.transfers = 21}).ok())
          << bytes;
}

TEST_F(PciConfig, Read_ShapeThatItCannot_ExpectUnsupported) {
  const auto config = path();
  for (const Shape& shape :
       {Shape{.bytes = 4, .flow = Flow::kH2C}, Shape{.bytes = 4, .flow = Flow::kBoth},
        Shape{.bytes = 16, .flow = Flow::kC2H}, Shape{.bytes = 4, .depth = 2, .flow = Flow::kC2H},
        Shape{.bytes = 4, .flow = Flow::kC2H, .align = 2}, Shape{.bytes = 64, .flow = Flow::kC2H, .align = 4},
        Shape{.bytes = 4, .flow = Flow::kC2H, .notice = Notice::kInterrupt},
        Shape{.bytes = 4, .flow = Flow::kC2H, .cache = CacheState::kFlushed}})
    EXPECT_EQ(config->accepts(shape).code(), StatusCode::kUnsupported);
}

TEST_F(PciConfig, Read_OneByteFlippedDuringTheRound_ExpectWrongData) {
  for (const std::size_t at : {0U, 3U, 8U, 40U, 63U}) {
    const auto config = path();
    const Status status = drive(*config, {.bytes = 64, .flow = Flow::kC2H},
                                {.transfers = 1, .prepared = [&] { files.flip("config", at); }});
    EXPECT_EQ(status.code(), StatusCode::kInternal) << at;
    files.flip("config", at);
  }
}

TEST_F(PciConfig, Read_HeaderThatIsNotTheKernels_ExpectWrongData) {
  files.flip("config", 2);  // before and after: only the kernel's note differs
  const Status status = drive(*path(), {.bytes = 4, .flow = Flow::kC2H});
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_NE(status.message().find("device"), std::string::npos) << status.message();
}

TEST_F(PciConfig, Spoil_AnyByte_ExpectWrongData) {
  for (const std::size_t bytes : {4U, 8U, 64U})
    EXPECT_TRUE(testing_support::notices_spoiling(*path(), {.bytes = bytes, .flow = Flow::kC2H}));
}

TEST_F(PciConfig, Read_StatusBitsChange_ExpectOk) {
  EXPECT_TRUE(drive(*path(), {.bytes = 4, .flow = Flow::kC2H},
                    {.transfers = 16, .prepared = [&] { files.flip("config", 7, 0x80); }})
                  .ok());
}

TEST_F(PciConfig, Read_FunctionGone_ExpectUnavailable) {
  const auto config = path();
  ASSERT_TRUE(config->open({.bytes = 4, .flow = Flow::kC2H}));
  std::filesystem::resize_file(files.file("config"), 0);
  config->prepare(1);
  EXPECT_TRUE(config->try_post(0));
  unsigned done[1];
  EXPECT_EQ(config->poll(done).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(config->verify(1).code(), StatusCode::kUnavailable);
}

TEST_F(PciConfig, Make_UnknownFunction_ExpectAbsent) {
  DeviceSettings settings;
  settings.sysfs = files.sysfs();
  settings.pci = "0000:09:00.0";
  EXPECT_NE(pci_config_path(settings)->info().absent.find("0000:09:00.0"), std::string::npos);
  settings.pci = kFunction;
  EXPECT_TRUE(pci_config_path(settings)->info().absent.empty());
}

TEST_F(PciConfig, LinkBound_Gen3x16_ExpectTheSpecificationsRate) {
  // 8 GT/s x 16 lanes x 128/130 / 8 = 15.754 GB/s
  EXPECT_NEAR(link_bound(files.folder()).bytes_per_s, 15.754e9, 0.001e9);
  files.write("current_link_speed", "2.5 GT/s PCIe\n");
  files.write("current_link_width", "1\n");
  EXPECT_DOUBLE_EQ(link_bound(files.folder()).bytes_per_s, 0.25e9);
  files.write("current_link_speed", "Unknown\n");
  EXPECT_EQ(link_bound(files.folder()).bytes_per_s, 0);
}

/// Tests a PCI function of this machine, if there is one.
TEST(PciConfigHere, Read_ThisMachinesFirstFunction_ExpectTheHeader) {
  const auto config = pci_config_path({});
  if (!config->info().absent.empty()) GTEST_SKIP() << config->info().absent;
  EXPECT_TRUE(drive(*config, {.bytes = 4, .flow = Flow::kC2H}, {.transfers = 4}).ok());
}

}  // namespace
}  // namespace wherry::probe
