# SPDX-License-Identifier: Apache-2.0
"""Free ports for programs that get their port number as an argument."""

from __future__ import annotations

import random
import socket
from pathlib import Path

import pytest

from wherry.system import ports


def test_ports_are_different_and_none_that_the_kernel_gives_away() -> None:
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    drawn = ports.free_ports(200)
    assert len(set(drawn)) == 200
    assert all(1024 <= port < first for port in drawn)
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_INET, kind) as one:
            one.bind(("127.0.0.1", drawn[0]))


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_a_port_that_somebody_has_is_not_drawn(kind: socket.SocketKind, monkeypatch: pytest.MonkeyPatch) -> None:
    taken, free = ports.free_ports(2)
    drawn = iter([taken, taken, free])
    monkeypatch.setattr(random.SystemRandom, "randrange", lambda *_: next(drawn))
    with socket.socket(socket.AF_INET, kind) as other:
        other.bind(("127.0.0.1", taken))
        assert ports.free_ports(1) == [free]


def test_without_ports_of_its_own_the_machine_gives_any(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(ports, "_RANGE", tmp_path / "range")
    (tmp_path / "range").write_text("1024\t65535\n")
    drawn = ports.free_ports(20)
    assert len(set(drawn)) == 20
    assert all(drawn)
