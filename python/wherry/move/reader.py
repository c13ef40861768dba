# SPDX-License-Identifier: Apache-2.0
"""Reads frames: on the agent's machine without a copy, from other machines through Arrow Flight.

    for frame in wherry.open("particles"):          # follows the stream until it ends
        print(frame.tag, frame.batch.num_rows)      # frame.batch lies in the agent's memory

    client, options = wherry.flight_client()
    for metadata, batch in wherry.flight_frames(client, options, "particles"):
        print(metadata["tag"], batch.num_rows)

The agent never evicts a frame that a reader holds. The frame's memory returns to the agent when the last array made
from the frame is freed. Free arrays soon, and copy data that you keep (`numpy.copy` and `to_pandas` copy). All readers
together may hold half of the agent's memory (`agent.reader_budget`). A reader that requests more gets an Error.
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

_SLICE_MS = 50  # the wait for a frame is split into slices, so that other threads can send releases


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """The status of a stream from its agent. The held frames are [first, next), except those that were evicted."""

    name: str
    """The name, which is unique on the agent."""
    strategy: str
    """The form of its frames: "ipc", "arrays", ..."""
    open: bool
    """Whether more frames may come."""
    first: int
    """Sequence number of the oldest frame held."""
    next: int
    """Sequence number of the next new frame."""
    held_frames: int
    """Frames that the agent holds now."""
    held_rows: int
    """Rows of the held frames."""
    held_bytes: int
    """Bytes of the held frames in the agent's memory."""
    total_frames: int
    """Frames that arrived since the stream was opened."""
    total_bytes: int
    """Bytes of these frames that were moved from the host."""
    evicted_unread: int
    """Frames that were evicted before any reader had read them."""
    sink_errors: int
    """Frames that the stream's sink could not write to a file."""
    sink_error: str
    """The reason why the first of these frames was not written. Empty: the sink wrote all frames."""
    parts: int = 0
    """The number of parts. 0: the stream has no parts."""
    open_parts: int = 0
    """Parts that are open for writing."""
    incomplete_steps: int = 0
    """Steps that still wait for parts."""
    discarded_steps: int = 0
    """Steps that were discarded because a part will not arrive: its writer ended, or skipped the step."""
    generation: int = 0
    """The agent's count of opened streams. A stream that is opened again has another generation."""
    source: str = ""
    """The name of the stream that this one is derived from. Empty: it is not derived."""
    derived: int = 0
    """The number of streams that operators derive from this one."""
    operator_lag: int = 0
    """Frames that the operators have not processed yet."""
    operator_errors: int = 0
    """Frames for which an operator failed. The derived stream lacks frames with these sequence numbers."""
    operator_skipped: int = 0
    """Frames that were evicted before the operators processed them."""
    operator_error: str = ""
    """The first failure of an operator: its reason and the derived stream. Empty: no operator failed."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One offload, or one step of a stream in parts, in the agent's memory."""

    batches: tuple[pa.RecordBatch, ...]
    """One batch for each part, of shape (rows, fields). There is one batch if the stream has no parts, or if the reader
    selected a part. Batches are read-only views. They stay valid after the reader was closed."""
    sequence: int
    """The frame's number within the stream: 0, 1, ..."""
    tag: int
    """The application's own number, for example a time step."""
    rows: int
    """The rows of all batches, before the filter."""
    skipped: int
    """The number of frames directly before this one that were evicted before this reader reached them."""
    transfer_ns: int
    """The time from the first get until the last byte arrived, on the agent's clock. For a step, the time of the
    slowest part."""
    source_bytes: int
    """The bytes that were moved from the host."""

    @property
    def batch(self) -> pa.RecordBatch:
        """The frame's only batch. Raises FailedPrecondition for a step of several parts, which has several batches."""
        if len(self.batches) != 1:
            raise FailedPrecondition(f"a step of {len(self.batches)} parts is not one batch: take table, or batches")
        return self.batches[0]

    @property
    def table(self) -> pa.Table:
        """All batches as one table, without a copy: one chunk for each part."""
        return pa.Table.from_batches(self.batches)


class StreamReader:
    """Iterates over the frames of one stream in order.

    name, agent, follow, from_sequence, timeout, part, columns, filter: see `wherry.open`, which makes a reader.

    Only one thread at a time may iterate. Any thread may use the frames, also after the reader was closed.
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
        self._generation: int | None = None  # generation of the stream that is read: a new stream may get the same name
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
        """The next frame. None at the end of the stream, and with follow=False also after the last held frame.

        If the reader follows the stream, blocks up to `timeout` seconds (None: without a limit). Raises
        DeadlineExceeded; NotFound if the stream was dropped meanwhile; ResourceExhausted if the readers hold their
        whole share (agent.reader_budget), so release or copy frames; Error if the agent has ended.
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
            lease = Lease(connection, int(reply["lease"]))  # its destructor returns the lease
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
        except (pa.ArrowException, OSError, StopIteration) as error:  # first, because ArrowInvalid is also a ValueError
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
        """The batch at the location `where` in the arena."""
        connection = self._connection
        offset, size = int(where["offset"]), int(where["bytes"])
        if offset < 0 or size < 0 or offset + size > connection.arena_bytes:
            raise Error(f"a frame at {offset}, {size} bytes, is outside of the {connection.arena_bytes} mapped")
        memory = pa.foreign_buffer(connection.address + offset, size, base=lease)
        with pa.ipc.open_stream(pa.BufferReader(memory)) as stream:
            return stream.read_next_batch()

    def _wanted(self, batch: pa.RecordBatch, sequence: int) -> pa.RecordBatch:
        """The columns and rows of the batch that this reader requested. Columns are not copied. Rows are copied if
        there is a filter."""
        from wherry.move import predicate

        columns = predicate.chosen(self._columns, batch.schema)
        if self._filter is not None:
            condition = predicate.to_expression(self._filter, batch.schema)
            try:
                batch.validate(full=True)  # the filter uses offsets and indices that the host wrote
            except pa.ArrowInvalid as error:
                raise Error(f"frame {sequence} of {self.name!r} is broken: {str(error).splitlines()[0]}") from None
            try:
                batch = batch.filter(condition)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
                raise InvalidArgument(f"filter: {str(error).splitlines()[0]}") from None
        return batch if columns is None else batch.select(columns)

    def close(self) -> None:
        """Ends the iteration, and disconnects from the agent as soon as no frame is in use. Idempotent."""
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

    agent: the path of its session file, the loaded session file, or a `Session`; None: $WHERRY_AGENT, or the default
        agent.
    follow: wait for new frames until the stream ends; False: stop after the frames that the agent holds now.
    from_sequence: the first wanted frame. Older frames are not read. Frame.skipped counts evicted frames.
    timeout: seconds to wait for one frame before DeadlineExceeded is raised; None: no limit.
    part: for a stream in parts, only that part of each step; None: all parts, as Frame.batches and Frame.table.
    columns, filter: see flight_frames. This process applies them to frames in the agent's memory: it copies only rows
        that a filter selects. Frame.rows still counts all rows of the frame.

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
    """All streams of the agent, by name. agent: see open(). Raises the errors of open()."""
    connection = Connection(agent, REPLY_TIMEOUT_S)
    try:
        return _list(connection)
    finally:
        connection.close()


def _list(connection: Connection, only: str = "") -> list[StreamStatus]:
    """The status of all streams, or of the stream `only`."""
    reply = connection.request({"op": "list", "stream": only} if only else {"op": "list"})
    names = StreamStatus.__dataclass_fields__
    try:
        found = [StreamStatus(**{name: entry[name] for name in names if name in entry}) for entry in reply["streams"]]
    except (KeyError, TypeError) as error:
        raise Error(f"the agent's list of streams cannot be used: {error!r}") from None
    return sorted(found, key=lambda stream: stream.name)
