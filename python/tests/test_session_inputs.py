# SPDX-License-Identifier: Apache-2.0
"""Everything that Stream.offload takes, through a real agent and back: by wherry.open and by Flight."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import itertools
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nanoarrow as na
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.flight as flight
import pyarrow.parquet as pq
import pytest
from agents import Agent
from conftest import wherryd_or_fail

import wherry
from wherry import _paths

pytestmark = pytest.mark.agent

STRATEGIES = ["arrays", "record_batch", "ipc", "ipc_page_aligned", "c_abi"]
WAIT = 20.0  # seconds: far more than anything here takes


class Bench:
    """One session at one agent, and both ways to read what it delivered."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.file = agent.session_file
        self.session = wherry.Session(str(self.file))
        self.client, self.options = wherry.flight_client(self.file)
        self._names = (f"s{i}" for i in itertools.count())

    def name(self) -> str:
        return next(self._names)

    def read(self, name: str) -> list[wherry.reader.Frame]:
        """All frames, as a process on the same machine sees them; the Flight client sees the same."""
        with wherry.open(name, self.file, follow=False, timeout=WAIT) as reader:
            frames = list(reader)
        far = list(wherry.flight_frames(self.client, self.options, name, follow=False))
        assert [about["tag"] for about, _ in far] == [frame.tag for frame in frames]
        for frame, (_, batch) in zip(frames, far, strict=True):
            frame.batch.validate(full=True)
            batch.validate(full=True)
            assert batch.schema.equals(frame.batch.schema, check_metadata=True)
            assert_same(batch, frame.batch)
        return frames

    def deliver(self, data: Any, schema: Any = None, **options: Any) -> pa.RecordBatch:
        """The batch that becomes of `data`."""
        name = self.name()
        with self.session.stream(name, data if schema is None else schema, **options) as stream:
            stream.offload(data, tag=7).wait(WAIT)
        (frame,) = self.read(name)
        assert (frame.tag, frame.sequence, frame.skipped) == (7, 0, 0)
        return frame.batch


def assert_same(got: pa.RecordBatch, wanted: pa.RecordBatch) -> None:
    """Equal, where NaN is NaN."""
    if got.equals(wanted):
        return
    assert got.schema == wanted.schema
    for name in wanted.schema.names:
        assert str(got[name].to_pylist()) == str(wanted[name].to_pylist()), name


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    program = wherryd_or_fail()
    running = Agent(tmp_path_factory.mktemp("inputs"), program)
    try:
        one = Bench(running)
        yield one
        one.client.close()
        one.session.close()
    finally:
        running.stop()


# --- numpy ------------------------------------------------------------------------------------------------------------

NUMBERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]


def numbers(dtype: str, *shape: int) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(len(shape))
    if np.dtype(dtype).kind == "f":
        values = rng.standard_normal(shape).astype(dtype)
        if values.size > 2:
            values.reshape(-1)[:2] = [np.nan, np.inf]
        return values
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)


def back(column: pa.Array, like: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A column as numpy, in the shape of `like`."""
    if pa.types.is_fixed_size_list(column.type):
        column = column.flatten()
    return column.to_numpy(zero_copy_only=False).reshape(like.shape)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_numpy_numbers_of_one_and_two_dimensions(bench: Bench, dtype: str) -> None:
    data = {"x": numbers(dtype, 1000), "y": numbers(dtype, 1000, 3), "z": numbers(dtype, 1000, 1)}
    got = bench.deliver(data)
    kind = pa.from_numpy_dtype(np.dtype(dtype))
    assert got.schema.types == [kind, pa.list_(kind, 3), pa.list_(kind, 1)]
    assert not any(field.nullable for field in got.schema)
    for name, wanted in data.items():
        np.testing.assert_array_equal(back(got[name], wanted), wanted)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("rows", [0, 1, 7, 4096])
def test_numpy_rows_by_strategy(bench: Bench, strategy: str, rows: int) -> None:
    data = {"x": numbers("f8", rows), "y": numbers("i4", rows, 2)}
    got = bench.deliver(data, strategy=strategy)
    assert got.num_rows == rows
    for name, wanted in data.items():
        np.testing.assert_array_equal(back(got[name], wanted), wanted)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_numpy_datetimes_keep_their_unit_and_their_nat(bench: Bench, unit: str) -> None:
    moments = np.array(["2026-11-20T12:34:56", "1969-12-31T23:59:59", "NaT"], f"M8[{unit}]")
    spans = np.array([1, -5, "NaT"], f"m8[{unit}]")
    pairs = np.stack([moments, moments[::-1]], axis=1)
    got = bench.deliver({"t": moments, "d": spans, "p": pairs})
    assert got.schema.types == [pa.timestamp(unit), pa.duration(unit), pa.list_(pa.timestamp(unit), 2)]
    np.testing.assert_array_equal(back(got["t"], moments), moments)
    np.testing.assert_array_equal(back(got["d"], spans), spans)
    np.testing.assert_array_equal(back(got["p"], pairs), pairs)


def test_numpy_days_become_dates(bench: Bench) -> None:
    days = np.array(["2026-11-20", "1900-01-01", "NaT"], "M8[D]")
    got = bench.deliver({"d": days, "p": np.stack([days, days], axis=1)})
    assert got.schema.types == [pa.date32(), pa.list_(pa.date32(), 2)]
    assert got["d"].null_count == 1
    np.testing.assert_array_equal(got["d"].to_numpy(zero_copy_only=False), days)
    np.testing.assert_array_equal(got["p"].flatten().to_numpy(zero_copy_only=False)[::2], days)


@pytest.mark.parametrize("dtype", ["M8[h]", "M8[Y]", "M8[W]", "m8[D]", "M8", "c16", "longdouble", "V3", "i4,f8"])
def test_numpy_types_without_an_arrow_type_are_refused_by_name(bench: Bench, dtype: str) -> None:
    values = np.zeros(3, dtype)
    with pytest.raises(wherry.Unsupported, match="column 'x': no Arrow type for numpy's"):
        bench.session.stream(bench.name(), {"x": values})
    with (
        bench.session.stream(bench.name(), {"x": np.zeros(3)}) as stream,
        pytest.raises(wherry.Unsupported, match="column 'x'"),
    ):
        stream.offload({"x": values})


def test_numpy_booleans_are_packed(bench: Bench) -> None:
    flags = np.arange(101) % 3 == 0
    pairs = (np.arange(202) % 5 == 1).reshape(101, 2)
    got = bench.deliver({"f": flags, "p": pairs})
    assert got.schema.types == [pa.bool_(), pa.list_(pa.bool_(), 2)]
    np.testing.assert_array_equal(back(got["f"], flags), flags)
    np.testing.assert_array_equal(back(got["p"], pairs), pairs)


def test_numpy_strings(bench: Bench) -> None:
    words = ["", "Grüße", "a" * 100, "x\0y"]
    data = {
        "u": np.array(words),
        "s": np.array([b"ab", b"", b"\xff\x00c", b"d"]),
        "o": np.array(["a", None, "ccc", ""], dtype=object),
        "t": np.array(words, dtype=np.dtypes.StringDType()),
        "p": np.array([words[:2], words[2:], words[1:3], words[:2]]),
    }
    got = bench.deliver(data)
    assert got.schema.types == [pa.string(), pa.binary(), pa.string(), pa.string(), pa.list_(pa.string(), 2)]
    assert got["u"].to_pylist() == words
    assert got["s"].to_pylist() == [b"ab", b"", b"\xff\x00c", b"d"]
    assert got["o"].to_pylist() == ["a", None, "ccc", ""]
    assert got["t"].to_pylist() == words
    assert got["p"].to_pylist() == [words[:2], words[2:], words[1:3], words[:2]]
    large = bench.deliver({"u": data["u"]}, pa.schema({"u": pa.large_string()}))
    assert large["u"].to_pylist() == words


def test_numpy_objects_that_are_no_texts(bench: Bench) -> None:
    assert bench.deliver({"o": np.array([1, None, 3], dtype=object)})["o"].to_pylist() == [1, None, 3]
    with pytest.raises(wherry.InvalidArgument, match="column 'o'"):
        bench.session.stream(bench.name(), {"o": np.array([object(), 1], dtype=object)})


def test_numpy_layouts_that_are_copied_first(bench: Bench) -> None:
    base = numbers("f8", 60, 4)
    data = {
        "strided": base[::2, 1],
        "reversed": base[::-2, 0],
        "columns": base[:30, 1:3],
        "fortran": np.asfortranarray(base[:30]),
        "swapped": base[:30, 3].astype(">f8"),
        "swapped_pairs": base[:30, :2].astype(">f4"),
        "transposed": numbers("i4", 2, 30).T,
        "repeated": np.broadcast_to(np.int16(5), 30),
    }
    got = bench.deliver(data)
    for name, wanted in data.items():
        np.testing.assert_array_equal(back(got[name], wanted), wanted)


def test_numpy_masked_arrays_have_nulls(bench: Bench) -> None:
    got = bench.deliver({"x": np.ma.masked_array([1.0, 2.0, 3.0], [0, 1, 0])})
    assert got["x"].to_pylist() == [1.0, None, 3.0]


def test_numpy_read_only_arrays_and_rows_without_values(bench: Bench) -> None:
    fixed = numbers("f4", 50)
    fixed.flags.writeable = False
    got = bench.deliver({"x": fixed, "none": np.zeros((50, 0))})
    np.testing.assert_array_equal(back(got["x"], fixed), fixed)
    assert got["none"].to_pylist() == [[]] * 50


@pytest.mark.parametrize("shape", [(), (2, 3, 4), (2, 1, 1, 1)])
def test_numpy_other_dimensions_are_refused(bench: Bench, shape: tuple[int, ...]) -> None:
    for kind in ("f8", "bool", "U3", "M8[ns]", "M8[D]"):
        values = np.zeros(shape, kind)
        with pytest.raises(wherry.InvalidArgument, match=f"column 'x': {len(shape)} dimensions"):
            bench.session.stream(bench.name(), {"x": values})
        with (
            bench.session.stream(bench.name(), {"x": np.zeros(3, kind)}) as stream,
            pytest.raises(wherry.InvalidArgument, match=f"column 'x': {len(shape)} dimensions"),
        ):
            stream.offload({"x": values})


# --- Arrow ------------------------------------------------------------------------------------------------------------


def values_of(kind: pa.DataType, rows: int, rng: np.random.Generator, nulls: bool = True) -> list[Any]:
    """Python values that pa.array() takes for that type."""

    def one() -> Any:
        n = int(rng.integers(0, 100))
        if nulls and rng.random() < 0.2:
            return None
        if pa.types.is_dictionary(kind):
            return values_of(kind.value_type, 1, rng, False)[0]
        if pa.types.is_boolean(kind):
            return n % 2 == 0
        if pa.types.is_integer(kind):
            return n
        if pa.types.is_floating(kind):
            return np.float16(n / 2) if kind == pa.float16() else n / 2
        if pa.types.is_decimal(kind):
            return __import__("decimal").Decimal(n).scaleb(-kind.scale) if kind.scale >= 0 else n * 1000
        if pa.types.is_date64(kind):
            return n * 86_400_000
        if kind == pa.month_day_nano_interval():
            return (n, n + 1, n + 2)
        if pa.types.is_temporal(kind):
            return n
        if pa.types.is_fixed_size_binary(kind):
            return bytes([n]) * kind.byte_width
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            return "ü" * (n % 5)
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            return bytes([n]) * (n % 5)
        if pa.types.is_fixed_size_list(kind):
            return values_of(kind.value_type, kind.list_size, rng)
        if pa.types.is_map(kind):
            keys = range(n % 3)
            return [(str(k), values_of(kind.item_type, 1, rng)[0]) for k in keys]
        if pa.types.is_list(kind) or pa.types.is_large_list(kind):
            return values_of(kind.value_type, n % 4, rng)
        if pa.types.is_struct(kind):
            return {field.name: values_of(field.type, 1, rng)[0] for field in kind}
        assert pa.types.is_null(kind), kind
        return None

    return [one() for _ in range(rows)]


def array_of(kind: pa.DataType, rows: int, seed: int = 0, nulls: bool = True) -> pa.Array:
    rng = np.random.default_rng(seed)
    if pa.types.is_dictionary(kind):
        return pa.array(values_of(kind.value_type, rows, rng, nulls), kind.value_type).dictionary_encode().cast(kind)
    return pa.array(values_of(kind, rows, rng, nulls), kind)


PLAIN = [
    pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
    pa.float16(), pa.float32(), pa.float64(), pa.bool_(), pa.null(),
    pa.decimal32(7, 2), pa.decimal64(15, 3), pa.decimal128(30, 4), pa.decimal256(60, 10),
    pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"),
    pa.timestamp("s"), pa.timestamp("ms", "UTC"), pa.timestamp("us", "Europe/Zurich"), pa.timestamp("ns", "+02:00"),
    pa.duration("s"), pa.duration("ns"), pa.month_day_nano_interval(),
    pa.binary(7), pa.string(), pa.large_string(), pa.binary(), pa.large_binary(),
]  # fmt: skip
NESTED = [
    pa.list_(pa.int32()),
    pa.large_list(pa.string()),
    pa.list_(pa.list_(pa.bool_())),
    pa.list_(pa.float64(), 3),
    pa.list_(pa.bool_(), 5),
    pa.list_(pa.list_(pa.string(), 2)),
    pa.struct([]),
    pa.struct({"a": pa.int8(), "b": pa.bool_(), "c": pa.string()}),
    pa.struct({"a": pa.struct({"b": pa.list_(pa.struct({"c": pa.float64()}))})}),
    pa.map_(pa.string(), pa.float64()),
    pa.map_(pa.string(), pa.map_(pa.string(), pa.bool_())),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int32(), pa.int64()),
    pa.list_(pa.null()),
]
EVERY = [pytest.param(kind, id=str(kind)[:60]) for kind in PLAIN + NESTED]


@pytest.mark.parametrize("kind", EVERY)
def test_arrow_arrays_of_every_type(bench: Bench, kind: pa.DataType) -> None:
    full = array_of(kind, 100, nulls=pa.types.is_null(kind))
    holes = array_of(kind, 100, seed=1)
    data = {"full": full, "holes": holes}
    got = bench.deliver(data)
    assert got.equals(pa.record_batch(data))
    none = bench.deliver({"x": full[:0], "y": array_of(kind, 0)}, strategy="c_abi")
    assert none.equals(pa.record_batch({"x": full[:0], "y": full[:0]}))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_arrow_slices_of_every_type(bench: Bench, strategy: str) -> None:
    """Bit offsets of 0 to 9 in validity, booleans, and children; all types in one batch."""
    kinds = {f"c{i}": kind for i, kind in enumerate(PLAIN + NESTED)}
    arrays = {name: array_of(kind, 60, seed=i) for i, (name, kind) in enumerate(kinds.items())}
    name = bench.name()
    wanted = []
    with bench.session.stream(name, pa.schema(kinds), strategy, keep_frames=0) as stream:
        for offset in range(10):
            for length in (0, 1, 8, 60 - offset):
                data = {key: array.slice(offset, length) for key, array in arrays.items()}
                wanted.append(pa.record_batch(data))
                stream.offload(data, tag=len(wanted)).wait(WAIT)
    frames = bench.read(name)
    assert [frame.tag for frame in frames] == list(range(1, len(wanted) + 1))
    for frame, batch in zip(frames, wanted, strict=True):
        assert frame.batch.equals(batch)


def test_record_batches_whole_and_sliced(bench: Bench) -> None:
    kinds = {f"c{i}": kind for i, kind in enumerate(PLAIN + NESTED)}
    batch = pa.record_batch({name: array_of(kind, 50, seed=i) for i, (name, kind) in enumerate(kinds.items())})
    name = bench.name()
    parts = [batch, batch.slice(3, 20), batch.slice(9).slice(2, 1), batch.slice(50)]
    with bench.session.stream(name, batch) as stream:
        for part in parts:
            stream.offload(part).wait(WAIT)
    for frame, part in zip(bench.read(name), parts, strict=True):
        assert frame.batch.equals(part)


def test_struct_arrays_sliced_as_a_whole(bench: Bench) -> None:
    rows = pa.array([{"a": i, "b": f"{i}" if i % 3 else None, "c": i % 2 == 0} for i in range(40)])
    schema = pa.schema(list(rows.type))
    assert bench.deliver(rows[5:29], schema).to_pylist() == rows[5:29].to_pylist()
    assert bench.deliver(na.c_array(rows[9:])).to_pylist() == rows[9:].to_pylist()
    with bench.session.stream(bench.name(), schema) as stream:
        with pytest.raises(wherry.InvalidArgument, match="1 null rows"):
            stream.offload(pa.array([{"a": 1, "b": "", "c": True}, None], rows.type))
        with pytest.raises(wherry.InvalidArgument, match="array of int64 as a batch"):
            stream.offload(pa.array([1, 2]))


def test_tables_of_several_chunks(bench: Bench) -> None:
    words = pa.chunked_array([["a", "b"], [], ["a", None, "ccc"]])
    table = pa.table({"n": pa.chunked_array([[1, 2], [3], [4, 5]]), "w": words, "d": words.dictionary_encode()})
    assert (table["w"].num_chunks, table["n"].num_chunks) == (3, 3)
    assert bench.deliver(table).to_pylist() == table.to_pylist()
    assert bench.deliver(table.slice(1, 3)).to_pylist() == table.slice(1, 3).to_pylist()


@pytest.mark.parametrize("chunks", [0, 1])
def test_tables_without_rows(bench: Bench, chunks: int) -> None:
    kinds = {f"c{i}": kind for i, kind in enumerate(PLAIN + NESTED)}
    schema = pa.schema(kinds)
    empty = pa.table({name: pa.chunked_array([array_of(k, 0)] * chunks, k) for name, k in kinds.items()}, schema)
    got = bench.deliver(empty)
    assert got.num_rows == 0
    assert got.schema == schema


def test_chunked_arrays_and_lists_as_columns(bench: Bench) -> None:
    data = {
        "many": pa.chunked_array([[1, 2], [3, None]]),
        "one": pa.chunked_array([["a", "b", "c", "d"]]),
        "list": [1.5, None, 2.5, 3.5],
        "tuple": ("x", "y", "z", None),
    }
    got = bench.deliver(data)
    assert got.to_pydict() == {
        "many": [1, 2, 3, None], "one": ["a", "b", "c", "d"], "list": data["list"], "tuple": ["x", "y", "z", None]
    }  # fmt: skip
    none = bench.deliver({"none": pa.chunked_array([], pa.int32())})
    assert (none.num_rows, none.schema.types) == (0, [pa.int32()])


def test_extension_types_arrive_as_they_are(bench: Bench) -> None:
    uuids = pa.array([b"0123456789abcdef", None], pa.uuid())
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(12.0).reshape(2, 2, 3))
    for strategy in STRATEGIES:
        got = bench.deliver({"u": uuids, "t": tensors}, strategy=strategy)
        assert got.equals(pa.record_batch({"u": uuids, "t": tensors}))


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        (pa.string_view(), "view"),
        (pa.binary_view(), "view"),
        (pa.list_view(pa.int32()), "view"),
        (pa.large_list_view(pa.int32()), "view"),
        (pa.dense_union([pa.field("a", pa.int8())]), "union"),
        (pa.sparse_union([pa.field("a", pa.int8())]), "union"),
        (pa.run_end_encoded(pa.int32(), pa.float64()), "run-end"),
    ],
)
@pytest.mark.parametrize("depth", [0, 1])
def test_types_that_are_not_moved_are_refused_by_name_when_the_stream_opens(
    bench: Bench, kind: pa.DataType, named: str, depth: int
) -> None:
    inner = pa.struct({"m": kind}) if depth else kind
    with pytest.raises(wherry.Unsupported, match=named) as error:
        bench.session.stream(bench.name(), pa.schema({"ok": pa.int8(), "bad": inner}))
    assert ("'bad.m'" if depth else "'bad'") in str(error.value)


# --- Other libraries' arrays ------------------------------------------------------------------------------------------


def test_polars_frames_and_series(bench: Bench) -> None:
    frame = pl.DataFrame({"n": [1, 2, None], "x": [0.5, 1.5, 2.5], "l": [[1], [], [2, 3]]})
    got = bench.deliver(frame)
    assert pl.DataFrame(pa.table(pa.Table.from_batches([got]))).equals(frame)
    columns = bench.deliver({"n": frame["n"], "x": frame["x"], "own": np.arange(3)})
    assert columns.to_pydict() == {"n": [1, 2, None], "x": [0.5, 1.5, 2.5], "own": [0, 1, 2]}
    chunked = pl.concat([frame, frame], rechunk=False)
    assert bench.deliver(chunked).num_rows == 6
    # Its strings are views: refused by name, and taken when they are cast.
    words = pl.DataFrame({"w": ["a", "bb", None]})
    with pytest.raises(wherry.Unsupported, match=r"'w'.*view"):
        bench.session.stream(bench.name(), words)
    assert bench.deliver(words.to_arrow(compat_level=pl.CompatLevel.oldest())).to_pydict() == {"w": ["a", "bb", None]}


def test_nanoarrow_arrays(bench: Bench) -> None:
    numbers_ = na.c_array([1, 2, None], na.int32())
    words = na.Array(["a", None, "ccc"], na.string())
    got = bench.deliver({"n": numbers_, "w": words})
    assert got.to_pydict() == {"n": [1, 2, None], "w": ["a", None, "ccc"]}
    kind = na.struct({"n": na.int32(), "w": na.string()})
    rows = na.c_array_from_buffers(kind, 3, [None], children=[numbers_, na.c_array(["a", None, "ccc"], na.string())])
    for strategy in STRATEGIES:
        batch = bench.deliver(rows, strategy=strategy)
        assert batch.to_pydict() == {"n": [1, 2, None], "w": ["a", None, "ccc"]}
    with (
        bench.session.stream(bench.name(), pa.schema({"n": pa.int64(), "w": pa.string()})) as stream,
        pytest.raises(wherry.InvalidArgument, match=r"column 'n' .* is int64, not int32"),
    ):
        stream.offload(rows)


# --- What does not match ----------------------------------------------------------------------------------------------


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
        ({"strategy": "fast"}, wherry.Unsupported, "strategy 'fast' is none of raw, arrays"),
        ({"schema": None}, wherry.InvalidArgument, "a stream needs a schema"),
        ({"schema": 3}, wherry.InvalidArgument, "a int is no schema"),
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
        for tag in (0, np.int64(5), (1 << 64) - 1):
            stream.offload({"x": np.zeros(1)}, tag=tag).wait(WAIT)
    assert [frame.tag for frame in bench.read(name)] == [0, 5, (1 << 64) - 1]


def test_a_closed_stream_takes_nothing(bench: Bench) -> None:
    stream = bench.session.stream(bench.name(), {"x": np.zeros(1)})
    stream.close()
    stream.close()
    with pytest.raises(wherry.FailedPrecondition, match="is closed"):
        stream.offload({"x": np.zeros(1)})


# --- Raw streams ------------------------------------------------------------------------------------------------------


def test_raw_buffers_of_every_kind(bench: Bench) -> None:
    name = bench.name()
    numbers_ = np.arange(12, dtype="i4").reshape(3, 4)
    buffers = [
        b"bytes", bytearray(b"more"), memoryview(b"a view")[2:], pa.py_buffer(b"arrow"), b"", numbers_, numbers_.T,
        numbers_[::2, 1], np.array(["2026-01-01"], "M8[D]"), np.float64(1.5), (ctypes.c_int16 * 2)(1, 2),
    ]  # fmt: skip
    with bench.session.stream(name, strategy="raw") as stream:
        assert stream.schema is None
        stream.offload(buffers, tag=1).wait(WAIT)
        stream.offload([], tag=2).wait(WAIT)
        stream.offload(iter([b"x"]), tag=3).wait(WAIT)
    first, second, third = bench.read(name)
    wanted = [b.tobytes() if isinstance(b, np.ndarray | np.generic) else bytes(b) for b in buffers]
    assert first.batch["buffer"].to_pylist() == wanted
    assert first.source_bytes == sum(map(len, wanted))
    assert second.batch.num_rows == 0
    assert third.batch["buffer"].to_pylist() == [b"x"]


def test_what_a_raw_stream_refuses(bench: Bench) -> None:
    with bench.session.stream(bench.name(), strategy="raw") as stream:
        for one in (b"bytes", bytearray(3), np.zeros(3), "text", {"x": np.zeros(3)}):
            with pytest.raises(wherry.InvalidArgument, match="want a list of buffers"):
                stream.offload(one)
        for bad in ("text", 3, None, np.array([object()], dtype=object)):
            with pytest.raises(wherry.InvalidArgument, match=r"buffer 1, a .* has no bytes to move"):
                stream.offload([b"fine", bad])


# --- Memory -----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def stopped(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """The agent does nothing meanwhile."""
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


def test_sources_live_until_they_were_read(bench: Bench) -> None:
    """The caller drops everything at once, while the agent has not even begun."""
    rows = 200_000
    name = bench.name()
    raw = bench.name()
    stream = bench.session.stream(name, {"x": np.zeros(1), "w": np.array(["a"]), "l": pa.array([[1.0]])})
    raw_stream = bench.session.stream(raw, strategy="raw")
    wanted = []
    with stopped(bench.agent.process):
        for i in range(4):
            words = [f"{i} {k}" for k in range(rows // 100)] * 100
            stream.offload(
                {
                    "x": np.arange(rows, dtype="f8") * i,
                    "w": np.array(words),
                    "l": pa.array([[float(i)]] * rows),
                }
            )
            wanted.append((float(rows - 1) * i, words))
            raw_stream.offload([bytearray([i]) * 1_000_000])
            del words
            gc.collect()
            # What was freed would be used again, and overwritten.
            rubbish = [np.full(rows, -1.0) for _ in range(8)]
            del rubbish
        assert bench.session.in_flight() == 8
    bench.session.drain(WAIT)
    stream.close()
    raw_stream.close()
    frames = bench.read(name)
    for i, (frame, (last, words)) in enumerate(zip(frames, wanted, strict=True)):
        assert frame.batch["x"][rows - 1].as_py() == last
        np.testing.assert_array_equal(frame.batch["x"].to_numpy(), np.arange(rows) * float(i))
        assert frame.batch["w"].to_pylist() == words
    for i, frame in enumerate(bench.read(raw)):
        assert frame.batch["buffer"][0].as_py() == bytes([i]) * 1_000_000


def test_sources_outlive_stream_ticket_and_session(make_agent: Callable[..., Agent]) -> None:
    """Whatever the caller drops, in whatever order: what arrives is what was given."""
    agent = make_agent()
    rows = 1_000_000
    name = "s"

    def offload_and_forget() -> None:
        session = wherry.Session(str(agent.session_file))
        stream = session.stream(name, {"x": np.zeros(1)})
        del session
        for i in range(5):
            stream.offload({"x": np.full(rows, float(i))}, tag=i)

    offload_and_forget()
    gc.collect()
    rubbish = [np.full(rows, -1.0) for _ in range(8)]
    deadline = time.monotonic() + WAIT
    while any(s.open for s in wherry.streams(agent.session_file)):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    del rubbish
    frames = list(wherry.open(name, agent.session_file, follow=False))
    assert [frame.tag for frame in frames] == list(range(5))
    for frame in frames:
        assert set(np.unique(frame.batch["x"].to_numpy())) == {float(frame.tag)}


def test_finished_sources_are_dropped(bench: Bench) -> None:
    class Noted(np.ndarray):
        gone = 0

        def __del__(self) -> None:
            Noted.gone += 1

    with bench.session.stream(bench.name(), {"x": np.zeros(1)}) as stream:
        for _ in range(3):
            ticket = stream.offload({"x": np.zeros(1000).view(Noted)})
            ticket.wait(WAIT)
        del ticket
        stream.offload({"x": np.zeros(1000)}).wait(WAIT)
        gc.collect()
        assert Noted.gone >= 3


@pytest.mark.parametrize("shape", [0, 10, (0,), (1000, 3), (5, 0), np.int64(7), [4, 2], (100_000,)])
@pytest.mark.parametrize("dtype", ["f8", "u1", "f2", "M8[ns]"])
def test_memory_that_wherry_allocated(bench: Bench, shape: Any, dtype: str) -> None:
    array = bench.session.empty(shape, dtype)
    assert array.shape == np.empty(shape).shape
    assert array.dtype == dtype
    assert not array.view("u1").any()
    assert array.flags.c_contiguous
    assert array.flags.writeable
    assert array.size == 0 or array.ctypes.data % 4096 == 0
    array.reshape(-1).view("u1")[:] = np.arange(array.nbytes, dtype="u4").astype("u1") % 100
    got = bench.deliver({"x": array})
    np.testing.assert_array_equal(back(got["x"], array), array)


def test_parts_of_allocated_memory_may_be_columns(bench: Bench) -> None:
    array = bench.session.empty((4, 1000), "f4")
    array[:] = np.arange(4000).reshape(4, 1000)
    got = bench.deliver({f"c{i}": array[i] for i in range(4)} | {"heap": np.zeros(1000)})
    for i in range(4):
        np.testing.assert_array_equal(got[f"c{i}"].to_numpy(), array[i])


@pytest.mark.parametrize(("shape", "dtype"), [(-1, "f8"), ((3, -1), "f8"), (3, object), (3, "V0")])
def test_memory_of_no_sensible_size(bench: Bench, shape: Any, dtype: Any) -> None:
    with pytest.raises(wherry.InvalidArgument):
        bench.session.empty(shape, dtype)


def test_registered_arrays(bench: Bench) -> None:
    array = np.arange(100_000, dtype="f8")
    region = bench.session.register(array)
    got = bench.deliver({"x": array[100:90_000], "y": array[:89_900]})
    np.testing.assert_array_equal(got["x"].to_numpy(), array[100:90_000])
    region.unregister()
    with pytest.raises(wherry.FailedPrecondition):
        region.unregister()
    assert bench.deliver({"x": array}).num_rows == 100_000
    for bad in (array[::2], np.array([object()]), np.zeros(0)):
        with pytest.raises(wherry.InvalidArgument):
            bench.session.register(bad)


def test_a_region_in_use_cannot_be_unregistered(bench: Bench) -> None:
    array = np.arange(1000, dtype="f8")
    region = bench.session.register(array)
    name = bench.name()
    stream = bench.session.stream(name, {"x": array})
    with stopped(bench.agent.process):
        ticket = stream.offload({"x": array})
        with pytest.raises(wherry.FailedPrecondition, match="1 offloads that read this memory are in flight"):
            region.unregister()
    ticket.wait(WAIT)
    region.unregister()
    stream.close()
    np.testing.assert_array_equal(bench.read(name)[0].batch["x"].to_numpy(), array)


def test_allocated_memory_may_be_dropped_on_another_thread_meanwhile(bench: Bench) -> None:
    """Python frees where the last reference goes: the session must not be entered by two threads at once."""
    stream = bench.session.stream(bench.name(), {"x": np.zeros(1)}, keep_frames=2)
    stop = threading.Event()
    pool: list[Any] = []

    def drop() -> None:
        while not stop.is_set():
            with contextlib.suppress(IndexError):
                pool.pop()

    thread = threading.Thread(target=drop)
    thread.start()
    try:
        for _ in range(200):
            pool.extend(bench.session.empty(1000) for _ in range(3))
            stream.offload({"x": np.zeros(20_000)}).wait(WAIT)
    finally:
        stop.set()
        thread.join()
    bench.session.drain(WAIT)
    stream.close()


# --- Tickets ----------------------------------------------------------------------------------------------------------


def test_tickets_tell_what_became_of_the_offload(bench: Bench) -> None:
    with bench.session.stream(bench.name(), {"x": np.zeros(1)}) as stream:
        x = np.zeros(100_000)
        for i in range(3):
            ticket = stream.offload({"x": x})
            ticket.wait(WAIT)
            ticket.wait(WAIT)
            assert ticket.ready()
            assert ticket.sequence == i
            assert ticket.transfer_ns > 0


def test_waiting_ends_in_time_and_can_go_on(bench: Bench) -> None:
    with bench.session.stream(bench.name(), {"x": np.zeros(1)}) as stream:
        with stopped(bench.agent.process):
            ticket = stream.offload({"x": np.zeros(10)})
            for timeout in (0, 0.05, -1):
                start = time.monotonic()
                with pytest.raises(wherry.DeadlineExceeded, match="still in flight"):
                    ticket.wait(timeout)
                assert time.monotonic() - start < 5
                assert not ticket.ready()
            with pytest.raises(wherry.DeadlineExceeded, match="still in flight"):
                bench.session.drain(0.05)
        ticket.wait(WAIT)
        assert ticket.ready()


def test_more_than_the_budget_can_hold(bench: Bench) -> None:
    with bench.session.stream(bench.name(), {"x": np.zeros(1)}) as stream:
        big = np.zeros(300 << 17)  # 300 MiB, the budget is 256
        ticket = stream.offload({"x": big})
        with pytest.raises(wherry.ResourceExhausted, match="budget of 268435456 bytes"):
            ticket.wait(WAIT)
        assert ticket.ready()
        with pytest.raises(wherry.ResourceExhausted):
            ticket.wait(WAIT)
        failing = stream.offload({"x": big})
        with pytest.raises(wherry.ResourceExhausted):
            bench.session.drain(WAIT)
        bench.session.drain(WAIT)
        assert failing.ready()
        stream.offload({"x": np.zeros(10)}).wait(WAIT)


def test_deadlines_of_offloads(bench: Bench) -> None:
    name = bench.name()
    with bench.session.stream(name, {"x": np.zeros(1)}, keep_frames=1, when_full="wait") as stream:
        stream.offload({"x": np.zeros(10)}, tag=1).wait(WAIT)
        late = stream.offload({"x": np.zeros(10)}, tag=2, deadline=0.05)
        with pytest.raises(wherry.DeadlineExceeded, match="before the deadline that was given"):
            late.wait(WAIT)
        assert late.ready()
        unseen = stream.offload({"x": np.zeros(10)}, tag=3, deadline=0.05)
        with pytest.raises(wherry.DeadlineExceeded, match="before the deadline that was given"):
            bench.session.drain(WAIT)
        assert unseen.ready()
    assert [frame.tag for frame in bench.read(name)] == [1]


def test_memory_that_goes_while_the_agent_reads_it(bench: Bench, tmp_path: Path) -> None:
    import mmap

    path = tmp_path / "sources"
    path.write_bytes(b"\1" * (1 << 20))
    with path.open("r+b") as file:
        mapped = mmap.mmap(file.fileno(), 1 << 20)
        array = np.frombuffer(mapped, "f8")
        with bench.session.stream(bench.name(), {"x": np.zeros(1)}) as stream:
            with stopped(bench.agent.process):
                ticket = stream.offload({"x": array})
                file.truncate(0)
            with pytest.raises(wherry.SourceFault, match="could not read buffer 0"):
                ticket.wait(WAIT)
            stream.offload({"x": np.zeros(10)}).wait(WAIT)


def test_would_block_and_its_timeout(bench: Bench) -> None:
    with wherry.Session(str(bench.file), max_tickets=4) as session:
        stream = session.stream(bench.name(), {"x": np.zeros(1)})
        raw = session.stream(bench.name(), strategy="raw")
        x = np.zeros(10)
        with stopped(bench.agent.process):
            tickets = [stream.offload({"x": x}) for _ in range(4)]
            for timeout in (0.0, 0.05):
                start = time.monotonic()
                with pytest.raises(wherry.WouldBlock, match="max_tickets"):
                    stream.offload({"x": x}, timeout=timeout)
                with pytest.raises(wherry.WouldBlock, match="max_tickets"):
                    raw.offload([x], timeout=timeout)
                assert timeout <= time.monotonic() - start < 5
            assert session.in_flight() == 4
            waker = threading.Timer(0.2, bench.agent.process.send_signal, [signal.SIGCONT])
            waker.start()
            tickets.append(stream.offload({"x": x}, timeout=WAIT))  # another thread runs meanwhile
            waker.join()
        for ticket in tickets:
            ticket.wait(WAIT)
        assert session.in_flight() == 0
        stream.close()
        raw.close()


@pytest.mark.parametrize("what", ["ticket.wait()", "session.drain()", "stream.offload({'x': x}, timeout=60)"])
def test_ctrl_c_ends_a_wait(make_agent: Callable[..., Agent], what: str) -> None:
    agent = make_agent()
    script = f"""
import os, signal, sys, threading, numpy as np, wherry
session = wherry.Session({str(agent.session_file)!r}, max_tickets=1)
x = np.zeros(10)
stream = session.stream("s", {{"x": x}})
os.kill({agent.process.pid}, signal.SIGSTOP)
ticket = stream.offload({{"x": x}})
threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT]).start()
try:
    {what}
except KeyboardInterrupt:
    print("interrupted")
finally:
    os.kill({agent.process.pid}, signal.SIGCONT)
"""
    environment = os.environ | {"PYTHONPATH": str(_paths.PACKAGE.parent)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=40, env=environment)
    assert done.stdout == "interrupted\n", done.stderr


# --- Streams, sessions, agents ----------------------------------------------------------------------------------------


def test_nothing_is_lost_when_full_means_wait(bench: Bench) -> None:
    name = bench.name()
    stream = bench.session.stream(name, {"x": np.zeros(1)}, keep_frames=2, when_full="wait")
    tickets = []
    for i in range(12):
        tickets.append(stream.offload({"x": np.full(10, float(i))}, tag=i))
        if i < 2:
            tickets[i].wait(WAIT)
    time.sleep(0.1)
    assert not any(ticket.ready() for ticket in tickets[2:])
    seen = []
    with wherry.open(name, bench.file, timeout=WAIT) as reader:
        for frame in reader:
            seen.append((frame.tag, frame.skipped, frame.batch["x"][0].as_py()))
            del frame
            if len(seen) == 12:
                break
    assert seen == [(i, 0, float(i)) for i in range(12)]
    for ticket in tickets:
        ticket.wait(WAIT)
    stream.close()


def test_the_limit_holds_exactly_when_offloads_arrive_together(bench: Bench) -> None:
    name = bench.name()
    large = np.zeros(20 << 17)  # 20 MiB: more than one window of gets, so that it takes the agent several polls
    stream = bench.session.stream(name, {"x": large}, keep_frames=1, when_full="wait")
    with stopped(bench.agent.process):
        tickets = [stream.offload({"x": large}) for _ in range(3)]
    tickets[0].wait(WAIT)
    time.sleep(0.2)
    (status,) = [status for status in wherry.streams(bench.file) if status.name == name]
    with wherry.open(name, bench.file, timeout=WAIT) as reader:
        for _ in tickets:  # lets the others through
            next(reader)
    bench.session.drain(WAIT)
    stream.close()
    assert status.held_frames == 1


def test_frames_that_nobody_read_may_go_by_default(bench: Bench) -> None:
    name = bench.name()
    with bench.session.stream(name, {"x": np.zeros(1)}, keep_frames=2) as stream:
        for i in range(5):
            stream.offload({"x": np.zeros(10)}, tag=i).wait(WAIT)
    frames = bench.read(name)
    assert [frame.tag for frame in frames] == [3, 4]
    assert [frame.skipped for frame in frames] == [3, 0]
    bytes_ = bench.name()
    with bench.session.stream(bytes_, {"x": np.zeros(1)}, keep_frames=0, keep_bytes=20_000) as stream:
        for i in range(5):
            stream.offload({"x": np.zeros(1000)}, tag=i).wait(WAIT)
    assert [frame.tag for frame in bench.read(bytes_)] == [3, 4]


def test_announced_sizes(bench: Bench) -> None:
    for strategy in STRATEGIES:
        got = bench.deliver({"x": np.arange(500_000.0)}, strategy=strategy, announce=[4_000_000, 100])
        assert got.num_rows == 500_000


def test_an_announced_size_is_resident_before_the_first_offload(bench: Bench) -> None:
    def resident() -> int:  # KiB of shared memory that the agent has touched
        status = Path(f"/proc/{bench.agent.process.pid}/status").read_text()
        return int(status.split("RssShmem:")[1].split()[0])

    x = np.arange(8 << 20, dtype="f8")  # 64 MiB
    name = bench.name()
    with bench.session.stream(name, {"x": x}, "ipc_page_aligned", keep_frames=1, announce=[x.nbytes]) as stream:
        before = -1
        while (now := resident()) != before:
            before = now
            time.sleep(0.2)
        assert now >= x.nbytes >> 10
        stream.offload({"x": x}).wait(WAIT)
        assert resident() - now < 4096


@pytest.mark.parametrize("strategy", [*STRATEGIES, "raw"])
@pytest.mark.parametrize("format_", ["arrow", "parquet"])
def test_sink_files(bench: Bench, tmp_path: Path, strategy: str, format_: str) -> None:
    name = bench.name()
    data = {"x": np.arange(100.0), "w": pa.array([f"{i}" if i % 3 else None for i in range(100)])}
    schema = None if strategy == "raw" else data
    with bench.session.stream(name, schema, strategy, sink_dir=tmp_path, sink_format=format_) as stream:
        for _ in range(3):
            stream.offload([b"ab", b"c"] if strategy == "raw" else data).wait(WAIT)
    files = [tmp_path / f"{name}-{i:08}.{format_}" for i in range(3)]
    deadline = time.monotonic() + WAIT
    while not files[-1].exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    for file in files:
        table = pq.read_table(file) if format_ == "parquet" else pa.ipc.open_file(file).read_all()
        if strategy == "raw":
            assert table.to_pydict() == {"buffer": [b"ab", b"c"]}
        else:
            assert table.to_pydict() == pa.table(data).to_pydict()
    assert sorted(tmp_path.iterdir()) == files


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_with_dictionaries_that_change(bench: Bench, strategy: str) -> None:
    name = bench.name()
    kind = pa.dictionary(pa.int8(), pa.string())
    batches = [
        pa.record_batch({"d": pa.array(words).dictionary_encode().cast(kind)}) for words in (["a", "b"], ["c"], [])
    ]
    with bench.session.stream(name, pa.schema({"d": kind}), strategy) as stream:
        for batch in batches:
            stream.offload(batch).wait(WAIT)
    assert [frame.batch.to_pylist() for frame in bench.read(name)] == [batch.to_pylist() for batch in batches]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_map_with_null_keys_does_not_kill_the_agent(bench: Bench, strategy: str) -> None:
    """What no well-made client sends: Arrow C++ aborts when it makes an array of it."""
    key, value = na.int32(nullable=False), na.int32()
    keys = na.c_array_from_buffers(key, 3, [b"\1", np.zeros(3, "i4")], null_count=2)  # one too many: who counts?
    children = [keys, na.c_array([1, 2], value)]
    entries = na.c_array_from_buffers(na.struct({"key": key, "value": value}, False), 2, [None], children=children)
    array = na.c_array_from_buffers(na.map_(key, value), 1, [None, np.array([0, 2], "i4")], children=[entries])
    name = bench.name()
    stream = bench.session.stream(name, pa.schema({"m": pa.map_(pa.int32(), pa.int32())}), strategy)
    ticket = stream._core.post([array.__arrow_c_array__()], 0, 0.0, 0.0)
    with pytest.raises(wherry.InvalidArgument, match="at buffer 1;"):  # keys are never nullable
        ticket.wait(WAIT)
    stream.close()
    assert bench.deliver({"x": np.zeros(3)}).num_rows == 3


def test_two_sessions(bench: Bench) -> None:
    with wherry.Session(str(bench.file), name="one") as one, wherry.Session(bench.file, name="two") as two:
        first, second = bench.name(), bench.name()
        streams = [one.stream(first, {"x": np.zeros(1)}), two.stream(second, {"x": np.zeros(1)})]
        for i in range(20):
            tickets = [
                stream.offload({"x": np.full(1000, float(i + 100 * k))}, tag=i) for k, stream in enumerate(streams)
            ]
            for ticket in tickets:
                ticket.wait(WAIT)
        with pytest.raises(wherry.AlreadyExists):
            two.stream(first, {"x": np.zeros(1)})
        streams[0].close()
        one.close()
        streams[1].offload({"x": np.zeros(1)}).wait(WAIT)
        streams[1].close()
    assert [frame.batch["x"][0].as_py() for frame in bench.read(first)] == [float(i) for i in range(4, 20)]
    assert len(bench.read(second)) == 16


def test_a_closed_session_says_so(bench: Bench) -> None:
    session = wherry.Session(str(bench.file))
    stream = session.stream(bench.name(), {"x": np.zeros(1)})
    session.close()
    session.close()
    for call in (
        lambda: session.stream("s", {"x": np.zeros(1)}), lambda: session.empty(1), session.in_flight,
        lambda: session.register(np.zeros(1)), session.drain, lambda: session.info,
    ):  # fmt: skip
        with pytest.raises(wherry.FailedPrecondition, match="session was closed"):
            call()
    stream.offload({"x": np.zeros(1)}).wait(WAIT)  # streams outlive it
    stream.close()


@pytest.mark.parametrize("with_signal", [signal.SIGKILL, signal.SIGTERM])
def test_an_agent_that_dies_is_noticed_everywhere(
    make_agent: Callable[..., Agent], with_signal: signal.Signals
) -> None:
    agent = make_agent()
    session = wherry.Session(str(agent.session_file), max_tickets=4)
    memory = session.empty(1000)
    stream = session.stream("s", {"x": np.zeros(1)}, keep_frames=1, when_full="wait")
    raw = session.stream("raw", strategy="raw")
    tickets = [stream.offload({"x": memory}) for _ in range(4)]  # the first is delivered, the others wait for a reader
    tickets[0].wait(WAIT)
    killer = threading.Timer(0.2, agent.process.send_signal, [with_signal])
    killer.start()
    start = time.monotonic()
    with pytest.raises(wherry.Unavailable):
        tickets[-1].wait()
    for call in (
        lambda: tickets[1].wait(), session.drain, lambda: stream.offload({"x": memory}),
        lambda: stream.offload({"x": memory}, timeout=30), lambda: raw.offload([b"x"]),
        lambda: session.stream("t", {"x": np.zeros(1)}), stream.close,
    ):  # fmt: skip
        with pytest.raises(wherry.Unavailable):
            call()
    tickets[0].wait()
    killer.join()
    tickets.clear()
    session.close()
    gc.collect()
    assert time.monotonic() - start < 20


def test_no_agent_no_program(monkeypatch: pytest.MonkeyPatch, bench: Bench, tmp_path: Path) -> None:
    """Only who needs an embedded agent needs its program."""
    monkeypatch.setenv("WHERRY_WHERRYD", str(tmp_path / "nothing"))
    before = dict(os.environ)
    with wherry.Session(bench.file) as session:
        assert session.info.agent_pid == bench.agent.process.pid
    monkeypatch.setenv("WHERRY_AGENT", str(bench.file))
    with wherry.Session() as session:
        assert session.info.agent_pid == bench.agent.process.pid
    monkeypatch.delenv("WHERRY_AGENT")
    with pytest.raises(wherry.NotFound, match="nothing"):
        wherry.Session("embedded")
    with pytest.raises(wherry.NotFound, match="nothing"):
        wherry.Session()
    with pytest.raises(wherry.Error):
        wherry.Session(tmp_path / "agent.json")
    assert dict(os.environ) == before


def test_an_embedded_agent_delivers_and_ends(wherryd: Path) -> None:
    before = dict(os.environ)
    with wherry.Session("embedded", embedded_budget=64 << 20) as session:
        pid = session.info.agent_pid
        with session.stream("s", {"x": np.zeros(1)}) as stream:
            stream.offload({"x": np.arange(10.0)}).wait(WAIT)
        (frame,) = wherry.open("s", session, follow=False)
        assert frame.batch["x"].to_pylist() == list(range(10))
        del stream, frame
    assert dict(os.environ) == before
    gc.collect()
    deadline = time.monotonic() + WAIT
    while wherry.sessionfile.process_exists(pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_flight_of_an_unknown_stream(bench: Bench) -> None:
    with pytest.raises(wherry.NotFound):
        list(wherry.flight_frames(bench.client, bench.options, "nobody", follow=False))
    assert isinstance(bench.client, flight.FlightClient)
