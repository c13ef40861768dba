# SPDX-License-Identifier: Apache-2.0
"""The command lines of kv's programs, and the table of measured resources."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from wherry.errors import DeadlineExceeded, NotFound, Unavailable
from wherry.system import Process, built, peer_program, repository, run_to_end, scratch_directory, wherry_kv

START_S = 30.0
"""The time limit until the nodes of cluster() serve."""


def finished(
    command: Sequence[str], *, before: Callable[[], None] | None = None, timeout: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a program until it ends, or raises subprocess.TimeoutExpired after `timeout` seconds. `before` runs in the
    new process first; by default, the program also ends if this process ends, for any reason."""
    return run_to_end(command, before=before, timeout=timeout)


def node(cluster: Path, number: int, *options: str) -> list[str]:
    """A software node. Like all functions of this module, raises NotFound if the program was not built."""
    return [str(wherry_kv()), "node", "--cluster", str(cluster), "--number", str(number), *options]


def rtl_node(cluster: Path, number: int, *options: str) -> list[str]:
    """A node that simulates the RTL."""
    return [str(built("sim", "wherry-kv-rtl")), "--cluster", str(cluster), "--number", str(number), *options]


def keeper(cluster: Path) -> list[str]:
    """The keeper."""
    return [str(wherry_kv()), "keeper", "--cluster", str(cluster)]


def switch(stations: Sequence[str]) -> list[str]:
    """The switch of `wherry kv up --xdp`."""
    return [str(wherry_kv()), "switch", *stations]


def dump(cluster: Path, file: Path, timeout: float) -> list[str]:
    """The program that writes all keys of a cluster to a file."""
    return [str(wherry_kv()), "dump", "--cluster", str(cluster), "--timeout", str(timeout), str(file)]


def load_snapshot(cluster: Path, file: Path, timeout: float) -> list[str]:
    """The program that writes the keys of such a file to a cluster."""
    return [str(wherry_kv()), "load", "--cluster", str(cluster), "--timeout", str(timeout), str(file)]


def check_snapshot(file: Path) -> list[str]:
    """The program that checks such a file."""
    return [str(wherry_kv()), "load", "--check", str(file)]


def resp(cluster: Path, options: Sequence[str]) -> list[str]:
    """The gateway that serves Redis' protocol from a cluster."""
    return [str(wherry_kv()), "resp", "--cluster", str(cluster), *options]


def load(*options: str) -> list[str]:
    """The load generator of `wherry kv bench` and `wherry bench kv`, which uses our client library."""
    return [str(built("bench", "kv_load")), *options]


def peer_load(*options: str) -> list[str]:
    """The load generator without the client library, for peers and for many reads in flight."""
    return [str(built("bench", "kv_peer_load")), *options]


def peer(name: str) -> str:
    """The path of a store that kv is compared with, if the machine has it."""
    return str(peer_program(name))


def outage(*options: str) -> list[str]:
    """The program that kills a node and reports when writes succeed again."""
    return [str(built("bench", "kv_outage")), *options]


def rtl_bench(*options: str) -> list[str]:
    """The program that measures the RTL in simulation."""
    return [str(built("sim", "kv_rtl_bench")), *options]


def resource_table() -> Path:
    """The table of the cores' resources, synthesised by Yosys: hdl/resources.json, which tools/synth.py writes."""
    root = repository()
    file = root / "hdl" / "resources.json" if root is not None else None
    if file is None or not file.is_file():
        raise NotFound("the table of resources is in a checkout: hdl/resources.json")
    return file


@contextmanager
def cluster(nodes: int) -> Iterator[Path]:
    """Runs `wherry kv up` in its own directory, hidden from this user's other commands. Yields the cluster file. Raises
    Error."""
    with scratch_directory() as directory:
        up = Process(
            "wherry kv up",
            [sys.executable, "-m", "wherry", "kv", "up", "--nodes", str(nodes), "--dir", str(directory / "cluster")],
            environment=os.environ | {"XDG_RUNTIME_DIR": str(directory), "PYTHONPATH": os.pathsep.join(sys.path)},
            cores=os.sched_getaffinity(0),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            _wait_for(up)
            yield directory / "cluster" / "cluster.toml"
        finally:
            up.signal(signal.SIGTERM)
            end = time.monotonic() + 10
            while up.poll() is None and time.monotonic() < end:
                time.sleep(0.01)
            up.close()


def _wait_for(up: Process) -> None:
    """Waits until all nodes serve. The output of `wherry kv up` then says how to end the cluster."""
    assert up.stdout is not None
    assert up.stderr is not None
    end, said = time.monotonic() + START_S, b""
    while b"\nend " not in said:
        left = end - time.monotonic()
        if left <= 0 or not select.select([up.stdout], [], [], left)[0]:
            raise DeadlineExceeded(f"kv: the cluster was not ready within {START_S:g} s")
        part = os.read(up.stdout.fileno(), 1 << 16)
        if not part:
            raise Unavailable(f"kv: the cluster did not start: {up.stderr.read().decode(errors='replace').strip()}")
        said += part
