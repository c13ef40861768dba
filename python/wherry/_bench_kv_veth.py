# SPDX-License-Identifier: Apache-2.0
"""Nodes and their client past the kernel (AF_XDP) beside Redis on sockets, both on veth pairs of network namespaces:
one for the leader, one for the follower, one for the client, joined by a switch."""

from __future__ import annotations

import dataclasses
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from wherry import _kv_cluster, _kv_network, _paths
from wherry._bench_kv_software import Contest, Effort, Say, latency_bars
from wherry._bench_kv_stores import Redis, Wherry, memory_directory
from wherry._kv_network import KvNetwork
from wherry._processes import how_it_ended
from wherry.bench_schema import BenchError
from wherry.errors import PermissionDenied

SETTLE_S = 0.5
"""For the switch to put its programs in place; until then the kernel's bridge forwards."""


class XdpWherry(Wherry):
    """On AF_XDP, in the network of `wherry kv up --xdp`."""

    def __init__(self, stack: ExitStack, directory: Path) -> None:
        file = directory / "cluster.toml"
        self.addresses = [f"{_kv_network.node_address(n)}:{_kv_network.PORT}" for n in range(2)]
        file.write_text(self.cluster_text())
        # The network has a place for a keeper, whom mode static does without.
        keeper = f"{_kv_network.OUTSIDE}:{_kv_network.KEEPER_PORT}"
        self._network = KvNetwork(dataclasses.replace(_kv_cluster.load(file), keeper=keeper))
        stack.callback(self._network.close)
        super().__init__(
            stack,
            directory,
            leader_in=self._network.nodes[0].enter,
            follower_in=self._network.nodes[1].enter,
            client_in=self._network.outside.enter,
        )
        self._enter["switch"] = self._network.switch.enter

    def start(self) -> None:
        """The switch first: it has nothing to do but to hold its programs."""
        switch = self.start_process("switch", [str(_paths.wherry_kv()), "switch", *self._network.stations])
        time.sleep(SETTLE_S)
        if (status := switch.poll()) is not None:
            log = (self._directory / f"{self.name}-switch.log").read_text(errors="replace")
            raise BenchError(f"{switch.name} {how_it_ended(status)}: {log[-400:]}")
        self.start_nodes(self.addresses)

    def cluster_text(self) -> str:
        text = super().cluster_text()
        for number, address in enumerate(self.addresses):
            mac = _kv_network.mac_text(_kv_network.node_mac(number))
            text = text.replace(f'"{address}"', f'"{address}"\nmac = "{mac}"\nxdp = "{_kv_network.INTERFACE}"')
        return text

    def client_options(self) -> list[str]:
        return ["--xdp", _kv_network.INTERFACE]


def run(document: dict[str, Any], effort: Effort, say: Say) -> None:
    """Rows of the results' `software`, and their bars. Raises PermissionDenied, Unsupported: not here."""
    import os

    from wherry import netns

    if os.geteuid() != 0:
        raise PermissionDenied("AF_XDP and network namespaces take root")
    with ExitStack() as stack:
        directory = stack.enter_context(memory_directory())
        for name in (XdpWherry.name, Redis.name):
            (directory / name).mkdir()
        ours = XdpWherry(stack, directory / XdpWherry.name)
        ours.start()
        # The kernel's own switch and offloads are the faster ones for TCP.
        network = stack.enter_context(netns.Network(3))
        leader, follower, client = (namespace.enter for namespace in network.namespaces)
        redis = Redis(stack, directory / Redis.name, leader_in=leader, follower_in=follower, client_in=client)
        redis.start((network.addresses[0], network.addresses[1]))
        document["versions"][redis.name] = redis.version
        contest = Contest([ours, redis], effort, say)
        contest.choose_places()
        contest.latencies()
        document["results"].setdefault("software", []).extend(contest.latency_rows("veth", "xdp"))
        document["bars"] |= latency_bars(contest, "sw_xdp")
