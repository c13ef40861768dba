// SPDX-License-Identifier: Apache-2.0
// kv_sim_mixed: kv_sim_cluster with nodes that may be Verilated cores (--rtl).
#include "kv/sim/cluster_program.hpp"
#include "sim/machine.hpp"

int main(int count, char** values) {
  return wherry::kv::sim::run_cluster_program(count, values, wherry::kv::rtl::machine_factory());
}
