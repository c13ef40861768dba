# SPDX-License-Identifier: Apache-2.0
"""The C interfaces of route: conveyors, and route.h. Each program checks what it received, and ends its job if that is
wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from jobs import Jobs, built

from wherry.system import paths

PROGRAMS = [
    f"route_{name}"
    for name in (
        "convey_histogram",
        "convey_gather",
        "convey_elastic",
        "convey_steady",
        "convey_fork",
        "client_c_api",
        "client_order",
    )
]
SHAPES = [(1, 2), (2, 2)]
PARTS = {f"route_convey_{name}": ["10"] for name in ("histogram", "gather", "elastic")}
"""Programs that do a tenth of their work. In buffers of 1 KiB, every few items cost a switch between ranks, and the
full work takes more than a minute of CPU time. A tenth still fills thousands of buffers. Other tests do the full work
in larger buffers."""


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    made = Jobs()
    yield made
    made.clean_up()


def words(nodes: int, ranks: int, *more: str) -> list[str]:
    return ["--nodes", str(nodes), "--ranks-per-node", str(ranks), "--timeout", "280", *more, "--"]


def expect_all_done(done: subprocess.CompletedProcess[str], ranks: int) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    said = sorted(line[line.index("rank ") :] for line in done.stdout.splitlines())
    assert said == [f"rank {rank} of {ranks} is done" for rank in range(ranks)]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(("nodes", "ranks"), SHAPES)
def test_programs_in_c_expect_every_item_once(jobs: Jobs, program: str, nodes: int, ranks: int) -> None:
    expect_all_done(jobs.run(*words(nodes, ranks), built(program), timeout=300), nodes * ranks)
    jobs.expect_nothing_left()


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_in_c_without_a_launcher_expect_one_rank(jobs: Jobs, program: str) -> None:
    done = subprocess.run([built(program)], env=jobs.environment, capture_output=True, text=True, timeout=300)
    expect_all_done(done, 1)


@pytest.mark.parametrize("program", PROGRAMS)
def test_small_buffers_expect_every_item_once(jobs: Jobs, program: str) -> None:
    small = {"WHERRY_ROUTE_BUFFER_BYTES": "1024", "WHERRY_ROUTE_BUFFERS": "2"}
    expect_all_done(jobs.run(*words(2, 2), built(program), *PARTS.get(program, []), timeout=300, **small), 4)


@pytest.mark.parametrize("program", PROGRAMS)
def test_agents_between_expect_every_item_once(jobs: Jobs, program: str) -> None:
    expect_all_done(jobs.run(*words(2, 1, "--placement", "shared"), built(program), timeout=300), 2)
    jobs.expect_nothing_left()


def test_one_function_twice_without_a_name_expect_refusal() -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WHERRY_")}
    command = [built("route_client_order"), "twice"]
    expect_all_done(subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300), 1)


def test_a_rank_that_exits_in_a_session_expect_the_end_of_the_job(jobs: Jobs) -> None:
    code = "import ctypes, os; c = ctypes.CDLL(os.environ['LIBRARY']); c.convey_new.restype = ctypes.c_void_p; "
    code += "c = (c, ctypes.c_void_p(c.convey_new(ctypes.c_size_t(-1), 0, None, 0))); "
    code += "c[0].convey_begin(c[1], 8, 0); rank = os.environ['WHERRY_RANK']; "
    code += "exit(3) if rank == '0' else [0 for _ in iter(lambda: c[0].convey_advance(c[1], True), -6)]"
    root = paths.repository()
    assert root is not None
    library = str(root / "build" / "release" / "src" / "libwherry.so")
    done = jobs.run(*words(1, 2), sys.executable, "-c", code, timeout=300, LIBRARY=library)
    assert done.returncode == 3, done.stdout + done.stderr
    jobs.expect_nothing_left()
