# SPDX-License-Identifier: Apache-2.0
"""The command lines of kv's programs, and other measured files of a checkout."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from wherry.errors import DeadlineExceeded, NotFound, Unavailable
from wherry.system import Process, built, ends_with_us, peer_program, repository, scratch_directory, wherry_kv

START_S = 30.0
"""Until the nodes of cluster() serve."""


def finished(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """A program that has run to its end; it ends with us, however that is."""
    return subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=ends_with_us())


def node(cluster: Path, number: int, *options: str) -> list[str]:
    """A software node. Raises NotFound if it was not built, like all of these."""
    return [str(wherry_kv()), "node", "--cluster", str(cluster), "--number", str(number), *options]


def rtl_node(cluster: Path, number: int, *options: str) -> list[str]:
    """A node that is the simulated RTL."""
    return [str(built("sim", "wherry-kv-rtl")), "--cluster", str(cluster), "--number", str(number), *options]


def keeper(cluster: Path) -> list[str]:
    """The keeper."""
    return [str(wherry_kv()), "keeper", "--cluster", str(cluster)]


def switch(stations: Sequence[str]) -> list[str]:
    """The switch of `wherry kv up --xdp`."""
    return [str(wherry_kv()), "switch", *stations]


def dump(cluster: Path, file: Path, timeout: float) -> list[str]:
    """Writes all keys of a cluster to a file."""
    return [str(wherry_kv()), "dump", "--cluster", str(cluster), "--timeout", str(timeout), str(file)]


def load_snapshot(cluster: Path, file: Path, timeout: float) -> list[str]:
    """Writes the keys of such a file to a cluster."""
    return [str(wherry_kv()), "load", "--cluster", str(cluster), "--timeout", str(timeout), str(file)]


def check_snapshot(file: Path) -> list[str]:
    """Looks at such a file."""
    return [str(wherry_kv()), "load", "--check", str(file)]


def resp(cluster: Path, options: Sequence[str]) -> list[str]:
    """Redis' protocol in front of a cluster."""
    return [str(wherry_kv()), "resp", "--cluster", str(cluster), *options]


def load(*options: str) -> list[str]:
    """The load of `wherry kv bench` and `wherry bench kv`, on our client library."""
    return [str(built("bench", "kv_load")), *options]


def peer_load(*options: str) -> list[str]:
    """The load without a library, for peers and for many reads in flight."""
    return [str(built("bench", "kv_peer_load")), *options]


def peer(name: str) -> str:
    """A store that kv is measured against, where the machine has it."""
    return str(peer_program(name))


def outage(*options: str) -> list[str]:
    """Kills a node, and says when writes go on."""
    return [str(built("bench", "kv_outage")), *options]


def rtl_bench(*options: str) -> list[str]:
    """Measures the RTL in simulation."""
    return [str(built("sim", "kv_rtl_bench")), *options]


def resource_table() -> Path:
    """The cores' resources by Yosys: hdl/resources.json, which tools/synth.py writes."""
    root = repository()
    file = root / "hdl" / "resources.json" if root is not None else None
    if file is None or not file.is_file():
        raise NotFound("the table of resources is in a checkout: hdl/resources.json")
    return file


@contextmanager
def cluster(nodes: int) -> Iterator[Path]:
    """The file of a `wherry kv up` in its own directory, unknown to other commands of this user. Raises Error."""
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
    """Waits until all nodes serve. Their output then says how to end them."""
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
