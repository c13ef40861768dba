// SPDX-License-Identifier: Apache-2.0
#include "move/message.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace wherry::move {
namespace {

Bytes some_offload(const FlatOffload& flat, std::span<const std::uint32_t> dropped,
                   std::span<const NewRegion> regions) {
  OffloadHeader header;
  header.session = 1;
  header.ticket = 2;
  header.rows = 3;
  header.node_count = static_cast<std::uint16_t>(flat.nodes.size());
  header.buffer_count = static_cast<std::uint32_t>(flat.buffers.size());
  header.dropped_count = static_cast<std::uint32_t>(dropped.size());
  header.region_count = static_cast<std::uint32_t>(regions.size());
  Bytes out;
  build_offload(header, flat, dropped, regions, out);
  return out;
}

TEST(Offload, RoundTripsWithRegionsAndDrops) {
  FlatOffload flat;
  flat.nodes = {{10, 0}, {10, -1}};
  flat.buffers = {{4096, 80, 7, 0, 0}, {8192, 2, 7, 0, 3}};
  const std::vector<std::uint32_t> dropped{5, 6, 8};
  const Bytes key(11, std::byte{9});
  const std::vector<NewRegion> regions{{7, 4096, 10000, key}, {12, 0, 1, ByteView(key).first(1)}};
  const Bytes message = some_offload(flat, dropped, regions);
  OffloadView view;
  ASSERT_TRUE(parse_offload(message, view));
  EXPECT_EQ(view.header.ticket, 2U);
  ASSERT_EQ(view.buffers.size(), 2U);
  EXPECT_EQ(view.buffers[1], flat.buffers[1]);
  EXPECT_EQ(view.nodes[1], flat.nodes[1]);
  EXPECT_EQ(std::vector(view.dropped.begin(), view.dropped.end()), dropped);
  ASSERT_EQ(view.regions.size(), 2U);
  EXPECT_EQ(view.regions[0].key.size(), 11U);
  for (std::size_t n = 0; n < message.size(); ++n) EXPECT_FALSE(parse_offload(ByteView(message).first(n), view)) << n;
}

TEST(Offload, ReceiveARegionForEachOfTheMostBuffers_ExpectAllOfThem) {
  FlatOffload flat;
  const Bytes key(5, std::byte{1});
  std::vector<NewRegion> regions;
  std::vector<std::uint32_t> dropped;
  for (std::uint32_t i = 0; i < kMaxOffloadBuffers; ++i) {
    flat.buffers.push_back({4096 + i, 1, i, 0, 0});
    regions.push_back({i, 4096 + i, 1, key});
    dropped.push_back(i + kMaxOffloadBuffers);
  }
  OffloadView view;
  const Bytes message = some_offload(flat, dropped, regions);
  ASSERT_TRUE(parse_offload(message, view));
  ASSERT_EQ(view.regions.size(), kMaxOffloadBuffers);
  EXPECT_EQ(view.regions.back().id, kMaxOffloadBuffers - 1);
  EXPECT_EQ(view.dropped.back(), 2 * kMaxOffloadBuffers - 1);
}

TEST(Offload, ReceiveAnythingAsLongAsAHeader_ExpectItsTicketToBeKnown) {
  Bytes message = some_offload({}, {}, {});
  message.resize(message.size() + 8);  // and a little more than the counts say
  OffloadView view;
  EXPECT_EQ(parse_offload(message, view).code(), StatusCode::kProtocol);
  EXPECT_EQ(view.header.ticket, 2U);
}

TEST(Offload, EveryFieldOfTheHeader_ExpectItsPlaceOnTheWire) {
  // docs/design/life-of-a-buffer.md has a figure of this layout. If it changes, increment session::kProtocolVersion.
  OffloadHeader header;
  header.session = 0x0807060504030201;
  header.ticket = 0x100f0e0d0c0b0a09;
  header.tag = 0x1817161514131211;
  header.rows = 0x201f1e1d1c1b1a19;
  header.deadline_ns = 0x2827262524232221;
  header.stream = 0x2c2b2a29;
  header.binding = 0x302f2e2d;
  header.buffer_count = 0x34333231;
  header.dropped_count = 0x38373635;
  header.region_count = 0x3c3b3a39;
  header.node_count = 0x3e3d;
  header.half = static_cast<Half>(0x3f);
  header.zero = 0x40;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&header);
  for (unsigned i = 0; i < 64; ++i) EXPECT_EQ(bytes[i], i + 1);
}

TEST(Offload, ReceiveABindingOrAHalf_ExpectBothToBeRead) {
  OffloadHeader header;
  header.ticket = 2;
  OffloadView view;
  Bytes message;
  header.binding = 7;
  build_offload(header, {}, {}, {}, message);
  ASSERT_TRUE(parse_offload(message, view));
  EXPECT_EQ(view.header.binding, 7U);
  header.binding = 0;
  for (const Half half : {Half::kWhole, Half::kFirst, Half::kRest}) {
    header.half = half;
    build_offload(header, {}, {}, {}, message);
    ASSERT_TRUE(parse_offload(message, view));
    EXPECT_EQ(view.header.half, half);
  }
}

TEST(Offload, ReceiveAbsurdCounts_ExpectProtocolError) {
  Bytes message = some_offload({}, {}, {});
  OffloadView view;
  ASSERT_TRUE(parse_offload(message, view));
  OffloadHeader header;
  std::memcpy(&header, message.data(), sizeof header);
  for (auto spoil :
       {+[](OffloadHeader& h) { h.node_count = 0xffff; }, +[](OffloadHeader& h) { h.buffer_count = 0xffffffff; },
        +[](OffloadHeader& h) { h.region_count = 1; }, +[](OffloadHeader& h) { h.dropped_count = 1; },
        +[](OffloadHeader& h) { h.ticket = 0; }, +[](OffloadHeader& h) { h.half = static_cast<Half>(3); },
        +[](OffloadHeader& h) { h.zero = 1; }, +[](OffloadHeader& h) { h.half = Half::kRest, h.binding = 1; }}) {
    OffloadHeader bad = header;
    spoil(bad);
    std::memcpy(message.data(), &bad, sizeof bad);
    EXPECT_EQ(parse_offload(message, view).code(), StatusCode::kProtocol);
  }
}

TEST(Open, RoundTripsAndChecksNames) {
  OpenRequest request;
  request.options.name = "particles-0.x_Y";
  request.options.strategy = Strategy::kCAbi;
  request.options.announced_bytes = {1, 2};
  request.schema = {field<double>("x"), fixed_size_list("v", 3, field<float>("item"))};
  request.options.schema_metadata = std::string("\1\0\0\0\1\0\0\0k\2\0\0\0vv", 15);  // {"k": "vv"}
  request.options.operators = R"([{"name":"hot"}])";
  request.again = true;
  auto decoded = decode_open(encode(request));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->schema, request.schema);
  EXPECT_EQ(decoded->options.schema_metadata, request.options.schema_metadata);
  EXPECT_EQ(decoded->options.operators, request.options.operators);
  EXPECT_TRUE(decoded->again);
  request.options.schema_metadata.pop_back();
  EXPECT_EQ(decode_open(encode(request)).status().code(), StatusCode::kInvalidArgument);
  request.options.schema_metadata.clear();
  EXPECT_EQ(decoded->options.announced_bytes, request.options.announced_bytes);
  for (const char* name : {"", ".", "..", "a/b", "a b", "\xff"}) {
    request.options.name = name;
    EXPECT_EQ(decode_open(encode(request)).status().code(), StatusCode::kInvalidArgument) << name;
  }
  request.options.name = std::string(256, 'a');
  EXPECT_FALSE(decode_open(encode(request)));
  request.options.name = "a";
  request.options.operators.assign(kMaxOperatorsBytes, ' ');
  EXPECT_TRUE(decode_open(encode(request)));
  request.options.operators += ' ';
  EXPECT_EQ(decode_open(encode(request)).status().code(), StatusCode::kInvalidArgument);
  request.options.operators.clear();
  request.options.announced_bytes.assign(100, 1);
  EXPECT_EQ(decode_open(encode(request)).status().code(), StatusCode::kInvalidArgument);
}

TEST(Limits, EachHasItsNumberAndItsOwnWords) {
  const std::vector<std::pair<Limit, std::string>> limits{{Limit::kBudget, "the agent's budget of 268435456 bytes"},
                                                          {Limit::kOffloads, "268435456 offloads of this session"},
                                                          {Limit::kQueuedBytes, "lists of buffers"},
                                                          {Limit::kRegionBytes, "regions of memory"}};
  for (const auto& [limit, words] : limits) {
    const std::string text = limit_text(limit_detail(limit, 268435456));
    EXPECT_NE(text.find(words), std::string::npos) << text;
    EXPECT_NE(text.find("268435456"), std::string::npos) << text;
    EXPECT_EQ(text.find("budget") != std::string::npos, limit == Limit::kBudget) << text;
  }
  EXPECT_NE(limit_text(~std::uint64_t{0}).find("whose log says which"), std::string::npos);
}

TEST(Strategy, NamesRoundTrip) {
  for (int i = 0; i <= static_cast<int>(Strategy::kCAbi); ++i) {
    const auto s = static_cast<Strategy>(i);
    EXPECT_EQ(*parse_strategy(to_string(s)), s);
  }
  EXPECT_EQ(parse_strategy("zip").status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace wherry::move
