// SPDX-License-Identifier: Apache-2.0
// Tests messages that are packed behind one header.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <random>

#include "base/testing.hpp"
#include "route/client/testing.hpp"

namespace wherry::route {
namespace {

using namespace std::chrono_literals;
using testing_support::run_ranks;

template <std::size_t kBytes>
struct Sized {
  std::array<std::uint8_t, kBytes> bytes{};
};

/// Messages that have arrived, by size: their number, and the sum of their first four bytes.
using wherry::testing_support::kPatience;
using Arrived = std::map<std::size_t, std::pair<std::uint64_t, std::uint64_t>>;

void note(Arrived& arrived, std::size_t size, const void* data) {
  std::uint32_t value = 0;
  std::memcpy(&value, data, sizeof value);
  auto& [count, sum] = arrived[size];
  ++count;
  sum += value;
}

class Packs : public testing::TestWithParam<RingShape> {};

TEST_P(Packs, BurstsOfMixedTypes_ExpectEachMessageOnce) {
  constexpr int kBursts = 2000;
  run_ranks({0, 0, 1}, {}, GetParam(), [&](Runtime& runtime) {
    Arrived arrived, sent;
    const auto counted = [&]<std::size_t kBytes>(const Sized<kBytes>& message) { note(arrived, kBytes, &message); };
    const auto four = runtime.on<Sized<4>>(counted), also_four = runtime.on<Sized<4>>("also four", counted);
    const auto twelve = runtime.on<Sized<12>>(counted, [](const Sized<12>&) {});
    const auto most = runtime.on<Sized<64>>(counted);
    const auto too_long = runtime.on<Sized<72>>(counted);
    const auto any = runtime.on<ByteView>([&](ByteView bytes) { note(arrived, 1000 + bytes.size(), bytes.data()); });
    std::mt19937 random(runtime.rank());
    const auto burst = [&](auto message, auto handler, Rank to) {
      for (std::size_t left = random() % 40; left != 0; --left) {
        const auto value = static_cast<std::uint32_t>(random());
        std::memcpy(message.bytes.data(), &value, sizeof value);
        ASSERT_EQ(runtime.send(to, handler, message), StatusCode::kOk);
        note(sent, sizeof message, &value);
      }
    };
    for (int i = 0; i < kBursts; ++i) {
      const auto to = static_cast<Rank>(random() % runtime.ranks());
      switch (random() % 7) {
        case 0:
          burst(Sized<4>{}, four, to);
          break;
        case 1:
          burst(Sized<4>{}, also_four, to);
          break;
        case 2:
          burst(Sized<12>{}, twelve, to);
          break;
        case 3:
          burst(Sized<64>{}, most, to);
          break;
        case 4:
          burst(Sized<72>{}, too_long, to);
          break;
        case 5: {
          const std::vector<std::byte> bytes(4 + random() % 100, std::byte{7});
          ASSERT_EQ(runtime.send(to, any, bytes), StatusCode::kOk);
          note(sent, 1000 + bytes.size(), bytes.data());
          break;
        }
        default:
          runtime.flush();
      }
    }
    ASSERT_TRUE(runtime.quiesce(kPatience));
    for (std::size_t size = 4; size < 1200; ++size) {
      const auto all = [&](std::uint64_t value) { return *runtime.reduce(value); };
      EXPECT_EQ(all(sent[size].first), all(arrived[size].first)) << size;
      EXPECT_EQ(all(sent[size].second), all(arrived[size].second)) << size;
    }
    EXPECT_EQ(*runtime.reduce(runtime.statistics().sent), *runtime.reduce(runtime.statistics().handled));
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, Packs, testing::Values(RingShape{2, 256}, RingShape{4, 1024}, RingShape{4, 32 << 10}));

TEST(Packing, ManyOfAKind_ExpectAHeaderForABufferOnly) {
  constexpr std::uint64_t kMessages = 10'000;  // which fit into the ring, so that nothing is flushed early
  constexpr std::uint64_t kBuffer = 32 << 10;
  run_ranks({0}, {}, {4, kBuffer}, [&](Runtime& runtime) {
    std::uint64_t sum = 0;
    const auto add = runtime.on<std::uint64_t>([&](const std::uint64_t& value) { sum += value; });
    for (std::uint64_t i = 0; i < kMessages; ++i) ASSERT_EQ(runtime.try_send(0, add, i), StatusCode::kOk);
    runtime.flush();
    EXPECT_EQ(runtime.statistics().bytes_out, kMessages * 8 + (kMessages * 8 / (kBuffer - 16) + 1) * 16);
    ASSERT_TRUE(runtime.quiesce(kPatience));
    EXPECT_EQ(sum, kMessages * (kMessages - 1) / 2);
  });
}

TEST(Packing, AlternatingHandlers_ExpectNoMoreBytesThanOrdinaryMessages) {
  constexpr std::uint64_t kMessages = 100'000;
  run_ranks({0, 0}, {}, {}, [&](Runtime& runtime) {
    std::uint64_t sum = 0;
    const auto add = runtime.on<std::uint64_t>([&](const std::uint64_t& value) { sum += value; });
    const auto twice = runtime.on<std::uint64_t>([&](const std::uint64_t& value) { sum += 2 * value; });
    for (std::uint64_t i = 0; i < kMessages; ++i)
      ASSERT_EQ(runtime.send(1 - runtime.rank(), i % 2 == 0 ? add : twice, std::uint64_t{1}), StatusCode::kOk);
    ASSERT_TRUE(runtime.quiesce(kPatience));
    EXPECT_EQ(sum, kMessages * 3 / 2);
    EXPECT_LT(runtime.statistics().bytes_out, kMessages * 17);
  });
}

TEST(Packing, ReceiverThatTakesBuffers_ExpectWholeMessages) {
  constexpr std::uint64_t kMessages = 1000;
  run_ranks({0, 0}, {}, {}, [&](Runtime& runtime) {
    const auto add = runtime.on<std::uint64_t>([](const std::uint64_t&) { FAIL() << "poll_buffers() takes them"; });
    for (std::uint64_t i = 0; i < kMessages; ++i) ASSERT_EQ(runtime.send(1 - runtime.rank(), add, i), StatusCode::kOk);
    runtime.flush();
    std::uint64_t sum = 0, count = 0;
    while (count < kMessages) {
      runtime.poll_buffers([&](ByteView bytes) {
        for (std::size_t at = 0; at != bytes.size(); at += 16, ++count) {
          ASSERT_EQ(Header::load(bytes.data() + at), Header::make(8, add.id(), runtime.rank()));
          std::uint64_t value = 0;
          std::memcpy(&value, bytes.data() + at + 8, sizeof value);
          sum += value;
        }
      });
      ASSERT_TRUE(runtime.status());
    }
    EXPECT_EQ(sum, kMessages * (kMessages - 1) / 2);
    ASSERT_TRUE(runtime.quiesce(kPatience));
  });
}

/// A malformed pack.
struct Lie {
  const char* name;
  Header shared;
  std::size_t bytes;  ///< behind the shared header
  StatusCode code = StatusCode::kProtocol;
};

class MalformedPacks : public testing::TestWithParam<Lie> {};

TEST_P(MalformedPacks, Receive_ExpectAnErrorAndNoMessage) {
  auto wirings = wire_threads({0, 0}, {});
  Runtime runtime = detail::make_runtime(Options{}, std::move(wirings[0]));
  int handled = 0;
  const auto eight = runtime.on<std::uint64_t>([&](const std::uint64_t&) { ++handled; });
  ASSERT_EQ(eight.id(), 16u);
  const Lie& lie = GetParam();
  const std::span<std::byte> space = runtime.try_buffer(0, 16 + lie.bytes);
  Header::make(8 + lie.bytes, kPackHandler, 0).store(space.data());
  lie.shared.store(space.data() + 8);
  runtime.post_buffer(0, space.size(), 0);
  runtime.flush();
  runtime.poll();
  EXPECT_EQ(runtime.status().code(), lie.code) << runtime.status().message();
  EXPECT_EQ(handled, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Lies, MalformedPacks,
    testing::Values(Lie{"AnotherSize", Header::make(16, 16, 0), 32, StatusCode::kFailedPrecondition},
                    Lie{"NoSize", Header::make(0, 16, 0), 32}, Lie{"NotWhole", Header::make(16, 16, 0), 24},
                    Lie{"TooLong", Header::make(72, 16, 0), 72}, Lie{"AnotherRank", Header::make(8, 16, 1), 16},
                    Lie{"NoSuchHandler", Header::make(8, 17, 0), 16, StatusCode::kFailedPrecondition},
                    Lie{"TheLibrarysHandler", Header::make(8, 3, 0), 16},
                    Lie{"APackInAPack", Header::make(8, kPackHandler, 0), 16}),
    [](const auto& lie) { return lie.param.name; });

}  // namespace
}  // namespace wherry::route
