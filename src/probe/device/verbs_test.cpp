// SPDX-License-Identifier: Apache-2.0
// Tests with a replacement for libibverbs. tools/guest/probe.py tests with the kernel's Soft-RoCE.
#include "probe/device/verbs.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "probe/device/drive_testing.hpp"
#include "probe/device/fake_verbs.hpp"

namespace wherry::probe {
namespace {
using testing_support::drive;

void* fake_verbs() {
  static void* const handle = dlopen(WHERRY_FAKE_VERBS, RTLD_NOW | RTLD_LOCAL);
  return handle;
}

struct Verbs : testing::Test {
  Verbs() {
    reset(1);
    settings.verbs_library = WHERRY_FAKE_VERBS;
    settings.sysfs = "/wherry-is-not-there";
  }
  ~Verbs() override {
    EXPECT_EQ(held(), 0U) << "something was not given back";
    EXPECT_STREQ(misuse(), "");
  }
  template <typename Function>
  static Function* get(const char* name) {
    return reinterpret_cast<Function*>(dlsym(fake_verbs(), name));
  }
  std::vector<std::unique_ptr<Path>> paths() const { return verbs_paths(settings); }
  static Shape shape_of(const Path& path, unsigned depth = 1, unsigned channels = 1, Notice notice = Notice::kPolled) {
    const bool atomic = path.info().id.find("atomic") != std::string::npos;
    return {.bytes = atomic ? 8U : 100U,
            .depth = depth,
            .channels = channels,
            .flow = path.info().from == "host memory" ? Flow::kH2C : Flow::kC2H,
            .notice = notice};
  }
  decltype(&wherry_fake_verbs_reset) reset = get<void(int)>("wherry_fake_verbs_reset");
  decltype(&wherry_fake_verbs_flip) flip = get<void(unsigned)>("wherry_fake_verbs_flip");
  decltype(&wherry_fake_verbs_fail) fail = get<void(unsigned)>("wherry_fake_verbs_fail");
  decltype(&wherry_fake_verbs_held) held = get<unsigned()>("wherry_fake_verbs_held");
  decltype(&wherry_fake_verbs_misuse) misuse = get<const char*()>("wherry_fake_verbs_misuse");
  decltype(&wherry_fake_verbs_sleeps) sleeps = get<unsigned()>("wherry_fake_verbs_sleeps");
  DeviceSettings settings;
};

TEST_F(Verbs, Move_EveryPathFromBothSides_ExpectItsBytes) {
  const auto all = paths();
  EXPECT_EQ(all.size(), 8U);
  for (const auto& path : all) {
    ASSERT_EQ(path->info().absent, "");
    EXPECT_EQ(path->info().initiator == Initiator::kDevice, path->info().id.ends_with(".device"));
    for (const Notice notice : {Notice::kPolled, Notice::kBlocking})
      for (const auto& [depth, channels] : {std::pair{1U, 1U}, {7U, 1U}, {7U, 3U}}) {
        const Status status = drive(*path, shape_of(*path, depth, channels, notice), {.transfers = 30});
        EXPECT_TRUE(status.ok()) << path->info().id << ": " << status.message();
      }
  }
  EXPECT_GT(sleeps(), 0U);
}

TEST_F(Verbs, Move_SamePlaceTwice_ExpectItsBytes) {
  for (const auto& path : paths()) {
    Shape shape = shape_of(*path, 2);
    if (shape.bytes != 8) shape.bytes = std::size_t{4} << 20;  // one place for each slot
    EXPECT_TRUE(drive(*path, shape, {.transfers = shape.bytes == 8 ? 4200U : 5U}).ok()) << path->info().id;
  }
}

TEST_F(Verbs, Move_OneByteFlipped_ExpectWrongData) {
  for (const auto& path : paths())
    for (const unsigned number : {1U, 4U}) {
      const Status status = drive(*path, shape_of(*path, 3), {.transfers = 6, .prepared = [&] { flip(number); }});
      EXPECT_EQ(status.code(), StatusCode::kInternal) << path->info().id;
      EXPECT_NE(status.message().find("wrong data: 1 bytes"), std::string::npos) << status.message();
    }
}

TEST_F(Verbs, Spoil_AnyByte_ExpectWrongData) {
  for (const auto& path : paths())
    EXPECT_TRUE(testing_support::notices_spoiling(*path, shape_of(*path))) << path->info().id;
}

TEST_F(Verbs, Move_RequestFails_ExpectItsStatus) {
  for (const auto& path : paths()) {
    const Status status = drive(*path, shape_of(*path, 2), {.transfers = 6, .prepared = [&] { fail(3); }});
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_NE(status.message().find("retry counter exceeded"), std::string::npos) << status.message();
  }
}

TEST_F(Verbs, Accepts_ShapeThatItCannot_ExpectUnsupported) {
  const auto all = paths();
  for (const auto& path : all) {
    Shape shape = shape_of(*path);
    EXPECT_TRUE(path->accepts(shape).ok());
    shape.channels = 2;
    EXPECT_EQ(path->accepts(shape).code(), StatusCode::kUnsupported) << "depth 1";
    shape = shape_of(*path);
    shape.flow = shape.flow == Flow::kH2C ? Flow::kC2H : Flow::kH2C;
    EXPECT_EQ(path->accepts(shape).code(), StatusCode::kUnsupported);
  }
  EXPECT_EQ(all.at(3)->info().id, "verbs.atomic");
  EXPECT_EQ(all.at(3)->accepts({.bytes = 16}).code(), StatusCode::kUnsupported);
  EXPECT_EQ(all.at(3)->accepts({.bytes = 8, .align = 4}).code(), StatusCode::kUnsupported);
}

TEST_F(Verbs, Make_NoDevice_ExpectAbsentAndTheRemedy) {
  reset(0);
  EXPECT_NE(paths().at(0)->info().absent.find("rdma link add"), std::string::npos);
  reset(1);
  settings.verbs_device = "mlx5_0";
  EXPECT_NE(paths().at(0)->info().absent.find("mlx5_0"), std::string::npos);
  settings.verbs_device = "standin0";
  EXPECT_EQ(paths().at(0)->info().absent, "");
  settings.verbs_library = "libdl.so.2";
  EXPECT_NE(paths().at(0)->info().absent.find("has no ibv_get_device_list"), std::string::npos);
}

}  // namespace
}  // namespace wherry::probe
