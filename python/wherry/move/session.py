# SPDX-License-Identifier: Apache-2.0
"""Sessions, streams and tickets: offloading from Python.

    import numpy as np, wherry

    with wherry.Session() as session:
        x = session.empty((100_000, 3), np.float64)      # or any array of one's own
        stream = session.stream("particles", {"x": x})
        ticket = stream.offload({"x": x}, tag=0)         # returns in microseconds; do not change x yet
        ...                                              # compute on
        ticket.wait()                                    # x is free again

Any thread may use a session and what belongs to it: calls take turns. Waiting lets other threads run, and ends on
Ctrl-C. A process that ends with offloads in flight, its session not closed, waits for them first, 10 s at most.
"""

from __future__ import annotations

import atexit
import collections
import math
import os
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import wherry._native._core as _core
from wherry import arguments
from wherry.errors import Error, FailedPrecondition, InvalidArgument, NotFound
from wherry.move import columns
from wherry.system import wherryd

_FOREVER = math.inf
_AT_EXIT_S = 10.0
_MOST_BYTES = (1 << 63) - 1
_BUFFERS = bytes | bytearray | memoryview


class Ticket:
    """A posted offload. The sources stay referenced, and must stay unchanged, until it is ready."""

    __slots__ = ("_core", "_sources")

    def __init__(self, core: _core.Ticket, sources: Any) -> None:
        self._core = core
        self._sources = sources

    def ready(self) -> bool:
        """Whether the sources may be changed (or the offload failed). No system call. Does not notice that the agent
        died: wait() does."""
        done = self._core.ready()
        if done:
            self._sources = None
        return done

    def wait(self, timeout: float | None = None) -> None:
        """Blocks until the sources may be changed, `timeout` seconds at most (None: for as long as the agent lives).

        Raises what became of the offload: SourceFault, ResourceExhausted, Cancelled, Unavailable, ...
        DeadlineExceeded: it is still in flight, and may be waited for again.
        """
        try:
            self._core.wait(_time_limit(timeout))
        finally:
            self.ready()

    @property
    def transfer_ns(self) -> int:
        """Nanoseconds from the first get to the last byte in place, on the agent's clock. After success."""
        return self._core.transfer_ns

    @property
    def sequence(self) -> int:
        """The frame's number in its stream. After success."""
        return self._core.sequence


def _time_limit(timeout: float | None) -> float:
    return _FOREVER if timeout is None else arguments.seconds("timeout", timeout)


class _InFlight:
    """Keeps the sources of offloads that the agent may still read, whoever else drops them: tickets, streams or the
    session. Every stream of a session holds it; when the last of them goes, the session ends before the sources do."""

    __slots__ = ("__weakref__", "_core", "_owner", "_tickets")

    def __init__(self, core: _core.Session) -> None:
        self._core: _core.Session | None = core
        self._owner = os.getpid()
        self._tickets: collections.deque[Ticket] = collections.deque()
        _sessions.add(self)

    def add(self, ticket: Ticket) -> None:
        self._tickets.append(ticket)

    def forget_finished(self) -> None:
        """Drops the references to sources that are free, oldest first."""
        with suppress(IndexError):  # none is left
            while (first := self._tickets.popleft()).ready():
                pass
            self._tickets.appendleft(first)

    def finish(self) -> None:
        """At the end of the interpreter, which frees sources in any order."""
        core = self._core
        if core is None or self._owner != os.getpid():  # a child of fork() has none
            return
        try:
            if core.in_flight() != 0:
                core.drain(_AT_EXIT_S)
        except Error as error:
            print(f"wherry: at the end of the process: {error}", file=sys.stderr)

    def __del__(self) -> None:
        with suppress(Exception):  # interpreter shutdown
            sources = [ticket._sources for ticket in self._tickets]
            self._tickets.clear()  # tickets hold the session, too
            self._core = None  # waits for what is in flight, 2 s at most, then cuts the agent off
            del sources


_sessions: weakref.WeakSet[_InFlight] = weakref.WeakSet()


@atexit.register
def _finish_all() -> None:
    with suppress(KeyboardInterrupt):  # not waited for, then
        for in_flight in list(_sessions):
            in_flight.finish()


def _named(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "none"


class Stream:
    """A stream open for writing."""

    def __init__(self, core: _core.Stream, schema: pa.Schema | None, in_flight: _InFlight) -> None:
        self._core = core
        self._schema = schema
        self._in_flight = in_flight
        self._turn = threading.Lock()  # an offload that waits for a ticket lets other threads run

    @property
    def name(self) -> str:
        """Its name on the agent."""
        return self._core.name

    @property
    def schema(self) -> pa.Schema | None:
        """Its Arrow schema; None for a raw stream."""
        return self._schema

    def offload(self, data: Any, tag: int = 0, deadline: float | None = None, timeout: float = 0.0) -> Ticket:
        """Hands one batch of rows to the agent and returns at once.

        data: a dict of numpy arrays (n,) or (n, k) and Arrow arrays, in the order of the schema; a RecordBatch, a
            Table, or anything with __arrow_c_array__ or __arrow_c_stream__; for a raw stream a list of numpy arrays or
            buffers.
        tag: the application's own number for this frame (a time step), 0 to 2**64 - 1; readers see it.
        deadline: seconds after which the agent gives up (Cancelled), more than 0.
        timeout: seconds to wait when as many offloads are in flight as the session allows.

        C-contiguous arrays are moved without a copy on the host. Copied first: arrays with other strides or of the
        other byte order; booleans, strings, days (datetime64[D]) and masked arrays of numpy, which Arrow stores
        differently; tables and chunked arrays of several chunks. NaT of other units than days arrives as the
        number -2**63, not as null: offload pyarrow.array(x) where readers need nulls.
        Raises WouldBlock, InvalidArgument, Unsupported, Unavailable.
        """
        self._in_flight.forget_finished()
        if deadline is not None and not (limit := arguments.seconds("deadline", deadline)) > 0:
            raise InvalidArgument(f"deadline is {deadline}: want seconds, more than 0, or None")
        options = (
            arguments.number("tag", tag, 0, arguments.U64),
            0.0 if deadline is None else limit,
            arguments.seconds("timeout", timeout),
        )
        sources: Any
        if self._schema is None:
            sources = self._raw_buffers(data)
            with self._turn:
                core = self._core.post_raw(sources, *options)
        elif isinstance(data, Mapping):
            self._check_names(list(data))
            sources = [self._column(field, data[field.name]) for field in self._schema]
            columns = [v if isinstance(v, np.ndarray) else v.__arrow_c_array__() for v in sources]
            with self._turn:
                core = self._core.post(columns, *options)
        else:
            sources = self._one_batch(data)
            with self._turn:
                core = self._core.post_batch(sources.__arrow_c_array__()[1], *options)
        ticket = Ticket(core, sources)
        self._in_flight.add(ticket)
        return ticket

    def close(self) -> None:
        """Ends the stream once its offloads are done; readers that follow it see the end."""
        with self._turn:
            self._core.close()

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _raw_buffers(self, data: Any) -> list[np.ndarray[Any, Any]]:
        if isinstance(data, _BUFFERS | str | np.ndarray | Mapping):
            raise InvalidArgument(f"stream '{self.name}' is raw: want a list of buffers, not one {type(data).__name__}")
        buffers = []
        for buffer in data:
            try:
                array = buffer if isinstance(buffer, np.ndarray) else np.frombuffer(buffer, np.uint8)
                buffers.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
            except (TypeError, ValueError, BufferError) as error:
                what = f"buffer {len(buffers)}, a {type(buffer).__name__}, has no bytes to move: {error}"
                raise InvalidArgument(f"stream '{self.name}': {what}") from None
        return buffers

    def _check_names(self, given: list[str]) -> None:
        names = self._schema.names if self._schema is not None else []
        if given == names:
            return
        missing = [name for name in names if name not in given]
        extra = [name for name in given if name not in names]
        if missing or extra:
            what = [f"missing {_named(missing)}"] * bool(missing) + [f"not in the schema {_named(extra)}"] * bool(extra)
            raise InvalidArgument(f"stream '{self.name}' has columns {_named(names)}: {'; '.join(what)}")
        raise InvalidArgument(f"stream '{self.name}' has columns {_named(names)}, in this order, not {_named(given)}")

    def _column(self, field: pa.Field, value: Any) -> np.ndarray[Any, Any] | pa.Array:
        """`value` as what belongs into `field`, or InvalidArgument."""
        column = columns.as_column(field.name, value, field.type)
        if not isinstance(column, np.ndarray):
            self._check_type(field, column.type)
            if not field.nullable and column.null_count != 0:
                raise InvalidArgument(
                    f"column '{field.name}' of stream '{self.name}' is not nullable, and has {column.null_count} nulls"
                )
            return column
        given = columns.numpy_type(field.name, column.dtype)
        wanted = field.type
        if column.ndim == 2 and pa.types.is_fixed_size_list(wanted) and wanted.list_size == column.shape[1]:
            wanted = wanted.value_type
        elif column.ndim == 2:
            self._check_type(field, pa.list_(given, column.shape[1]))
        if given != wanted and not columns.same_bytes(column.dtype, wanted):
            self._check_type(field, given if column.ndim == 1 else pa.list_(given, column.shape[1]))
        return column.view(np.int64) if column.dtype.kind in "mM" else column

    def _check_type(self, field: pa.Field, given: pa.DataType) -> None:
        if given != field.type:
            raise InvalidArgument(f"column '{field.name}' of stream '{self.name}' is {field.type}, not {given}")

    def _one_batch(self, data: Any) -> pa.RecordBatch:
        """The rows of a batch, a table or a foreign object, which must be those of the stream."""
        wanted = self._schema
        assert wanted is not None
        try:
            if not isinstance(data, pa.RecordBatch | pa.Table):
                if hasattr(data, "__arrow_c_array__"):
                    data = columns.batch_of_structs(pa.array(data))
                elif hasattr(data, "__arrow_c_stream__"):
                    data = pa.table(data)
                else:
                    kind = type(data).__name__
                    raise InvalidArgument(f"cannot offload a {kind}: want a dict of arrays, a batch or a table")
            if data.schema != wanted:
                self._check_schema(data)
            if isinstance(data, pa.Table):
                batches = data.combine_chunks().to_batches()
                if len(batches) > 1:
                    raise InvalidArgument("the table's chunks do not fit into one batch: offload them one by one")
                data = batches[0] if batches else columns.no_rows(wanted)
        except (pa.ArrowException, TypeError) as error:
            raise InvalidArgument(f"stream '{self.name}': {error}") from None
        return data

    def _check_schema(self, data: pa.RecordBatch | pa.Table) -> None:
        """Names and types are the stream's; what is nullable may differ as long as there are no nulls."""
        wanted = self._schema
        assert wanted is not None
        self._check_names(data.schema.names)
        for field, column in zip(wanted, data.columns, strict=True):
            self._check_type(field, column.type)
            if not field.nullable and column.null_count != 0:
                raise InvalidArgument(
                    f"column '{field.name}' of stream '{self.name}' is not nullable, and has {column.null_count} nulls"
                )


class Session:
    """One application process and one agent.

    agent: "auto" ($WHERRY_AGENT, else the running agent, else an embedded one), "embedded", the path of a session file,
        or "host:port" with `token`.
    transport: "auto", "shm", "tcp" or "rdma"; one that is named and cannot be had raises Unsupported.
    connect_timeout: seconds. max_tickets: offloads in flight, a power of two up to 4096.
    embedded_budget: bytes of memory for frames; embedded_core: -1 for a spare one.
    """

    def __init__(
        self,
        agent: str | os.PathLike[str] = "auto",
        token: str = "",
        name: str = "",
        transport: str = "auto",
        connect_timeout: float = 10.0,
        max_tickets: int = 256,
        embedded_budget: int = 1 << 30,
        embedded_core: int = -1,
        embedded_flight: bool = True,
        embedded_args: Sequence[str] = (),
    ) -> None:
        where = arguments.path("agent", agent)
        program = ""
        if where == "embedded" or (where == "auto" and os.environ.get("WHERRY_AGENT", "") in ("", "embedded")):
            with suppress(NotFound):  # if one is needed after all, the C++ side says what is missing
                program = str(wherryd())
        core = _core.open_session(
            where,
            arguments.text("token", token),
            arguments.text("name", name),
            arguments.text("transport", transport),
            arguments.seconds("connect_timeout", connect_timeout, 0),
            arguments.number("max_tickets", max_tickets, 1, 4096),
            arguments.number("embedded_budget", embedded_budget, 1, arguments.U64),
            arguments.number("embedded_core", embedded_core, -1, (1 << 31) - 1),
            bool(embedded_flight),
            arguments.text("the path of wherryd", program),
            arguments.texts("embedded_args", embedded_args),
        )
        self._open: tuple[_core.Session, _InFlight] | None = (core, _InFlight(core))
        self._streams: weakref.WeakSet[Stream] = weakref.WeakSet()

    @property
    def _live(self) -> _core.Session:
        if self._open is None:
            raise FailedPrecondition("the session was closed")
        return self._open[0]

    @property
    def info(self) -> _core.SessionInfo:
        """What the agent is and what the one-sidedness self-test found; str(info) is one line."""
        return self._live.info

    def stream(
        self,
        name: str,
        schema: Any = None,
        strategy: str = "ipc",
        keep_frames: int = 16,
        keep_bytes: int = 0,
        when_full: str = "evict",
        sink_dir: str | os.PathLike[str] | None = None,
        sink_format: str | None = None,
        announce: Sequence[int] = (),
    ) -> Stream:
        """Opens a stream for writing.

        schema: a pyarrow.Schema or the data of a first frame (see `wherry.schema_of`); None with strategy "raw".
        strategy: "raw", "arrays", "record_batch", "ipc", "ipc_page_aligned" or "c_abi".
        keep_frames, keep_bytes: what the agent keeps (0: no limit of that kind). when_full: "evict" drops the oldest
            frame, "wait" only frames that somebody has read: nothing is lost, and offloads wait instead.
        sink_dir, sink_format: write every frame as an "arrow" or "parquet" file into a directory of the agent's.
        announce: sizes, in bytes, of the offloads to come; memory for them is prepared now.

        Raises AlreadyExists, InvalidArgument, Unsupported (a type that Wherry does not move, by name), Unavailable.
        """
        core = self._live
        if (sink_dir is None) != (sink_format is None):
            raise InvalidArgument("sink_dir and sink_format go together: give both or none")
        arrow: pa.Schema | None = None
        if strategy == "raw":
            if schema is not None:
                raise InvalidArgument("a raw stream has no schema: its buffers are moved as they are")
        elif schema is None:
            raise InvalidArgument("a stream needs a schema, or the data of a first frame to take it from")
        else:
            arrow = columns.schema_of(schema)
        opened = core.open_stream(
            arguments.text("name", name),
            None if arrow is None else arrow.__arrow_c_schema__(),
            arguments.text("strategy", strategy),
            arguments.number("keep_frames", keep_frames, 0, arguments.U64),
            arguments.number("keep_bytes", keep_bytes, 0, arguments.U64),
            arguments.text("when_full", when_full),
            "" if sink_dir is None else arguments.path("sink_dir", sink_dir),
            arguments.text("sink_format", sink_format or ""),
            arguments.numbers("announce", announce, 0, arguments.U64),
        )
        assert self._open is not None
        stream = Stream(opened, arrow, self._open[1])
        self._streams.add(stream)
        return stream

    def empty(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike = np.float64) -> np.ndarray[Any, Any]:
        """A zeroed array in memory that Wherry allocated: registered, page-aligned, mapped by an agent on this
        machine."""
        try:
            kind = np.dtype(dtype)
        except TypeError as error:
            raise InvalidArgument(f"dtype is {dtype!r}: {error}") from None
        if kind.hasobject or kind.itemsize == 0:
            raise InvalidArgument(f"numpy's {kind} has no fixed size in memory")
        dims = tuple(arguments.numbers("shape", shape if isinstance(shape, tuple | list) else (shape,), 0, _MOST_BYTES))
        count = math.prod(dims)
        if count * kind.itemsize > _MOST_BYTES:
            raise InvalidArgument(f"shape is {dims}: {count * kind.itemsize} bytes of {kind}, want at most 2**63 - 1")
        memory = self._live.allocate(max(1, count * kind.itemsize))
        array: np.ndarray[Any, Any] = memory.array()[: count * kind.itemsize].view(kind).reshape(dims)
        return array

    def register(self, array: np.ndarray[Any, Any]) -> _core.Region:
        """Registers an array's memory once, for all offloads of it or of parts of it; the region keeps the array alive.

        Its unregister() raises FailedPrecondition while offloads that read it are in flight.
        """
        if not isinstance(array, np.ndarray):
            raise InvalidArgument(f"array is a {type(array).__name__}: want a numpy array")
        if not array.flags.c_contiguous:
            raise InvalidArgument("only C-contiguous arrays can be registered")
        if array.dtype.hasobject:
            raise InvalidArgument("arrays of Python objects have no bytes to move")
        return self._live.register(array.reshape(-1).view(np.uint8))

    def in_flight(self) -> int:
        """Offloads posted and not complete."""
        return self._live.in_flight()

    def drain(self, timeout: float | None = None) -> None:
        """Waits until nothing is in flight; raises the first failure that no ticket's wait() has shown."""
        self._live.drain(_time_limit(timeout))

    def close(self, timeout: float = 10.0) -> None:
        """Waits for offloads in flight, closes the session's streams, and leaves the agent; an embedded one ends.

        Raises the first failure that no ticket's wait() has shown; DeadlineExceeded if offloads were still in flight
        after `timeout` seconds, which are cancelled. The session is closed either way. Idempotent.
        Tickets keep their outcome, and arrays of empty() their memory; streams raise FailedPrecondition.
        """
        timeout = arguments.seconds("timeout", timeout)
        if self._open is None:
            return
        (core, in_flight), self._open = self._open, None
        try:
            core.drain(timeout)
            for stream in list(self._streams):
                stream.close()
        finally:
            for stream in list(self._streams):
                with suppress(Error):
                    stream.close()
            core.leave()
            in_flight.forget_finished()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
            return
        with suppress(Error):  # what went wrong first is what the caller hears of
            self.close(timeout=2.0)
