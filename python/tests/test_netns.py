# SPDX-License-Identifier: Apache-2.0
"""Networks of namespaces, in which each namespace must reach every other. Skipped, with the reason, if the user lacks
the rights."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from wherry.system.netns import Mesh, Network

NODES = 4

# Sends a hand-made echo request, because some machines lack `ping`.
PING = """
import socket, sys
port = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
port.settimeout(5)
for address in sys.argv[1:]:
    port.sendto(bytes([8, 0, 0xF7, 0xFF]) + bytes(60), (address, 0))
    while True:
        data, sender = port.recvfrom(2000)
        if sender[0] == address and data[20] == 0:
            break
print("echo")
"""

# A megabyte, which comes back.
TCP_SERVER = """
import socket, sys
server = socket.create_server((sys.argv[1], 7000))
print("ready", flush=True)
for _ in range(int(sys.argv[2])):
    with server.accept()[0] as one:
        while data := one.recv(65536):
            one.sendall(data)
"""
TCP_CLIENT = """
import socket, sys, threading
sent = bytes(1_000_000)
with socket.create_connection((sys.argv[1], 7000), timeout=300) as one:
    threading.Thread(target=lambda: (one.sendall(sent), one.shutdown(socket.SHUT_WR))).start()
    got = 0
    while data := one.recv(65536):
        got += len(data)
    print(one.getsockname()[0], got)
"""


@pytest.fixture(params=[Network, Mesh])
def network(request: pytest.FixtureRequest, namespaces: None) -> Iterator[Network | Mesh]:
    before = os.listdir("/sys/class/net")
    with request.param(NODES) as made:
        yield made
    assert os.listdir("/sys/class/net") == before


def python(network: Network | Mesh, node: int, program: str, *words: str) -> str:
    command = [sys.executable, "-c", program, *words]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, preexec_fn=network.namespaces[node].enter
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_each_pings_each(network: Network | Mesh) -> None:
    for node, address in enumerate(network.addresses):
        assert python(network, node, PING, *(one for one in network.addresses if one != address)) == "echo"


def test_tcp_between_all(network: Network | Mesh) -> None:
    for node, address in enumerate(network.addresses):
        command = [sys.executable, "-c", TCP_SERVER, address, str(NODES - 1)]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, preexec_fn=network.namespaces[node].enter
        ) as server:
            assert server.stdout is not None
            assert server.stdout.readline() == "ready\n"
            try:
                for other, source in enumerate(network.addresses):
                    if other != node:
                        assert python(network, other, TCP_CLIENT, address) == f"{source} 1000000"
                assert server.wait(timeout=300) == 0
            finally:
                server.kill()


@pytest.mark.parametrize("network", [Mesh], indirect=True)
def test_cables(network: Mesh) -> None:
    for node, namespace in enumerate(network.namespaces):
        assert network.interfaces(node) == [f"eth{n}" for n in range(NODES - 1)]
        for other, address in enumerate(network.addresses):
            if other != node:
                assert f"dev {network.interface(node, other)} " in namespace.ip("route", "get", address)
