// SPDX-License-Identifier: Apache-2.0
// kv_sim_cluster: clusters of software nodes.
#include "kv/sim/cluster_program.hpp"

int main(int count, char** values) { return wherry::kv::sim::run_cluster_program(count, values, nullptr); }
