# SPDX-License-Identifier: Apache-2.0
"""Arrow's and other libraries' arrays through a real agent and back: by wherry.open and by Flight."""

from __future__ import annotations

import time
from pathlib import Path

import nanoarrow as na
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arrow_values import EVERY, NESTED, PLAIN, array_of
from inputs import STRATEGIES, WAIT, Bench

import wherry

pytestmark = pytest.mark.agent


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
    """Slices with bit offsets of 0 to 9 in validity, booleans and children; all types in one batch."""
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


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_schemas_own_metadata(bench: Bench, strategy: str) -> None:
    """Each way to read keeps the schema's metadata, in which pandas keeps its index."""
    about = {b"pandas": b'{"index_columns": ["k"]}', b"\xff raw": b"\x00\x01", b"": b""}
    table = pa.table({"k": ["a", "b"], "v": [1.0, 2.0]}).replace_schema_metadata(about)
    got = bench.deliver(table, strategy=strategy)
    assert got.schema.metadata == about
    assert got.equals(table.to_batches()[0], check_metadata=True)


@pytest.mark.parametrize("format", ["arrow", "parquet"])
def test_the_schemas_own_metadata_in_files(bench: Bench, tmp_path: Path, format: str) -> None:
    table = pa.table({"v": [1.0, 2.0]}).replace_schema_metadata({"author": "me"})
    name = bench.name()
    with bench.session.stream(name, table, sink_dir=tmp_path, sink_format=format) as stream:
        stream.offload(table).wait(WAIT)
    file = tmp_path / f"{name}-00000000.{format}"
    deadline = time.monotonic() + 300
    while not file.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    schema = pq.read_schema(file) if format == "parquet" else pa.ipc.open_file(file).schema
    assert schema.metadata[b"author"] == b"me"


def test_metadata_of_the_schema_are_the_streams(bench: Bench) -> None:
    """A frame with other metadata, or none, gets the metadata with which the stream was opened."""
    table = pa.table({"v": [1.0, 2.0]})
    got = bench.deliver(table, schema=table.schema.with_metadata({"author": "me"}))
    assert got.schema.metadata == {b"author": b"me"}


ODD = [
    pa.uuid(),
    pa.list_(pa.uuid()),
    pa.struct([("id", pa.uuid())]),
    pa.dictionary(pa.int8(), pa.decimal64(18, 3)),
    pa.dictionary(pa.int8(), pa.time32("s")),
]


@pytest.mark.parametrize("kind", [*EVERY, *ODD], ids=str)
def test_tables_without_rows_of_any_type(bench: Bench, kind: pa.DataType) -> None:
    schema = pa.schema([("c", kind)])
    name = bench.name()
    with bench.session.stream(name, schema) as stream:
        stream.offload(pa.Table.from_batches([], schema)).wait(WAIT)
    (frame,) = bench.read(name)
    assert frame.batch.num_rows == 0
    assert frame.batch.schema == schema


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
    # The strings of polars are views. The stream refuses them and names the column, and accepts them after a cast.
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
