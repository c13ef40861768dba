// SPDX-License-Identifier: Apache-2.0
#include "base/crowd.hpp"

#include <gtest/gtest.h>

#include <list>

namespace wherry {
namespace {

const Crowd::Source& itself(const Crowd::Source& source) { return source; }

TEST(Crowds, OneSourceHasMost_ExpectNobodyElseToMakeWay) {
  Crowd crowd;
  std::list<Crowd::Source> waiting{crowd.enter("honest"), crowd.enter("other"), crowd.enter("other")};
  for (int i = 0; i < 1021; ++i) waiting.push_back(crowd.enter("flood"));
  for (int i = 0; i < 5000; ++i) {
    waiting.push_back(crowd.enter("flood"));
    const auto gone = crowd.makes_way(waiting.begin(), waiting.end(), itself);
    ASSERT_EQ(**gone, "flood");
    waiting.erase(gone);
  }
  EXPECT_EQ(*waiting.front(), "honest");
}

TEST(Crowds, EachFromAnotherSource_ExpectAnyToMakeWay) {
  Crowd crowd;
  std::list<Crowd::Source> waiting;
  for (int i = 0; i < 100; ++i) waiting.push_back(crowd.enter(std::to_string(i)));
  int oldest = 0;
  for (int i = 0; i < 1000; ++i) oldest += crowd.makes_way(waiting.begin(), waiting.end(), itself) == waiting.begin();
  EXPECT_LT(oldest, 200) << "about ten";
}

}  // namespace
}  // namespace wherry
