// SPDX-License-Identifier: Apache-2.0
#include "kv/net/xdp_switch.hpp"

#include <gtest/gtest.h>

#include "kv/net/address.hpp"

namespace wherry::kv {
namespace {

TEST(KvMac, Texts_ExpectNumberOrNothing) {
  EXPECT_EQ(parse_mac("02:00:00:00:0a:Ff"), 0x020000000affU);
  for (const char* const wrong : {"", "02:00:00:00:00", "02:00:00:00:00:0", "02:00:00:00:00:0g", "02-00-00-00-00-01",
                                  "02:00:00:00:00:01:", "+2:00:00:00:00:01"})
    EXPECT_FALSE(parse_mac(wrong)) << wrong;
}

TEST(KvXdpSwitch, NoInterfacesOrMacsTooDifferent_ExpectRefused) {
  EXPECT_EQ(XdpSwitch::open({}).status().code(), StatusCode::kInvalidArgument);
  const std::array<XdpSwitch::Station, 2> stations{{{"a", 0x020000000001}, {"b", 0x030000000001}}};
  const auto made = XdpSwitch::open(stations);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(made.status().message().find("0300"), std::string::npos) << made.status().message();
}

}  // namespace
}  // namespace wherry::kv
