# SPDX-License-Identifier: Apache-2.0
"""If a rank ends with status 0 in the middle of a job, the others get an error and do not wait for it forever."""

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
    # An agent cannot distinguish exit() from _exit().
)
@pytest.mark.parametrize("what", ["send", "quiesce", "reduce", "convey"])
def test_under_wherry_run(jobs: Jobs, how: str, what: str, placement: str) -> None:
    shape = ["--nodes", "2", "--ranks-per-node", "2", "--timeout", "300", "--placement", placement]
    done = jobs.run(*shape, "--", built("route_leaving"), how, what, timeout=300)
    assert done.returncode == 7, done.stdout + done.stderr
    told = re.findall(r"^\[(\d)\] told: (.*)$", done.stdout, re.MULTILINE)
    assert told, done.stdout + done.stderr
    assert all(rank != "1" for rank, _ in told)
    if what != "convey":
        assert any("rank 1" in why for _, why in told), done.stdout
    jobs.expect_nothing_left()


@pytest.mark.parametrize("how", ["return", "exit"])
@pytest.mark.parametrize("what", ["end0", "end1"])
@pytest.mark.parametrize(("placement", "between"), [("inline", "shm"), ("inline", "tcp"), ("shared", "shm")])
def test_the_end_after_a_quiesce_of_all_fails_nobody(
    jobs: Jobs, placement: str, between: str, what: str, how: str
) -> None:
    """The rank has done its part. The result is the same whether its Runtime is destroyed or exit() ends the process
    first."""
    shape = ["--nodes", "2", "--ranks-per-node", "1", "--timeout", "300", "--placement", placement]
    done = jobs.run(*shape, "--", built("route_leaving"), how, what, timeout=300, WHERRY_ROUTE_BETWEEN=between)
    assert done.returncode == 0, done.stdout + done.stderr
    leaver = int(what[-1])
    assert sorted(done.stdout.splitlines()) == sorted([f"[{leaver}] leaves", f"[{1 - leaver}] done"]), done.stderr
    jobs.expect_nothing_left()


@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize("how", ["return", "exit"])
@pytest.mark.parametrize("placement", ["inline", "shared"])
def test_the_end_after_a_quiesce_of_all_fails_nobody_over_a_network(jobs: Jobs, placement: str, how: str) -> None:
    shape = ["--nodes", "2", "--ranks-per-node", "1", "--netns", "--placement", placement]
    done = jobs.run(*shape, "--timeout", "300", "--", built("route_leaving"), how, "end1", timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(done.stdout.splitlines()) == ["[0] done", "[1] leaves"], done.stderr
    jobs.expect_nothing_left()


@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize("ranks_per_node", [1, 2])
@pytest.mark.parametrize("placement", ["inline", "shared"])
@pytest.mark.parametrize("what", ["send", "quiesce", "convey"])
@pytest.mark.parametrize("how", ["return", "_exit"])
def test_over_a_network(jobs: Jobs, how: str, what: str, placement: str, ranks_per_node: int) -> None:
    """Nodes are network namespaces. Rank 1 is the only rank of its node, or another rank remains there."""
    shape = ["--nodes", "2", "--ranks-per-node", str(ranks_per_node), "--netns", "--placement", placement]
    done = jobs.run(*shape, "--timeout", "300", "--", built("route_leaving"), how, what, timeout=120)
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
        # Each rank writes to its own file, because mpiexec loses output when it ends the other ranks.
        to_file = ["sh", "-c", f'exec "$@" >{output}/$PMI_RANK', "sh"]
        done = subprocess.run(
            [str(MPIEXEC), "-n", "4", *to_file, built("route_leaving"), how, what],
            env=environment,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=300,
        )
        said = "".join(file.read_text() for file in sorted(Path(output).iterdir()))
    assert "leaves\n" in said, said + done.stderr
    assert "not told" not in said, said + done.stderr
    told = re.findall("^told: (.*)$", said, re.MULTILINE)
    if how == "_exit":
        # MPICH itself may end the others first. It kills them, so their output and status may be missing.
        assert done.returncode in (0, 7, 9), said + done.stderr
        assert told or done.returncode != 7, said + done.stderr
    else:
        assert done.returncode == 7, said + done.stderr
        assert told, said + done.stderr
    if what != "convey":
        assert not told or any("rank 1" in why for why in told), said
