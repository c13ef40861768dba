// SPDX-License-Identifier: Apache-2.0
#include "move/service/inbox.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <string>
#include <vector>

namespace {
thread_local std::size_t allocations = 0;
}  // namespace

// Counts this program's allocations.
void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* const memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace wherry::move {
namespace {

ByteView view(const std::string& text) { return std::as_bytes(std::span(text)); }

struct Taken {
  int from;
  std::string text;
  friend bool operator==(const Taken&, const Taken&) = default;
};

std::vector<Taken> read_all(Inbox<int>& inbox) {
  std::vector<Taken> all;
  inbox.read([&](int& from, ByteView message) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(message.data()) % 16, 0U);
    all.push_back({from, {reinterpret_cast<const char*>(message.data()), message.size()}});
  });
  return all;
}

TEST(Inbox, Receive_MessagesOfTwo_ExpectThemInOrderAndAligned) {
  Inbox<int> inbox;
  int a = 1, b = 2;
  EXPECT_TRUE(inbox.empty());
  inbox.push(a, view("one"));
  inbox.push(b, {});
  inbox.push(a, view(std::string(1000, 'x')));
  EXPECT_FALSE(inbox.empty());
  EXPECT_EQ(read_all(inbox), (std::vector<Taken>{{1, "one"}, {2, ""}, {1, std::string(1000, 'x')}}));
  EXPECT_TRUE(inbox.empty());
}

TEST(Inbox, Receive_MoreWhileReading_ExpectTheMessageAtHandUnmovedAndTheRestNextTime) {
  Inbox<int> inbox;
  int a = 1;
  inbox.push(a, view("first"));
  const std::string large(4 * Inbox<int>::kKept, 'y');
  int seen = 0;
  inbox.read([&](int& from, ByteView message) {
    ++seen;
    inbox.push(from, view(large));
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(message.data()), message.size()), "first");
  });
  EXPECT_EQ(seen, 1);
  EXPECT_EQ(read_all(inbox), (std::vector<Taken>{{1, large}}));
}

TEST(Inbox, Forget_One_ExpectOnlyTheOthers) {
  Inbox<int> inbox;
  int a = 1, b = 2;
  inbox.push(a, view("a"));
  inbox.push(b, view("b"));
  inbox.push(a, view("aa"));
  inbox.forget(a);
  EXPECT_EQ(read_all(inbox), (std::vector<Taken>{{2, "b"}}));
}

TEST(Inbox, Receive_MessagesOfOrdinarySize_ExpectNoAllocation) {
  Inbox<int> inbox;
  int from = 1;
  std::size_t bytes = 0;
  const std::string message(1024, 'm');
  const std::size_t before = allocations;
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 200; ++i) inbox.push(from, view(message));
    inbox.read([&](int&, ByteView one) { bytes += one.size(); });
  }
  EXPECT_EQ(allocations, before);
  EXPECT_EQ(bytes, std::size_t{100} * 200 * 1024);
}

}  // namespace
}  // namespace wherry::move
