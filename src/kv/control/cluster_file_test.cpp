// SPDX-License-Identifier: Apache-2.0
#include "kv/control/cluster_file.hpp"

#include <gtest/gtest.h>

#include "kv/net/xdp_interface.hpp"

namespace wherry::kv {
namespace {

constexpr const char* kGood = R"([cluster]
name = "lab"
bucket_bits = 16
mode = "keeper"
keeper = "10.0.0.1:19287"
[timing]
ping_ms = 10
lease_ms = 30
[[node]]
number = 0
udp = "10.0.0.1:19286"
mac = "02:00:00:00:00:0a"
[[node]]
number = 5
name = "b"
udp = "10.0.0.2:19286"
control = "10.0.0.2:19288"
xdp = "enp1s0:3"
)";

TEST(ClusterFile, AGoodOne_ExpectAllOfIt) {
  const auto file = parse_cluster_file(kGood, "lab.toml");
  ASSERT_TRUE(file) << file.status().message();
  EXPECT_EQ(file->name, "lab");
  EXPECT_EQ(file->mode, ClusterMode::keeper);
  EXPECT_EQ(file->bucket_bits, 16U);
  EXPECT_EQ(file->lanes, 4096U);
  EXPECT_EQ(file->static_lanes, 1024U);
  EXPECT_EQ(file->lane_ttl_ms, 3000U);
  EXPECT_EQ(file->keepers, std::vector<std::string>{"10.0.0.1:19287"});
  EXPECT_EQ(file->ping_ms, 10U);
  EXPECT_EQ(file->misses, 3U);
  EXPECT_EQ(file->nodes[0].endpoint, (Endpoint{0x02000000000a, 0x0a000001, 19286}));
  EXPECT_EQ(file->nodes[0].name, "node0");
  EXPECT_EQ(file->nodes[5].name, "b");
  EXPECT_EQ(file->nodes[0].xdp, "");
  EXPECT_EQ(file->nodes[5].xdp, "enp1s0:3");
  EXPECT_FALSE(file->nodes[1].configured);

  const Configuration c = static_configuration(*file);
  EXPECT_TRUE(check(c)) << check(c).message();
  EXPECT_EQ(c.epoch, 1U);
  EXPECT_EQ(c.members, 0b100001);
  EXPECT_EQ(c.leaders[0], 0);
  EXPECT_EQ(c.leaders[255], 5);
}

TEST(ClusterFile, SeveralInterfaces_ExpectEachWithItsQueue) {
  std::string text = kGood;
  text.replace(text.find("enp1s0:3"), 8, "eth0,eth1:3");
  const auto file = parse_cluster_file(text, "lab.toml");
  ASSERT_TRUE(file) << file.status().message();
  EXPECT_EQ(file->nodes[5].xdp, "eth0,eth1:3");
  const auto all = XdpInterface::parse_all(file->nodes[5].xdp);
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 2U);
  EXPECT_EQ((*all)[0].name, "eth0");
  EXPECT_EQ((*all)[1].name, "eth1");
  EXPECT_EQ((*all)[1].queue, 3U);
  EXPECT_EQ(XdpInterface::parse_all("eth0")->size(), 1U);
  EXPECT_EQ(XdpInterface::parse_all("a,b,c,d,e,f,g,h")->size(), 8U);
  for (const char* wrong : {"", ",", "eth0,", ",eth0", "eth0,,eth1", "eth0,eth0:1", "eth0, eth1:x", "a,b,c,d,e,f,g,h,i",
                            "a,b,c,d,e,f,g,h,"})
    EXPECT_FALSE(XdpInterface::parse_all(wrong)) << wrong;
}

TEST(ClusterFile, WhatMembersShareAndWhomTheyAnswer_ExpectAllOfIt) {
  std::string text = kGood;
  text.replace(text.find("bucket_bits = 16"), 16,
               "bucket_bits = 16\npolicy = \"accept\"\nclients = [\"10.0.0.0/24\", \"127.0.0.1\"]\n"
               "etcd = [\"https://a:1\", \"http://b:2\"]\netcd_ca = \"ca\"\netcd_cert = \"c\"\netcd_key = \"k\"");
  const auto file = parse_cluster_file(text, "lab.toml");
  ASSERT_TRUE(file) << file.status().message();
  EXPECT_EQ(file->policy, AckPolicy::accept);
  ASSERT_EQ(file->clients.size(), 2U);
  EXPECT_EQ(file->clients[0], (Subnet{0x0a000000, 0xffffff00}));
  EXPECT_EQ(file->etcd, (std::vector<std::string>{"https://a:1", "http://b:2"}));
  EXPECT_EQ(file->etcd_key, "k");
  EXPECT_EQ(file->retry_cycles, 250'000U);
}

TEST(ClusterFile, SeveralKeepers_ExpectAllOfThem) {
  std::string text = kGood;
  text.replace(text.find("mode = \"keeper\"\nkeeper = \"10.0.0.1:19287\""), 41,
               "mode = \"etcd\"\netcd = \"http://h:1\"\nkeeper = [\"10.0.0.1:1\", \"10.0.0.2:2\"]");
  const auto file = parse_cluster_file(text, "lab.toml");
  ASSERT_TRUE(file) << file.status().message();
  EXPECT_EQ(file->keepers, (std::vector<std::string>{"10.0.0.1:1", "10.0.0.2:2"}));
  EXPECT_EQ(file->keeper, "10.0.0.1:1");
}

TEST(ClusterFile, WhatIsWrong_ExpectFileLineAndCause) {
  const auto error = [](std::string from, const std::string& to, const char* line, const char* cause) {
    std::string text = kGood;
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const auto file = parse_cluster_file(text, "lab.toml");
    ASSERT_FALSE(file) << to;
    EXPECT_EQ(file.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(file.status().message().find(line), std::string::npos) << file.status().message();
    EXPECT_NE(file.status().message().find(cause), std::string::npos) << file.status().message();
  };
  error("bucket_bits = 16", "bucket_bits = 7", "lab.toml, line 3", "8 to 32");
  error("bucket_bits = 16", "bucket_bitz = 16", "line 3", "unknown key 'cluster.bucket_bitz'");
  error("name = \"lab\"\n", "\n", "line 1", "'cluster.name' is missing");
  error("mode = \"keeper\"", "mode = \"pigeon\"", "line 4", "static, keeper or etcd");
  error("mode = \"keeper\"", "mode = \"etcd\"", "line 1", "cluster.etcd");
  error("keeper = \"10.0.0.1:19287\"", "", "line 1", "cluster.keeper");
  error("keeper = \"10.0.0.1:19287\"", "keeper = [\"10.0.0.1:1\", \"10.0.0.2:2\"]", "line 5", "has one keeper");
  error("keeper = \"10.0.0.1:19287\"", "keeper = [\"10.0.0.1:1\", 5]", "line 5", "several in brackets");
  error("keeper = \"10.0.0.1:19287\"", "keeper = [\"10.0.0.1\"]", "line 5", "host:port, not '10.0.0.1'");
  error("bucket_bits = 16", "policy = \"pigeon\"", "line 3", "store, accept or mixed");
  error("bucket_bits = 16", "clients = [\"10.0.0.0/33\"]", "line 3", "not '10.0.0.0/33'");
  error("bucket_bits = 16", "etcd = \"ftp://x\"", "line 3", "https://host:port");
  error("bucket_bits = 16", "etcd_key = \"x\"", "line 1", "belong together");
  error("bucket_bits = 16", "static_lanes = 5000", "line 3", "0 to 4096");
  error("bucket_bits = 16", "lanes = 16384", "line 3", "'cluster.lanes': want a whole number from 1 to 8192");
  error("ping_ms = 10", "ping_ms = -1", "line 7", "1 to 60000");
  error("10.0.0.1:19286", "localhost:19286", "line 11", "numeric IPv4");
  error("02:00:00:00:00:0a", "02:00:00:00:00:0g", "line 12", "six bytes");
  error("number = 5", "number = 8", "line 14", "0 to 7");
  error("number = 5", "number = 0", "line 14", "two nodes 0");
  error("10.0.0.2:19286", "10.0.0.1:19286", "line 16", "node 0 has this address");
  error("enp1s0:3", "enp1s0:x", "line 18", "an interface, as eth0");
  error("enp1s0:3", "much_too_long_a_name", "line 18", "an interface, as eth0");
  error("enp1s0:3", "enp1s0,", "line 18", "several, as eth0,eth1");
  error("enp1s0:3", "eth0,eth0", "line 18", "several, as eth0,eth1");
  error("mac = \"02:00:00:00:00:0a\"", "mac = \"02:00:00:00:00:0a\"\nxdp = \"eth0,eth1\"", "line 12",
        "'node.mac' is of one interface");
  error("[timing]", "[timinG]", "line 6", "there are [cluster]");
  error("[timing]", "[timing", "line 6", "");
  EXPECT_NE(parse_cluster_file("", "x").status().message().find("[cluster]"), std::string::npos);
  EXPECT_NE(parse_cluster_file("[cluster]\nname = 'a'\n", "x").status().message().find("[[node]]"), std::string::npos);
  EXPECT_EQ(load_cluster_file("/nonexistent/x.toml").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(load_cluster_file("/tmp").status().message(), "cannot read the cluster file '/tmp': Is a directory");
}

}  // namespace
}  // namespace wherry::kv
