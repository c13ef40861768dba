# SPDX-License-Identifier: Apache-2.0
"""Reading what was offloaded: on the agent's machine without a copy, from anywhere else through Arrow Flight.

    for frame in wherry.open("particles"):          # follows the stream until it ends
        print(frame.tag, frame.batch.num_rows)      # frame.batch lies in the agent's memory

    client, options = wherry.flight_client()
    for metadata, batch in wherry.flight_frames(client, options, "particles"):
        print(metadata["tag"], batch.num_rows)

A frame that somebody reads is never taken away: its memory goes back to the agent when the last array made from it is
gone. Keep arrays for as long as they are needed, not longer; copy what must stay (`numpy.copy`, `to_pandas` do).
Readers may hold half of the agent's memory (`agent.reader_budget`); one that asks for more gets an Error.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import pyarrow as pa

from wherry import arguments
from wherry.errors import DeadlineExceeded, Error, FailedPrecondition, NotFound
from wherry.move.connection import REPLY_TIMEOUT_S, Agent, Connection, Lease

_SLICE_MS = 50  # a wait for the next frame is cut into slices, so that releases by other threads get through


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """One stream as its agent sees it. Frames held are [first, next) without those that were evicted in between."""

    name: str
    strategy: str
    open: bool
    """More frames may come."""
    first: int
    """Sequence number of the oldest frame held."""
    next: int
    """Sequence number of the next frame to come."""
    held_frames: int
    held_rows: int
    held_bytes: int
    total_frames: int
    total_bytes: int
    evicted_unread: int
    """Frames that went before anybody had read them."""
    sink_errors: int
    """Frames that did not become a file, though the stream has a sink."""
    sink_error: str
    """Why the first of them did not; empty: all did."""
    parts: int = 0
    """Of a stream in parts; 0: it has none."""
    open_parts: int = 0
    """Parts that are open for writing."""
    incomplete_steps: int = 0
    """Steps that wait for parts."""
    discarded_steps: int = 0
    """Steps that were given up, since a part will not come: it has gone, or left them out."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One offload, or the step of a stream in parts, in the agent's memory."""

    batches: tuple[pa.RecordBatch, ...]
    """One a part; of a stream without parts, and when the reader wants one part, one. Shape (rows, fields). Read-only
    views; valid as long as any of them lives, also after the reader was closed."""
    sequence: int
    """0, 1, ... within the stream."""
    tag: int
    """The application's own number: a time step, say."""
    rows: int
    skipped: int
    """Frames that were evicted before this reader came to them, directly before this one."""
    transfer_ns: int
    """First get issued to last byte in place, on the agent's clock; of a step, the slowest part's."""
    source_bytes: int
    """Moved from the host."""

    @property
    def batch(self) -> pa.RecordBatch:
        """The only batch. Raises FailedPrecondition for a step of several parts, which no one batch holds."""
        if len(self.batches) != 1:
            raise FailedPrecondition(f"a step of {len(self.batches)} parts is not one batch: take table, or batches")
        return self.batches[0]

    @property
    def table(self) -> pa.Table:
        """All batches as one table, without a copy: one chunk a part."""
        return pa.Table.from_batches(self.batches)


class StreamReader:
    """Iterates over the frames of one stream, in order, each once.

    One thread at a time may iterate; frames may go to any thread, and stay readable after the reader was closed.
    """

    def __init__(
        self,
        name: str,
        agent: Agent = None,
        *,
        follow: bool = True,
        from_sequence: int = 0,
        timeout: float | None = None,
        part: int | None = None,
    ) -> None:
        self.name = arguments.text("name", name)
        self.follow = bool(follow)
        self.timeout = None if timeout is None else arguments.seconds("timeout", timeout, 0)
        self.next_sequence = arguments.number("from_sequence", from_sequence, 0, arguments.U64)
        self.part = None if part is None else arguments.number("part", part, 0, arguments.U64)
        self._generation: int | None = None  # of the stream that was read: another one may take over its name
        self._ended = False
        self._connection = Connection(agent, REPLY_TIMEOUT_S)
        if not any(stream.name == name for stream in _list(self._connection, name)):
            known = _list(self._connection)
            self._connection.close()
            names = ", ".join(sorted(stream.name for stream in known)) or "none yet"
            raise NotFound(f"no stream {name!r} at the agent of {self._connection.session.path}; streams: {names}")

    def __iter__(self) -> Iterator[Frame]:
        return self

    def __next__(self) -> Frame:
        frame = None if self._ended else self.read(self.timeout)
        if frame is None:
            self._ended = True
            raise StopIteration
        return frame

    def read(self, timeout: float | None = None) -> Frame | None:
        """The next frame; None at the stream's end (follow=False: or when all held frames were read).

        Blocks up to `timeout` seconds (None: for ever) when the reader follows. Raises DeadlineExceeded; NotFound
        when the stream was dropped meanwhile; ResourceExhausted when readers hold all that they may
        (agent.reader_budget): release frames, or copy them; Error when the agent has gone.
        """
        deadline = None if timeout is None else time.monotonic() + arguments.seconds("timeout", timeout)
        while True:
            wait_ms = 0
            if self.follow:
                wait_ms = _SLICE_MS
                if deadline is not None:
                    wait_ms = max(0, round(min(wait_ms, (deadline - time.monotonic()) * 1000)))
            question = {"op": "next", "stream": self.name, "sequence": self.next_sequence, "timeout_ms": wait_ms}
            if self._generation is not None:
                question["generation"] = self._generation
            if self.part is not None:
                question["part"] = self.part
            reply = self._connection.request(question, wait_ms / 1000)
            what = reply.get("what")
            if what == "frame":
                return self._frame(reply)
            if what == "end":
                return None
            if what == "no_stream":
                raise NotFound(f"the agent has no stream {self.name!r} any more")
            if what != "timeout":
                raise Error(f"the agent answered {what!r} to a request for the next frame of {self.name!r}")
            if not self.follow:
                return None
            if deadline is not None and time.monotonic() >= deadline:
                raise DeadlineExceeded(f"no frame of {self.name!r} after {self.next_sequence - 1} within {timeout} s")

    def _frame(self, reply: dict[str, Any]) -> Frame:
        connection = self._connection
        try:
            lease = Lease(connection, int(reply["lease"]))  # from here on, given back whatever happens
            parts = reply.get("parts", [reply])
            frame = Frame(
                batches=tuple(self._batch(part, lease) for part in parts),
                sequence=int(reply["sequence"]),
                tag=int(reply["tag"]),
                rows=sum(int(part["rows"]) for part in parts),
                skipped=int(reply["skipped"]),
                transfer_ns=max(int(part["transfer_ns"]) for part in parts),
                source_bytes=sum(int(part["source_bytes"]) for part in parts),
            )
        except (pa.ArrowException, OSError, StopIteration) as error:  # before ValueError, which ArrowInvalid is
            where = f"frame {reply.get('sequence')} of {self.name!r}"
            raise Error(f"{where} is not an Arrow IPC stream: {error}") from None
        except (KeyError, TypeError, ValueError) as error:
            raise Error(f"the agent's answer for {self.name!r} cannot be used: {error!r}") from None
        self.next_sequence = frame.sequence + 1
        self._generation = reply.get("generation")
        return frame

    def _batch(self, where: dict[str, Any], lease: Lease) -> pa.RecordBatch:
        """The batch at that place of the arena."""
        connection = self._connection
        offset, size = int(where["offset"]), int(where["bytes"])
        if offset < 0 or size < 0 or offset + size > connection.arena_bytes:
            raise Error(f"a frame at {offset}, {size} bytes, is outside of the {connection.arena_bytes} mapped")
        memory = pa.foreign_buffer(connection.address + offset, size, base=lease)
        with pa.ipc.open_stream(pa.BufferReader(memory)) as stream:
            return stream.read_next_batch()

    def close(self) -> None:
        """Ends the iteration, and leaves the agent as soon as no frame is in use any more. Idempotent."""
        self._ended = True
        self._connection.close()

    def __enter__(self) -> StreamReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open(
    name: str,
    agent: Agent = None,
    *,
    follow: bool = True,
    from_sequence: int = 0,
    timeout: float | None = None,
    part: int | None = None,
) -> StreamReader:
    """Opens stream `name` for reading without a copy, on the agent's machine.

    follow: wait for frames to come until the stream ends; False: stop after those that the agent holds now.
    from_sequence: the first frame wanted; older ones are not read, and evicted ones are counted in Frame.skipped.
    timeout: seconds that the iteration waits for one frame, None for ever; then DeadlineExceeded.
    part: of a stream in parts, of each step that part alone; None: all of it, as Frame.batches and Frame.table.

    Raises NotFound (no agent, no such stream), Unavailable, PermissionDenied, VersionMismatch, Error.
    """
    return StreamReader(name, agent, follow=follow, from_sequence=from_sequence, timeout=timeout, part=part)


def streams(agent: Agent = None) -> list[StreamStatus]:
    """All streams of the agent, by name. Raises as open() does."""
    connection = Connection(agent, REPLY_TIMEOUT_S)
    try:
        return _list(connection)
    finally:
        connection.close()


def _list(connection: Connection, only: str = "") -> list[StreamStatus]:
    """Of all streams, or of the one of that name."""
    reply = connection.request({"op": "list", "stream": only} if only else {"op": "list"})
    names = StreamStatus.__dataclass_fields__
    try:
        found = [StreamStatus(**{name: entry[name] for name in names if name in entry}) for entry in reply["streams"]]
    except (KeyError, TypeError) as error:
        raise Error(f"the agent's list of streams cannot be used: {error!r}") from None
    return sorted(found, key=lambda stream: stream.name)
