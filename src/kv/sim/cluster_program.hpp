// SPDX-License-Identifier: Apache-2.0
// kv_sim_cluster and kv_sim_mixed: whole clusters in virtual time, one per seed, with troubles and, on request, a
// deliberate fault. Writes DIR/FAULT-SEED.jsonl for tools/linearizable, and prints its counts as JSON at the end. See
// docs/project/kv-testing.md.
#pragma once

#include "kv/sim/machine.hpp"

namespace wherry::kv::sim {

/// The whole program. `hardware` makes hardware nodes, for the option --rtl. Without it there is no such option.
int run_cluster_program(int count, char** values, MachineFactory hardware);

}  // namespace wherry::kv::sim
