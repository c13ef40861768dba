# SPDX-License-Identifier: Apache-2.0
"""Streams open for writing."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa

import wherry._native._core as _core
from wherry import arguments
from wherry.errors import InvalidArgument
from wherry.move import columns
from wherry.move.ticket import InFlight, Ticket, time_to_give_up

_BUFFERS = bytes | bytearray | memoryview


def _named(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "none"


class Stream:
    """A stream that is open for writing. `Session.stream` makes it.

    close(), or the end of a `with` block, ends the stream for its readers. Frames that the agent keeps stay readable.
    Any thread may use a stream; calls run one at a time.
    """

    def __init__(self, core: _core.Stream, schema: pa.Schema | None, in_flight: InFlight) -> None:
        self._core = core
        self._schema = schema
        self._in_flight = in_flight
        self._turn = threading.Lock()  # other threads can run while an offload waits for a ticket

    @property
    def name(self) -> str:
        """The stream's name on the agent."""
        return self._core.name

    @property
    def schema(self) -> pa.Schema | None:
        """The stream's Arrow schema. None for a raw stream."""
        return self._schema

    def offload(self, data: Any, tag: int = 0, deadline: float | None = None, timeout: float = 0.0) -> Ticket:
        """Hands one batch of rows to the agent and returns at once.

        data: a dict of numpy arrays (n,) or (n, k) and Arrow arrays, in the order of the schema; a RecordBatch, a
            Table, or anything with __arrow_c_array__ or __arrow_c_stream__; for a raw stream a list of numpy arrays or
            buffers.
        tag: the application's own number for this frame, such as a time step: 0 to 2**64 - 1. Readers see the tag.
        deadline: seconds, more than 0, after which the agent cancels the offload (Cancelled).
        timeout: seconds to wait if the session's limit of offloads in flight is reached.

        C-contiguous arrays are moved without a copy on the host. The call first copies: arrays with other strides or
        the other byte order; numpy's booleans, strings, days (datetime64[D]) and masked arrays, which Arrow stores
        differently; tables and chunked arrays of several chunks. A NaT of a unit other than days arrives as the number
        -2**63, not as null. If readers need nulls, offload pyarrow.array(x). Raises WouldBlock, InvalidArgument,
        Unsupported, Unavailable.
        """
        self._in_flight.forget_finished()
        options = (
            arguments.number("tag", tag, 0, arguments.U64),
            0.0 if deadline is None else time_to_give_up(deadline),
            arguments.seconds("timeout", timeout),
        )
        sources: Any
        if self._schema is None:
            sources = self._raw_buffers(data)
            with self._turn:
                core = self._core.post_raw(sources, *options)
        elif isinstance(data, Mapping):
            sources = self._columns(data)
            given = [v if isinstance(v, np.ndarray) else v.__arrow_c_array__() for v in sources]
            with self._turn:
                core = self._core.post(given, *options)
        else:
            sources = self._one_batch(data)
            with self._turn:
                core = self._core.post_batch(sources.__arrow_c_array__()[1], *options)
        ticket = Ticket(core, sources)
        self._in_flight.add(ticket)
        return ticket

    def bind(self, data: Any) -> Step:
        """Checks the columns once, for posts that do not name them again: `step = bind(data); step.post(tag)`.

        data: see offload(). bind() refuses columns that offload() would copy or convert, because later posts would not
            see changes: arrays with other strides or the other byte order; numpy's booleans, strings, days and masked
            arrays (bind an Arrow array instead); lists; tables of several chunks. Unregistered memory is registered
            until the step is released. Raises InvalidArgument, Unsupported, FailedPrecondition, Unavailable.
        """
        self._in_flight.forget_finished()
        sources: Any
        if self._schema is None:
            sources = self._raw_buffers(data)
            for number, (given, taken) in enumerate(zip(data, sources, strict=True)):
                columns.check_in_place(f"buffer {number}", given, taken)
            with self._turn:
                core = self._core.bind_raw(sources)
        elif isinstance(data, Mapping):
            sources = self._columns(data)
            for field, taken in zip(self._schema, sources, strict=True):
                columns.check_in_place(f"column '{field.name}'", data[field.name], taken)
            given = [v if isinstance(v, np.ndarray) else v.__arrow_c_array__() for v in sources]
            with self._turn:
                core = self._core.bind(given)
        else:
            if isinstance(data, pa.Table) and any(column.num_chunks > 1 for column in data.columns):
                raise InvalidArgument("the table has several chunks: bind combine_chunks() of it")
            sources = self._one_batch(data)
            with self._turn:
                core = self._core.bind_batch(sources.__arrow_c_array__()[1])
        return Step(core, sources, self._in_flight, self._turn)

    def close(self) -> None:
        """Ends the stream when its offloads are complete. Readers that follow the stream see the end."""
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

    def _columns(self, data: Mapping[str, Any]) -> list[np.ndarray[Any, Any] | pa.Array]:
        assert self._schema is not None
        self._check_names(list(data))
        return [self._column(field, data[field.name]) for field in self._schema]

    def _column(self, field: pa.Field, value: Any) -> np.ndarray[Any, Any] | pa.Array:
        """`value` as an array of the type of `field`. Raises InvalidArgument if the type does not fit."""
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
        """The rows of a batch, a table or another Arrow object, as one batch. They must match the stream's schema."""
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
        """Checks that names and types match the stream's schema. Nullability may differ if there are no nulls."""
        wanted = self._schema
        assert wanted is not None
        self._check_names(data.schema.names)
        for field, column in zip(wanted, data.columns, strict=True):
            self._check_type(field, column.type)
            if not field.nullable and column.null_count != 0:
                raise InvalidArgument(
                    f"column '{field.name}' of stream '{self.name}' is not nullable, and has {column.null_count} nulls"
                )


class Step:
    """A set of arrays that is posted repeatedly. `Stream.bind` makes it. A post costs the same for any number of
    columns.

    The step keeps the arrays alive. Change the values of an array, but do not resize it: its memory must stay the same.
    While the step exists, numpy refuses `resize()`, except with refcheck=False. If an array's memory was unmapped, the
    ticket fails (SourceFault). If the memory was reused, its new content is posted.
    """

    __slots__ = ("_core", "_in_flight", "_post", "_sources", "_turn")

    def __init__(self, core: _core.Step, sources: Any, in_flight: InFlight, turn: threading.Lock) -> None:
        self._core = core
        self._post = core.post
        self._sources = sources
        self._in_flight = in_flight
        self._turn = turn  # the stream's lock

    def post(self, tag: int = 0, deadline: float | None = None, timeout: float = 0.0) -> Ticket:
        """Hands the arrays with their current values to the agent and returns at once. tag, deadline, timeout and
        errors: see `Stream.offload`.

        Earlier posts may still be in flight, because each post is a separate frame. Change values only when the latest
        ticket is ready. Raises FailedPrecondition if the stream or the session is closed, or if the step was released.
        """
        self._in_flight.forget_finished()
        limit = 0.0
        if deadline is not None:
            limit = time_to_give_up(deadline)
        try:
            with self._turn:
                core = self._post(tag, limit, timeout)
        except TypeError:  # another type of number, such as numpy's, or not a number
            tag = arguments.number("tag", tag, 0, arguments.U64)
            timeout = arguments.seconds("timeout", timeout)
            with self._turn:
                core = self._post(tag, limit, timeout)
        ticket = Ticket(core, self._sources)
        self._in_flight.add(ticket)
        return ticket

    def in_flight(self) -> int:
        """The number of posts of this step that are not complete."""
        return self._core.in_flight()

    def release(self) -> None:
        """Ends the step and releases the arrays. The agent may read the arrays until the tickets are ready.
        Idempotent."""
        with self._turn:
            self._core.release()
        self._sources = None

    def __enter__(self) -> Step:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
