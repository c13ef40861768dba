// SPDX-License-Identifier: Apache-2.0
// Tests requests from Redis' protocol specification, whole and in pieces, and invalid input.
#include "kv/resp/request_parser.hpp"

#include <gtest/gtest.h>

#include <string>

namespace wherry::kv::resp {
namespace {

using Words = std::vector<std::string_view>;

TEST(RespRequest, OfTheSpecification) {
  Words words;
  const std::string llen = "*2\r\n$4\r\nLLEN\r\n$6\r\nmylist\r\n";
  const std::string and_more = llen + "*1\r\n";
  EXPECT_EQ(*parse_request(and_more, words), llen.size());
  EXPECT_EQ(words, (Words{"LLEN", "mylist"}));
  EXPECT_EQ(*parse_request("PING\r\n", words), 6U);
  EXPECT_EQ(words, Words{"PING"});
  EXPECT_EQ(*parse_request("EXISTS  somekey\n", words), 16U);
  EXPECT_EQ(words, (Words{"EXISTS", "somekey"}));
  EXPECT_EQ(*parse_request("*0\r\n", words), 4U);
  EXPECT_TRUE(words.empty());
  EXPECT_EQ(*parse_request("*-1\r\n", words), 5U);
  EXPECT_EQ(*parse_request("\r\n", words), 2U);
  EXPECT_TRUE(words.empty());
}

TEST(RespRequest, AnyBytesInAWord) {
  const std::string word("\r\n$3\0*", 6);
  const std::string request = "*2\r\n$0\r\n\r\n$6\r\n" + word + "\r\n";
  Words words;
  EXPECT_EQ(*parse_request(request, words), request.size());
  EXPECT_EQ(words, (Words{"", word}));
}

TEST(RespRequest, InPieces_IsNoneBeforeTheLastByte) {
  for (const std::string request : {"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nvalue\r\n", "SET k value\r\n"}) {
    Words words;
    for (std::size_t size = 0; size < request.size(); ++size)
      EXPECT_EQ(*parse_request(std::string_view(request).substr(0, size), words), 0U) << size;
    EXPECT_EQ(*parse_request(request, words), request.size());
    EXPECT_EQ(words, (Words{"SET", "k", "value"}));
  }
}

TEST(RespRequest, WhatIsNone_IsSaid) {
  Words words;
  const std::string much(kMaxRequestBytes + 1, 'x');
  for (const std::string& wrong :
       {std::string("*1\r\n:5\r\n"), std::string("*x\r\n"), std::string("*99999999999\r\n"),
        std::string("*1\r\n$-1\r\n"), std::string("*1\r\n$99999999\r\n"), std::string("*1\r\n$2\r\nabc\r\n"),
        std::string("*1\r\n$ 2\r\nab\r\n"), "*" + much.substr(0, 100), much, std::string("SET k \"a b\"\r\n")})
    EXPECT_EQ(parse_request(wrong, words).status().code(), StatusCode::kProtocol) << wrong.substr(0, 40);
}

}  // namespace
}  // namespace wherry::kv::resp
