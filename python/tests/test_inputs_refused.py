# SPDX-License-Identifier: Apache-2.0
"""Columns, values and options that do not match their stream are refused, except some that only seem not to match."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from inputs import WAIT, Bench

import wherry

pytestmark = pytest.mark.agent


def test_columns_missing_extra_and_in_another_order(bench: Bench) -> None:
    x, y = np.zeros(3), pa.array([1, 2, 3])
    name = bench.name()
    with bench.session.stream(name, {"x": x, "y": y}) as stream:
        for data, message in [
            ({"x": x}, "missing 'y'"),
            ({"x": x, "y": y, "z": x}, "not in the schema 'z'"),
            ({"x": x, "Y": y}, "missing 'y'; not in the schema 'Y'"),
            ({"y": y, "x": x}, "in this order, not 'y', 'x'"),
            ({}, "missing 'x', 'y'"),
        ]:
            with pytest.raises(wherry.InvalidArgument, match=f"stream '{name}' has columns 'x', 'y'.*{message}"):
                stream.offload(data)
            with pytest.raises(wherry.InvalidArgument, match=message):
                stream.offload(pa.table(data) if data else pa.table({}))
        for other, rows in ((y[:2], 2), (pa.array([1, 2, 3, 4]), 4), (np.zeros(0, "i8"), 0)):
            with pytest.raises(
                wherry.InvalidArgument, match=f"column 'y' has {rows} rows where the first column has 3"
            ):
                stream.offload({"x": x, "y": other})
        for thing in (3, "text", object(), [x, y], None):
            with pytest.raises(wherry.InvalidArgument):
                stream.offload(thing)
        for value in (3, "text", np.float64(2), object(), {"a": 1}, None):
            with pytest.raises(wherry.InvalidArgument, match="column 'y'"):
                stream.offload({"x": x, "y": value})
        stream.offload({"x": x, "y": y}).wait(WAIT)
    assert len(bench.read(name)) == 1


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (pa.float64(), np.zeros(3, "f4")),
        (pa.float64(), np.zeros(3, "i8")),
        (pa.float64(), pa.array([1, 2, 3])),
        (pa.float64(), pa.array([1.0, 2.0, 3.0], pa.float32())),
        (pa.int32(), pa.array([1, 2, 3], pa.int64())),
        (pa.int64(), pa.array([1, 2, 3], pa.int8())),
        (pa.int64(), np.zeros(3, "u8")),
        (pa.int64(), np.zeros(3, "M8[ns]")),
        (pa.int8(), np.zeros(3, "bool")),
        (pa.bool_(), np.zeros(3, "u1")),
        (pa.float64(), np.zeros((3, 1))),
        (pa.list_(pa.float64(), 3), np.zeros(3)),
        (pa.list_(pa.float64(), 3), np.zeros((3, 2))),
        (pa.list_(pa.float64(), 3), np.zeros((3, 3), "f4")),
        (pa.list_(pa.float64()), np.zeros((3, 3))),
        (pa.timestamp("ns"), np.zeros(3, "M8[us]")),
        (pa.timestamp("ns"), np.zeros(3, "m8[ns]")),
        (pa.duration("s"), np.zeros(3, "m8[ms]")),
        (pa.date32(), np.zeros(3, "i8")),
        (pa.date64(), np.zeros(3, "M8[D]")),
        (pa.timestamp("s"), np.zeros(3, "M8[D]")),
        (pa.string(), pa.array(["a", "b", "c"], pa.large_string())),
        (pa.string(), pa.array([b"a", b"b", b"c"])),
        (pa.string(), np.zeros(3)),
        (pa.binary(4), pa.array([b"aaa"] * 3, pa.binary(3))),
        (pa.decimal128(10, 2), pa.array([1, 2, 3], pa.decimal128(10, 3))),
        (pa.list_(pa.int32()), pa.array([[1], [2], [3]], pa.list_(pa.int64()))),
        (pa.struct({"a": pa.int8(), "b": pa.int8()}), pa.array([{}] * 3, pa.struct({"b": pa.int8(), "a": pa.int8()}))),
        (pa.string(), pa.array(["a", "b", "a"]).dictionary_encode()),
        (pa.dictionary(pa.int8(), pa.string()), pa.array(["a", "b", "a"]).dictionary_encode()),
        (pa.uuid(), pa.array([b"0123456789abcdef"] * 3, pa.binary(16))),
    ],
)  # fmt: skip
def test_columns_of_another_type_are_refused(bench: Bench, kind: pa.DataType, wrong: Any) -> None:
    with bench.session.stream(bench.name(), pa.schema({"x": kind})) as stream:
        with pytest.raises(wherry.InvalidArgument, match="column 'x'"):
            stream.offload({"x": wrong})
        if isinstance(wrong, pa.Array):
            for whole in (pa.record_batch({"x": wrong}), pa.table({"x": wrong})):
                with pytest.raises(wherry.InvalidArgument, match="column 'x'"):
                    stream.offload(whole)
        assert bench.session.in_flight() == 0


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.timestamp("ns", "UTC"), np.arange(3).astype("M8[ns]")),
        (pa.timestamp("us"), np.arange(3)),
        (pa.duration("ms"), np.arange(3)),
        (pa.date32(), np.arange(3, dtype="i4")),
        (pa.date64(), np.arange(3) * 86_400_000),
        (pa.time32("s"), np.arange(3, dtype="i4")),
        (pa.time64("ns"), np.arange(3)),
        (pa.list_(pa.time32("ms"), 2), np.arange(6, dtype="i4").reshape(3, 2)),
        (pa.list_(pa.field("v", pa.float32(), nullable=False), 2), np.zeros((3, 2), "f4")),
        (pa.list_(pa.field("v", pa.timestamp("s", "UTC")), 2), np.zeros((3, 2), "M8[s]")),
    ],
)
def test_numpy_values_with_the_bytes_of_an_arrow_type(bench: Bench, kind: pa.DataType, values: Any) -> None:
    got = bench.deliver({"x": values}, pa.schema({"x": kind}))
    column = got["x"].flatten() if values.ndim == 2 else got["x"]
    plain = column.view(pa.int32() if values.dtype == "i4" else pa.float32() if values.dtype == "f4" else pa.int64())
    assert plain.to_pylist() == values.reshape(-1).view("i8" if values.dtype.kind == "M" else values.dtype).tolist()


def test_nulls_need_a_nullable_column_and_nothing_else_does(bench: Bench) -> None:
    strict = pa.schema([pa.field("x", pa.int64(), nullable=False)])
    name = bench.name()
    with bench.session.stream(name, strict) as stream:
        for data in (
            {"x": pa.array([1, None])},
            pa.record_batch({"x": pa.array([1, None])}),
            pa.table({"x": [1, None]}),
        ):
            with pytest.raises(wherry.InvalidArgument, match=r"column 'x' .* is not nullable, and has 1 nulls"):
                stream.offload(data)
        for data in ({"x": pa.array([1, 2])}, pa.record_batch({"x": pa.array([1, 2])}), pa.array([{"x": 1}, {"x": 2}])):
            stream.offload(data).wait(WAIT)
    frames = bench.read(name)
    assert [frame.batch.schema for frame in frames] == [strict] * 3
    assert [frame.batch["x"].to_pylist() for frame in frames] == [[1, 2]] * 3


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"strategy": "fast"}, wherry.InvalidArgument, "strategy 'fast' is none of raw, arrays"),
        ({"schema": None}, wherry.InvalidArgument, "a stream needs a schema"),
        ({"schema": 3}, wherry.InvalidArgument, "a int is not a schema"),
        ({"schema": {}}, wherry.InvalidArgument, "no fields"),
        ({"strategy": "raw"}, wherry.InvalidArgument, "raw stream has no schema"),
        ({"name": ""}, wherry.InvalidArgument, "stream name ''"),
        ({"name": "a b"}, wherry.InvalidArgument, "stream name 'a b'"),
        ({"when_full": "drop"}, wherry.InvalidArgument, "when_full: want 'evict' or 'wait', not 'drop'"),
        ({"sink_dir": "/tmp", "sink_format": "csv"}, wherry.InvalidArgument, "sink_format: want 'arrow' or 'parquet'"),
        ({"sink_dir": "/tmp"}, wherry.InvalidArgument, "go together"),
        ({"sink_format": "arrow"}, wherry.InvalidArgument, "go together"),
        ({"announce": [1 << 50]}, wherry.ResourceExhausted, "budget"),
    ],
)
def test_streams_that_do_not_open(bench: Bench, options: dict[str, Any], error: type, message: str) -> None:
    arguments: dict[str, Any] = {"name": bench.name(), "schema": {"x": np.zeros(1)}} | options
    with pytest.raises(error, match=message):
        bench.session.stream(**arguments)
    bench.session.stream(bench.name(), {"x": np.zeros(1)}).close()


def test_a_name_is_taken_while_its_stream_is_open(bench: Bench) -> None:
    name = bench.name()
    with bench.session.stream(name, {"x": np.zeros(1)}), pytest.raises(wherry.AlreadyExists, match=name):
        bench.session.stream(name, {"x": np.zeros(1)})
    bench.session.stream(name, {"x": np.zeros(1)}).close()


@pytest.mark.parametrize(
    "options", [{"tag": -1}, {"tag": 1 << 64}, {"deadline": 0}, {"deadline": -1}, {"deadline": math.nan}]
)
def test_options_of_an_offload_that_mean_nothing(bench: Bench, options: dict[str, Any]) -> None:
    with (
        bench.session.stream(bench.name(), {"x": np.zeros(1)}) as stream,
        pytest.raises(wherry.InvalidArgument, match=next(iter(options))),
    ):
        stream.offload({"x": np.zeros(1)}, **options)


def test_tags_are_any_64_bits(bench: Bench) -> None:
    name = bench.name()
    with bench.session.stream(name, {"x": np.zeros(1)}) as stream:
        tags: tuple[Any, ...] = (0, np.int64(5), (1 << 64) - 1)
        for tag in tags:
            stream.offload({"x": np.zeros(1)}, tag=tag).wait(WAIT)
    assert [frame.tag for frame in bench.read(name)] == [0, 5, (1 << 64) - 1]


def test_a_closed_stream_takes_nothing(bench: Bench) -> None:
    stream = bench.session.stream(bench.name(), {"x": np.zeros(1)})
    stream.close()
    stream.close()
    with pytest.raises(wherry.FailedPrecondition, match="is closed"):
        stream.offload({"x": np.zeros(1)})
