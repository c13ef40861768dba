# SPDX-License-Identifier: Apache-2.0
"""Nodes and their client past the kernel (AF_XDP) beside Redis on sockets, both between network namespaces. Leader,
follower and client have one each, and veth pairs connect each two of them, without a switch."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from wherry.errors import PermissionDenied
from wherry.kv.bench.bars import latency_bars
from wherry.kv.bench.software import Contest, Effort, Say
from wherry.kv.bench.stores import Redis, Wherry, memory_directory
from wherry.kv.network import PORT
from wherry.system import Mesh


class XdpWherry(Wherry):
    """Nodes on AF_XDP, at both interfaces of each."""

    def __init__(self, stack: ExitStack, directory: Path, network: Mesh) -> None:
        leader, follower, client = (namespace.enter for namespace in network.namespaces)
        super().__init__(stack, directory, leader_in=leader, follower_in=follower, client_in=client)
        self._network = network

    def start(self) -> None:
        """Starts the nodes at the addresses of the first two namespaces."""
        self.start_nodes([f"{address}:{PORT}" for address in self._network.addresses[:2]])

    def cluster_text(self) -> str:
        """With the interfaces of each node, and the client's address."""
        text = super().cluster_text()
        # Cables are subnets of one address each, so the node cannot know that the client is near.
        text = text.replace("[cluster]", f'[cluster]\nclients = ["{self._network.addresses[2]}"]', 1)
        for number, address in enumerate(self.addresses):
            text = text.replace(f'"{address}"', f'"{address}"\nxdp = "{self._interfaces(number)}"')
        return text

    def node_options(self) -> list[str]:
        """Without UDP checksums, because over a veth pair the kernel computes none for Redis either."""
        return ["--no-udp-checksum"]

    def client_options(self) -> list[str]:
        """Its interfaces."""
        return ["--xdp", self._interfaces(2)]

    def _interfaces(self, node: int) -> str:
        return ",".join(self._network.interfaces(node))


def run(document: dict[str, Any], effort: Effort, say: Say) -> None:
    """Rows of the results' `software`, and their bars. Raises PermissionDenied, Unsupported: not here."""
    if os.geteuid() != 0:
        raise PermissionDenied("AF_XDP and network namespaces take root")
    with ExitStack() as stack:
        directory = stack.enter_context(memory_directory())
        for name in (XdpWherry.name, Redis.name):
            (directory / name).mkdir()
        # Each store has its own namespaces, because programs at an interface, which nodes on AF_XDP put there, would
        # slow TCP down.
        ours = XdpWherry(stack, directory / XdpWherry.name, stack.enter_context(Mesh(3)))
        ours.start()
        network = stack.enter_context(Mesh(3))
        leader, follower, client = (namespace.enter for namespace in network.namespaces)
        redis = Redis(stack, directory / Redis.name, leader_in=leader, follower_in=follower, client_in=client)
        redis.start((network.addresses[0], network.addresses[1]))
        document["versions"][redis.name] = redis.version
        contest = Contest([ours, redis], effort, say)
        contest.choose_places()
        contest.latencies()
        document["results"].setdefault("software", []).extend(contest.latency_rows("veth", "xdp"))
        document["bars"] |= latency_bars(contest.times_faster, "sw_xdp")
