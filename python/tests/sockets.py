# SPDX-License-Identifier: Apache-2.0
"""Finds the sockets on which a process listens, and attacks that every listener must withstand."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import re
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

_LISTEN = "0A"  # TCP_LISTEN in /proc/PID/net/tcp
OPENING = struct.Struct("<IHHQQ32s")  # magic, version, purpose, key, from, nonce: src/fabric/stream_auth.hpp
ANSWER = struct.Struct("<IHH32s")
MAGIC, VERSION = 0x48535257, 1
CONTROL, DATA, PEER = 1, 2, 3


def _inodes(pid: int) -> set[str]:
    inodes = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            if match := re.fullmatch(r"socket:\[(\d+)\]", os.readlink(entry)):
                inodes.add(match[1])
    return inodes


def _table(pid: int, name: str) -> list[list[str]]:
    """The lines of one table in /proc/PID/net; empty if the kernel lacks that protocol."""
    try:
        return [line.split() for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]]
    except FileNotFoundError:
        return []


def datagram_sockets(pid: int) -> list[str]:
    """The kernel's tables (udp, raw, packet, ...) that contain a socket of the process. Packets from any sender reach
    such a socket without a connection."""
    inodes = _inodes(pid)
    places = dict.fromkeys(("udp", "udp6", "udplite", "udplite6", "raw", "raw6", "icmp", "icmp6"), 9) | {"packet": 8}
    return [name for name, at in places.items() for fields in _table(pid, name) if fields[at] in inodes]


def unix_listeners(pid: int) -> set[str]:
    """Paths of the Unix sockets on which a process listens. Paths of abstract sockets begin with @."""
    inodes, accepts = _inodes(pid), 1 << 16  # SO_ACCEPTCON
    return {
        " ".join(fields[7:]) for fields in _table(pid, "unix") if fields[6] in inodes and int(fields[3], 16) & accepts
    }


def connections_read(pid: int, port: int) -> int:
    """Number of TCP connections to `port` from which the process has read all received bytes."""
    inodes, established = _inodes(pid), "01"
    return sum(
        fields[3] == established and int(fields[1].split(":")[1], 16) == port and fields[4].endswith(":00000000")
        for fields in _table(pid, "tcp")
        if fields[9] in inodes
    )


def listeners(pid: int) -> set[tuple[str, int]]:
    """Addresses and ports of the TCP sockets on which a process listens."""
    inodes = _inodes(pid)
    found = set()
    for table in ("tcp", "tcp6"):
        for fields in _table(pid, table):
            if fields[3] != _LISTEN or fields[9] not in inodes:
                continue
            address, port = fields[1].split(":")
            raw = b"".join(struct.pack("=I", int(address[i : i + 8], 16)) for i in range(0, len(address), 8))
            found.add((socket.inet_ntop(socket.AF_INET if len(raw) == 4 else socket.AF_INET6, raw), int(port, 16)))
    return found


def serves_http(at: tuple[str, int]) -> bool:
    """Whether the metrics page is served at `at`. Its connections carry no data worth an attack."""
    with socket.create_connection(at, timeout=60) as one:
        one.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        try:
            return one.recv(5) == b"HTTP/"
        except OSError:
            return False


def ucx_put(address: int) -> bytes:
    """A message of UCX's TCP protocol: its magic number, then a put of 64 bytes to an address that the attacker
    chooses. It was recorded with an agent whose UCX listened."""
    payload = b"A" * 64
    message = struct.pack("<BI", 33, 8 + 8 + 4) + struct.pack("<QQI", address, len(payload), 1)
    return struct.pack("<Q", 0xCAFEBABE12345678) + message + payload


def opening(purpose: int = CONTROL, key: int = 0, version: int = VERSION) -> bytes:
    return OPENING.pack(MAGIC, version, purpose, key, 0, os.urandom(32))


def handshake(connection: socket.socket, secret: bytes, purpose: int = CONTROL, key: int = 0) -> tuple[bytes, bool]:
    """Performs the client's handshake; returns the bytes it sent, and whether the server admitted it."""
    first = opening(purpose, key)
    connection.sendall(first)
    answer = _exactly(connection, ANSWER.size)
    proof = hmac.new(secret, b"client" + first + answer, hashlib.sha256).digest()
    connection.sendall(proof)
    verdict = _exactly(connection, 40)
    proven = hmac.new(secret, b"server" + first + answer, hashlib.sha256).digest()
    return first + proof, verdict[:8] == bytes(8) and verdict[8:] == proven


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise ConnectionError("closed in the middle of the handshake")
        data += more
    return data


def attack(connect: Iterator[socket.socket], memory: int, recorded: bytes = b"") -> list[socket.socket]:
    """Tries every known attack on a listener, with one connection for each. Returns the connections that stay open and
    stall."""
    stalled = []
    wrong = hashlib.sha256(b"guess").digest()
    for payload in (
        ucx_put(memory),
        ucx_put(0x4141414141414000),
        os.urandom(4096),
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01" + os.urandom(512),
        struct.pack("<I", 0xFFFFFFFF) + os.urandom(64),
        opening(version=9),
        opening() + wrong + os.urandom(1000),
        opening(DATA, 1) + wrong,
        opening(PEER, 1) + wrong,
        recorded,
    ):
        with next(connect) as connection, contextlib.suppress(OSError):
            connection.sendall(payload)
            connection.recv(4096)
            connection.sendall(payload)
    for part in (b"", opening()[:10], opening(), opening() + wrong[:31]):
        connection = next(connect)
        with contextlib.suppress(OSError):
            connection.sendall(part)
        stalled.append(connection)
    for secret in (b"", b"guess", wrong):
        with next(connect) as connection, contextlib.suppress(OSError):
            _, let_in = handshake(connection, secret)
            assert not let_in
    return stalled
