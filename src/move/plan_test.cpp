// SPDX-License-Identifier: Apache-2.0
#include "move/plan.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace wherry::move {
namespace {

StatusCode code_of(const Schema& schema) { return make_plan(schema).status().code(); }

Field nested(std::string format, std::vector<Field> children) {
  Field f = field("x", std::move(format));
  f.children = std::move(children);
  return f;
}

TEST(MakePlan, ListsNodesAndBuffersInArrowsOrder) {
  const Schema schema = {field<double>("x"), utf8("name"),
                         list("l", struct_("s", {field<bool>("b"), field("n", "n")}))};
  Result<Plan> made = make_plan(schema);
  ASSERT_TRUE(made) << made.status().to_string();
  const Plan& plan = *made;
  ASSERT_EQ(plan.nodes.size(), 6u);
  const Kind kinds[] = {Kind::kFixed, Kind::kBinary, Kind::kList, Kind::kStruct, Kind::kBool, Kind::kNull};
  const std::int32_t parents[] = {-1, -1, -1, 2, 3, 3};
  const std::uint32_t first_buffers[] = {0, 2, 5, 7, 8, 10};
  const std::uint32_t counts[] = {2, 3, 2, 1, 2, 0};
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(plan.nodes[i].kind, kinds[i]) << i;
    EXPECT_EQ(plan.nodes[i].parent, parents[i]) << i;
    EXPECT_EQ(plan.nodes[i].first_buffer, first_buffers[i]) << i;
    EXPECT_EQ(plan.nodes[i].buffer_count, counts[i]) << i;
  }
  using enum BufferKind;
  const BufferKind buffers[] = {kValidity, kFixed,   kValidity, kOffsets,  kData,
                                kValidity, kOffsets, kValidity, kValidity, kBits};
  ASSERT_EQ(plan.buffers.size(), std::size(buffers));
  for (std::size_t i = 0; i < std::size(buffers); ++i) EXPECT_EQ(plan.buffers[i].kind, buffers[i]) << i;
  ASSERT_EQ(plan.sections.size(), 1u);
  EXPECT_EQ(plan.sections[0].dictionary_id, -1);
  EXPECT_EQ(plan.sections[0].buffer_count, 10u);
  EXPECT_EQ(node_path(schema, plan, 0), "x");
  EXPECT_EQ(node_path(schema, plan, 5), "l.s.n");
}

TEST(MakePlan, PutsInnerDictionariesBeforeTheirUsersAndNumbersThemOuterFirst) {
  const Field inner = dictionary("word", "c", utf8(""));
  const Schema schema = {field<int>("i"), dictionary("d", "s", struct_("", {field<float>("f"), inner})),
                         dictionary("e", "i", field<long>(""))};
  const Plan plan = *make_plan(schema);
  ASSERT_EQ(plan.sections.size(), 4u);
  EXPECT_EQ(plan.sections[0].dictionary_id, 1);  // word
  EXPECT_EQ(plan.sections[1].dictionary_id, 0);  // d
  EXPECT_EQ(plan.sections[2].dictionary_id, 2);  // e
  EXPECT_EQ(plan.sections[3].dictionary_id, -1);
  const std::uint32_t counts[] = {1, 3, 1, 3};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(plan.sections[i].node_count, counts[i]) << i;
  const std::uint32_t batch = plan.sections[3].first_node;
  EXPECT_EQ(plan.nodes[batch].dictionary_section, -1);
  EXPECT_EQ(plan.nodes[batch + 1].dictionary_section, 1);
  EXPECT_EQ(plan.nodes[batch + 2].dictionary_section, 2);
  EXPECT_EQ(plan.nodes[batch + 1].width, 2u);
  EXPECT_EQ(node_path(schema, plan, 0), "d.dictionary.word.dictionary");
  EXPECT_EQ(node_path(schema, plan, 2), "d.dictionary.f");
  EXPECT_EQ(node_path(schema, plan, batch + 2), "e");
}

TEST(MakePlan, KnowsEveryFormat) {
  struct Case {
    const char* format;
    std::uint32_t width;
  };
  const Case cases[] = {{"c", 1},
                        {"C", 1},
                        {"s", 2},
                        {"S", 2},
                        {"i", 4},
                        {"I", 4},
                        {"l", 8},
                        {"L", 8},
                        {"e", 2},
                        {"f", 4},
                        {"g", 8},
                        {"d:9,2,32", 4},
                        {"d:18,-2,64", 8},
                        {"d:38,10", 16},
                        {"d:38,10,128", 16},
                        {"d:76,0,256", 32},
                        {"w:42", 42},
                        {"w:0", 0},
                        {"tdD", 4},
                        {"tdm", 8},
                        {"tts", 4},
                        {"ttm", 4},
                        {"ttu", 8},
                        {"ttn", 8},
                        {"tss:", 8},
                        {"tsm:", 8},
                        {"tsu:UTC", 8},
                        {"tsn:Europe/Berlin", 8},
                        {"tDs", 8},
                        {"tDm", 8},
                        {"tDu", 8},
                        {"tDn", 8},
                        {"tiM", 4},
                        {"tiD", 8},
                        {"tin", 16}};
  for (const Case& c : cases) {
    Result<Plan> plan = make_plan({field("x", c.format)});
    ASSERT_TRUE(plan) << plan.status().to_string();
    EXPECT_EQ(plan->nodes[0].kind, Kind::kFixed) << c.format;
    EXPECT_EQ(plan->nodes[0].width, c.width) << c.format;
  }
  for (const char* format : {"u", "z"}) EXPECT_EQ(make_plan({field("x", format)})->nodes[0].width, 4u);
  for (const char* format : {"U", "Z"}) EXPECT_EQ(make_plan({field("x", format)})->nodes[0].width, 8u);
  EXPECT_EQ(make_plan({fixed_size_list("x", 3, field<double>(""))})->nodes[0].list_size, 3u);
  EXPECT_EQ(make_plan({large_list("x", field<double>(""))})->nodes[0].width, 8u);
  EXPECT_EQ(list("x", field<double>("")).children[0].name, "item");
}

TEST(MakePlan, RefusesByNameWhatItDoesNotMove) {
  const Field item = field<int>("item");
  const std::pair<Field, const char*> cases[] = {{nested("+ud:0,1", {item, item}), "a dense union"},
                                                 {nested("+us:0", {item}), "a sparse union"},
                                                 {field("x", "vu"), "a utf8 view"},
                                                 {field("x", "vz"), "a binary view"},
                                                 {nested("+vl", {item}), "a list view"},
                                                 {nested("+vL", {item}), "a large list view"},
                                                 {nested("+r", {item, item}), "run-end encoded"}};
  for (const auto& [field, type] : cases) {
    Field outer = struct_("outer", {field});
    const Status status = make_plan({outer}).status();
    EXPECT_EQ(status.code(), StatusCode::kUnsupported) << field.format;
    EXPECT_NE(status.message().find(type), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("outer.x"), std::string::npos) << status.message();
  }
  EXPECT_EQ(code_of({dictionary("d", "i", dictionary("", "i", utf8("")))}), StatusCode::kUnsupported);
}

TEST(MakePlan, RefusesWhatIsNoSchema) {
  EXPECT_EQ(code_of({}), StatusCode::kInvalidArgument);
  for (const char* format : {"",
                             "q",
                             "gg",
                             "w",
                             "w:",
                             "w:-1",
                             "w:3x",
                             "w:99999999999",
                             "w:268435456",
                             "d",
                             "d:",
                             "d:5",
                             "d:0,1",
                             "d:39,1",
                             "d:10,1,32",
                             "d:5,1,48",
                             "d:5,1,128,",
                             "t",
                             "td",
                             "tdX",
                             "ts",
                             "tsx:",
                             "tss",
                             "+",
                             "+x",
                             "vv",
                             "n ",
                             "tsn:\xFF",
                             "+w",
                             "tDx",
                             "tix"}) {
    EXPECT_EQ(code_of({field("x", format)}), StatusCode::kInvalidArgument) << format;
  }
  const Field item = field<int>("item");
  EXPECT_EQ(code_of({nested("+l", {})}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of({nested("+l", {item, item})}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of({nested("+w:-2", {item})}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of({nested("+w:", {item})}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of({nested("g", {item})}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of({dictionary("d", "g", utf8(""))}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of({dictionary("d", "u", utf8(""))}), StatusCode::kInvalidArgument);
  Field two = dictionary("d", "i", utf8(""));
  two.dictionary.push_back(utf8(""));
  EXPECT_EQ(code_of({two}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of({field<int>(std::string("a\0b", 3))}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of({field<int>("\xC0\xAF")}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of({field<int>("größe")}), StatusCode::kOk);
}

TEST(MakePlan, RefusesMapsThatAreNone) {
  const Field key = utf8("key"), value = field<int>("value", true);
  EXPECT_EQ(code_of({nested("+m", {struct_("entries", {key, value})})}), StatusCode::kOk);
  EXPECT_EQ(code_of({nested("+m", {key})}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of({nested("+m", {struct_("entries", {key})})}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of({nested("+m", {struct_("entries", {value, value})})}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of({nested("+m", {struct_("entries", {key, value}, true)})}), StatusCode::kInvalidArgument);
}

TEST(MakePlan, RefusesMetadataThatWouldBeReadPastItsEnd) {
  Field f = field<int>("x");
  const std::string good("\x01\0\0\0\x01\0\0\0k\x02\0\0\0vv", 15);
  f.metadata = good;
  EXPECT_EQ(code_of({f}), StatusCode::kOk);
  for (std::size_t keep = 1; keep < good.size(); ++keep) {
    f.metadata = good.substr(0, keep);
    EXPECT_EQ(code_of({f}), StatusCode::kInvalidArgument) << keep;
  }
  f.metadata = good + "x";
  EXPECT_EQ(code_of({f}), StatusCode::kInvalidArgument);
  f.metadata = std::string("\xFF\xFF\xFF\xFF", 4);
  EXPECT_EQ(code_of({f}), StatusCode::kInvalidArgument);
  f.metadata = std::string("\xFF\xFF\xFF\x7F\xFF\xFF\xFF\x7F", 8);
  EXPECT_EQ(code_of({f}), StatusCode::kInvalidArgument);
}

TEST(MakePlan, KeepsItsLimits) {
  Field deep = field<int>("leaf");
  for (std::size_t i = 1; i < kMaxDepth; ++i) deep = list("l", deep);
  EXPECT_EQ(code_of({deep}), StatusCode::kOk);
  EXPECT_EQ(code_of({list("l", deep)}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of(Schema(kMaxNodes, field<int>("x"))), StatusCode::kOk);
  EXPECT_EQ(code_of(Schema(kMaxNodes + 1, field<int>("x"))), StatusCode::kInvalidArgument);
}

Schema everything() {
  Schema schema = {field<double>("x"), utf8("größe", true),
                   dictionary("d", "s", struct_("", {dictionary("w", "c", utf8(""))})),
                   list("l", fixed_size_list("", 3, field("t", "tsn:UTC"))),
                   nested("+m", {struct_("e", {utf8("k"), field<int>("v")})})};
  schema[0].metadata = std::string("\x01\0\0\0\x01\0\0\0k\x01\0\0\0v", 14);
  schema[2].dictionary_ordered = true;
  schema[4].map_keys_sorted = true;
  return schema;
}

TEST(SchemaBytes, ComeBackAsTheyWere) {
  Writer out;
  encode_schema(everything(), out);
  out.put(std::uint8_t{42});  // what follows is not touched
  Reader in(out.bytes());
  Result<Schema> back = decode_schema(in);
  ASSERT_TRUE(back) << back.status().to_string();
  EXPECT_EQ(*back, everything());
  EXPECT_EQ(in.get<std::uint8_t>(), 42);
  EXPECT_TRUE(in.at_end());
}

TEST(SchemaBytes, AreRefusedWhenCutAnywhere) {
  Writer out;
  encode_schema(everything(), out);
  for (std::size_t keep = 0; keep < out.bytes().size(); ++keep) {
    Reader in(ByteView(out.bytes()).first(keep));
    EXPECT_EQ(decode_schema(in).status().code(), StatusCode::kProtocol) << keep;
  }
}

TEST(SchemaBytes, AreRefusedWhenTheyPromiseMoreThanTheyHold) {
  for (const std::uint32_t count : {1u, 100u, 4097u, 0xFFFFFFFFu}) {
    Writer out;
    out.put(count);
    Reader in(out.bytes());
    EXPECT_EQ(decode_schema(in).status().code(), StatusCode::kProtocol);
  }
  Field deep = field<int>("leaf");
  for (std::size_t i = 0; i < kMaxDepth; ++i) deep = list("l", deep);
  Writer out;
  encode_schema({deep}, out);
  Reader in(out.bytes());
  EXPECT_EQ(decode_schema(in).status().code(), StatusCode::kProtocol);
}

}  // namespace
}  // namespace wherry::move
