# SPDX-License-Identifier: Apache-2.0
"""Sessions, streams and tickets: offloading from Python.

    import numpy as np, wherry

    with wherry.Session() as session:
        x = session.empty((100_000, 3), np.float64)      # or any array of one's own
        stream = session.stream("particles", {"x": x})
        ticket = stream.offload({"x": x}, tag=0)         # returns in microseconds; do not change x yet
        ...                                              # compute on
        ticket.wait()                                    # x is free again

Any thread may use a session and its objects; calls run one at a time. Other threads run while a call waits, and Ctrl-C
ends the wait. A process that ends without closing its session first waits for offloads in flight, at most 10 s.
"""

from __future__ import annotations

import math
import os
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
from wherry.move import operators as declared
from wherry.move.stream import Stream
from wherry.move.ticket import InFlight, time_limit
from wherry.system import wherryd

_MOST_BYTES = (1 << 63) - 1
_RAW = pa.schema([pa.field("buffer", pa.large_binary(), nullable=False)])  # the schema of raw streams


class Session:
    """A connection between one application process and one agent.

    agent: "auto" ($WHERRY_AGENT, else the running agent, else an embedded one), "embedded", the path of a session file,
        or "host:port" with `token`.
    token: the agent's secret, for "host:port". A session file contains the token.
    name: the name of this session in the agent's status and logs; "": the program's name.
    transport: "auto", "shm", "tcp" or "rdma". Raises Unsupported if the named transport is not available.
    connect_timeout: seconds, including the start of an embedded agent.
    max_tickets: the most offloads in flight, a power of two up to 4096.
    embedded_budget: an embedded agent's memory for frames, in bytes.
    embedded_core: the core that an embedded agent runs on; -1: a spare core.
    embedded_flight: whether an embedded agent serves Arrow Flight.
    embedded_args: further arguments of an embedded agent's command line.

    Any thread may use a session and its objects; calls run one at a time.
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
            with suppress(NotFound):  # if a library is missing and needed, the C++ side reports it
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
        self._open: tuple[_core.Session, InFlight] | None = (core, InFlight(core))
        self._streams: weakref.WeakSet[Stream] = weakref.WeakSet()

    @property
    def _live(self) -> _core.Session:
        if self._open is None:
            raise FailedPrecondition("the session was closed")
        return self._open[0]

    @property
    def info(self) -> _core.SessionInfo:
        """Information about the agent, and the result of the self-test for one-sided gets. str(info) is one line."""
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
        part: int | None = None,
        parts: int | None = None,
        operators: Sequence[Mapping[str, Any]] | None = None,
    ) -> Stream:
        """Opens a stream for writing.

        schema: a pyarrow.Schema or the data of a first frame (see `wherry.schema_of`); None with strategy "raw".
        strategy: "raw", "arrays", "record_batch", "ipc", "ipc_page_aligned" or "c_abi".
        keep_frames, keep_bytes: limits of what the agent keeps; 0: no limit.
        when_full: "evict" drops the oldest frame. "wait" drops only frames that a reader has read: no frame is lost,
            but offloads may have to wait.
        sink_dir, sink_format: write every frame as an "arrow" or "parquet" file into a directory on the
            agent's machine.
        announce: sizes of future offloads in bytes, for which the agent prepares memory now.
        part, parts: several sessions, for example MPI ranks, open the same stream, each with its own part, 0 to
            parts - 1. All other arguments are the same. The offloads of all parts with one tag form a step; the tags of
            a part must increase. Readers see a complete step or nothing. See docs/guide/move.md.
        operators: the derived streams that the agent computes from each frame or step, as a list:
            [{"name": "hot", "steps": [{"filter": pc.field("t") > 400}, {"project": ["id"]}], "compression": "lz4"}].
            Readers open "NAME.hot". Steps: filter, project, sort, aggregate, partition: docs/guide/move-operators.md.

        Raises AlreadyExists, InvalidArgument, Unsupported (names the type that Wherry cannot move), Unavailable.
        """
        core = self._live
        if (sink_dir is None) != (sink_format is None):
            raise InvalidArgument("sink_dir and sink_format go together: give both or none")
        if (part is None) != (parts is None):
            raise InvalidArgument("part and parts go together: give both or none")
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
            0 if part is None else arguments.number("part", part, 0, (1 << 32) - 1),
            0 if parts is None else arguments.number("parts", parts, 1, (1 << 32) - 1),
            "" if not operators else declared.to_wire(operators, _RAW if arrow is None else arrow),
        )
        assert self._open is not None
        stream = Stream(opened, arrow, self._open[1])
        self._streams.add(stream)
        return stream

    def empty(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike = np.float64) -> np.ndarray[Any, Any]:
        """A zeroed array in memory that Wherry allocates: registered, page-aligned, mapped by an agent on this machine.

        shape: rows, or a tuple of dimensions.
        dtype: the numpy type of the values, of fixed size.

        The memory lives as long as the array or a view of it. Raises InvalidArgument.
        """
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
        """Registers the memory of `array` once for all offloads of it or its parts. The region keeps the array alive.

        The region's unregister() raises FailedPrecondition while offloads that read the region are in flight.
        """
        if not isinstance(array, np.ndarray):
            raise InvalidArgument(f"array is a {type(array).__name__}: want a numpy array")
        if not array.flags.c_contiguous:
            raise InvalidArgument("only C-contiguous arrays can be registered")
        if array.dtype.hasobject:
            raise InvalidArgument("arrays of Python objects have no bytes to move")
        return self._live.register(array.reshape(-1).view(np.uint8))

    def in_flight(self) -> int:
        """The number of posted offloads that are not complete."""
        return self._live.in_flight()

    def drain(self, timeout: float | None = None) -> None:
        """Waits until no offload is in flight. Raises the first failure that no ticket's wait() has raised.

        timeout: seconds until DeadlineExceeded is raised; None: no limit.
        """
        self._live.drain(time_limit(timeout))

    def close(self, timeout: float = 10.0) -> None:
        """Waits for offloads in flight, closes the session's streams, and disconnects from the agent. An embedded agent
        ends.

        Raises the first failure that no ticket's wait() has raised; DeadlineExceeded if offloads were still in flight
        after `timeout` seconds, which are then cancelled. The session is closed in any case. Idempotent. Afterwards
        tickets keep their outcome, and arrays of empty() keep their memory; streams raise FailedPrecondition.
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
        with suppress(Error):  # only the first error is raised
            self.close(timeout=2.0)
