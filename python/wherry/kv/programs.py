# SPDX-License-Identifier: Apache-2.0
"""The command lines of kv's programs, and what else of a checkout kv measures."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from wherry.errors import NotFound
from wherry.system import built, ends_with_us, peer_program, repository, wherry_kv


def finished(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """A program that has run to its end; it ends with us, however that is."""
    return subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=ends_with_us())


def node(cluster: Path, number: int, *options: str) -> list[str]:
    """A software node. As all of these: raises NotFound if it was not built."""
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
    """What the cores take, by Yosys: hdl/resources.json, which tools/synth.py writes."""
    root = repository()
    file = root / "hdl" / "resources.json" if root is not None else None
    if file is None or not file.is_file():
        raise NotFound("the table of resources is in a checkout: hdl/resources.json")
    return file
