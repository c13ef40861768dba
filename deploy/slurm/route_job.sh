#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A job of `route` under Slurm: one step starts an agent on each node, another one the ranks (docs/guide/route-launch.md).
#
#   sbatch --nodes=4 --ntasks-per-node=9 deploy/slurm/route_job.sh build/release/apps/histogram
#   WHERRY_PLACEMENT=inline sbatch --nodes=4 --ntasks-per-node=8 deploy/slurm/route_job.sh build/release/apps/histogram
#
# With placement host, which is the default here, one task of each node is its agent: the first job has 8 ranks a node. wherryd
# and libpmix.so.2 are on every node. With SLURM_MPI_TYPE=pmi2 instead of pmix, libwherry_mpi.so, built with an MPICH, stands in for libpmix.
# Tried with Slurm 22.05 on one node.
#SBATCH --job-name=wherry-route
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=5
#SBATCH --time=00:10:00
set -euo pipefail
(($# > 0)) || { echo "usage: sbatch [OPTIONS] $0 PROGRAM [ARGS...]" >&2; exit 2; }
export WHERRY_PLACEMENT=${WHERRY_PLACEMENT:-host}
mpi=${SLURM_MPI_TYPE:-pmix}
ranks=${SLURM_NTASKS_PER_NODE%%(*}

if [[ $WHERRY_PLACEMENT != inline ]]; then
  directory=$(mktemp -u /tmp/route-job.XXXXXXXXXX) # each node makes its own, of this name, and removes what it made
  export WHERRY_AGENT=$directory/agent.json
  one_per_node=(--nodes="$SLURM_NNODES" --ntasks="$SLURM_NNODES" --ntasks-per-node=1)
  together=--overlap # agents and ranks take turns on the same cores
  if [[ $WHERRY_PLACEMENT == host ]]; then
    ranks=$((ranks - 1))
    together=--exact # each step has cores of its own
  fi

  # The agents of the other nodes connect to this address: name another one on nodes with several networks. They end when their
  # standard input does, however this script ends: an srun that is killed kills its tasks, which could not remove what they made.
  exec {output}>&1
  coproc AGENTS { srun "$together" "${one_per_node[@]}" bash -c '
    umask 077
    mkdir "$1" || exit 1 # somebody else has this name: nothing in it is used or removed
    trap "rm -rf \"\$1\"" EXIT
    trap "kill \$agent" TERM
    exec {input}<&0
    address=$(hostname -i 2>/dev/null | cut -d" " -f1) || true # none: the name is in no list, and nobody else connects
    wherryd --session-file "$1/agent.json" --flight off --listen "${address:-127.0.0.1}:0" </dev/null & agent=$!
    { cat <&$input >/dev/null; kill $agent 2>/dev/null; } &
    wait $agent || wait $agent || true' agents "$directory" >&$output; }
  agents=$AGENTS_PID
  exec {agents_live}>&"${AGENTS[1]}" {AGENTS[1]}>&-
  trap 'kill ${waiting:-} 2>/dev/null || true; exec {agents_live}>&-; wait $agents || true' EXIT

  srun --overlap "${one_per_node[@]}" bash -c '
    for _ in {1..200}; do [[ -s $WHERRY_AGENT ]] && exit 0; sleep 0.1; done
    echo "no agent on $(hostname) within 20 s" >&2
    exit 1' wait_for_agents {agents_live}>&- &
  waiting=$!
  wait -n $agents $waiting # whichever ends first: agents that end now have failed
  kill -0 $agents
fi

# A rank that dies ends the others; ranks whose agent dies fail by themselves.
srun "${together:---exact}" --mpi="$mpi" --kill-on-bad-exit=1 --nodes="$SLURM_NNODES" \
  --ntasks=$((ranks * SLURM_NNODES)) --ntasks-per-node="$ranks" "$@"
