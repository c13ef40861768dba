# SPDX-License-Identifier: Apache-2.0
"""Frames are Arrow IPC streams for any reader. nanoarrow, polars and duckdb read them, and pyarrow validates them."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import duckdb
import nanoarrow as na
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from agents import Agent
from arrow_values import NESTED, PLAIN, array_of
from conftest import wherryd_or_fail

import wherry
from wherry.move.connection import Connection, Lease
from wherry.session.which_agent import locate

pytestmark = pytest.mark.agent

ALIGNMENT = {"ipc": 64, "ipc_page_aligned": 4096}
WAIT = 20.0


class Source:
    """A session, and the bytes of its delivered frames as they are in the agent's memory."""

    def __init__(self, agent: Agent) -> None:
        self.file = agent.session_file
        self.session = wherry.Session(self.file)
        self.connection = Connection(locate(self.file), WAIT)
        self._names = (f"s{i}" for i in itertools.count())

    def deliver(self, batches: list[pa.RecordBatch], strategy: str) -> list[pa.Buffer]:
        """Posts one frame per batch. The buffers are the agent's memory, which stays leased for the rest of the test
        run."""
        name = next(self._names)
        with self.session.stream(name, batches[0].schema, strategy, keep_frames=0) as stream:
            for batch in batches:
                stream.offload(batch).wait(WAIT)
        frames = []
        for i in range(len(batches)):
            reply = self.connection.request({"op": "next", "stream": name, "sequence": i, "timeout_ms": 1000}, 1)
            assert reply["what"] == "frame"
            lease = Lease(self.connection, reply["lease"])
            frames.append(pa.foreign_buffer(self.connection.address + reply["offset"], reply["bytes"], base=lease))
        return frames


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Source]:
    running = Agent(tmp_path_factory.mktemp("readers"), wherryd_or_fail())
    try:
        one = Source(running)
        yield one
        one.connection.close()
        one.session.close()
    finally:
        running.stop()


def batches_of(kind: pa.DataType) -> list[pa.RecordBatch]:
    """Batches without nulls, with nulls, sliced to a bit offset, and empty, each with a neighbour column on each
    side."""
    frames = []
    for seed, (nulls, offset, rows) in enumerate(
        [(False, 0, 40), (True, 0, 40), (True, 3, 30), (True, 9, 1), (True, 0, 0)]
    ):
        column = array_of(kind, 40, seed, nulls).slice(offset, rows)
        around = [pa.array(np.arange(rows) + seed), column, pa.array([f"{i}" for i in range(rows)], pa.string())]
        frames.append(pa.record_batch(around, names=["before", "x", "after"]))
    return frames


EVERY = [pytest.param(kind, id=str(kind)[:60]) for kind in PLAIN + NESTED]
EVERY += [
    pytest.param(pa.list_(pa.dictionary(pa.int8(), pa.string())), id="list of dictionary"),
    pytest.param(pa.struct({"d": pa.dictionary(pa.int16(), pa.string()), "n": pa.int8()}), id="struct of dictionary"),
]


def unsliced(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows from offset 0, because these tests do not cover how other libraries import slices."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    with pa.ipc.open_stream(sink.getvalue()) as stream:
        return stream.read_next_batch()


def delivered(source: Source, kind: pa.DataType, strategy: str) -> Iterator[tuple[pa.RecordBatch, pa.Buffer]]:
    batches = batches_of(kind)
    return zip(batches, source.deliver(batches, strategy), strict=True)


def buffers_of(array: pa.Array) -> Iterator[pa.Buffer]:
    for buffer in array.buffers():  # children's, too
        if buffer is not None and buffer.size > 0:
            yield buffer
    if isinstance(array, pa.DictionaryArray):
        yield from buffers_of(array.dictionary)


@pytest.mark.parametrize("strategy", ALIGNMENT)
@pytest.mark.parametrize("kind", EVERY)
def test_pyarrow_reads_every_message_and_finds_nothing_wrong(source: Source, kind: pa.DataType, strategy: str) -> None:
    for wanted, frame in delivered(source, kind, strategy):
        with pa.ipc.open_stream(frame) as stream:
            batch = stream.read_next_batch()
            with pytest.raises(StopIteration):
                stream.read_next_batch()
        batch.validate(full=True)
        assert batch.schema.equals(wanted.schema, check_metadata=True)
        assert batch.equals(wanted)
        for column in batch.columns:
            for buffer in buffers_of(column):
                assert frame.address <= buffer.address <= frame.address + frame.size - buffer.size, "copied"
                assert buffer.address % ALIGNMENT[strategy] == 0


@pytest.mark.parametrize("strategy", ALIGNMENT)
def test_frames_are_whole_streams_from_schema_to_end_marker(source: Source, strategy: str) -> None:
    words = pa.array(["a", None, "b"]).dictionary_encode()
    (frame,) = source.deliver([pa.record_batch({"d": words, "l": pa.array([[1], [], None])})], strategy)
    assert frame.address % 4096 == 0
    seen = list(pa.ipc.MessageReader.open_stream(frame))
    assert [message.type for message in seen] == ["schema", "dictionary", "record batch"]
    for message in seen[1:]:
        assert message.body.address % ALIGNMENT[strategy] == 0
        assert message.body.size % ALIGNMENT[strategy] == 0
    assert frame.to_pybytes()[-8:] == b"\xff\xff\xff\xff\0\0\0\0"


@pytest.mark.parametrize("strategy", ALIGNMENT)
@pytest.mark.parametrize("kind", EVERY)
def test_nanoarrow(source: Source, kind: pa.DataType, strategy: str) -> None:
    for wanted, frame in delivered(source, kind, strategy):
        if wanted.num_rows < 2:
            continue  # no rows, perhaps only in a child: the next test covers this
        with na.ArrayStream.from_readable(io.BytesIO(frame)) as stream:
            table = pa.table(stream)  # nanoarrow decodes, pyarrow compares
        table.validate(full=True)
        assert table.schema.equals(wanted.schema)
        assert table.equals(pa.Table.from_batches([wanted]))


@pytest.mark.parametrize("strategy", ALIGNMENT)
@pytest.mark.parametrize(("kind", "width"), [(pa.string(), 4), (pa.large_binary(), 8), (pa.list_(pa.int8()), 4)])
def test_offsets_of_no_rows_are_one_zero(source: Source, kind: pa.DataType, width: int, strategy: str) -> None:
    (frame,) = source.deliver([pa.record_batch({"x": array_of(kind, 0)})], strategy)
    with pa.ipc.open_stream(frame) as stream:
        offsets = stream.read_next_batch()["x"].buffers()[1]
    assert offsets.to_pybytes() == bytes(width)


POLARS_HAS_NONE = [pa.month_day_nano_interval(), pa.decimal256(60, 10), pa.struct([])]


@pytest.mark.parametrize("strategy", ALIGNMENT)
@pytest.mark.parametrize("kind", [kind for kind in EVERY if kind.values[0] not in POLARS_HAS_NONE])
def test_polars(source: Source, kind: pa.DataType, strategy: str) -> None:
    for wanted, frame in delivered(source, kind, strategy):
        got = pl.read_ipc_stream(io.BytesIO(frame))
        assert got.equals(pl.DataFrame(pl.from_arrow(unsliced(wanted))), null_equal=True)


DUCKDB_HAS_NONE = [pa.float16(), pa.decimal256(60, 10), pa.struct([])]


@pytest.mark.parametrize("strategy", ALIGNMENT)
@pytest.mark.parametrize("kind", [kind for kind in EVERY if kind.values[0] not in DUCKDB_HAS_NONE])
def test_duckdb(source: Source, kind: pa.DataType, strategy: str) -> None:
    """DuckDB reads Arrow's C streams, both from the agent's memory and from nanoarrow's result."""
    with duckdb.connect() as database:
        for wanted, frame in delivered(source, kind, strategy):
            with pa.ipc.open_stream(frame) as stream:
                batch = stream.read_next_batch()
            # Compares times with a zone as nanoseconds, because Python has no time zones that DuckDB could use.
            x = "epoch_ns(x)" if pa.types.is_timestamp(kind) and kind.tz else "x"

            def rows(source: Any, x: str = x) -> list[Any]:
                return database.from_arrow(source).project(f'"before", {x}, "after"').order('"before"').fetchall()

            expected = rows(pa.Table.from_batches([unsliced(wanted)]))
            assert len(expected) == wanted.num_rows
            assert rows(pa.Table.from_batches([batch])) == expected
            with na.ArrayStream.from_readable(io.BytesIO(frame)) as decoded:
                assert rows(decoded) == expected


@pytest.mark.parametrize("strategy", ALIGNMENT)
def test_duckdb_computes_on_frames_of_wherry_open(source: Source, strategy: str) -> None:
    particles = {
        "x": np.arange(10_000.0),
        "kind": pa.array(["ion", "electron"] * 5000).dictionary_encode(),
        "charge": pa.array([Decimal(i % 7) for i in range(10_000)], pa.decimal128(10, 2)),
    }
    with source.session.stream(f"particles-{strategy}", particles, strategy) as stream:
        stream.offload(particles).wait(WAIT)
    (frame,) = wherry.open(f"particles-{strategy}", source.file, follow=False)
    with duckdb.connect() as database:
        database.register("particles", frame.batch)
        query = "select kind, count(*), sum(x), sum(charge) from particles where x >= 10 group by kind order by kind"
        got = database.sql(query).fetchall()
    x = particles["x"]
    charge = np.arange(10_000) % 7
    assert got == [
        (name, 4995, x[10:][first::2].sum(), Decimal(int(charge[10:][first::2].sum())))
        for name, first in (("electron", 1), ("ion", 0))
    ]
    values: Any = frame.batch["x"].to_numpy(zero_copy_only=True)
    assert values.ctypes.data % ALIGNMENT[strategy] == 0
