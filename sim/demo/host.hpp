// SPDX-License-Identifier: Apache-2.0
// The host's part of the demonstration: the project's own drivers set up NIC, card and kv core over a HostLink. Then
// the process sleeps until it must release everything.
#pragma once

#include <cstdint>
#include <string>

#include "sim/demo/host_link.hpp"
#include "wherry/status.hpp"

namespace wherry::sim {

struct HostOptions {
  std::string nic = "e1000e";  ///< its personality
  std::string cluster;         ///< file, in mode static, of one node: docs/guide/kv.md
  std::uint64_t card_bar = 0;  ///< bus address of the card's window
  std::uint64_t nic_bar = 0;   ///< of the NIC's registers
  bool twin = false;           ///< the card is one without registers
};

/// Returns when everything is released.
Status run_host(const HostLink& link, const HostOptions& options);

}  // namespace wherry::sim
