# SPDX-License-Identifier: Apache-2.0
"""Reads the cluster file with the C++ parser."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import wherry._native._kv_core as _core
from wherry import arguments


@dataclass(frozen=True, slots=True)
class Cluster:
    """The contents of a cluster file."""

    path: Path
    name: str
    mode: str
    """"static", "keeper" or "etcd"."""
    keepers: list[str]
    """The host:port of each keeper. Empty in mode static."""
    lanes: int
    static_lanes: int
    """Clients choose lanes below this number themselves. The keeper grants the others."""
    bucket_bits: int
    nodes: list[str]
    """The "host:port" of each node, by number. "": no node has this number."""
    names: list[str]
    macs: list[int]
    """The MAC of each node, by number. 0: the file does not name it."""
    xdp: list[str]
    """The interface of each node on AF_XDP, by number, as "eth0" or "eth0:3"; "" for a node on a socket."""

    @property
    def keeper(self) -> str:
        """The host:port of the first keeper; empty in mode static."""
        return self.keepers[0] if self.keepers else ""

    @property
    def numbers(self) -> list[int]:
        """The numbers of the nodes."""
        return [number for number, address in enumerate(self.nodes) if address]


def load(path: Path) -> Cluster:
    """Reads a cluster file. Raises NotFound; InvalidArgument, which names the file, the line and the expected value."""
    said = _core.cluster(arguments.path("cluster", path))
    return Cluster(
        path=path,
        name=said["name"],
        mode=said["mode"],
        keepers=list(said["keepers"]),
        lanes=said["lanes"],
        static_lanes=said["static_lanes"],
        bucket_bits=said["bucket_bits"],
        nodes=list(said["nodes"]),
        names=list(said["names"]),
        macs=list(said["macs"]),
        xdp=list(said["xdp"]),
    )
