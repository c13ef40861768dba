# SPDX-License-Identifier: Apache-2.0
"""The options of `wherry kv up`, and the cluster file that it writes from them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from wherry.kv import network


@dataclass(frozen=True)
class Options:
    """The settings of a new cluster. None: the value of an existing cluster file, else the default."""

    nodes: int | None = None
    bucket_bits: int | None = None
    etcd: str | None = None
    ping_ms: int | None = None
    misses: int | None = None
    lease_ms: int | None = None
    name: str | None = None
    directory: Path | None = None
    spin: bool = False
    restart: bool = False
    xdp: bool = False
    rtl: int = 0
    """The number of nodes, counted from the first, that are simulated RTL. The cluster file does not contain it."""
    tap: bool = False
    """The simulated nodes are on TAP devices, in a network like that of `xdp`."""


def cluster_text(options: Options) -> str:
    """The text of a cluster file for this machine, with free ports of the loopback, or with the network of --xdp and
    --tap."""
    count = options.nodes or 3
    if options.xdp or options.tap:
        keeper = f"{network.OUTSIDE}:{network.KEEPER_PORT}"
        nodes = [
            f'udp = "{network.node_address(number)}:{network.PORT}"\n'
            f'mac = "{network.mac_text(network.node_mac(number))}"'
            + (f'\nxdp = "{network.INTERFACE}"' if options.xdp else "")
            for number in range(count)
        ]
    else:
        first, *ports = network.loopback_ports(1 + count)
        keeper = f"127.0.0.1:{first}"
        nodes = [f'udp = "127.0.0.1:{port}"' for port in ports]
    ping = options.ping_ms or 100
    misses = options.misses or 3
    lines = [
        "# Written by `wherry kv up`; docs/guide/kv.md says what else may stand here.",
        "[cluster]",
        f"name = {json.dumps(options.name or 'local')}",
        f'mode = "{"etcd" if options.etcd else "keeper"}"',
        f'keeper = "{keeper}"',
        *([f"etcd = {json.dumps(options.etcd)}"] if options.etcd else []),
        # Small tables for simulated nodes, because a simulated core takes some 10 us for each lane and location that it
        # fetches.
        f"bucket_bits = {options.bucket_bits or (12 if options.rtl else 16)}",
        f"lanes = {256 if options.rtl else 4096}",
        "[timing]",
        f"ping_ms = {ping}",
        f"misses = {misses}",
        f"lease_ms = {options.lease_ms or ping * misses}",
        "retry_cycles = 250000  # of 4 ns: processes that share cores answer later than cards do",
    ]
    for number, node in enumerate(nodes):
        lines += ["[[node]]", f"number = {number}", node]
    return "\n".join(lines) + "\n"
