# SPDX-License-Identifier: Apache-2.0
"""Reads frames: on the agent's machine without a copy, from other machines through Arrow Flight.

    for frame in wherry.open("particles"):          # follows the stream until it ends
        print(frame.tag, frame.batch.num_rows)      # frame.batch lies in the agent's memory

    client, options = wherry.flight_client()
    for metadata, batch in wherry.flight_frames(client, options, "particles"):
        print(metadata["tag"], batch.num_rows)

A frame that a reader holds is never taken away. Its memory returns to the agent when the last array made from it is
freed. Keep arrays only as long as they are needed, and copy data that must stay (`numpy.copy`, `to_pandas` do). Readers
may hold half of the agent's memory (`agent.reader_budget`). A reader that asks for more gets an Error.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from wherry import arguments
from wherry.errors import DeadlineExceeded, Error, FailedPrecondition, InvalidArgument, NotFound
from wherry.move.connection import REPLY_TIMEOUT_S, Agent, Connection, Lease

if TYPE_CHECKING:
    from wherry.move.predicate import Filter

_SLICE_MS = 50  # a wait for the next frame is cut into slices, so that releases by other threads get through


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """One stream as its agent sees it. Frames held are [first, next) without those that were evicted in between."""

    name: str
    """Unique on the agent."""
    strategy: str
    """The form of its frames: "ipc", "arrays", ..."""
    open: bool
    """More frames may come."""
    first: int
    """Sequence number of the oldest frame held."""
    next: int
    """Sequence number of the next frame to come."""
    held_frames: int
    """Frames that the agent holds now."""
    held_rows: int
    """Their rows."""
    held_bytes: int
    """Their bytes in the agent's memory."""
    total_frames: int
    """Frames since the stream was opened."""
    total_bytes: int
    """Their bytes, as moved from the host."""
    evicted_unread: int
    """Frames that were evicted before any reader had read them."""
    sink_errors: int
    """Frames that did not become a file, though the stream has a sink."""
    sink_error: str
    """The reason why the first of them was not written. Empty: all were."""
    parts: int = 0
    """The number of parts. 0 if the stream has none."""
    open_parts: int = 0
    """Parts that are open for writing."""
    incomplete_steps: int = 0
    """Steps that wait for parts."""
    discarded_steps: int = 0
    """Discarded steps, because a part will not come: it has gone, or skipped them."""
    generation: int = 0
    """Which opening of a stream at this agent this is; a stream that is opened anew has another."""
    source: str = ""
    """The stream that this one is derived from; empty: none."""
    derived: int = 0
    """The number of streams that operators derive from this one."""
    operator_lag: int = 0
    """Frames that wait for the operators."""
    operator_errors: int = 0
    """Frames for which an operator failed; the derived stream has none of that sequence number."""
    operator_skipped: int = 0
    """Frames that went before the operators came to them."""
    operator_error: str = ""
    """Why the first operator failed, and of which derived stream; empty: none did."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One offload, or the step of a stream in parts, in the agent's memory."""

    batches: tuple[pa.RecordBatch, ...]
    """One batch for each part. There is one batch if the stream has no parts, or the reader wants one part. Shape
    (rows, fields). Read-only views, valid as long as any of them lives, also after the reader was closed."""
    sequence: int
    """0, 1, ... within the stream."""
    tag: int
    """The application's own number, for example a time step."""
    rows: int
    """Of all batches, whatever a filter left of them."""
    skipped: int
    """Frames that were evicted before this reader came to them, directly before this one."""
    transfer_ns: int
    """The time from the first get to the last byte in place, on the agent's clock. For a step, the slowest part's."""
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
        """All batches as one table, without a copy: one chunk for each part."""
        return pa.Table.from_batches(self.batches)


class StreamReader:
    """Iterates over the frames of one stream, in order, each once.

    name, agent, follow, from_sequence, timeout, part, columns, filter: as of `wherry.open`, which makes one.

    Only one thread at a time may iterate. Frames may go to any thread, and stay readable after the reader was closed.
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
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
    ) -> None:
        self.name = arguments.text("name", name)
        self.follow = bool(follow)
        self.timeout = None if timeout is None else arguments.seconds("timeout", timeout, 0)
        self.next_sequence = arguments.number("from_sequence", from_sequence, 0, arguments.U64)
        self.part = None if part is None else arguments.number("part", part, 0, arguments.U64)
        self._generation: int | None = None  # of the stream that was read: another one may take over its name
        self._ended = False
        self._columns = columns
        self._filter = filter
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
        """The next frame. None at the stream's end (follow=False: or when all held frames were read).

        If the reader follows, blocks up to `timeout` seconds (None: for ever). Raises DeadlineExceeded; NotFound if the
        stream was dropped meanwhile; ResourceExhausted if readers hold their whole share (agent.reader_budget), so
        release frames, or copy them; Error if the agent has gone.
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
            lease = Lease(connection, int(reply["lease"]))  # from here on, the lease is always given back
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
        if self._columns is None and self._filter is None:
            return frame
        return replace(frame, batches=tuple(self._wanted(batch, frame.sequence) for batch in frame.batches))

    def _batch(self, where: dict[str, Any], lease: Lease) -> pa.RecordBatch:
        """The batch at that place of the arena."""
        connection = self._connection
        offset, size = int(where["offset"]), int(where["bytes"])
        if offset < 0 or size < 0 or offset + size > connection.arena_bytes:
            raise Error(f"a frame at {offset}, {size} bytes, is outside of the {connection.arena_bytes} mapped")
        memory = pa.foreign_buffer(connection.address + offset, size, base=lease)
        with pa.ipc.open_stream(pa.BufferReader(memory)) as stream:
            return stream.read_next_batch()

    def _wanted(self, batch: pa.RecordBatch, sequence: int) -> pa.RecordBatch:
        """The part of the batch that this reader requested. Columns stay in place, and rows that a filter selects are
        copied."""
        from wherry.move import predicate

        columns = predicate.chosen(self._columns, batch.schema)
        if self._filter is not None:
            condition = predicate.to_expression(self._filter, batch.schema)
            try:
                batch.validate(full=True)  # the filter follows offsets and indices, which are the host's
            except pa.ArrowInvalid as error:
                raise Error(f"frame {sequence} of {self.name!r} is broken: {str(error).splitlines()[0]}") from None
            try:
                batch = batch.filter(condition)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
                raise InvalidArgument(f"filter: {str(error).splitlines()[0]}") from None
        return batch if columns is None else batch.select(columns)

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
    columns: Sequence[str] | None = None,
    filter: Filter | None = None,
) -> StreamReader:
    """Opens stream `name` for reading without a copy, on the agent's machine.

    agent: the path of its session file, that file loaded, or a `Session`; None: $WHERRY_AGENT, or the default one.
    follow: wait for new frames until the stream ends; False: stop after the frames that the agent holds now.
    from_sequence: the first wanted frame; older ones are not read, and evicted ones are counted in Frame.skipped.
    timeout: seconds that the iteration waits for one frame, None for ever; then DeadlineExceeded.
    part: for a stream in parts, only that part of each step; None: all of it, as Frame.batches and Frame.table.
    columns, filter: as for flight_frames. This process computes them, on frames in place: columns stay where they are,
        rows that a filter leaves are copied. Frame.rows stays the frame's.

    Raises NotFound (no agent, no such stream), Unavailable, PermissionDenied, VersionMismatch, Error.
    """
    return StreamReader(
        name,
        agent,
        follow=follow,
        from_sequence=from_sequence,
        timeout=timeout,
        part=part,
        columns=columns,
        filter=filter,
    )


def streams(agent: Agent = None) -> list[StreamStatus]:
    """All streams of the agent, by name. agent: as of open(). Raises as open() does."""
    connection = Connection(agent, REPLY_TIMEOUT_S)
    try:
        return _list(connection)
    finally:
        connection.close()


def _list(connection: Connection, only: str = "") -> list[StreamStatus]:
    """The status of all streams, or of the named one."""
    reply = connection.request({"op": "list", "stream": only} if only else {"op": "list"})
    names = StreamStatus.__dataclass_fields__
    try:
        found = [StreamStatus(**{name: entry[name] for name in names if name in entry}) for entry in reply["streams"]]
    except (KeyError, TypeError) as error:
        raise Error(f"the agent's list of streams cannot be used: {error!r}") from None
    return sorted(found, key=lambda stream: stream.name)
