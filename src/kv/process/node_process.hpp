// SPDX-License-Identifier: Apache-2.0
// A software node as a process: one thread that serves its port, its clock and its keeper in turn.
#pragma once

#include <atomic>
#include <string>

#include "kv/net/xdp_port.hpp"
#include "kv/node/driver/served_node.hpp"
#include "wherry/status.hpp"

namespace wherry::kv {

struct NodeProcessOptions : ServedNode {
  bool spin = false;   ///< never sleeps: some microseconds faster, at the price of a core
  bool yield = false;  ///< spins, but lets others on its core run once its part is done
  std::string xdp;     ///< "eth0", "eth0:3", "eth0,eth1": AF_XDP there; empty: as the cluster file says
  XdpPort::Attach attach = XdpPort::Attach::automatic;
  bool no_checksum = false;  ///< on AF_XDP, frames leave without a UDP checksum
  bool udp = false;          ///< on a socket, whatever the cluster file says
  std::string keys;          ///< the socket where it lists its keys (KeyWindow); empty: nowhere
};

/// Runs until `stop`. Errors: the address is in use, AF_XDP is not possible, or the keeper refused the node for good.
wherry::Status run_node(const NodeProcessOptions& options, const std::atomic<bool>& stop);

}  // namespace wherry::kv
