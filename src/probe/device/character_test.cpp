// SPDX-License-Identifier: Apache-2.0
#include "probe/device/character.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/temporary_directory.hpp"
#include "probe/device/drive_testing.hpp"
#include "probe/device/fuse_testing.hpp"

namespace wherry::probe {
namespace {
using testing_support::drive;
using testing_support::FuseCard;

constexpr std::size_t kCard = std::size_t{8} << 20;

/// A card whose memory is a regular file. Every character device is a
/// link to that file, because on a card all devices reach one memory.
struct Character : testing::Test {
  Character() {
    auto made = TemporaryDirectory::create("probe-xdma");
    EXPECT_TRUE(made);
    if (made) directory = *std::move(made);
    settings.dev = directory.path();
    settings.sysfs = directory.file("sys");
    std::ofstream(directory.file("memory")).close();
    std::filesystem::resize_file(directory.file("memory"), kCard);
    for (const char* const node :
         {"xdma0_h2c_0", "xdma0_h2c_1", "xdma0_c2h_0", "xdma0_c2h_1", "xdma0_user", "qdma01000-MM-0"})
      std::filesystem::create_symlink(directory.file("memory"), directory.path() / node);
    settings.xdma = Target{.name = "xdma0", .base = 4096, .bytes = kCard - 8192};
    settings.xdma_user = Target{.name = "xdma0", .base = 512, .bytes = 4096};
    settings.qdma = Target{.name = "qdma01000-MM-0", .base = 0, .bytes = kCard};
  }
  static Flow flow(const Path& path) { return path.info().from == "host memory" ? Flow::kH2C : Flow::kC2H; }
  std::vector<std::unique_ptr<Path>> present() {
    std::vector<std::unique_ptr<Path>> found;
    for (auto& path : character_paths(settings))
      if (path->info().absent.empty()) found.push_back(std::move(path));
    return found;
  }
  std::unique_ptr<Path> path(const std::string& id) {
    for (auto& one : character_paths(settings))
      if (one->info().id == id) return std::move(one);
    return nullptr;
  }
  void flip(std::size_t at) const {
    std::fstream stream(directory.file("memory"), std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(static_cast<std::streamoff>(at));
    const int byte = stream.get();
    ASSERT_NE(byte, EOF);
    stream.seekp(static_cast<std::streamoff>(at));
    stream.put(static_cast<char>(byte ^ 1));
  }
  TemporaryDirectory directory;
  DeviceSettings settings;
};

TEST_F(Character, Move_EveryPath_ExpectItsBytes) {
  const auto paths = present();
  EXPECT_EQ(paths.size(), 8U);  // h2c and c2h, two channels each; user and qdma, both ways
  for (const auto& path : paths)
    for (const std::size_t bytes : {4U, 64U, 100U})
      for (const unsigned depth : {1U, 4U})
        for (const Notice notice : {Notice::kPolled, Notice::kBlocking}) {
          const Shape shape{
              .bytes = bytes, .depth = depth, .pattern = Pattern::kRandom, .flow = flow(*path), .notice = notice};
          const Status status = drive(*path, shape, {.transfers = 20, .seed = bytes});
          EXPECT_TRUE(status.ok()) << path->info().id << ": " << status.message();
        }
}

TEST_F(Character, Move_EveryAlignmentAndTwoChannels_ExpectItsBytes) {
  for (const char* const id : {"xdma.h2c0", "xdma.c2h0"})
    for (const unsigned align : {0U, 1U, 4U, 16U, 32U, 63U, 4095U}) {
      const auto one = path(id);
      const Shape shape{.bytes = 5000,
                        .depth = 4,
                        .channels = 2,
                        .pattern = Pattern::kStrided,
                        .flow = flow(*one),
                        .notice = Notice::kBlocking,
                        .align = align};
      EXPECT_TRUE(drive(*one, shape, {.transfers = 40}).ok());
    }
}

TEST_F(Character, Move_OneByteFlipped_ExpectWrongData) {
  for (const auto& path : present()) {
    const bool writes = flow(*path) == Flow::kH2C;
    const std::size_t base = path->info().id.starts_with("xdma.user") ? 512
                             : path->info().id.starts_with("qdma")    ? 0
                                                                      : 4096;
    testing_support::Round round{.transfers = 1};
    (writes ? round.moved : round.prepared) = [&] { flip(base + 64 + 3); };
    EXPECT_EQ(drive(*path, {.bytes = 64, .flow = flow(*path)}, round).code(), StatusCode::kInternal) << path->info().id;
    EXPECT_EQ(
        drive(*path, {.bytes = 64, .flow = flow(*path)}, {.transfers = 1, .moved = [&] { flip(base + 1); }}).code(),
        StatusCode::kInternal)
        << path->info().id << ", guard";
  }
}

TEST_F(Character, Move_RangeNamed_ExpectNothingElseIsWritten) {
  for (const char* const id : {"xdma.h2c0", "xdma.c2h0"}) {
    const auto one = path(id);
    EXPECT_TRUE(drive(*one, {.bytes = 4096, .depth = 2, .flow = flow(*one)}).ok());
  }
  std::ifstream stream(directory.file("memory"), std::ios::binary);
  const std::string after(std::istreambuf_iterator<char>(stream), {});
  EXPECT_EQ(after.substr(0, 4096), std::string(4096, '\0'));
  EXPECT_EQ(after.substr(kCard - 4096), std::string(4096, '\0'));
}

TEST_F(Character, Spoil_AnyByte_ExpectWrongData) {
  for (const auto& path : present())
    EXPECT_TRUE(testing_support::notices_spoiling(*path, {.bytes = 64, .flow = flow(*path)})) << path->info().id;
}

TEST_F(Character, Accepts_ShapeThatItCannot_ExpectUnsupported) {
  const auto h2c = path("xdma.h2c1");
  EXPECT_EQ(h2c->accepts({.depth = 2, .channels = 2}).code(), StatusCode::kUnsupported) << "channel 1 is the last";
  EXPECT_EQ(h2c->accepts({.flow = Flow::kC2H}).code(), StatusCode::kUnsupported);
  EXPECT_EQ(h2c->accepts({.depth = 65}).code(), StatusCode::kUnsupported);
  EXPECT_EQ(h2c->accepts({.notice = Notice::kInterrupt}).code(), StatusCode::kUnsupported);
  EXPECT_EQ(path("xdma.user.write")->accepts({.bytes = 6}).code(), StatusCode::kUnsupported);
  EXPECT_EQ(h2c->accepts({.bytes = kCard}).code(), StatusCode::kResourceExhausted);
}

TEST_F(Character, Accepts_DriverWithInterrupts_ExpectInterruptShapes) {
  std::filesystem::create_directories(directory.path() / "sys/module/xdma/parameters");
  std::ofstream(directory.file("sys/module/xdma/parameters/poll_mode")) << "0\n";
  EXPECT_TRUE(path("xdma.h2c0")->accepts({.notice = Notice::kInterrupt}).ok());
  std::ofstream(directory.file("sys/module/xdma/parameters/poll_mode")) << "1\n";
  EXPECT_FALSE(path("xdma.h2c0")->accepts({.notice = Notice::kInterrupt}).ok());
}

TEST_F(Character, Make_NoRangeNamed_ExpectAbsentAndHowToNameIt) {
  settings.xdma = settings.xdma_user = settings.qdma = std::nullopt;
  EXPECT_NE(path("xdma.h2c0")->info().absent.find("WHERRY_PROBE_XDMA=xdma0"), std::string::npos)
      << path("xdma.h2c0")->info().absent;
  EXPECT_NE(path("xdma.user.read")->info().absent.find("WHERRY_PROBE_XDMA_USER"), std::string::npos);
  EXPECT_NE(path("qdma.mm.h2c")->info().absent.find("dma-ctl"), std::string::npos);
}

// --- the engine's counters: request numbers as the driver's header gives them on 64-bit Linux.
unsigned long asked[2];
unsigned asks = 0;
int counters(int, unsigned long request, void* argument) {
  asked[asks++ % 2] = request;
  auto* const performance = static_cast<XdmaPerformance*>(argument);
  if (performance->version != 1) return errno = EINVAL, -1;
  performance->clock_cycles = 1000;
  performance->data_cycles = 750;
  return 0;
}

TEST_F(Character, Open_DriverWithCounters_ExpectHardwareBesideSoftware) {
  static_assert(sizeof(XdmaPerformance) == 40);
  CharacterDevice device{.moves = {directory.file("xdma0_c2h_0")},
                         .writes = directory.file("memory"),
                         .reads = directory.file("memory"),
                         .range = {.name = "xdma0", .base = 0, .bytes = kCard},
                         .to_card = false,
                         .counters = true,
                         .control = counters};
  PathInfo info;
  const auto counted = character_path(info, device)->open({.flow = Flow::kC2H});
  ASSERT_TRUE(counted);
  EXPECT_NE(counted->why.find("data in 750 of 1000 cycles"), std::string::npos) << counted->why;
  EXPECT_EQ(asked[0], 0x40087101UL);
  EXPECT_EQ(asked[1], 0x40087102UL);

  asks = 0;
  device.to_card = true;
  device.range.base = 4096;  // their test would overwrite what was not named
  EXPECT_TRUE(character_path(info, device)->open({}));
  EXPECT_EQ(asks, 0U);

  device.range.base = 0;
  device.control = nullptr;  // a regular file has none
  const auto without = character_path(info, device)->open({});
  ASSERT_TRUE(without);
  EXPECT_NE(without->why.find("no counters"), std::string::npos) << without->why;
}

// --- a file system for this test, whose files behave like those of a device
struct CharacterFuse : testing::Test {
  void SetUp() override {
    auto made = FuseCard::mount();
    if (!made) GTEST_SKIP() << "no FUSE here: " << made.status().message();
    card = *std::move(made);
  }
  std::unique_ptr<FuseCard> card;
};

CharacterDevice behind(const FuseCard& card, bool to_card) {
  return {.moves = {card.file(), card.file()},
          .writes = card.file(),
          .reads = card.file(),
          .range = {.name = "card", .base = 8192, .bytes = 96 << 10},
          .to_card = to_card};
}
PathInfo named(bool to_card) { return {.id = to_card ? "card.h2c" : "card.c2h", .group = "xdma", .absent = {}}; }
Shape shape_of(bool to_card, unsigned depth = 1) {
  return {.bytes = 6000,
          .depth = depth,
          .flow = to_card ? Flow::kH2C : Flow::kC2H,
          .notice = Notice::kBlocking,
          .align = 1};
}

TEST_F(CharacterFuse, Move_ShortAndLateAnswers_ExpectItsBytes) {
  for (const bool to_card : {true, false}) {
    card->answer_at_most(1000);
    card->delay(std::chrono::milliseconds(1));
    const Status status =
        drive(*character_path(named(to_card), behind(*card, to_card)), shape_of(to_card, 3), {.transfers = 7});
    EXPECT_TRUE(status.ok()) << status.message();
    card->behave();
  }
  EXPECT_GT(card->calls(), 7U * 6);
}

TEST_F(CharacterFuse, Move_OneByteFlippedOnTheWay_ExpectWrongData) {
  for (const bool to_card : {true, false})
    for (const unsigned depth : {1U, 3U}) {
      const auto path = character_path(named(to_card), behind(*card, to_card));
      testing_support::Round round{.transfers = 5};
      round.prepared = [&] { card->flip_in_call(2, to_card); };
      EXPECT_EQ(drive(*path, shape_of(to_card, depth), round).code(), StatusCode::kInternal);
      card->behave();
    }
}

TEST_F(CharacterFuse, Move_DeviceFails_ExpectItsErrno) {
  for (const bool to_card : {true, false})
    for (const int error : {EIO, ENXIO, ETIMEDOUT}) {
      const auto path = character_path(named(to_card), behind(*card, to_card));
      testing_support::Round round{.transfers = 5};
      round.prepared = [&] { card->fail_call(3, error); };
      const Status status = drive(*path, shape_of(to_card, 2), round);
      EXPECT_EQ(status.code(), StatusCode::kUnavailable);
      EXPECT_NE(status.message().find(std::strerror(error)), std::string::npos) << status.message();
      path->close();
      card->behave();
    }
}

TEST_F(CharacterFuse, Move_DeviceMovesNothing_ExpectErrorAndNoEndlessLoop) {
  const auto path = character_path(named(false), behind(*card, false));
  testing_support::Round round{.transfers = 1};
  round.prepared = [&] { card->answer_at_most(0); };
  EXPECT_EQ(drive(*path, shape_of(false), round).code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace wherry::probe
