// SPDX-License-Identifier: Apache-2.0
// The file that describes a kv cluster. Its nodes, keepers and clients all read the same file.
//
//   [cluster]
//   name = "lab"              bucket_bits = 21          lanes = 4096               static_lanes = 1024
//   mode = "keeper"           # static: no keeper, all nodes, for ever; keeper: one process; etcd: several
//   keeper = "10.0.0.1:19287" # where it listens; in mode etcd several, ["10.0.0.1:19287", "10.0.0.2:19287"]
//   etcd = "http://10.0.0.9:2379"                       etcd_prefix = "/wherry/kv/lab"      # or several, in brackets
//   etcd_ca = "ca.pem"        etcd_cert = "keeper.pem"  etcd_key = "keeper.key"             # for https
//   policy = "store"          clients = ["10.0.0.0/24", "127.0.0.0/8"]
//   [timing]
//   ping_ms = 100             misses = 3                lease_ms = 300             retry_cycles = 250000
//   lane_ttl_ms = 3000
//   [[node]]
//   number = 0                name = "a"                udp = "10.0.0.1:19286"
//   mac = "02:00:00:00:00:01" control = "10.0.0.1:19288" xdp = "eth0"   # or, without mac, "eth0,eth1"
#pragma once

#include <array>
#include <string>
#include <vector>

#include "kv/control/configuration.hpp"
#include "kv/net/subnet.hpp"

namespace wherry::kv {

enum class ClusterMode : std::uint8_t { fixed, keeper, etcd };

struct ClusterNode {
  bool configured = false;
  std::string name;
  Endpoint endpoint;
  std::string control;  ///< host:port of the node's own control address; empty: none
  std::string xdp;      ///< its interfaces for AF_XDP, as XdpInterface::parse_all takes them; empty: a UDP socket
};

struct ClusterFile {
  std::string name;
  ClusterMode mode = ClusterMode::fixed;
  std::uint32_t bucket_bits = 21;
  std::uint32_t lanes = 4096;
  std::uint32_t static_lanes = 1024;  ///< those below are named by clients; the keeper grants the others
  std::string keeper;                 ///< the first of:
  std::vector<std::string> keepers;   ///< host:port of all
  AckPolicy policy = AckPolicy::store;
  std::vector<Subnet> clients;  ///< sources that nodes answer; empty: as allowed_sources() says
  std::vector<std::string> etcd;
  std::string etcd_ca;    ///< for https: the trusted certificates; empty: the system's
  std::string etcd_cert;  ///< this keeper's own, if etcd asks for one, and its key
  std::string etcd_key;
  std::string etcd_prefix;
  std::uint32_t ping_ms = 100;
  std::uint32_t misses = 3;
  std::uint32_t lease_ms = 300;
  std::uint32_t retry_cycles = 250'000;
  std::uint32_t lane_ttl_ms = 3000;
  std::array<ClusterNode, kMaxNodes> nodes;
};

/// kInvalidArgument names the file, the line, the error and the expected value.
Result<ClusterFile> parse_cluster_file(const std::string& text, const std::string& origin);
Result<ClusterFile> load_cluster_file(const std::string& path);

/// If a node hears nothing from its keeper for that long, it asks another one. The time is a second, or more if leases
/// and pings are slow, so that a node does not give up a keeper that only waits for its turn on a busy machine. By then
/// the node's lease is over.
[[nodiscard]] Cycles keeper_silence(const ClusterFile& file) noexcept;

/// Mode static: epoch 1, all nodes serve, slot s is led by the (s mod n)-th. Leases never end.
[[nodiscard]] Configuration static_configuration(const ClusterFile& file);

}  // namespace wherry::kv
