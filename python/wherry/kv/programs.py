# SPDX-License-Identifier: Apache-2.0
"""The command lines of kv's programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wherry.system import built, wherry_kv


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


def load(*options: str) -> list[str]:
    """The load of `wherry kv bench` and `wherry bench kv`, on our client library."""
    return [str(built("bench", "kv_load")), *options]


def peer_load(*options: str) -> list[str]:
    """The load without a library, for peers and for many reads in flight."""
    return [str(built("bench", "kv_peer_load")), *options]


def outage(*options: str) -> list[str]:
    """Kills a node, and says when writes go on."""
    return [str(built("bench", "kv_outage")), *options]


def rtl_bench(*options: str) -> list[str]:
    """Measures the RTL in simulation."""
    return [str(built("sim", "kv_rtl_bench")), *options]
