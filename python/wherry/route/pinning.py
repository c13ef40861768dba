# SPDX-License-Identifier: Apache-2.0
"""Plans the cores on which ranks and agents run."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from wherry.errors import InvalidArgument


@dataclass(frozen=True)
class Pinning:
    """The cores of each rank, and the core of each node's agent."""

    ranks: list[set[int]]
    agents: list[int]


def parse_cores(text: str) -> list[int]:
    """Parses "auto", or cores and ranges of cores that this process may use: "0-3,6". Raises InvalidArgument."""
    allowed = sorted(os.sched_getaffinity(0))
    if text == "auto":
        return allowed
    cores: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", part.strip())
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise InvalidArgument(f"--cores {text}: {part!r} is not a core or a range of cores; say auto, or 0-3,6")
        cores += range(int(match[1]), int(match[2] or match[1]) + 1)
    wrong = [core for core in cores if core not in allowed]
    if wrong:
        usable = ",".join(map(str, allowed))
        raise InvalidArgument(f"--cores {text}: this process may not use core {wrong[0]}, only {usable}")
    if len(set(cores)) != len(cores):
        raise InvalidArgument(f"--cores {text}: a core is named twice")
    return cores


def plan_cores(placement: str, nodes: int, ranks_per_node: int, cores: list[int]) -> Pinning:
    """Assigns cores by placement. inline, dpu: ranks are distributed over all cores in turn. shared: each node has its
    share of the cores, and its agent runs on the first of them. host: the last cores run only agents."""
    ranks = nodes * ranks_per_node
    if placement == "host":
        if len(cores) < 2:
            raise InvalidArgument("placement host needs a core for the agents beside those of the ranks: use shared")
        for_agents = max(1, min(nodes, len(cores) // (1 + ranks_per_node)))
        mine, theirs = cores[:-for_agents], cores[-for_agents:]
        return Pinning(
            [{mine[rank % len(mine)]} for rank in range(ranks)], [theirs[node % for_agents] for node in range(nodes)]
        )
    if placement == "shared":
        shares = [_share(cores, node, nodes) for node in range(nodes)]
        return Pinning(
            [{share[place % len(share)]} for share in shares for place in range(ranks_per_node)],
            [share[0] for share in shares],
        )
    return Pinning([{cores[rank % len(cores)]} for rank in range(ranks)], [])


def _share(cores: list[int], node: int, nodes: int) -> list[int]:
    if nodes >= len(cores):
        return [cores[node % len(cores)]]
    return cores[node * len(cores) // nodes : (node + 1) * len(cores) // nodes]
