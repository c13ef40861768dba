# SPDX-License-Identifier: Apache-2.0
"""Sessions, streams and tickets: offloading from Python.

    import numpy as np, wherry

    with wherry.Session() as session:
        x = session.empty((100_000, 3), np.float64)      # or any array of one's own
        stream = session.stream("particles", {"x": x})
        ticket = stream.offload({"x": x}, tag=0)         # returns in microseconds; do not change x yet
        ...                                              # compute on
        ticket.wait()                                    # x is free again
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wherry import _core
from wherry.errors import InvalidArgument

_FOREVER = math.inf


class Ticket:
    """A posted offload. The sources stay referenced, and must stay unchanged, until it is ready."""

    __slots__ = ("_core", "_sources")

    def __init__(self, core: Any, sources: Any) -> None:
        self._core = core
        self._sources = sources

    def ready(self) -> bool:
        """Whether the sources may be changed (or the offload failed). No system call."""
        done: bool = self._core.ready()
        if done:
            self._sources = None
        return done

    def wait(self, timeout: float | None = None) -> None:
        """Blocks until the sources may be changed, `timeout` seconds at most (None: for as long as the agent lives).

        Raises what became of the offload: SourceFault, ResourceExhausted, DeadlineExceeded, Unavailable, ...
        """
        self._core.wait(_FOREVER if timeout is None else timeout)
        self._sources = None

    @property
    def transfer_ns(self) -> int:
        """Nanoseconds from the first get to the last byte in place, on the agent's clock. After success."""
        return int(self._core.transfer_ns)

    @property
    def sequence(self) -> int:
        """The frame's number in its stream. After success."""
        return int(self._core.sequence)


def _as_arrow_or_numpy(name: str, value: Any) -> Any:
    """What the C++ side takes without a copy where that is possible: a C-contiguous numpy array or Arrow capsules."""
    if isinstance(value, pa.ChunkedArray):
        value = value.combine_chunks() if value.num_chunks != 1 else value.chunk(0)
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "mM":
            return np.ascontiguousarray(value).view(np.int64)
        if value.dtype == np.bool_ or value.dtype.kind in "OSU":
            # Arrow packs booleans into bits and strings into one buffer: the host has to convert these.
            return pa.array(value)
        if value.dtype.kind not in "iuf":
            raise InvalidArgument(f"column '{name}': no Arrow type for numpy's {value.dtype}")
        return np.ascontiguousarray(value)
    if hasattr(value, "__arrow_c_array__"):
        return value
    if isinstance(value, list | tuple):
        return pa.array(value)
    raise InvalidArgument(f"column '{name}': a {type(value).__name__} is neither a numpy array nor an Arrow array")


def _arrow_type(name: str, value: Any) -> pa.DataType:
    value = value if isinstance(value, np.ndarray) else _as_arrow_or_numpy(name, value)
    if not isinstance(value, np.ndarray):
        return value.type if isinstance(value, pa.Array) else pa.array(value).type
    if value.ndim not in (1, 2):
        raise InvalidArgument(f"column '{name}': {value.ndim} dimensions; want (rows,) or (rows, values per row)")
    kind = pa.string() if value.dtype.kind in "OSU" else pa.from_numpy_dtype(value.dtype)
    return kind if value.ndim == 1 else pa.list_(kind, value.shape[1])


def schema_of(data: Any) -> pa.Schema:
    """The Arrow schema of anything that `Stream.offload` takes, or that is a schema itself.

    numpy (n,) becomes a plain column, (n, k) a fixed-size list of k.
    """
    if isinstance(data, pa.Schema):
        return data
    if isinstance(data, Mapping):
        return pa.schema([pa.field(name, _arrow_type(name, value), nullable=not isinstance(value, np.ndarray)) for name, value in data.items()])
    if hasattr(data, "schema") and isinstance(data.schema, pa.Schema):
        return data.schema
    if hasattr(data, "__arrow_c_schema__"):
        return pa.schema(data)
    raise InvalidArgument(f"a {type(data).__name__} is no schema: want a pyarrow.Schema, a dict of arrays, a batch or a table")


class Stream:
    """A stream open for writing. One thread at a time."""

    def __init__(self, core: Any, schema: pa.Schema | None) -> None:
        self._core = core
        self._schema = schema
        self._held: dict[int, Ticket] = {}
        self._counter = itertools.count()

    @property
    def name(self) -> str:
        """Its name on the agent."""
        return str(self._core.name)

    @property
    def schema(self) -> pa.Schema | None:
        """Its Arrow schema; None for a raw stream."""
        return self._schema

    def offload(self, data: Any, tag: int = 0, deadline: float | None = None, timeout: float = 0.0) -> Ticket:
        """Hands one batch of rows to the agent and returns at once.

        data: a dict of numpy arrays (n,) or (n, k) and Arrow arrays, a RecordBatch, a Table, or anything with
            __arrow_c_array__; for a raw stream a list of numpy arrays or buffers.
        tag: the application's own number for this frame (a time step); readers see it.
        deadline: seconds after which the agent gives up.
        timeout: seconds to wait when as many offloads are in flight as the session allows.

        C-contiguous arrays are moved without a copy on the host. Copied first: arrays with other strides, booleans and
        strings of numpy (Arrow stores them differently), tables and chunked arrays of several chunks.
        Raises WouldBlock, InvalidArgument, Unavailable.
        """
        self._forget_finished()
        limit = 0.0 if deadline is None else deadline
        sources: Any
        if self._schema is None:
            sources = [np.ascontiguousarray(np.frombuffer(b, np.uint8) if not isinstance(b, np.ndarray) else b) for b in data]
            core = self._core.post_raw([b.reshape(-1).view(np.uint8) for b in sources], tag, limit, timeout)
        elif isinstance(data, Mapping):
            if list(data) != self._schema.names:
                raise InvalidArgument(f"stream '{self.name}' has columns {self._schema.names}, not {list(data)}")
            values = [_as_arrow_or_numpy(name, value) for name, value in data.items()]
            columns = [v if isinstance(v, np.ndarray) else v.__arrow_c_array__() for v in values]
            sources = (values, columns)
            core = self._core.post(columns, tag, limit, timeout)
        else:
            if isinstance(data, pa.Table):
                batches = data.combine_chunks().to_batches()
                data = batches[0] if batches else pa.RecordBatch.from_pylist([], schema=data.schema)
            if not hasattr(data, "__arrow_c_array__"):
                raise InvalidArgument(f"cannot offload a {type(data).__name__}: want a dict of arrays, a batch or a table")
            capsules = data.__arrow_c_array__()
            if hasattr(data, "schema") and data.schema != self._schema:
                raise InvalidArgument(f"stream '{self.name}' has schema\n{self._schema}\nnot\n{data.schema}")
            sources = (data, capsules)
            core = self._core.post_batch(capsules[1], tag, limit, timeout)
        ticket = Ticket(core, sources)
        self._held[next(self._counter)] = ticket
        return ticket

    def _forget_finished(self) -> None:
        """Drops the references to sources that are free, oldest first."""
        while self._held:
            first = next(iter(self._held))
            if not self._held[first].ready():
                return
            del self._held[first]

    def close(self) -> None:
        """Ends the stream once its offloads are done; readers that follow it see the end."""
        self._core.close()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


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
        agent: str = "auto",
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
        from wherry import _paths

        if not any("WHERRY_WHERRYD" == key for key in __import__("os").environ):
            __import__("os").environ["WHERRY_WHERRYD"] = str(_paths.wherryd())
        self._core: Any = _core.open_session(
            str(agent), token, name, transport, connect_timeout, max_tickets, embedded_budget, embedded_core, embedded_flight, list(embedded_args)
        )

    @property
    def info(self) -> Any:
        """What the agent is and what the one-sidedness self-test found; str(info) is one line."""
        return self._core.info

    def stream(
        self,
        name: str,
        schema: Any = None,
        strategy: str = "ipc",
        keep_frames: int = 16,
        keep_bytes: int = 0,
        when_full: str = "evict",
        sink_dir: str | None = None,
        sink_format: str | None = None,
        announce: Sequence[int] = (),
    ) -> Stream:
        """Opens a stream for writing.

        schema: a pyarrow.Schema or the data of a first frame (see `schema_of`); None with strategy "raw".
        strategy: "raw", "arrays", "record_batch", "ipc", "ipc_page_aligned" or "c_abi".
        keep_frames, keep_bytes: what the agent keeps (0: no limit of that kind). when_full: "evict" drops the oldest
            frame, "wait" only frames that somebody has read: nothing is lost, and offloads wait instead.
        sink_dir, sink_format: write every frame as an "arrow" or "parquet" file into a directory of the agent's.
        announce: sizes, in bytes, of the offloads to come; memory for them is prepared now.
        """
        if strategy == "raw":
            return Stream(self._core.open_stream(name, None, strategy, keep_frames, keep_bytes, when_full, sink_dir or "", sink_format or "", list(announce)), None)
        if schema is None:
            raise InvalidArgument("a stream needs a schema, or the data of a first frame to take it from")
        arrow = schema_of(schema)
        capsule = arrow.__arrow_c_schema__()
        core = self._core.open_stream(name, capsule, strategy, keep_frames, keep_bytes, when_full, sink_dir or "", sink_format or "", list(announce))
        return Stream(core, arrow)

    def empty(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike = np.float64) -> np.ndarray[Any, Any]:
        """A zeroed array in memory that Wherry allocated: registered, page-aligned, mapped by an agent on this machine."""
        kind = np.dtype(dtype)
        dims = (shape,) if isinstance(shape, int) else tuple(shape)
        count = math.prod(dims)
        memory = self._core.allocate(max(1, count * kind.itemsize))
        array: np.ndarray[Any, Any] = memory.array()[: count * kind.itemsize].view(kind).reshape(dims)
        return array

    def register(self, array: np.ndarray[Any, Any]) -> Any:
        """Registers an array's memory once, for all offloads of it or of parts of it; the region keeps the array alive."""
        if not array.flags.c_contiguous:
            raise InvalidArgument("only C-contiguous arrays can be registered")
        return self._core.register(array.reshape(-1).view(np.uint8))

    def in_flight(self) -> int:
        """Offloads posted and not complete."""
        return int(self._core.in_flight())

    def drain(self, timeout: float | None = None) -> None:
        """Waits until nothing is in flight; raises the first failure that no ticket's wait() has shown."""
        self._core.drain(_FOREVER if timeout is None else timeout)

    def close(self) -> None:
        """Leaves the agent; an embedded one drains and ends once streams, tickets and arrays of this session are gone."""
        self._core = None

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
