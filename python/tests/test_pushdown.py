# SPDX-License-Identifier: Apache-2.0
"""Readers that request some columns and rows get what pyarrow and Polars compute from the whole frame."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.flight as flight
import pytest
from agents import Agent
from inputs import STRATEGIES, WAIT, Bench
from wire import Wire, wire

import wherry
from wherry.move.connection import flight_of

pytestmark = pytest.mark.agent

field = pc.field
ROWS = 1000


def particles() -> pa.RecordBatch:
    """All kinds of columns, with nulls, NaN, and an ordinary dictionary."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal(ROWS)
    x[::50] = np.nan
    words = ["electron", "ion", "neutron", None]
    when = datetime.datetime(2026, 11, 26, 12)
    columns: dict[str, Any] = {
        "id": pa.array(np.arange(ROWS)),
        "x": pa.array(x, mask=np.arange(ROWS) % 7 == 3),
        "v": pa.FixedSizeListArray.from_arrays(pa.array(rng.standard_normal(3 * ROWS)), 3),
        "u8": pa.array((np.arange(ROWS) % 256).astype(np.uint8)),
        "u64": pa.array(np.arange(ROWS).astype(np.uint64) + np.uint64(2**63)),
        "f4": pa.array(rng.standard_normal(ROWS).astype(np.float32)),
        "flag": pa.array([i % 3 == 0 if i % 11 else None for i in range(ROWS)]),
        "name": pa.array([f"p{i % 17}" if i % 5 else None for i in range(ROWS)]),
        "when": pa.array([when + datetime.timedelta(seconds=i) for i in range(ROWS)], pa.timestamp("ms")),
        "kind": pa.array([words[i % 4] for i in range(ROWS)]).dictionary_encode(),
        "near": pa.array([list(range(i % 4)) for i in range(ROWS)], pa.list_(pa.int32())),
    }
    return pa.record_batch(columns)


CONDITIONS: list[tuple[Any, Any]] = [
    (field("x") > 0.5, [">", "x", 0.5]),
    (field("x") != 0.5, ["!=", "x", 0.5]),
    (field("id") < 10, ["<", "id", 10]),
    (field("id") <= -1, ["<=", "id", -1]),
    (field("id") >= 0, [">=", "id", 0]),
    (field("u8") == 200, ["==", "u8", 200]),
    (field("f4") > 0, [">", "f4", 0]),
    (field("f4") > field("x"), [">", "f4", {"column": "x"}]),
    (field("flag") == True, ["==", "flag", True]),  # noqa: E712
    (~(field("flag") == True), ["not", ["==", "flag", True]]),  # noqa: E712
    (field("name") == "p3", ["==", "name", "p3"]),
    (field("name").isin(["p1", "p2"]), ["in", "name", ["p1", "p2"]]),
    (field("id").isin([5, 999, 12345]), ["in", "id", [5, 999, 12345]]),
    (field("kind") == "ion", ["==", "kind", "ion"]),
    (field("kind").isin(["ion", "neutron"]), ["in", "kind", ["ion", "neutron"]]),
    (field("kind").is_null(), ["is_null", "kind"]),
    (field("x").is_valid(), ["is_valid", "x"]),
    (field("x").is_nan(), ["is_nan", "x"]),
    (field("when") >= datetime.datetime(2026, 11, 26, 12, 10), [">=", "when", "2026-11-26 12:10:00"]),
    (
        ((field("x") > 0) & (field("kind") == "ion")) | field("name").is_null(),
        ["or", ["and", [">", "x", 0], ["==", "kind", "ion"]], ["is_null", "name"]],
    ),
]


@pytest.fixture(scope="module")
def stream(bench: Bench) -> str:
    """A stream that holds the batch of particles()."""
    name = bench.name()
    batch = particles()
    opened = bench.session.stream(name, batch)
    opened.offload(batch, tag=5).wait(WAIT)
    opened.close()
    return name


def far(bench: Bench, name: str, **wanted: Any) -> pa.RecordBatch:
    """The batch as a reader on any machine gets it."""
    ((about, batch),) = wherry.flight_frames(bench.client, bench.options, name, follow=False, **wanted)
    assert (about["tag"], about["rows"]) == (5, ROWS)
    batch.validate(full=True)
    return batch


def near(bench: Bench, name: str, **wanted: Any) -> pa.RecordBatch:
    """The batch as a reader on the agent's machine gets it."""
    with wherry.open(name, bench.file, follow=False, **wanted) as reader:
        (frame,) = reader
    assert frame.rows == ROWS
    return frame.batch


@pytest.mark.parametrize(("expression", "tree"), CONDITIONS, ids=lambda one: str(one) if isinstance(one, list) else "")
def test_rows_are_those_of_pyarrows_filter(bench: Bench, stream: str, expression: Any, tree: Any) -> None:
    wanted = particles().filter(expression)
    for read in (far, near):
        for condition in (expression, tree):
            got = read(bench, stream, filter=condition)
            assert got.schema.equals(wanted.schema)
            assert str(got.to_pylist()) == str(wanted.to_pylist()), (read, condition)


def test_rows_are_those_of_polars(bench: Bench, stream: str) -> None:
    frame = pl.from_arrow(particles())
    assert isinstance(frame, pl.DataFrame)
    wanted = frame.filter((pl.col("id") % 1 == 0) & (pl.col("f4") > 0.25) & (pl.col("name") == "p4")).select("f4", "id")
    got = far(bench, stream, columns=["f4", "id"], filter=(field("f4") > 0.25) & (field("name") == "p4"))
    assert 0 < got.num_rows < 100
    assert got.to_pydict() == wanted.to_dict(as_series=False)


def test_numbers_above_int64(bench: Bench, stream: str) -> None:
    for read in (far, near):
        assert read(bench, stream, filter=[">=", "u64", 2**63 + 990]).num_rows == 10


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_columns_in_the_order_asked_for(bench: Bench, strategy: str) -> None:
    name, batch = bench.name(), particles()
    with bench.session.stream(name, batch, strategy=strategy) as opened:
        opened.offload(batch, tag=5).wait(WAIT)
    for read in (far, near):
        got = read(bench, name, columns=["kind", "v", "id"])
        assert got.schema.names == ["kind", "v", "id"]
        assert got.to_pylist() == batch.select(["kind", "v", "id"]).to_pylist()
        got = read(bench, name, columns=["v"], filter=["<", "id", 3])
        assert got.to_pylist() == batch.select(["v"]).slice(0, 3).to_pylist()


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_the_agent_compresses_what_it_sends(bench: Bench, codec: str) -> None:
    rows = 100_000
    data = {"step": np.repeat(np.arange(100), rows // 100), "x": np.zeros(rows), "y": np.arange(rows) % 7 * 0.5}
    name = bench.name()
    with bench.session.stream(name, data) as opened:
        opened.offload(data, tag=5).wait(WAIT)
    sizes = {}
    for compression in (None, codec):
        with relayed(bench) as (counted, client, options):
            ((_, batch),) = wherry.flight_frames(client, options, name, follow=False, compression=compression)
            sizes[compression] = counted.taken()
            for column, values in data.items():
                assert np.array_equal(batch[column], values)
            ((_, few),) = wherry.flight_frames(
                client, options, name, follow=False, compression=compression, filter=["==", "y", 3]
            )
            assert few.num_rows == sum(data["y"] == 3)
    assert sizes[codec] < 0.2 * sizes[None], sizes


def test_one_tag_and_what_is_known_about_frames(bench: Bench) -> None:
    name = bench.name()
    with bench.session.stream(name, {"x": np.zeros(3)}) as opened:
        for tag in (4, 8, 12):
            opened.offload({"x": np.full(3, float(tag))}, tag=tag).wait(WAIT)
        ((about, batch),) = wherry.flight_frames(bench.client, bench.options, name, follow=False, tag=8)
        assert (about["tag"], batch["x"].to_pylist()) == (8, [8.0, 8.0, 8.0])
        assert list(wherry.flight_frames(bench.client, bench.options, name, follow=False, tag=9)) == []
        known = list(wherry.flight_frames(bench.client, bench.options, name, follow=False, columns=[]))
        assert [(about["tag"], about["rows"], batch.num_columns) for about, batch in known] == [
            (4, 3, 0),
            (8, 3, 0),
            (12, 3, 0),
        ]


@contextmanager
def relayed(bench: Bench) -> Iterator[tuple[Wire, flight.FlightClient, flight.FlightCallOptions]]:
    """A separate client whose bytes on the wire are counted."""
    address, token = flight_of(bench.file)
    host, _, port = address.removeprefix("grpc://").rpartition(":")
    with wire((host, int(port))) as counted:
        options = flight.FlightCallOptions(headers=[(b"authorization", b"Bearer " + token.encode())])
        with flight.FlightClient(f"grpc://127.0.0.1:{counted.port}") as client:
            yield counted, client, options


def test_a_frame_of_which_no_row_is_left_comes_without_rows(bench: Bench, stream: str) -> None:
    for read in (far, near):
        got = read(bench, stream, filter=field("id") < 0)
        assert (got.num_rows, got.schema) == (0, particles().schema)


def test_each_part_of_a_step_is_filtered(bench: Bench) -> None:
    name = bench.name()
    with wherry.Session(str(bench.file)) as other:
        streams = [
            session.stream(name, {"x": np.zeros(1)}, part=part, parts=2)
            for part, session in enumerate((bench.session, other))
        ]
        for part, opened in enumerate(streams):
            opened.offload({"x": np.arange(10.0) + 5 * part}, tag=1).wait(WAIT)
        batches = list(wherry.flight_frames(bench.client, bench.options, name, follow=False, filter=[">", "x", 8]))
        assert [batch["x"].to_pylist() for _, batch in batches] == [[9.0], [9.0, 10.0, 11.0, 12.0, 13.0, 14.0]]
        with wherry.open(name, bench.file, follow=False, filter=[">", "x", 8]) as reader:
            assert [frame.table.num_rows for frame in reader] == [7]
        for opened in streams:
            opened.close()


def test_one_percent_of_the_rows_is_at_most_two_percent_of_the_bytes_on_the_wire(bench: Bench) -> None:
    rows = 200_000
    rng = np.random.default_rng(3)
    data = {"id": np.arange(rows), "x": rng.random(rows), "v": rng.standard_normal((rows, 3))}
    name = bench.name()
    with bench.session.stream(name, data) as opened:
        opened.offload(data, tag=5).wait(WAIT)
    sizes = {}
    with relayed(bench) as (counted, client, options):
        asked: dict[str, dict[str, Any]] = {
            "all": {},
            "some": {"filter": field("x") < 0.01},
            "one": {"columns": ["id"]},
        }
        for what, wanted in asked.items():
            counted.taken()
            ((_, batch),) = wherry.flight_frames(client, options, name, follow=False, **wanted)
            sizes[what] = (batch.num_rows, counted.taken())
    assert sizes["all"][0] == rows
    assert sizes["all"][1] > rows * 40
    assert sizes["some"][0] == int((data["x"] < 0.01).sum())
    assert sizes["some"][1] <= 0.02 * sizes["all"][1], sizes
    assert sizes["one"][1] < 0.21 * sizes["all"][1], sizes


@pytest.mark.parametrize(
    ("wanted", "cause"),
    [
        ({"filter": [">", "nobody", 3]}, "column"),
        ({"filter": field("nobody") > 3}, "nobody"),
        ({"filter": ["~", "x", 3]}, "unknown condition"),
        ({"filter": [">", "v", 3]}, "filter"),
        ({"filter": ["==", "name", 3]}, "filter"),
        ({"filter": field("x")}, "filter"),
        ({"filter": "x > 3"}, "filter is a str"),
        ({"filter": [">", "x", object()]}, "numbers, texts and lists"),
        ({"columns": ["nobody"]}, "nobody"),
        ({"columns": ["id", "id"]}, "twice"),
        ({"columns": "id"}, "list of names"),
    ],
)
def test_what_does_not_fit_the_stream_is_refused(bench: Bench, stream: str, wanted: Any, cause: str) -> None:
    with pytest.raises((wherry.InvalidArgument, wherry.errors.Unsupported), match=cause):
        far(bench, stream, **wanted)
    with pytest.raises(wherry.InvalidArgument):
        near(bench, stream, **wanted)
    assert far(bench, stream, filter=["==", "id", 7]).num_rows == 1, "the agent goes on"


@pytest.mark.parametrize(
    ("ticket", "cause"),
    [
        ({"version": 2}, "knows version 1"),
        ({"columns": [1]}, "list of at most 4096 names"),
        ({"columns": None}, "list of at most 4096 names"),
        ({"filter": "x"}, "a list or an object"),
        ({"compression": "snappy"}, "lz4"),
        ({"tag": -1}, "from 0 on"),
        ({"filters": ["x"]}, "unknown key"),
        ({"filter": ["in", "id", list(range(20_000))]}, "64 KiB"),
        ({"filter": json.loads("[" * 70 + "]" * 70)}, "nested too deep"),
        ({"filter": ["or", *[["==", "id", 1]] * 1500]}, "more than 1024 parts"),
        ({"filter": {"substrait": "AAAA"}}, "Substrait"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_tickets_are_read_strictly(bench: Bench, stream: str, ticket: Any, cause: str) -> None:
    with pytest.raises(pa.ArrowInvalid, match=cause):
        bench.client.do_get(flight.Ticket(json.dumps({"stream": stream, **ticket}).encode()), bench.options).read_all()


def test_what_readers_filter_counts_as_held_by_readers(tmp_path: Any) -> None:
    program = wherry.system.wherryd()
    agent = Agent(tmp_path, program, "--reader-budget", "6MiB")
    try:
        small = Bench(agent)
        rows = 500_000
        data = {"id": np.arange(rows)}
        with small.session.stream("s", data) as opened:
            opened.offload(data, tag=1).wait(WAIT)
            assert far_rows(small, ["<", "id", 10]) == 10
            with pytest.raises(wherry.errors.ResourceExhausted, match="reader_budget"):
                far_rows(small, [">=", "id", 10])
            assert far_rows(small, ["<", "id", 10]) == 10
        small.client.close()
        small.session.close()
    finally:
        agent.stop()


def far_rows(bench: Bench, condition: Any) -> int:
    """The number of rows of the only frame that match `condition`."""
    ((_, batch),) = wherry.flight_frames(bench.client, bench.options, "s", follow=False, filter=condition)
    return int(batch.num_rows)
