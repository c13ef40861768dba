// SPDX-License-Identifier: Apache-2.0
#include "base/try.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace wherry {
namespace {

using Pointer = std::unique_ptr<int>;

Status failed() { return {StatusCode::kNotFound, "no such thing"}; }
Result<Pointer> made(int value) { return std::make_unique<int>(value); }

Status pass_up(Status status) {
  WHERRY_TRY(std::move(status));
  return {StatusCode::kInternal, "went on"};
}

Result<int> twice(Result<Pointer> source) {
  WHERRY_ASSIGN(const Pointer value, std::move(source));
  return *value * 2;
}

Result<int> sum(Result<Pointer> first, const Status& then, Result<Pointer> second) {
  int total = 0;
  WHERRY_ASSIGN(auto one, std::move(first));
  if (*one != 0) WHERRY_TRY(then);
  WHERRY_ASSIGN(auto two, std::move(second));
  total = *one + *two;
  WHERRY_TRY(made(total));
  return total;
}

TEST(Try, FailedStatus_ExpectItReturnedAsItIs) {
  const Status status = pass_up(failed());
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "no such thing");
}

TEST(Try, WouldBlock_ExpectItReturned) { EXPECT_TRUE(pass_up(Status::would_block()).is_would_block()); }

TEST(Try, Ok_ExpectTheFunctionToGoOn) { EXPECT_EQ(pass_up(ok_status()).message(), "went on"); }

TEST(Assign, ResultThatCannotBeCopied_ExpectItsValue) { EXPECT_EQ(twice(made(21)).value_or(0), 42); }

TEST(Assign, FailedResult_ExpectItsStatus) { EXPECT_EQ(twice(failed()).status().message(), "no such thing"); }

TEST(Assign, SeveralInOneFunction_ExpectEachFailureReturnedByItsOwn) {
  EXPECT_EQ(sum(made(1), ok_status(), made(2)).value_or(0), 3);
  EXPECT_EQ(sum(failed(), ok_status(), made(2)).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(sum(made(1), Status(StatusCode::kCancelled, ""), made(2)).status().code(), StatusCode::kCancelled);
  EXPECT_EQ(sum(made(0), Status(StatusCode::kCancelled, ""), made(2)).value_or(0), 2);
  EXPECT_EQ(sum(made(1), ok_status(), failed()).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace wherry
