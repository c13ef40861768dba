# SPDX-License-Identifier: Apache-2.0
"""Free ports for programs that are told theirs before they run."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack
from pathlib import Path

_FIRST = 10_000
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_TRIES = 10_000


def free_ports(count: int) -> list[int]:
    """`count` different ports of the loopback that are free at this moment, for TCP and for UDP.

    The kernel does not give these ports to connections. So only a program that was told the same port can take it
    first. If a machine has no such ports, any free ones are used.
    """
    with ExitStack() as held:  # until all are drawn
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
    """Holds `wanted`, or any port if that is 0, until `held` ends. 0: another process has it."""
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
