# SPDX-License-Identifier: Apache-2.0
"""Ranks under an MPI launcher: the mpiexec of the mpich wheel, which is part of the environment."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from jobs import built

MPIEXEC = Path(sys.prefix) / "bin" / "mpiexec"


def mpiexec(ranks: int, *actions: str, timeout: float = 40, **variables: str) -> subprocess.CompletedProcess[str]:
    assert MPIEXEC.exists(), f"no {MPIEXEC}: run tools/setup.sh"
    built("libwherry_mpi.so")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WHERRY_")} | variables
    return subprocess.run(
        [str(MPIEXEC), "-n", str(ranks), built("bootstrap_rank"), *actions],
        env=environment,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=timeout,
    )


@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_exchange(ranks: int) -> None:
    done = mpiexec(ranks, "exchange", "leave", "exchange")
    assert done.returncode == 0, done.stderr
    found = re.findall(r"^rank (\d+) of (\d+) node (\d+) job (\w+)$", done.stdout, re.MULTILINE)
    assert sorted(int(rank) for rank, *_ in found) == sorted([*range(ranks), *range(ranks)])
    assert {int(of) for _, of, *_ in found} == {ranks}
    assert {int(node) for *_, node, _ in found} == {0}, "one machine"
    assert len({job for *_, job in found}) == 2


def test_one_rank_is_a_job_of_its_own() -> None:
    done = mpiexec(1, "exchange")
    assert (done.returncode, done.stdout) == (0, "alone\n"), done.stderr


def test_one_machine_may_play_several_nodes() -> None:
    done = mpiexec(4, "exchange", WHERRY_RANKS_PER_NODE="2")
    assert done.returncode == 0, done.stderr
    found = re.findall(r"^rank (\d+) of 4 node (\d+)", done.stdout, re.MULTILINE)
    assert sorted((int(rank), int(node)) for rank, node in found) == [(0, 0), (1, 0), (2, 1), (3, 1)]


def test_without_the_plugin_no_rank_runs_alone() -> None:
    done = mpiexec(2, "exchange", WHERRY_MPI_PLUGIN="/nonexistent/libwherry_mpi.so")
    assert done.returncode != 0
    assert "alone" not in done.stdout
    assert "PMI_SIZE is set" in done.stderr
    assert "docs/route-launch.md" in done.stderr


@pytest.mark.parametrize("how", ["exit=5", "kill"])
def test_rank_that_dies_ends_the_others(how: str) -> None:
    done = mpiexec(3, "exchange", f"1:{how}", "sleep=30000", timeout=25)
    assert done.returncode != 0
