# SPDX-License-Identifier: Apache-2.0
"""A rank that ends with status 0 in the middle of a job: the others are told, and do not wait for it for ever."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from jobs import Jobs, built

MPIEXEC = Path(sys.prefix) / "bin" / "mpiexec"


pytestmark = pytest.mark.usefixtures("mpich_segments")


@pytest.mark.parametrize(
    ("how", "placement"),
    [("return", "inline"), ("return", "shared"), ("exit", "inline"), ("_exit", "inline"), ("_exit", "shared")],
    # To an agent, exit() and _exit() are the same.
)
@pytest.mark.parametrize("what", ["send", "quiesce", "reduce", "convey"])
def test_under_wherry_run(jobs: Jobs, how: str, what: str, placement: str) -> None:
    shape = ["--nodes", "2", "--ranks-per-node", "2", "--timeout", "50", "--placement", placement]
    done = jobs.run(*shape, "--", built("route_leaving"), how, what, timeout=60)
    assert done.returncode == 7, done.stdout + done.stderr
    told = re.findall(r"^\[(\d)\] told: (.*)$", done.stdout, re.MULTILINE)
    assert told, done.stdout + done.stderr
    assert all(rank != "1" for rank, _ in told)
    if what != "convey":
        assert any("rank 1" in why for _, why in told), done.stdout
    jobs.expect_nothing_left()


@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize("ranks_per_node", [1, 2])
@pytest.mark.parametrize("placement", ["inline", "shared"])
@pytest.mark.parametrize("what", ["send", "quiesce", "convey"])
@pytest.mark.parametrize("how", ["return", "_exit"])
def test_over_a_network(jobs: Jobs, how: str, what: str, placement: str, ranks_per_node: int) -> None:
    """Nodes are network namespaces; rank 1 is the only one of its node, or leaves another one there."""
    shape = ["--nodes", "2", "--ranks-per-node", str(ranks_per_node), "--netns", "--placement", placement]
    done = jobs.run(*shape, "--timeout", "100", "--", built("route_leaving"), how, what, timeout=120)
    assert done.returncode == 7, done.stdout + done.stderr
    told = re.findall(r"^\[(\d)\] told: (.*)$", done.stdout, re.MULTILINE)
    assert told, done.stdout + done.stderr
    assert all(rank != "1" for rank, _ in told)
    if what != "convey":
        assert any("rank 1" in why for _, why in told), done.stdout
    jobs.expect_nothing_left()


@pytest.mark.parametrize("what", ["send", "quiesce", "convey"])
@pytest.mark.parametrize("how", ["return", "exit", "_exit"])
def test_under_mpiexec(how: str, what: str) -> None:
    built("libwherry_mpi.so")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WHERRY_")}
    with tempfile.TemporaryDirectory() as output:
        done = subprocess.run(
            [str(MPIEXEC), "-outfile-pattern", f"{output}/%r", "-n", "4", built("route_leaving"), how, what],
            env=environment,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=60,
        )
        said = "".join(file.read_text() for file in sorted(Path(output).iterdir()))
    # For _exit MPICH itself ends the others, and says nothing of it in its own status.
    assert done.returncode != 11, said + done.stderr
    assert "told: " in said or how == "_exit", said + done.stderr
