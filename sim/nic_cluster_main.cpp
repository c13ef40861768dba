// SPDX-License-Identifier: Apache-2.0
// kv_sim_bypass: kv_sim_mixed with cores behind NICs (nic_node.hpp). With --latency it measures a read instead.
#include <cstring>

#include "kv/sim/cluster_program.hpp"
#include "sim/nic_latency.hpp"
#include "sim/nic_machine.hpp"

int main(int count, char** values) {
  using namespace wherry::kv;
  if (count == 2 && std::strcmp(values[1], "--latency") == 0) return rtl::print_nic_latency();
  return sim::run_cluster_program(count, values, rtl::nic_machine_factory());
}
