// SPDX-License-Identifier: Apache-2.0
// Tests refusals, invalid batches and full memory. python/tests/test_pushdown.py compares the results of conditions
// with those of pyarrow and Polars.
#include "move/operate/query.hpp"

#include <arrow/api.h>
#include <arrow/util/base64.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "move/operate/arena_pool.hpp"
#include "move/operate/predicate.hpp"

namespace wherry::move {
namespace {

using Json = nlohmann::json;

std::shared_ptr<arrow::Schema> schema() {
  return arrow::schema({arrow::field("id", arrow::int64()), arrow::field("x", arrow::float64()),
                        arrow::field("s", arrow::utf8()), arrow::field("t", arrow::timestamp(arrow::TimeUnit::MICRO)),
                        arrow::field("v", arrow::fixed_size_list(arrow::float64(), 3)),
                        arrow::field("kind", arrow::dictionary(arrow::int8(), arrow::utf8())),
                        arrow::field("twice", arrow::int32()), arrow::field("twice", arrow::int32())},
                       arrow::key_value_metadata({"made"}, {"by a test"}));
}

std::string refused(const char* filter) {
  const auto parsed = parse_predicate(Json::parse(filter), *schema());
  EXPECT_FALSE(parsed) << filter;
  if (parsed) return "";
  EXPECT_EQ(parsed.status().code(), StatusCode::kInvalidArgument) << filter;
  return parsed.status().message();
}

TEST(Predicate, InvalidFilters_ExpectTheCauseInTheError) {
  const std::pair<const char*, const char*> cases[] = {
      {R"([])", "want [\"and\""},
      {R"([3])", "want [\"and\""},
      {R"("x > 3")", "want [\"and\""},
      {R"(["~", "x", 3])", "unknown condition \"~\""},
      {R"([">", "x"])", "takes a column and a value"},
      {R"([">", "x", 3, 4])", "takes a column and a value"},
      {R"([">", 3, "x"])", "want the name of a column, not 3"},
      {R"([">", "y", 3])", "there is no column \"y\""},
      {R"([">", "twice", 3])", "2 columns are called \"twice\""},
      {R"([">", "x", null])", "is_null"},
      {R"([">", "x", [3]])", "want a number"},
      {R"([">", "x", {"column": "nobody"}])", "there is no column \"nobody\""},
      {R"([">", "x", {"colum": "id"}])", "want {\"column\": name}"},
      {R"([">", "t", "yesterday"])", "\"yesterday\" is not a value of type timestamp[us]"},
      {R"([">", "v", 3])", "filter: "},
      {R"(["==", "s", 3])", "filter: "},
      {R"(["not"])", "takes one condition"},
      {R"(["and"])", "takes one condition at least"},
      {R"(["and", [">", "x", 3], true])", "want [\"and\""},
      {R"(["in", "id", []])", "a list of values"},
      {R"(["in", "id", ["a"]])", "\"a\" is not a value of type int64"},
      {R"(["is_null", "v", 1])", "takes one column"},
      {R"({"substrait": 3})", "base64"},
      {R"({"substrait": "~~~~"})", "not base64"},
      {R"({"substrait": "AAAA"})", "Substrait"},
      {R"({"substrait": ""})", "Substrait"},
      {R"({"sql": "x > 3"})", "base64"},
  };
  for (const auto& [filter, cause] : cases)
    EXPECT_NE(refused(filter).find(cause), std::string::npos) << filter << ": " << refused(filter);
}

TEST(Predicate, TooDeepOrTooLarge_ExpectRefusal) {
  std::string deep = R"([">", "x", 3])";
  for (int i = 0; i < 40; ++i) deep = R"(["not", )" + deep + "]";
  EXPECT_NE(refused(deep.c_str()).find("deeper than 32"), std::string::npos);
  std::string wide = R"(["or")";
  for (int i = 0; i < 1100; ++i) wide += R"(, [">", "x", 3])";
  EXPECT_NE(refused((wide + "]").c_str()).find("more than 1024"), std::string::npos);
}

TEST(Query, Columns_ExpectTheirOrderAndTheSchemasMetadata) {
  const auto query = Query::make(schema(), std::vector<std::string>{"s", "id"}, nullptr);
  ASSERT_TRUE(query) << query.status().to_string();
  EXPECT_EQ(query->schema()->field_names(), (std::vector<std::string>{"s", "id"}));
  EXPECT_TRUE(query->schema()->metadata()->Equals(*schema()->metadata()));
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"id", "id"}, {"nobody"}, {"twice"}})
    EXPECT_EQ(Query::make(schema(), wrong, nullptr).status().code(), StatusCode::kInvalidArgument);
}

std::shared_ptr<arrow::RecordBatch> numbers(std::int64_t rows) {
  arrow::Int64Builder id;
  for (std::int64_t i = 0; i < rows; ++i) EXPECT_TRUE(id.Append(i).ok());
  return arrow::RecordBatch::Make(arrow::schema({arrow::field("id", arrow::int64())}), rows, {*id.Finish()});
}

TEST(Query, Apply_ExpectRowsInThePoolAndOutOfMemoryWithoutRoom) {
  const auto arena = *Arena::create(1 << 20);
  const auto pool = ArenaPool::make(arena, {});
  const auto batch = numbers(20'000);
  const auto query = Query::make(batch->schema(), std::nullopt, Json::parse(R"([">=", "id", 10000])"));
  ASSERT_TRUE(query);
  auto half = query->apply(batch, pool.get());
  ASSERT_TRUE(half.ok()) << half.status().ToString();
  EXPECT_TRUE((*half)->Equals(*batch->Slice(10'000)));
  EXPECT_GE(arena->in_use(), 80'000u);
  half = nullptr;
  EXPECT_EQ(arena->in_use(), 0u);
  const auto all = Query::make(batch->schema(), std::nullopt, Json::parse(R"([">=", "id", 0])"));
  EXPECT_EQ((*all->apply(batch, pool.get()))->column(0), batch->column(0)) << "all rows, and they were copied";
  const Extent others = *arena->try_allocate((1 << 20) - 4096);
  EXPECT_TRUE(query->apply(batch, pool.get()).status().IsOutOfMemory());
  EXPECT_EQ(pool->bytes_allocated(), 0);
}

TEST(Query, Apply_BrokenIndicesOfTheHost_ExpectAnErrorAndNoCrash) {
  arrow::Int8Builder indices;
  ASSERT_TRUE(indices.AppendValues({0, 1, 99}).ok());
  arrow::StringBuilder words;
  ASSERT_TRUE(words.AppendValues({"a", "b"}).ok());
  const auto type = arrow::dictionary(arrow::int8(), arrow::utf8());
  const auto broken = std::make_shared<arrow::DictionaryArray>(type, *indices.Finish(), *words.Finish());
  const auto batch = arrow::RecordBatch::Make(arrow::schema({arrow::field("kind", type)}), 3, {broken});
  const auto query = Query::make(batch->schema(), std::nullopt, Json::parse(R"(["==", "kind", "a"])"));
  ASSERT_TRUE(query) << query.status().to_string();
  const auto answer = query->apply(batch, arrow::default_memory_pool());
  EXPECT_FALSE(answer.ok());
  EXPECT_FALSE(answer.status().IsOutOfMemory());
}

TEST(Query, Apply_FewRowsOfALargeDictionary_ExpectTheValuesThatRemain) {
  arrow::Int16Builder indices;
  arrow::StringBuilder words;
  for (std::int16_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(indices.Append(i).ok());
    ASSERT_TRUE(words.Append("word" + std::to_string(i)).ok());
  }
  const auto type = arrow::dictionary(arrow::int16(), arrow::utf8());
  const auto column = *arrow::DictionaryArray::FromArrays(type, *indices.Finish(), *words.Finish());
  const auto batch = arrow::RecordBatch::Make(arrow::schema({arrow::field("kind", type)}), 1000, {column});
  const auto query = Query::make(batch->schema(), std::nullopt, Json::parse(R"(["in", "kind", ["word7", "word999"]])"));
  ASSERT_TRUE(query) << query.status().to_string();
  const auto answer = query->apply(batch, arrow::default_memory_pool());
  ASSERT_TRUE(answer.ok()) << answer.status().ToString();
  const auto& kept = static_cast<const arrow::DictionaryArray&>(*(*answer)->column(0));
  EXPECT_TRUE(kept.type()->Equals(type));
  EXPECT_EQ(kept.dictionary()->ToString(), "[\n  \"word7\",\n  \"word999\"\n]");
  EXPECT_EQ(kept.length(), 2);
}

}  // namespace
}  // namespace wherry::move
