# SPDX-License-Identifier: Apache-2.0
"""Measures what it costs a host to serialise its own arrays as Arrow IPC: the baseline of Wherry's jobs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from melt import Columns


def schema_of(columns: Columns) -> pa.Schema:
    """(n,) arrays as primitive fields, (n, k) arrays as fixed-size lists of k; no nulls."""
    fields = []
    for name, values in columns.items():
        kind = pa.from_numpy_dtype(values.dtype)
        if values.ndim == 2:
            kind = pa.list_(pa.field("item", kind, nullable=False), values.shape[1])
        fields.append(pa.field(name, kind, nullable=False))
    return pa.schema(fields)


class HostSerialisation:
    """What it costs a host to serialise one frame in memory, as an Arrow IPC stream. Two baselines."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._buffer: pa.Buffer | None = None

    def convert_and_write(self, columns: Columns) -> int:
        """Nanoseconds, the paper's way (Table I): copy into Arrow arrays, dummy write for the size, allocate, write."""
        start = time.perf_counter_ns()
        batch = self._batch(columns, self._copied)
        self._write(batch, pa.allocate_buffer(self._size(batch)))
        return time.perf_counter_ns() - start

    def wrap_and_write(self, columns: Columns) -> int:
        """Nanoseconds, the best way: wrap the arrays without a copy, write into a buffer that is reused."""
        if self._buffer is None:
            self._buffer = pa.allocate_buffer(self._size(self._batch(columns, pa.py_buffer)))
            self._write(self._batch(columns, pa.py_buffer), self._buffer)  # touch its pages
        start = time.perf_counter_ns()
        self._write(self._batch(columns, pa.py_buffer), self._buffer)
        return time.perf_counter_ns() - start

    @staticmethod
    def _copied(values: np.ndarray[Any, np.dtype[Any]]) -> pa.Buffer:
        """Costs what NumericBuilder.AppendValues and Finish cost: one copy, into memory of Arrow's pool."""
        buffer = pa.allocate_buffer(values.nbytes)
        np.copyto(np.frombuffer(buffer, dtype=values.dtype), values)
        return buffer

    def _batch(self, columns: Columns, to_buffer: Callable[[Any], pa.Buffer]) -> pa.RecordBatch:
        arrays = []
        for (name, values), column in zip(columns.items(), self._schema, strict=True):
            kind = column.type
            flat = values.reshape(-1)
            item = kind.value_type if values.ndim == 2 else kind
            array = pa.Array.from_buffers(item, len(flat), [None, to_buffer(flat)], null_count=0)
            if values.ndim == 2:
                array = pa.FixedSizeListArray.from_arrays(array, type=kind)
            if column.name != name:
                raise ValueError(f"column {name!r} where the schema has {column.name!r}")
            arrays.append(array)
        return pa.record_batch(arrays, schema=self._schema)

    def _size(self, batch: pa.RecordBatch) -> int:
        sink = pa.MockOutputStream()
        with pa.ipc.new_stream(sink, self._schema) as writer:
            writer.write_batch(batch)
        return int(sink.size())

    def _write(self, batch: pa.RecordBatch, buffer: pa.Buffer) -> None:
        with pa.ipc.new_stream(pa.FixedSizeBufferWriter(buffer), self._schema) as writer:
            writer.write_batch(batch)
