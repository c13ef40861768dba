# SPDX-License-Identifier: Apache-2.0
"""Compares our nodes and client on AF_XDP, which bypass the kernel, with Redis on sockets. Leader, follower and client
each have a network namespace, and a veth pair connects each two of the namespaces, without a switch."""

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
    """Nodes on AF_XDP. Each node uses both of its interfaces."""

    def __init__(self, stack: ExitStack, directory: Path, network: Mesh) -> None:
        leader, follower, client = (namespace.enter for namespace in network.namespaces)
        super().__init__(stack, directory, leader_in=leader, follower_in=follower, client_in=client)
        self._network = network

    def start(self) -> None:
        """Starts the nodes at the addresses of the first two namespaces."""
        self.start_nodes([f"{address}:{PORT}" for address in self._network.addresses[:2]])

    def cluster_text(self) -> str:
        """The cluster file, with the interfaces of each node and the client's address."""
        text = super().cluster_text()
        # Each veth pair is a subnet of one address, so a node cannot know that the client is directly connected.
        text = text.replace("[cluster]", f'[cluster]\nclients = ["{self._network.addresses[2]}"]', 1)
        for number, address in enumerate(self.addresses):
            text = text.replace(f'"{address}"', f'"{address}"\nxdp = "{self._interfaces(number)}"')
        return text

    def node_options(self) -> list[str]:
        """Disables UDP checksums, because over a veth pair the kernel computes none for Redis either."""
        return ["--no-udp-checksum"]

    def client_options(self) -> list[str]:
        """The interfaces of the client."""
        return ["--xdp", self._interfaces(2)]

    def _interfaces(self, node: int) -> str:
        return ",".join(self._network.interfaces(node))


def run(document: dict[str, Any], effort: Effort, say: Say) -> None:
    """Measures, and adds rows to the results' `software`, and their bars. Raises PermissionDenied or Unsupported if
    this machine cannot run it."""
    if os.geteuid() != 0:
        raise PermissionDenied("AF_XDP and network namespaces take root")
    with ExitStack() as stack:
        directory = stack.enter_context(memory_directory())
        for name in (XdpWherry.name, Redis.name):
            (directory / name).mkdir()
        # Each store has its own namespaces, because the XDP programs that our nodes attach to interfaces would slow
        # down Redis' TCP.
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
