# SPDX-License-Identifier: Apache-2.0
"""The launcher's side of the bootstrap. In each exchange, every rank contributes bytes and gets the bytes of all ranks.

The frames are described in src/route/client/bootstrap_protocol.hpp.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

VERSION = 2
JOIN, WELCOME, CONTRIBUTE, GATHERED, ABORT, FAILED = range(1, 7)
NOBODY = 0xFFFFFFFF
"""The value for "no rank" (JobFailure::kNobody of src/route/job_failure.hpp)."""
MAX_FRAME = 1 << 20
"""The most bytes that follow a frame's length field (kMaxFrameBytes of src/base/socket.hpp)."""
MAX_CONTRIBUTION = MAX_FRAME - 64
JOIN_TIMEOUT_S = 10.0


class Refused(Exception):
    """A process on the socket violated the protocol. The server sends it this message."""


@dataclass(eq=False)
class _Member:
    rank: int
    generation: int
    """How often this rank joined before. A program may start the runtime several times in sequence."""
    writer: asyncio.StreamWriter
    next_round: int = 0


@dataclass
class _Round:
    given: dict[int, bytes] = field(default_factory=dict)


class Server:
    """Serves the ranks of one job on a Unix socket. Needs a running event loop."""

    def __init__(self, key: str, ranks: int, failed: Callable[[str], None]) -> None:
        """`failed(why)` is called when ranks wait for a rank that can no longer contribute."""
        self._key, self._ranks, self._failed = key, ranks, failed
        self._members: dict[int, _Member] = {}
        self._generations = [0] * ranks
        self._ended: set[int] = set()
        self._blamed: dict[int, int] = {}
        self._rounds: dict[tuple[int, int], _Round] = {}
        self._aborted: str | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self, path: Path) -> None:
        """Listens at `path`, which must be accessible only to this user."""
        self._server = await asyncio.start_unix_server(self._connected, path)

    async def close(self) -> None:
        """Sends the remaining data and ends all connections."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def abort(self, why: str) -> None:
        """Tells every rank, including ranks that join later, that the job has failed."""
        if self._aborted is not None:
            return
        self._aborted = why
        for member in self._members.values():
            member.writer.write(_abort(why))

    def connected(self, rank: int) -> bool:
        """Whether `rank` is connected, so that bytes from it may still be in flight."""
        return rank in self._members

    def blamed_by(self, rank: int) -> int | None:
        """The rank that, according to `rank`, caused the job's failure: itself or another. NOBODY: `rank` does not
        know.

        None: `rank` has not reported a failure.
        """
        return self._blamed.get(rank)

    def ended(self, rank: int) -> None:
        """Records that the process of `rank` has ended, so no rank waits for it."""
        self._ended.add(rank)
        self._check()

    def job(self, generation: int) -> int:
        """A number that identifies the job among all jobs of an agent. It does not reveal the key."""
        digest = hashlib.sha256(f"wherry job {self._key} {generation}".encode()).digest()
        return int.from_bytes(digest[:8], "little")

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        member = None
        try:
            member = await asyncio.wait_for(self._join(reader, writer), JOIN_TIMEOUT_S)
            while True:
                self._take(member, await _receive(reader))
        except Refused as refused:
            writer.write(_abort(str(refused)))
        except (OSError, EOFError, TimeoutError, asyncio.CancelledError):
            pass  # the process disconnected or was silent, or the job is over
        finally:
            self._tasks.discard(task)
            if member is not None and self._members.get(member.rank) is member:
                del self._members[member.rank]
                # Wait a moment: if the process is dying, its exit status says more.
                asyncio.get_running_loop().call_later(0.25, self._check)
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> _Member:
        kind, payload = await _receive(reader)
        rank = self._joining_rank(kind, payload)
        for _ in range(100):  # the old connection's last message may still be in flight
            if rank not in self._members:
                break
            await asyncio.sleep(0.01)
        else:
            raise Refused(f"rank {rank} has joined already: one process of each rank may start the runtime at a time")
        if self._aborted is not None:
            raise Refused(self._aborted)
        member = _Member(rank, self._generations[rank], writer)
        self._generations[rank] += 1
        self._members[rank] = member
        writer.write(_frame(WELCOME, struct.pack("<Q", self.job(member.generation))))
        return member

    def _joining_rank(self, kind: int, payload: bytes) -> int:
        if kind != JOIN or len(payload) < 4:
            raise Refused("this is the socket of `wherry run`, for the ranks of its job")
        (version,) = struct.unpack_from("<I", payload)
        if version != VERSION:
            raise Refused(
                f"the program's Wherry speaks version {version} of the launcher's protocol, this `wherry run` version "
                f"{VERSION}: use those of one installation"
            )
        try:
            (length,) = struct.unpack_from("<I", payload, 4)
            key, (rank,) = payload[8 : 8 + length], struct.unpack_from("<I", payload, 8 + length)
        except struct.error:
            raise Refused("malformed greeting") from None
        if len(payload) != 12 + length or not hmac.compare_digest(key, self._key.encode()):
            raise Refused("wrong key (WHERRY_JOB_KEY): this process belongs to another job")
        if rank >= self._ranks:
            raise Refused(f"there is no rank {rank} in this job of {self._ranks} ranks (WHERRY_RANK)")
        return int(rank)

    def _take(self, member: _Member, frame: tuple[int, bytes]) -> None:
        kind, payload = frame
        if kind != FAILED:
            self._contribute(member, frame)
            return
        if len(payload) < 8 or len(payload) != 8 + struct.unpack_from("<I", payload, 4)[0]:
            raise Refused("a malformed report of a failed job")
        self._blamed.setdefault(member.rank, struct.unpack_from("<I", payload)[0])

    def _contribute(self, member: _Member, frame: tuple[int, bytes]) -> None:
        kind, payload = frame
        if kind != CONTRIBUTE or len(payload) < 8:
            raise Refused(f"a frame of type {kind} was not expected")
        number, length = struct.unpack_from("<II", payload)
        if number != member.next_round or len(payload) != 8 + length or length > MAX_CONTRIBUTION:
            raise Refused(f"a malformed contribution to exchange {number}; exchange {member.next_round} was due")
        member.next_round += 1
        at = (member.generation, number)
        gathering = self._rounds.setdefault(at, _Round())
        gathering.given[member.rank] = payload[8:]
        if len(gathering.given) < self._ranks:
            self._check()
            return
        del self._rounds[at]
        answer = _gathered(number, [gathering.given[rank] for rank in range(self._ranks)])
        for other in self._members.values():
            if other.generation == member.generation:
                other.writer.write(answer)

    def _check(self) -> None:
        """Calls failed() if a rank waits for a rank that will no longer contribute."""
        if self._aborted is not None:
            return
        for (generation, _), gathering in self._rounds.items():
            waiting = min(gathering.given)
            for rank in range(self._ranks):
                if rank in gathering.given:
                    continue
                here = self._members.get(rank)
                left = self._generations[rank] > generation and (here is None or here.generation != generation)
                if rank in self._ended or left:
                    how = "ended" if rank in self._ended else "left the job"
                    self._failed(f"rank {rank} {how} while rank {waiting} waits for it")
                    return


def _frame(kind: int, payload: bytes) -> bytes:
    return struct.pack("<IH", len(payload) + 2, kind) + payload


def _abort(why: str) -> bytes:
    text = why.encode()[:4096]
    return _frame(ABORT, struct.pack("<I", len(text)) + text)


def _gathered(number: int, contributions: list[bytes]) -> bytes:
    """The contributions of all ranks, encoded as one or more frames."""
    frames = bytearray()
    part: list[bytes] = []
    first = size = 0

    def flush() -> None:
        frames.extend(_frame(GATHERED, struct.pack("<III", number, first, len(part)) + b"".join(part)))

    for rank, given in enumerate(contributions):
        if part and size + 4 + len(given) > MAX_CONTRIBUTION:
            flush()
            part, first, size = [], rank, 0
        part.append(struct.pack("<I", len(given)) + given)
        size += 4 + len(given)
    flush()
    return bytes(frames)


async def _receive(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    length, kind = struct.unpack("<IH", await reader.readexactly(6))
    if not 2 <= length <= MAX_FRAME:
        raise Refused(f"a frame of {length} bytes: these are not frames of Wherry")
    return kind, await reader.readexactly(length - 2)
