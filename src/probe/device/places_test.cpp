// SPDX-License-Identifier: Apache-2.0
#include "probe/device/places.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/random.hpp"
#include "probe/pattern.hpp"

namespace wherry::probe {
namespace {

using Region = std::vector<std::byte>;

/// Performs `count` transfers like a device.
void move(Places& places, const Region& from, Region& to, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    const std::size_t offset = places.take(0);
    std::memcpy(&to[offset], &from[offset], places.bytes());
    places.ended(0);
  }
}

TEST(Places, Plan_EveryPattern_ExpectPlacesApartAlignedAndInTheRegion) {
  for (const Pattern pattern : {Pattern::kSequential, Pattern::kStrided, Pattern::kRandom})
    for (const std::size_t bytes : {1U, 4U, 63U, 64U, 4096U, 5000U, 1U << 20})
      for (const unsigned align : {0U, 1U, 63U}) {
        const Shape shape{.bytes = bytes, .depth = 3, .pattern = pattern, .align = align};
        auto places = Places::plan(shape, {});
        ASSERT_TRUE(places) << places.status().message();
        ASSERT_GE(places->places(), 3U);
        std::set<std::size_t> seen;
        for (std::size_t i = 0; i < places->places(); ++i) {
          const std::size_t offset = places->take(0);
          EXPECT_TRUE(seen.insert(offset).second) << "the same place twice in a turn";
          if (align != 0) {
            EXPECT_EQ(offset % 4096, align);
          }
        }
        EXPECT_GE(*seen.begin(), 4096U);
        EXPECT_LE(*seen.rbegin() + bytes + 4096, places->region_bytes());
        for (auto one = seen.begin(), next = std::next(one); next != seen.end(); ++one, ++next)
          EXPECT_GE(*next - *one, bytes);
        EXPECT_TRUE(seen.contains(places->take(0))) << "the first again";
      }
}

TEST(Places, Plan_TooLittleRoom_ExpectWhatIsNeeded) {
  const auto places = Places::plan({.bytes = 4096, .depth = 4}, {.room = 16384, .guard = 64});
  ASSERT_FALSE(places);
  EXPECT_EQ(places.status().code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(Places::plan({.bytes = 4096, .depth = 4}, {.room = 16384 + 128, .guard = 64}));
  EXPECT_EQ(Places::plan({.bytes = SIZE_MAX, .pattern = Pattern::kStrided}, {}).status().code(),
            StatusCode::kResourceExhausted);
}

TEST(Places, Plan_AlignmentThatTheMemoryCannotHave_ExpectUnsupported) {
  EXPECT_EQ(Places::plan({.bytes = 64, .align = 1}, {.unit = 4}).status().code(), StatusCode::kUnsupported);
}

TEST(Places, Check_AllMoved_ExpectOk) {
  auto places = Places::plan({.bytes = 100, .pattern = Pattern::kStrided, .align = 3}, {.spread = 8192});
  ASSERT_TRUE(places);
  Region from(places->region_bytes()), to(places->region_bytes());
  for (const std::uint64_t seed : {1U, 2U}) {
    places->fill_source(from, seed);
    places->fill_destination(to, seed);
    EXPECT_TRUE(places->check(to, seed).ok()) << "nothing moved, nothing written";
    move(*places, from, to, seed == 1 ? 1 : 7);
    EXPECT_TRUE(places->check(to, seed).ok()) << places->check(to, seed).message();
    EXPECT_TRUE(places->check_source(from, seed).ok());
    EXPECT_FALSE(places->check(to, seed + 1).ok()) << "the data of another round";
  }
}

TEST(Places, Check_EachByteFlipped_ExpectItIsNamed) {
  auto places = Places::plan({.bytes = 13, .depth = 2}, {.guard = 8, .spread = 26});
  ASSERT_TRUE(places);
  Region from(places->region_bytes()), to(places->region_bytes());
  places->fill_source(from, 5);
  places->fill_destination(to, 5);
  move(*places, from, to, 1);
  for (std::size_t i = 0; i < to.size(); ++i)
    for (unsigned bit = 0; bit < 8; ++bit) {
      to[i] ^= std::byte{1} << bit;
      const Status found = places->check(to, 5);
      EXPECT_EQ(found.code(), StatusCode::kInternal) << i;
      EXPECT_NE(found.message().find("wrong data: 1 bytes"), std::string::npos) << found.message();
      EXPECT_NE(found.message().find(std::to_string(i) + " bytes behind"), std::string::npos) << found.message();
      to[i] ^= std::byte{1} << bit;
      from[i] ^= std::byte{1} << bit;
      EXPECT_FALSE(places->check_source(from, 5).ok());
      from[i] ^= std::byte{1} << bit;
    }
  EXPECT_TRUE(places->check(to, 5).ok());
}

TEST(Places, Check_TransferAtTheWrongPlace_ExpectWrongData) {
  auto places = Places::plan({.bytes = 64, .depth = 2}, {.spread = 128});
  ASSERT_TRUE(places);
  Region from(places->region_bytes()), to(places->region_bytes());
  places->fill_source(from, 5);
  places->fill_destination(to, 5);
  const std::size_t offset = places->take(0);
  std::memcpy(&to[offset], &from[offset + 64], 64);
  places->ended(0);
  EXPECT_FALSE(places->check(to, 5).ok());
  places->fill_destination(to, 5);
  (void)places->take(0);
  places->ended(0);
  EXPECT_FALSE(places->check(to, 5).ok()) << "it ended, and moved nothing";
}

TEST(Pattern, Fill_AnyOffset_ExpectPartsOfTheWhole) {
  Region whole(64), poison(64);
  fill_pattern(whole, 9, 0);
  fill_poison(poison, 9, 0);
  std::uint64_t first = 0;
  std::memcpy(&first, whole.data(), 8);
  EXPECT_EQ(first, splitmix64(9, 0));
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(whole[i], ~poison[i]);
  for (std::size_t offset = 0; offset < 20; ++offset)
    for (std::size_t size = 0; size < 30; ++size) {
      Region part(size);
      fill_pattern(part, 9, offset);
      EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(offset)));
      EXPECT_EQ(compare_pattern(part, 9, offset, false).count, 0U);
      EXPECT_EQ(compare_pattern(part, 9, offset, true).count, size);
    }
}

}  // namespace
}  // namespace wherry::probe
