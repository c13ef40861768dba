# SPDX-License-Identifier: Apache-2.0
"""Presents a dataset's frames as Dask partitions. Each worker reads its partitions directly from the agents that hold
them.

A partition is one frame, or one part of a frame, at one agent. A worker gets the path of the agent's session file, a
sequence number and the request for the frame. It reads the token from the session file, so the file must have that path
on every worker's machine.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from wherry.errors import Error, InvalidArgument, NotFound, Unsupported
from wherry.move.connection import locate
from wherry.move.flight import flight_client, flight_frames

if TYPE_CHECKING:
    import dask.dataframe as dd
    import pandas as pd
    from dask.delayed import Delayed


@dataclass(frozen=True, slots=True)
class Request:
    """The columns and the filter that apply to every frame. A request contains no secret and can be pickled."""

    stream: str
    wanted: bytes
    """The schema of the requested columns, in Arrow's IPC format. It is not a pickle, because pyarrow's pickle of a
    fixed-size list loses whether its items can be null."""
    filter: Any
    """The filter in the form for agents (predicate.to_wire). None: all rows."""
    compression: str | None

    @staticmethod
    def make(stream: str, schema: pa.Schema, filter: Any, compression: str | None) -> Request:
        """The request for the columns of `schema`."""
        return Request(stream, bytes(schema.serialize().to_pybytes()), filter, compression)

    @property
    def schema(self) -> pa.Schema:
        """The schema that `wanted` contains."""
        return pa.ipc.read_schema(pa.py_buffer(self.wanted))


@dataclass(frozen=True, slots=True)
class Partition:
    """One frame, or one of its parts, at one agent."""

    session_file: str
    """The absolute path of the agent's session file."""
    sequence: int
    tag: int
    part: int | None
    """The number of the part. None: the stream has no parts."""
    rows: int
    """The rows of the frame or the part, before the filter."""
    pid: int
    """The process id of the agent."""
    generation: int
    """The generation of the stream: the agent counts opened streams."""


def read(partition: Partition, request: Request) -> pa.Table:
    """Reads the rows of a partition from its agent. Any process and any thread may call this.

    Raises NotFound if the agent no longer holds the frame, also if a new stream of that name has replaced the stream.
    Raises the errors of flight_frames and locate.
    """
    session = locate(partition.session_file)
    anew = f"stream {request.stream!r} was opened anew at the agent of {partition.session_file}"
    if session.pid != partition.pid:
        raise NotFound(f"{anew}, which was started anew itself")
    client, options = flight_client(session)
    schema = request.schema
    with client:
        batches = []
        for about, batch in flight_frames(
            client,
            options,
            request.stream,
            follow=False,
            from_sequence=partition.sequence,
            count=1,
            part=partition.part,
            columns=schema.names,
            filter=request.filter,
            tag=partition.tag,
            compression=request.compression,
        ):
            if about["sequence"] != partition.sequence:
                break
            if about["generation"] != partition.generation or not batch.schema.equals(schema):
                raise NotFound(anew)
            batches.append(batch)
    if not batches:
        raise NotFound(
            f"the agent of {partition.session_file} no longer holds frame {partition.sequence} of "
            f"{request.stream!r} (tag {partition.tag})"
        )
    return pa.Table.from_batches(batches, schema)


def to_delayed(partitions: Sequence[Partition], request: Request) -> list[Delayed]:
    """A dask.delayed pyarrow.Table for each partition. Raises Unsupported without Dask."""
    try:
        import dask
    except ImportError as error:
        raise _missing(error) from None
    load = dask.delayed(read, pure=True)
    return [load(partition, request) for partition in partitions]


def to_dataframe(partitions: Sequence[Partition], request: Request, tag: str | None) -> dd.DataFrame:
    """A dask.dataframe of these partitions. Raises Unsupported without Dask or pandas; InvalidArgument if two columns
    would have the same name."""
    try:
        import dask.dataframe as dd
    except ImportError as error:
        raise _missing(error) from None
    schema = request.schema
    columns = flat_columns(schema)
    if tag is not None:
        if any(column.name == tag for column in columns):
            raise InvalidArgument(f"the stream has a column {tag!r}: name the column of the tags with tag=..., or None")
        columns = [FlatColumn(tag, None, None), *columns]
    empty = pa.table([pa.chunked_array([], type=field.type) for field in schema], schema=schema)
    meta = _frame(empty, columns, 0)
    if not partitions:
        return dd.from_pandas(meta, npartitions=1)
    load = functools.partial(_pandas, request=request, flat=tuple(columns))
    return dd.from_map(load, list(partitions), meta=meta, label="wherry")


def _missing(error: ImportError) -> Unsupported:
    return Unsupported(f"this needs Dask ({error}): pip install 'wherry[dask]'")


@dataclass(frozen=True, slots=True)
class FlatColumn:
    """A column of the data frame: a column of the stream, or one component of it."""

    name: str
    source: str | None
    """The stream's column. None: the frame's tag."""
    component: int | None
    """The index of the component in a fixed-size list. None: the whole column."""


def flat_columns(schema: pa.Schema) -> list[FlatColumn]:
    """The columns of the data frame. pandas has no vectors, so a column v of fixed-size lists of k numbers becomes v_0
    to v_(k-1), if v cannot be null.

    Raises InvalidArgument if two columns would have the same name.
    """
    flat: list[FlatColumn] = []
    for field in schema:
        if _is_vector(field):
            flat += [FlatColumn(f"{field.name}_{i}", field.name, i) for i in range(field.type.list_size)]
        else:
            flat.append(FlatColumn(field.name, field.name, None))
    names = [column.name for column in flat]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise InvalidArgument(
            f"two columns would be named {min(twice)!r}: a vector column v becomes v_0, v_1, ...; choose columns, or "
            "use to_delayed()"
        )
    return flat


def _is_vector(field: pa.Field) -> bool:
    kind = field.type
    return bool(pa.types.is_fixed_size_list(kind) and not field.nullable and _is_number(kind.value_type))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _pandas(
    partition: Partition, request: Request, flat: Sequence[FlatColumn], columns: list[str] | None = None
) -> pd.DataFrame:
    """A partition as a data frame. columns: those that Dask needs. The agent sends only these."""
    if columns is not None:
        by_name = {column.name: column for column in flat}
        flat = [by_name[name] for name in columns]
    schema = request.schema
    sources = list(dict.fromkeys(column.source for column in flat if column.source is not None))
    if not sources and request.filter is not None:
        sources = schema.names[:1]  # read one column, only for the number of filtered rows
    if not sources:
        return _frame(None, flat, partition.tag, partition.rows)
    chosen = pa.schema([schema.field(name) for name in sources])
    wanted = Request.make(request.stream, chosen, request.filter, request.compression)
    return _frame(read(partition, wanted), flat, partition.tag)


def _frame(table: pa.Table | None, flat: Sequence[FlatColumn], tag: int, rows: int | None = None) -> pd.DataFrame:
    import pandas as pd

    if table is not None:
        rows = table.num_rows
    data: dict[str, Any] = {}
    for column in flat:
        if column.source is None or table is None:
            data[column.name] = np.full(rows or 0, tag, dtype=np.uint64)
        elif column.component is not None:
            data[column.name] = _vectors(table, column.source)[:, column.component]
        else:
            data[column.name] = _series_data(table.schema.field(column.source), table[column.source])
    return pd.DataFrame(data, index=pd.RangeIndex(rows or 0))


def _vectors(table: pa.Table, name: str) -> np.ndarray[Any, Any]:
    """A vector column as an array (rows, k). A null component becomes NaN, as in pandas. Raises Error for nulls in
    integers."""
    numbers = table[name].combine_chunks().flatten()
    if numbers.null_count and pa.types.is_integer(numbers.type):
        raise Error(f"column {name!r} has vectors of integers with nulls, which pandas cannot hold: use to_delayed()")
    values: np.ndarray[Any, Any] = numbers.to_numpy(zero_copy_only=False)
    return values.reshape(-1, table.schema.field(name).type.list_size)


def _series_data(field: pa.Field, column: pa.ChunkedArray) -> Any:
    """A column's data for pandas: numbers that cannot be null have NumPy types; all others keep Arrow's types, which do
    not depend on the values."""
    import pandas as pd

    if _is_number(field.type) and not field.nullable:
        return column.to_numpy()
    return pd.arrays.ArrowExtensionArray(column)
