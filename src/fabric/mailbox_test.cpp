// SPDX-License-Identifier: Apache-2.0
#include "fabric/mailbox.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>

#include "base/random.hpp"

namespace wherry::fabric {
namespace {

struct Memory {
  explicit Memory(std::size_t ring = 4096) : words(Mailbox::bytes_for(ring) / 64) {}
  struct alignas(64) Line {
    std::byte bytes[64] = {};
  };
  std::vector<Line> words;
  std::span<std::byte> span() { return {words.front().bytes, words.size() * 64}; }
};

std::vector<std::byte> payload_of(std::uint64_t number, std::size_t bytes) {
  std::vector<std::byte> out(bytes);
  SplitMix64 random(number);  // a Mersenne twister takes longer to begin than the mailbox for the message
  for (auto& b : out) b = static_cast<std::byte>(random());
  return out;
}

bool write(MailboxWriter& writer, std::uint8_t kind, std::span<const std::byte> payload) {
  std::byte* to = writer.try_reserve(payload.size());
  if (to == nullptr) return false;
  if (!payload.empty()) std::memcpy(to, payload.data(), payload.size());
  writer.publish(kind);
  return true;
}

TEST(Mailbox, DeliversEveryMessageOnceAndInOrderAcrossThreads) {
  Memory memory;
  constexpr std::uint64_t kMessages = 200'000;
  std::thread producer([&] {
    MailboxWriter writer(memory.span());
    std::mt19937 random(1);
    for (std::uint64_t i = 0; i < kMessages; ++i) {
      const std::size_t bytes = random() % 8 == 0 ? random() % (writer.largest() + 1) : random() % 64;
      const auto payload = payload_of(i, bytes);
      while (!write(writer, static_cast<std::uint8_t>(1 + i % 254), payload)) std::this_thread::yield();
    }
  });
  MailboxReader reader(memory.span());
  std::mt19937 random(1);
  for (std::uint64_t i = 0; i < kMessages;) {
    MailboxRecord record;
    const auto outcome = reader.try_read(record);
    ASSERT_NE(outcome, MailboxReader::Outcome::kMalformed);
    if (outcome == MailboxReader::Outcome::kEmpty) {
      std::this_thread::yield();
      continue;
    }
    const std::size_t bytes = random() % 8 == 0 ? random() % (1024 + 1) : random() % 64;
    const auto expected = payload_of(i, bytes);
    ASSERT_EQ(record.kind, 1 + i % 254) << i;
    ASSERT_TRUE(std::ranges::equal(record.payload, expected)) << i;
    ++i;
  }
  producer.join();
  MailboxRecord record;
  EXPECT_EQ(reader.try_read(record), MailboxReader::Outcome::kEmpty);
}

TEST(Mailbox, AFullRingIsBackPressureAndLosesNothing) {
  Memory memory;
  MailboxWriter writer(memory.span());
  const auto payload = payload_of(1, 100);
  int written = 0;
  while (write(writer, 3, payload)) ++written;
  EXPECT_GT(written, 30);
  EXPECT_EQ(writer.try_reserve(100), nullptr);
  MailboxReader reader(memory.span());
  MailboxRecord record;
  for (int i = 0; i < written; ++i) {
    ASSERT_EQ(reader.try_read(record), MailboxReader::Outcome::kRecord);
    ASSERT_TRUE(std::ranges::equal(record.payload, payload));
  }
  EXPECT_EQ(reader.try_read(record), MailboxReader::Outcome::kEmpty);
  EXPECT_TRUE(write(writer, 3, payload));
}

TEST(Mailbox, AReservationThatIsNotPublishedLeavesNoTrace) {
  Memory memory;
  MailboxWriter writer(memory.span());
  ASSERT_NE(writer.try_reserve(700), nullptr);
  ASSERT_TRUE(write(writer, 9, payload_of(2, 8)));
  MailboxReader reader(memory.span());
  MailboxRecord record;
  ASSERT_EQ(reader.try_read(record), MailboxReader::Outcome::kRecord);
  EXPECT_EQ(record.kind, 9);
  EXPECT_EQ(record.payload.size(), 8U);
  EXPECT_EQ(reader.try_read(record), MailboxReader::Outcome::kEmpty);
}

TEST(Mailbox, ReceivesAnEmptyRecordFirst_ExpectItLikeAnyOther) {
  Memory memory;
  MailboxWriter writer(memory.span());
  MailboxReader reader(memory.span());
  ASSERT_TRUE(write(writer, 9, {}));
  MailboxRecord record;
  ASSERT_EQ(reader.try_read(record), MailboxReader::Outcome::kRecord);
  EXPECT_EQ(record.kind, 9);
  EXPECT_TRUE(record.payload.empty());
  EXPECT_EQ(reader.try_read(record), MailboxReader::Outcome::kEmpty);
}

TEST(Mailbox, ReceivesSkipsWithoutEnd_IsMalformed) {
  Memory memory;
  const std::uint64_t skip = std::uint64_t{Mailbox::kSkip} << 32;
  for (std::size_t at = 64; at < memory.span().size(); at += 8) std::memcpy(&memory.span()[at], &skip, 8);
  MailboxReader reader(memory.span());
  MailboxRecord record;
  EXPECT_EQ(reader.try_read(record), MailboxReader::Outcome::kMalformed);
  const std::uint64_t whole = skip | (4096 - 8);
  std::memcpy(&memory.span()[64], &whole, 8);
  EXPECT_EQ(reader.try_read(record), MailboxReader::Outcome::kMalformed);
}

TEST(Mailbox, ReceivesARecordOfMoreThanAQuarter_IsMalformed) {
  Memory memory;
  const std::uint64_t word = std::uint64_t{9} << 32 | (1024 + 8);
  std::memcpy(&memory.span()[64], &word, 8);
  MailboxReader reader(memory.span());
  MailboxRecord record;
  EXPECT_EQ(reader.try_read(record), MailboxReader::Outcome::kMalformed);
}

TEST(Mailbox, SizesThatAreNoMailbox) {
  for (const std::uint64_t bytes : {0ULL, 64ULL, 4096ULL, 64ULL + 4095, 64ULL + 6000, 64ULL + (1ULL << 31), ~0ULL}) {
    EXPECT_FALSE(Mailbox::valid_size(bytes)) << bytes;
  }
  EXPECT_TRUE(Mailbox::valid_size(Mailbox::bytes_for(4096)));
  EXPECT_TRUE(Mailbox::valid_size(Mailbox::bytes_for(Mailbox::kMostRingBytes)));
  EXPECT_FALSE(Mailbox::valid_size(Mailbox::bytes_for(2 * Mailbox::kMostRingBytes)));
}

}  // namespace
}  // namespace wherry::fabric
