# SPDX-License-Identifier: Apache-2.0
"""The cluster file, as C++ reads it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import wherry._native._kv_core as _core
from wherry import arguments


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a cluster file says."""

    path: Path
    name: str
    mode: str
    """static, keeper or etcd."""
    keepers: list[str]
    """host:port of each; none in mode static."""
    lanes: int
    static_lanes: int
    """Those below are named by clients; the keeper grants the others."""
    bucket_bits: int
    nodes: list[str]
    """"host:port" by number; "": there is none."""
    names: list[str]
    macs: list[int]
    """By number; 0: none is named."""
    xdp: list[str]
    """By number, the interface of a node on AF_XDP, as "eth0" or "eth0:3"; "": it is on a socket."""

    @property
    def keeper(self) -> str:
        """The first one; empty in mode static."""
        return self.keepers[0] if self.keepers else ""

    @property
    def numbers(self) -> list[int]:
        """Of the nodes that there are."""
        return [number for number, address in enumerate(self.nodes) if address]


def load(path: Path) -> Cluster:
    """Reads a cluster file. InvalidArgument names file, line and what is wanted; NotFound."""
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
