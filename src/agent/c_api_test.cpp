// SPDX-License-Identifier: Apache-2.0
// The C ABI against an agent: runs the functions of src/move/client/c_api_test.c in C99, and checks what arrived. Then
// checks the exported symbols of libwherry.so.
#include <arrow/api.h>
#include <arrow/c/bridge.h>
#include <arrow/flight/api.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "agent/testing.hpp"
#include "wherry/wherry.h"

extern "C" {
const char* c_library(void);
const char* c_session(const char* session_file);
const char* c_plain(const char* session_file);
const char* c_arrow(const char* session_file);
const char* c_raw(const char* session_file);
const char* c_steps(const char* session_file);
const char* c_session_errors(const char* session_file);
const char* c_memory_errors(const char* session_file);
const char* c_stream_errors(const char* session_file);
const char* c_ticket_errors(const char* session_file, void (*read)(void));
const char* c_agent_dies(const char* session_file, void (*stop)(void));
const char* c_struct_sizes(const char* session_file);
}

namespace wherry {
namespace {

using testing_support::ThreadAgent;

using Batches = std::vector<std::shared_ptr<arrow::RecordBatch>>;

Batches read_all(Agent& agent, const std::string& stream) {
  auto location = arrow::flight::Location::Parse(agent.announced().flight).ValueOrDie();
  auto client = arrow::flight::FlightClient::Connect(location).ValueOrDie();
  arrow::flight::FlightCallOptions options;
  options.headers.emplace_back("authorization", "Bearer " + agent.token());
  auto reader = client->DoGet(options, arrow::flight::Ticket{stream}).ValueOrDie();
  Batches batches;
  for (;;) {
    auto chunk = reader->Next().ValueOrDie();
    if (chunk.data == nullptr) return batches;
    EXPECT_TRUE(chunk.data->ValidateFull().ok());
    batches.push_back(chunk.data);
  }
}

void expect_success(const char* failure) { EXPECT_EQ(failure, nullptr) << failure; }

TEST(CApi, LibraryAndSession) {
  const ThreadAgent agent;
  expect_success(c_library());
  expect_success(c_session(agent.session_file().c_str()));
}

TEST(CApi, PlainColumnsArriveFromEveryKindOfMemory) {
  ThreadAgent agent;
  expect_success(c_plain(agent.session_file().c_str()));
  const Batches batches = read_all(agent.agent(), "plain");
  ASSERT_EQ(batches.size(), 3U);
  for (const auto& batch : batches) {
    ASSERT_EQ(batch->num_rows(), 1000);
    EXPECT_EQ(batch->schema()->ToString(), "x: double not null\nxyz: fixed_size_list<item: float not null>[3]");
    const auto& x = static_cast<const arrow::DoubleArray&>(*batch->column(0));
    const auto& xyz = static_cast<const arrow::FixedSizeListArray&>(*batch->column(1));
    const auto& items = static_cast<const arrow::FloatArray&>(*xyz.values());
    EXPECT_EQ(xyz.null_count(), 1);
    EXPECT_TRUE(xyz.IsNull(1));
    for (int i = 0; i < 1000; ++i) {
      ASSERT_EQ(x.Value(i), i * 0.5);
      for (int k = 0; k < 3; ++k) ASSERT_EQ(items.Value(3 * i + k), static_cast<float>(3 * i + k));
    }
  }
}

TEST(CApi, ArrowArraysArriveAndAreNotReleased) {
  ThreadAgent agent;
  expect_success(c_arrow(agent.session_file().c_str()));
  const Batches batches = read_all(agent.agent(), "arrow");
  ASSERT_EQ(batches.size(), 2U);
  EXPECT_EQ(batches[0]->num_rows(), 2);
  EXPECT_EQ(static_cast<const arrow::StringArray&>(*batches[0]->column(0)).GetView(0), "a");
  ASSERT_EQ(batches[1]->num_rows(), 1);
  EXPECT_EQ(static_cast<const arrow::StringArray&>(*batches[1]->column(0)).GetView(0), "bc");
  EXPECT_EQ(static_cast<const arrow::Int32Array&>(*batches[1]->column(1)).Value(0), -8);
}

TEST(CApi, WhatArrowExportsIsWhatArrives) {
  ThreadAgent agent;
  const auto list = arrow::list(arrow::field("item", arrow::dictionary(arrow::int8(), arrow::utf8())));
  const auto metadata = arrow::key_value_metadata({"units", "step"}, {"metres", ""});
  const auto schema = arrow::schema({arrow::field("l", list), arrow::field("b", arrow::boolean())}, metadata);
  auto maker = arrow::RecordBatchBuilder::Make(schema, arrow::default_memory_pool()).ValueOrDie();
  auto* lists = static_cast<arrow::ListBuilder*>(maker->GetField(0));
  auto* words = static_cast<arrow::StringDictionaryBuilder*>(lists->value_builder());
  ASSERT_TRUE(lists->Append().ok() && words->Append("fore").ok() && words->Append("aft").ok());
  ASSERT_TRUE(lists->AppendNull().ok());
  ASSERT_TRUE(lists->Append().ok() && words->Append("fore").ok());
  ASSERT_TRUE(
      static_cast<arrow::BooleanBuilder*>(maker->GetField(1))->AppendValues(std::vector<bool>{true, false, true}).ok());
  auto batch = maker->Flush().ValueOrDie();
  ArrowSchema c_schema{};
  ArrowArray c_array{};
  ASSERT_TRUE(arrow::ExportRecordBatch(*batch, &c_array, &c_schema).ok());

  wherry_error why{};
  wherry_session_options options;
  wherry_session_options_init(&options, sizeof options);
  options.agent = agent.session_file().c_str();
  wherry_session* session = nullptr;
  ASSERT_EQ(wherry_session_open(&options, &session, &why), WHERRY_OK) << why.message;
  wherry_stream_options stream_options;
  wherry_stream_options_init(&stream_options, sizeof stream_options);
  stream_options.name = "exported";
  wherry_stream* stream = nullptr;
  ASSERT_EQ(wherry_stream_open(session, &stream_options, &c_schema, &stream, &why), WHERRY_OK) << why.message;
  wherry_ticket ticket{};
  ASSERT_EQ(wherry_stream_post_arrow(stream, &c_array, nullptr, &ticket, &why), WHERRY_OK) << why.message;
  ASSERT_EQ(wherry_ticket_wait(ticket, 10'000'000'000, &why), WHERRY_OK) << why.message;
  EXPECT_EQ(wherry_stream_close(stream, &why), WHERRY_OK);
  EXPECT_EQ(wherry_session_close(session, &why), WHERRY_OK);

  ASSERT_NE(c_array.release, nullptr);
  ASSERT_NE(c_schema.release, nullptr);
  c_array.release(&c_array);
  c_schema.release(&c_schema);
  const Batches batches = read_all(agent.agent(), "exported");
  ASSERT_EQ(batches.size(), 1U);
  EXPECT_TRUE(batches[0]->Equals(*batch)) << batches[0]->ToString();
  ASSERT_NE(batches[0]->schema()->metadata(), nullptr);
  EXPECT_TRUE(batches[0]->schema()->metadata()->Equals(*metadata)) << batches[0]->schema()->ToString(true);
}

TEST(CApi, RawBuffersArrive) {
  ThreadAgent agent;
  expect_success(c_raw(agent.session_file().c_str()));
  const Batches batches = read_all(agent.agent(), "raw");
  ASSERT_EQ(batches.size(), 1U);
  const auto& column = static_cast<const arrow::LargeBinaryArray&>(*batches[0]->column(0));
  ASSERT_EQ(column.length(), 2);
  EXPECT_EQ(column.GetView(0), "hello");
  EXPECT_EQ(column.GetView(1), "");
}

TEST(CApi, BoundStepsArrive) {
  ThreadAgent agent;
  expect_success(c_steps(agent.session_file().c_str()));
  const Batches plain = read_all(agent.agent(), "bound");
  ASSERT_EQ(plain.size(), 3U);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(plain[static_cast<std::size_t>(i)]->num_rows(), 100);
    const auto& x = static_cast<const arrow::DoubleArray&>(*plain[static_cast<std::size_t>(i)]->column(0));
    for (int row = 0; row < 100; ++row) ASSERT_EQ(x.Value(row), 1000 * i + row);
  }
  const Batches raw = read_all(agent.agent(), "bound-raw");
  ASSERT_EQ(raw.size(), 1U);
  EXPECT_EQ(static_cast<const arrow::LargeBinaryArray&>(*raw[0]->column(0)).GetView(0), "hello");
}

TEST(CApi, EveryErrorIsANumberAndAText) {
  const ThreadAgent agent;
  expect_success(c_session_errors(agent.session_file().c_str()));
  expect_success(c_memory_errors(agent.session_file().c_str()));
  expect_success(c_stream_errors(agent.session_file().c_str()));
}

ThreadAgent* the_agent = nullptr;  // C callbacks carry no context here

TEST(CApi, TicketsInFlightFailedAndForgotten) {
  AgentConfig config;
  config.budget = 8 << 20;
  ThreadAgent agent(config);
  the_agent = &agent;
  expect_success(c_ticket_errors(agent.session_file().c_str(), [] { (void)read_all(the_agent->agent(), "full"); }));
}

TEST(CApi, AnAgentThatDiesIsAnErrorNotAHang) {
  ThreadAgent agent;
  the_agent = &agent;
  const std::string session_file = agent.session_file();
  expect_success(c_agent_dies(session_file.c_str(), [] { the_agent->stop(); }));
}

TEST(CApi, StructsOfOtherVersions) {
  const ThreadAgent agent;
  expect_success(c_struct_sizes(agent.session_file().c_str()));
}

// ---------------------------------------------------------------- libwherry.so

std::vector<std::string> exported() {
  FILE* pipe = popen("nm -DC --defined-only '" WHERRY_LIBRARY "'", "r");
  if (pipe == nullptr) return {};
  std::vector<std::string> names;
  std::array<char, 4096> line{};
  while (fgets(line.data(), line.size(), pipe) != nullptr) {
    std::string name = line.data();
    name.pop_back();
    name.erase(0, 19);  // address and type
    names.push_back(name.substr(0, name.find("@@")));
  }
  EXPECT_EQ(pclose(pipe), 0);
  return names;
}

TEST(Exports, OnlyWhatIsPublic) {
  const auto names = exported();
  ASSERT_FALSE(names.empty());
  // copy_long and send_reply are what Runtime's inlined sends and requests call.
  const std::regex is_public(
      R"((typeinfo (name )?for |vtable for )?wherry::(?!detail::|move::|fabric::|route::detail::(?!copy_long|send_reply)|route::convey::).*|wherry_[a-z0-9_]+|convey_[a-z_]+|WHERRY_\d+)");
  for (const std::string& name : names) EXPECT_TRUE(std::regex_match(name, is_public)) << name;
}

TEST(Exports, TheWholeCAbiAndTheMainCppCalls) {
  const auto list = exported();
  const std::set<std::string> names(list.begin(), list.end());
  std::stringstream header;
  header << std::ifstream(WHERRY_HEADER).rdbuf();
  const std::string text = header.str();
  const std::regex function(R"(WHERRY_API [a-z ]+\*? ?(wherry_[a-z_]+)\()");
  std::size_t count = 0;
  for (std::sregex_iterator at(text.begin(), text.end(), function), end; at != end; ++at, ++count) {
    EXPECT_TRUE(names.contains((*at)[1])) << (*at)[1];
  }
  EXPECT_EQ(count, 30U);
  EXPECT_TRUE(names.contains("wherry::Session::open(wherry::SessionOptions const&)"));
  EXPECT_TRUE(names.contains("wherry::Stream::close()"));
  EXPECT_TRUE(names.contains("wherry::route::Runtime::start(wherry::route::Options const&)"));
  EXPECT_TRUE(names.contains("wherry_route_start"));
  EXPECT_TRUE(names.contains("convey_new"));
  EXPECT_TRUE(names.contains("convey_standard_codec"));
  EXPECT_TRUE(names.contains("wherry::Status::to_string[abi:cxx11]() const"));
}

}  // namespace
}  // namespace wherry
