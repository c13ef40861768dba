// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <sstream>
#include <thread>

#include "base/testing.hpp"
#include "route/client/codec_testing.hpp"
#include "route/client/runtime_access.hpp"

namespace wherry::route {
namespace {

using wherry::testing_support::kPatience;
using namespace std::chrono_literals;

// Trivially copyable types do not use a Codec, even if they have one.
static_assert(Plain<bool> && !Coded<bool>);
static_assert(Plain<std::optional<int>> && !Coded<std::optional<int>>);
static_assert(Plain<std::array<double, 3>> && !Coded<std::array<double, 3>>);
// Pointers and views are not messages.
static_assert(!Plain<std::string_view> && !Coded<std::string_view> && !Plain<int*> && !Plain<std::span<int>>);
static_assert(!Coded<std::vector<std::string_view>> && !Coded<std::map<int, int*>> && !Coded<std::tuple<int, int*>>);
static_assert(Coded<std::string> && Coded<Page> && Coded<Tree> && Coded<std::vector<Digits>>);

/// The bytes of a text such as "03 00 'a": hexadecimal numbers, and characters after an apostrophe.
Bytes bytes(const std::string& text) {
  Bytes out;
  std::istringstream words(text);
  for (std::string word; words >> word;)
    out.push_back(word[0] == '\'' ? static_cast<std::byte>(word.at(1))
                                  : static_cast<std::byte>(std::stoul(word, nullptr, 16)));
  return out;
}

template <typename T>
Bytes written(const T& value) {
  Bytes out;
  Codec<T>::write(out, value);
  return out;
}

/// Expects that `value` is encoded as `layout`, and that any shorter or longer version is refused.
template <typename T>
void expect_layout(const T& value, const std::string& layout) {
  const Bytes wanted = bytes(layout);
  EXPECT_EQ(written(value), wanted) << layout;
  T back{};
  EXPECT_TRUE(Codec<T>::read(wanted, back)) << layout;
  EXPECT_EQ(back, value) << layout;
  for (std::size_t size = 0; size < wanted.size(); ++size) {
    const Bytes cut(wanted.begin(), wanted.begin() + static_cast<std::ptrdiff_t>(size));  // ASan sees its end
    EXPECT_FALSE(Codec<T>::read(cut, back)) << layout << " cut to " << size;
  }
  Bytes longer = wanted;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(Codec<T>::read(longer, back)) << layout;
}

template <typename T>
void expect_refused(const std::string& layout) {
  T value{};
  EXPECT_FALSE(Codec<T>::read(bytes(layout), value)) << layout;
}

TEST(Codec, WrittenByHand_ExpectTheseBytes) {
  using namespace std::string_literals;
  expect_layout(""s, "0 0 0 0");
  expect_layout("a\0b"s, "3 0 0 0 'a 0 'b");
  expect_layout(u"a\u20ac"s, "2 0 0 0 61 0 ac 20");
  expect_layout(std::vector<std::uint16_t>{1, 0x0203}, "2 0 0 0 1 0 3 2");
  expect_layout(std::vector<std::string>{"x", "", "yz"}, "3 0 0 0 1 0 0 0 'x 0 0 0 0 2 0 0 0 'y 'z");
  expect_layout(std::vector<bool>{true, false, true}, "3 0 0 0 1 0 1");
  expect_layout(std::deque<std::int32_t>{-1}, "1 0 0 0 ff ff ff ff");
  expect_layout(std::array<std::string, 2>{"p", "q"}, "1 0 0 0 'p 1 0 0 0 'q");
  expect_layout(std::vector<std::array<std::uint8_t, 3>>{{1, 2, 3}}, "1 0 0 0 1 2 3");
  expect_layout(std::pair<std::uint8_t, std::uint32_t>(7, 9), "7 9 0 0 0");  // no padding
  expect_layout(std::tuple<std::string, bool, double>("k", true, -2.0), "1 0 0 0 'k 1 0 0 0 0 0 0 0 c0");
  expect_layout(std::optional<std::string>(), "0");
  expect_layout(std::optional<std::string>(""), "1 0 0 0 0");
  expect_layout(std::vector<std::optional<std::uint16_t>>{{}, 5}, "2 0 0 0 0 1 5 0");
  expect_layout(std::map<std::string, std::uint8_t>{{"b", 2}, {"a", 1}}, "2 0 0 0 1 0 0 0 'a 1 1 0 0 0 'b 2");
  expect_layout(std::unordered_map<std::uint8_t, std::uint8_t>{{4, 5}}, "1 0 0 0 4 5");
  expect_layout(std::set<std::uint16_t>{2, 1}, "2 0 0 0 1 0 2 0");
  expect_layout(std::unordered_set<std::string>{"s"}, "1 0 0 0 1 0 0 0 's");
}

TEST(Codec, UserTypes_ExpectMembersInOrderAndOwnCodecsAfterTheirSize) {
  expect_layout(Page{"u", {{"w", {1}}}, {{9, true}}}, "1 0 0 0 'u 1 0 0 0 1 0 0 0 'w 1 0 0 0 1 0 0 0 1 9 1");
  expect_layout(Page{}, "0 0 0 0 0 0 0 0 0");
  expect_layout(Tree{1, {{2, {}}, {3, {{4, {}}}}}}, "1 0 2 0 0 0 2 0 0 0 0 0 3 0 1 0 0 0 4 0 0 0 0 0");
  expect_layout(std::vector<Digits>{{"12"}, {""}, {"3"}}, "3 0 0 0 2 0 0 0 '1 '2 0 0 0 0 1 0 0 0 '3");
  EXPECT_EQ(written(Digits{"42"}), bytes("'4 '2"));  // as a message: nothing before it
  expect_refused<std::vector<Digits>>("1 0 0 0 1 0 0 0 'x");
  expect_refused<std::pair<Digits, Digits>>("2 0 0 0 '1 0 0 0");  // a size that takes what follows
}

TEST(Codec, MalformedMessages_ExpectThemRefused) {
  expect_refused<std::string>("ff ff ff ff 'a");
  expect_refused<std::vector<std::uint64_t>>("2 0 0 0 1 2 3 4 5 6 7 8 9");
  expect_refused<std::vector<std::vector<std::string>>>("1 0 0 0 ff ff ff 7f 0 0 0 0");
  expect_refused<std::vector<bool>>("1 0 0 0 2");
  expect_refused<std::optional<std::string>>("2 0 0 0 0");
  expect_refused<std::map<std::uint8_t, std::uint8_t>>("2 0 0 0 1 5 1 6");  // one key twice
  expect_refused<std::unordered_set<std::uint8_t>>("2 0 0 0 1 1");
  std::vector<std::optional<std::string>> partly;
  EXPECT_FALSE(Codec<decltype(partly)>::read(bytes("2 0 0 0 1 1 0 0 0 'x 1 5 0 0 0 'y"), partly));
}

TEST(Codec, ImpossibleCounts_ExpectNothingAllocated) {
  std::vector<std::string> strings;
  EXPECT_FALSE(Codec<decltype(strings)>::read(bytes("ff ff ff ff 0 0 0 0"), strings));
  EXPECT_EQ(strings.capacity(), 0u);
  std::vector<std::uint64_t> numbers;
  EXPECT_FALSE(Codec<decltype(numbers)>::read(bytes("ff ff ff 0f 0 0 0 0"), numbers));
  EXPECT_EQ(numbers.capacity(), 0u);
  std::unordered_map<std::string, Digits> map;
  const std::size_t buckets = map.bucket_count();
  EXPECT_FALSE(Codec<decltype(map)>::read(bytes("2 0 0 0 0 0 0 0 0 0 0 0"), map));
  EXPECT_EQ(map.bucket_count(), buckets);
}

TEST(Codec, ManyEmptyValuesOfALargeType_ExpectThemRefused) {
  // An element has a byte in the message and 64 KiB in memory, so a message of 16 MiB would need a terabyte.
  using Large = std::optional<std::array<char, 65536>>;
  constexpr std::uint32_t kMost = kMaxDecodedBytes / sizeof(Large);
  Bytes message(4 + 100);
  message[0] = std::byte{100};
  std::vector<Large> few;
  EXPECT_TRUE(Codec<std::vector<Large>>::read(message, few));
  EXPECT_EQ(few.size(), 100u);
  std::vector<Large> value;
  constexpr std::uint32_t kCount = kMost + 1;
  message.assign(4 + kCount, std::byte{0});
  std::memcpy(message.data(), &kCount, 4);
  EXPECT_FALSE(Codec<std::vector<Large>>::read(message, value));
  EXPECT_EQ(value.capacity(), 0u);
}

TEST(Codec, TreesNestedTooDeep_ExpectThemRefusedWithoutStackOverflow) {
  const auto deep = [](std::size_t levels) {
    Bytes message;
    for (std::size_t i = 0; i < levels; ++i) {
      for (const char c : {'\1', '\0', i + 1 < levels ? '\1' : '\0', '\0', '\0', '\0'})
        message.push_back(static_cast<std::byte>(c));
    }
    return message;
  };
  Tree tree;
  EXPECT_TRUE(Codec<Tree>::read(deep(kMaxCodecDepth / 2), tree));  // a tree and its children: two values a level
  EXPECT_EQ(written(tree), deep(kMaxCodecDepth / 2));
  EXPECT_FALSE(Codec<Tree>::read(deep(kMaxCodecDepth / 2 + 1), tree));
  EXPECT_FALSE(Codec<Tree>::read(deep(kMaxMessageBytes / 6), tree));
}

/// Runs `body(runtime)` as each of two ranks.
void run_two(RingShape shape, const std::function<void(Runtime&)>& body) {
  auto wirings = wire_threads({0, 1}, shape);
  std::vector<std::thread> threads;
  for (auto& wiring : wirings) {
    threads.emplace_back([&body, w = std::move(wiring)]() mutable {
      Runtime runtime = detail::make_runtime(Options{}, std::move(w));
      body(runtime);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(CodedMessages, OfManySizesFromHandlersToo_ExpectEachOnce) {
  // Buffers are small, so some messages have to wait for room, and handlers that send run inside a send.
  run_two({2, 512}, [](Runtime& runtime) {
    std::map<std::string, std::uint64_t> counts;
    std::uint64_t pages = 0;
    const auto page = runtime.on<Page>([&](Page&& p) {
      EXPECT_EQ(p.words.at(p.url).size(), p.url.size());
      ++pages;
    });
    const auto word = runtime.on<std::string>([&](const std::string& w) {
      ++counts[w];
      EXPECT_EQ(runtime.send(1 - runtime.rank(), page, Page{w, {{w, std::vector<std::uint32_t>(w.size())}}, {}}),
                StatusCode::kOk);
    });
    constexpr std::uint32_t kMessages = 2000;
    for (std::uint32_t i = 0; i < kMessages; ++i) {
      const std::string text(i % 21 * (i % 21), 'w');
      if (i % 2 == 0) {
        EXPECT_EQ(runtime.send(i / 2 % 2, word, text), StatusCode::kOk);
      } else {
        while (runtime.try_send(i / 2 % 2, word, text) == StatusCode::kWouldBlock) runtime.poll();
      }
    }
    EXPECT_EQ(runtime.send(1 - runtime.rank(), word, "a literal"), StatusCode::kOk);
    ASSERT_TRUE(runtime.quiesce(kPatience));
    EXPECT_EQ(counts.at("a literal"), 1u);
    EXPECT_EQ(counts.size(), 22u);  // and sizes 0, 1, 4, ..., 400
    std::uint64_t words = 0;
    for (const auto& [text, count] : counts) words += count;
    for (const std::uint64_t mine : {words, pages}) {
      const auto all = runtime.reduce(mine);
      ASSERT_TRUE(all);
      EXPECT_EQ(*all, 2u * (kMessages + 1));
    }
    ASSERT_TRUE(runtime.status()) << runtime.status().message();
  });
}

TEST(CodedMessages, TooLargeWhenEncoded_ExpectInvalidArgument) {
  run_two({}, [](Runtime& runtime) {
    const auto take = runtime.on<std::string>([](const std::string&) { FAIL(); });
    EXPECT_EQ(runtime.send(1 - runtime.rank(), take, std::string(kMaxMessageBytes - 3, 'x')),
              StatusCode::kInvalidArgument);
    ASSERT_TRUE(runtime.quiesce(kPatience));
  });
}

TEST(CodedMessages, Malformed_ExpectTheJobToFail) {
  run_two({}, [](Runtime& runtime) {
    const auto take = runtime.on<std::string>([](const std::string&) { FAIL(); });
    if (runtime.rank() == 0) {
      ASSERT_EQ(runtime.send(1, Handler<ByteView>{take.id()}, bytes("9 0 0 0 'a")), StatusCode::kOk);
      runtime.flush();
      return;
    }
    const auto deadline = std::chrono::steady_clock::now() + 30s;
    while (runtime.status() && std::chrono::steady_clock::now() < deadline) runtime.poll();
    EXPECT_EQ(runtime.status().code(), StatusCode::kProtocol) << runtime.status().message();
  });
}

}  // namespace
}  // namespace wherry::route
