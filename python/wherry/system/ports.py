# SPDX-License-Identifier: Apache-2.0
"""Finds free ports for programs that get their port as an argument."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack
from pathlib import Path

_FIRST = 10_000
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_TRIES = 10_000


def free_ports(count: int) -> list[int]:
    """`count` different ports of the loopback that are currently free, for both TCP and UDP.

    The ports are outside of the kernel's range for connections, so only a program that binds the same number explicitly
    can take one first. If a machine has no such ports, any free ports are used.
    """
    with ExitStack() as held:  # holds the ports until all are chosen
        return [_draw(held) for _ in range(count)]


def _draw(held: ExitStack) -> int:
    limit = _first_of_the_kernel()
    for _ in range(_TRIES if limit > _FIRST else 0):
        if port := _hold(random.SystemRandom().randrange(_FIRST, limit), held):
            return port
    while not (port := _hold(0, held)):
        pass
    return port


def _hold(wanted: int, held: ExitStack) -> int:
    """Binds port `wanted`, or any port if `wanted` is 0, until `held` ends. Returns the port; 0: another process has
    it."""
    with ExitStack() as both:
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            one = both.enter_context(socket.socket(socket.AF_INET, kind))
            try:
                one.bind(("127.0.0.1", wanted))
            except OSError:
                return 0
            wanted = int(one.getsockname()[1])
        held.enter_context(both.pop_all())
    return wanted


def _first_of_the_kernel() -> int:
    try:
        return int(_RANGE.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 32_768
