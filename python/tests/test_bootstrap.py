# SPDX-License-Identifier: Apache-2.0
"""The launcher's bootstrap server with peers that violate the protocol."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from wherry.route import bootstrap
from wherry.route.bootstrap import ABORT, CONTRIBUTE, GATHERED, JOIN, WELCOME

KEY = "00ff"


def frame(kind: int, payload: bytes) -> bytes:
    return struct.pack("<IH", len(payload) + 2, kind) + payload


def join(rank: int, key: str = KEY, version: int = bootstrap.VERSION) -> bytes:
    return frame(JOIN, struct.pack("<II", version, len(key)) + key.encode() + struct.pack("<I", rank))


def contribution(number: int, data: bytes) -> bytes:
    return frame(CONTRIBUTE, struct.pack("<II", number, len(data)) + data)


class Peer:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def receive(self) -> tuple[int, bytes]:
        length, kind = struct.unpack("<IH", await self.reader.readexactly(6))
        return kind, await self.reader.readexactly(length - 2)

    async def words(self) -> str:
        kind, payload = await self.receive()
        assert kind == ABORT
        return payload[4:].decode()


Connect = Callable[[bytes], Awaitable[Peer]]


def serve(tmp_path: Path, ranks: int, body: Callable[[bootstrap.Server, Connect], Awaitable[None]]) -> list[str]:
    """Runs `body` with a server. Returns the failures that the server found."""
    broken: list[str] = []

    async def run() -> None:
        server = bootstrap.Server(KEY, ranks, broken.append)
        await server.start(tmp_path / "s")

        async def connect(first: bytes) -> Peer:
            peer = Peer(*await asyncio.open_unix_connection(tmp_path / "s"))
            peers.append(peer)
            peer.writer.write(first)
            return peer

        peers: list[Peer] = []
        async with asyncio.timeout(20):
            await body(server, connect)
        await server.close()
        for peer in peers:
            peer.writer.close()

    asyncio.run(run())
    return broken


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (join(0, key="wrong"), "wrong key"),
        (join(2), "no rank 2 in this job of 2"),
        (join(0, version=77), "version 77"),
        (frame(JOIN, b""), "for the ranks of its job"),
        (frame(JOIN, struct.pack("<II", bootstrap.VERSION, 1 << 31)), "malformed greeting"),
        (join(0)[:4] + struct.pack("<H", CONTRIBUTE) + join(0)[6:], "for the ranks of its job"),
        (struct.pack("<IH", 1 << 30, JOIN), "not frames of Wherry"),
        (struct.pack("<IH", 0, JOIN), "not frames of Wherry"),
        (join(0) + contribution(1, b""), "exchange 0 was due"),
        (join(0) + frame(CONTRIBUTE, b"123"), "not expected"),
        (join(0) + frame(CONTRIBUTE, struct.pack("<II", 0, 9) + b"8 bytes!"), "malformed"),
        (join(0) + frame(99, b"12345678"), "type 99"),
    ],
)
def test_who_does_not_keep_to_the_protocol_is_refused_and_others_are_not(
    tmp_path: Path, first: bytes, said: str
) -> None:
    async def body(server: bootstrap.Server, connect: Connect) -> None:
        good = await connect(join(1))
        assert await good.receive() == (WELCOME, struct.pack("<Q", server.job(0)))
        wrong = await connect(first)
        if first.startswith(join(0)):
            assert (await wrong.receive())[0] == WELCOME
        assert said in await wrong.words()
        assert await wrong.reader.read() == b"", "and the connection is closed"
        server.abort("enough")
        assert await good.words() == "enough"

    assert serve(tmp_path, 2, body) == []


def test_large_contributions_come_in_several_frames(tmp_path: Path) -> None:
    given = [bytes([rank]) * size for rank, size in enumerate((bootstrap.MAX_CONTRIBUTION, 0, 700_000, 700_000, 5))]

    async def body(server: bootstrap.Server, connect: Connect) -> None:
        peers = [await connect(join(rank) + contribution(0, given[rank])) for rank in range(5)]
        for peer in peers:
            assert (await peer.receive())[0] == WELCOME
            got: list[bytes] = []
            frames = 0
            while len(got) < 5:
                kind, payload = await peer.receive()
                number, first, count = struct.unpack_from("<III", payload)
                assert (kind, number, first) == (GATHERED, 0, len(got))
                frames, at = frames + 1, 12
                for _ in range(count):
                    (length,) = struct.unpack_from("<I", payload, at)
                    got.append(payload[at + 4 : at + 4 + length])
                    at += 4 + length
                assert at == len(payload)
            assert got == given
            assert frames == 3

    assert serve(tmp_path, 5, body) == []


def test_who_joins_a_broken_job_is_told(tmp_path: Path) -> None:
    async def body(server: bootstrap.Server, connect: Connect) -> None:
        early = await connect(join(0))
        assert (await early.receive())[0] == WELCOME
        server.abort("rank 1 exited with status 1")
        assert await early.words() == "rank 1 exited with status 1"
        assert await (await connect(join(1))).words() == "rank 1 exited with status 1"

    assert serve(tmp_path, 2, body) == []


def test_rank_that_left_is_named_with_who_waits(tmp_path: Path) -> None:
    async def body(server: bootstrap.Server, connect: Connect) -> None:
        await connect(join(0) + contribution(0, b""))
        left = await connect(join(1))
        await left.receive()
        left.writer.close()
        await asyncio.sleep(1)

    assert serve(tmp_path, 2, body) == ["rank 1 left the job while rank 0 waits for it"]
