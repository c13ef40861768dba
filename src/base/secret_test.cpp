// SPDX-License-Identifier: Apache-2.0
#include "base/secret.hpp"

#include <gtest/gtest.h>

namespace wherry {
namespace {

TEST(EqualSecrets, Compare_Texts_ExpectEqualityOfWholeText) {
  EXPECT_TRUE(equal_secrets("abc", "abc"));
  EXPECT_TRUE(equal_secrets("", ""));
  EXPECT_FALSE(equal_secrets("abc", "abd"));
  EXPECT_FALSE(equal_secrets("abc", "bbc"));
  EXPECT_FALSE(equal_secrets("abc", "ab"));
  EXPECT_FALSE(equal_secrets("", "a"));
}

TEST(MakeToken, Call_Twice_ExpectDifferentTokensOf32Digits) {
  EXPECT_EQ(make_token().size(), 32U);
  EXPECT_EQ(make_token().find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(make_token(), make_token());
}

}  // namespace
}  // namespace wherry
