// SPDX-License-Identifier: Apache-2.0
// Inside sim/pcie: what firmware does with a hierarchy before an operating system sees it.
#pragma once

#include "sim/pcie/topology.hpp"

namespace wherry::sim::pcie {

/// Assigns bus numbers, BARs and bridge windows, depth first, in the order in which nodes were added.
Status assign_addresses(Topology& topology);

}  // namespace wherry::sim::pcie
