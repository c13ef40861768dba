// SPDX-License-Identifier: Apache-2.0
// kv_sim_cluster and kv_sim_mixed: whole clusters in virtual time, one for each seed, with troubles and, if asked for,
// a deliberate fault. Writes DIR/FAULT-SEED.jsonl for tools/linearizable. At the end it prints its counts as JSON.
// docs/project/kv-testing.md.
#pragma once

#include "kv/sim/machine.hpp"

namespace wherry::kv::sim {

/// The whole program. `hardware` makes nodes that are not software, for --rtl. Without it there is no such option.
int run_cluster_program(int count, char** values, MachineFactory hardware);

}  // namespace wherry::kv::sim
