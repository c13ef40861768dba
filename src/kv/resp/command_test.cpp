// SPDX-License-Identifier: Apache-2.0
// Tests the decisions without a store. python/tests/test_kv_resp.py compares whole conversations with Redis.
#include "kv/resp/command.hpp"

#include <gtest/gtest.h>

#include <string>

#include "kv/resp/stored_text.hpp"

namespace wherry::kv::resp {
namespace {

Plan planned(std::vector<std::string_view> words, PlanOptions options = {}) { return plan(words, options); }
std::string said(const Answer& answer, int protocol = 2) {
  std::string out;
  write(answer, protocol, out);
  return out;
}

TEST(RespCommand, WhatCannotBeDone_IsRefusedByName) {
  for (const auto& [words, reason] : std::vector<std::pair<std::vector<std::string_view>, std::string>>{
           {{"expire", "k", "1"}, "do not expire"},
           {{"SET", "k", "v", "EX", "1"}, "do not expire"},
           {{"SCAN", "0"}, "wherry kv dump"},
           {{"MULTI"}, "one key in one step"},
           {{"MGET", "a", "b"}, "--key-by-key"},
           {{"mset", "a", "1", "b", "2"}, "--key-by-key"},
           {{"LPUSH", "l", "x"}, "keeps strings"},
           {{"get"}, "wrong number of arguments for 'get'"},
           {{"GET", "a", "b"}, "wrong number of arguments for 'get'"}}) {
    const Plan what = planned(words);
    EXPECT_TRUE(what.edits.empty());
    EXPECT_NE(said(what.answer).find(reason), std::string::npos) << said(what.answer);
  }
}

TEST(RespCommand, OfKeysNamedTwice_TheLastTextCounts) {
  const Plan sets = planned({"MSET", "a", "1", "b", "2", "a", "3"}, {.key_by_key = true});
  ASSERT_EQ(sets.edits.size(), 2U);
  EXPECT_EQ(sets.edits[1].name + sets.edits[1].text, "a3");
  EXPECT_EQ(planned({"DEL", "a", "b", "a"}).edits.size(), 2U);
  EXPECT_EQ(planned({"EXISTS", "a", "a"}).edits.size(), 2U);
}

TEST(RespCommand, AnErrorAmongAnswers_IsTheAnswer) {
  EXPECT_EQ(join(Plan::Join::list, {Answer::text("x"), Answer::error("ERR no")}), Answer::error("ERR no"));
  EXPECT_EQ(join(Plan::Join::sum, {Answer::number(1), Answer::number(0), Answer::number(1)}), Answer::number(2));
}

TEST(RespAnswer, BothProtocols) {
  EXPECT_EQ(said(Answer::null()), "$-1\r\n");
  EXPECT_EQ(said(Answer::null(), 3), "_\r\n");
  EXPECT_EQ(said(Answer::map({Answer::text("a"), Answer::number(-1)})), "*2\r\n$1\r\na\r\n:-1\r\n");
  EXPECT_EQ(said(Answer::map({Answer::text("a"), Answer::number(-1)}), 3), "%1\r\n$1\r\na\r\n:-1\r\n");
  EXPECT_EQ(said(Answer::error("ERR two\r\nlines")), "-ERR two  lines\r\n");
}

TEST(StoredText, OfNames) {
  const KeyNumbers numbers;
  // FIPS 180-2, appendix B.1: SHA-256 of "abc" is ba7816bf 8f01cfea ...
  EXPECT_EQ(numbers.of("abc"), 0xba7816bf8f01cfeaULL);
  EXPECT_EQ(numbers.of("abc"), numbers.of("abc"));
  const std::string value = stored_text("name", "text");
  EXPECT_EQ(value, std::string("R\x01\x04\0nametext", 12));
  std::string_view text;
  EXPECT_EQ(find_text(value, "name", text), Kept::text);
  EXPECT_EQ(text, "text");
  EXPECT_EQ(find_text(value, "other", text), Kept::of_another_name);
  EXPECT_EQ(find_text("text by another program", "name", text), Kept::not_ours);
  EXPECT_EQ(find_text(value.substr(0, 7), "name", text), Kept::not_ours);
}

}  // namespace
}  // namespace wherry::kv::resp
