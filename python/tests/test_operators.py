# SPDX-License-Identifier: Apache-2.0
"""Operators that a stream declares: derived streams deliver what pyarrow, pandas and numpy compute from the frames."""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.flight as flight
import pyarrow.parquet as pq
import pytest
from agents import Agent
from inputs import STRATEGIES, WAIT, Bench, assert_same
from jobs import eventually
from wire import wire

import wherry
from wherry.move.connection import flight_of
from wherry.session.metrics import read_metrics

pytestmark = pytest.mark.agent

ROWS = 1000
KINDS = ["electron", "ion", "neutron", None]


def particles(rows: int = ROWS, seed: int = 1) -> pa.RecordBatch:
    """All kinds of columns, with nulls, NaN, and a dictionary."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(rows)
    x[::50] = np.nan
    number = np.arange(rows)
    columns: dict[str, Any] = {
        "id": pa.array(rng.permutation(rows)),
        "x": pa.array(x, mask=number % 7 == 3),
        "t": pa.array(300 + 100 * rng.random(rows), mask=number % 11 == 5),
        "v": pa.FixedSizeListArray.from_arrays(pa.array(rng.standard_normal(3 * rows)), 3),
        "name": pa.array([f"p{i % 17}" if i % 5 else None for i in number], pa.string()),
        "kind": pa.array([KINDS[i % 4] for i in number], pa.string()).dictionary_encode(),
        "cell": pa.array((number % 13).astype(np.int16), mask=number % 13 == 12),
    }
    return pa.record_batch(columns)


def derived(bench: Bench, batch: pa.RecordBatch, *steps: Any, **options: Any) -> pa.RecordBatch:
    """Posts a frame; returns what readers of the derived stream get for it."""
    (frame,) = frames(bench, batch, *steps, **options)
    return frame.batch


def frames(bench: Bench, batch: pa.RecordBatch, *steps: Any, **options: Any) -> list[wherry.move.Frame]:
    name = bench.name()
    one = {"name": "made", "steps": list(steps)} | options.pop("more", {})
    with bench.session.stream(name, batch.schema, operators=[one], **options) as stream:
        stream.offload(batch, tag=7).wait(WAIT)
    made = ended(bench, f"{name}.made")
    assert [(frame.tag, frame.sequence) for frame in made] == [(7, 0)]
    return made


def ended(bench: Bench, name: str) -> list[wherry.move.Frame]:
    """All frames of a derived stream after its source was closed. Checks that Flight readers get the same."""
    with wherry.open(name, bench.file, timeout=WAIT) as reader:
        found = list(reader)
    far = [batch for _, batch in wherry.flight_frames(bench.client, bench.options, name, follow=False)]
    near = [batch for frame in found for batch in frame.batches]
    assert len(far) == len(near)
    for one, other in zip(far, near, strict=True):
        one.validate(full=True)
        other.validate(full=True)
        assert_same(one, other)
    return found


def status(bench: Bench, name: str) -> wherry.move.StreamStatus:
    (found,) = [stream for stream in wherry.streams(bench.file) if stream.name == name]
    return found


def plain(batch: pa.RecordBatch | pa.Table) -> pa.Table:
    """Replaces dictionaries by their values, because tests do not depend on which dictionary a column uses."""
    table = batch if isinstance(batch, pa.Table) else pa.table(batch)
    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(i, field.name, table[i].cast(field.type.value_type))
    return table.combine_chunks()


def assert_rows(got: pa.RecordBatch, wanted: pa.RecordBatch | pa.Table) -> None:
    assert got.schema.names == wanted.schema.names
    assert [field.type for field in got.schema] == [field.type for field in wanted.schema]
    assert str(plain(got).to_pylist()) == str(plain(wanted).to_pylist())


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_filter_leaves_the_rows_that_pyarrow_leaves(bench: Bench, strategy: str) -> None:
    batch = particles()
    for condition in (pc.field("t") > 350, [">", "t", 350], ["and", ["==", "kind", "ion"], ["<", "x", 0.5]]):
        expression = condition
        if isinstance(condition, list):
            expression = pc.field("t") > 350
            if condition[0] == "and":
                expression = (pc.field("kind") == "ion") & (pc.field("x") < 0.5)
        got = derived(bench, batch, {"filter": condition}, strategy=strategy)
        assert got.schema.equals(batch.schema, check_metadata=True)
        assert_rows(got, batch.filter(expression))
        assert 0 < got.num_rows < ROWS


def test_the_original_stays_and_a_ticket_does_not_wait(bench: Bench) -> None:
    name, batch = bench.name(), particles()
    with bench.session.stream(
        name, batch.schema, operators=[{"name": "none", "steps": [{"filter": ["<", "t", 0]}]}, {"name": "all"}]
    ) as stream:
        for tag in range(5):
            stream.offload(batch, tag=tag).wait(WAIT)
    assert [frame.tag for frame in bench.read(name)] == list(range(5))
    assert [(frame.tag, frame.rows) for frame in ended(bench, f"{name}.none")] == [(tag, 0) for tag in range(5)]
    for frame in ended(bench, f"{name}.all"):
        assert_rows(frame.batch, batch)
    source = status(bench, name)
    assert (source.derived, source.operator_lag, source.operator_errors, source.operator_skipped) == (2, 0, 0, 0)
    assert status(bench, f"{name}.all").source == name


def test_a_projection_keeps_order_and_metadata(bench: Bench) -> None:
    batch = particles().replace_schema_metadata({"made": "by a test"})
    got = derived(bench, batch, {"project": ["v", "id"]})
    assert got.schema.equals(batch.select(["v", "id"]).schema, check_metadata=True)
    assert_rows(got, batch.select(["v", "id"]))


def test_sorting_is_pandas_stable_sort(bench: Bench) -> None:
    batch = particles()
    got = derived(bench, batch, {"sort": ["kind", {"column": "cell", "order": "descending"}]}, {"project": ["id"]})
    frame = plain(batch).to_pandas()
    by_cell = frame.sort_values("cell", ascending=False, kind="stable", na_position="last")
    wanted = by_cell.sort_values("kind", kind="stable", na_position="last")
    assert got["id"].to_pylist() == wanted["id"].tolist()
    # A sort puts numbers first, then NaN, then nulls.
    got = derived(bench, batch, {"sort": ["x"]}, {"project": ["x"]})
    values = got["x"].to_pylist()
    numbers = sorted(one for one in batch["x"].to_pylist() if one is not None and not math.isnan(one))
    assert values[: len(numbers)] == numbers
    rest = values[len(numbers) :]
    assert str(rest) == str(sorted(rest, key=lambda one: one is None))


def test_aggregates_are_pandas(bench: Bench) -> None:
    batch = particles()
    functions = [[f, "t"] for f in ("sum", "min", "max", "mean", "count")]
    got = derived(bench, batch, {"aggregate": [["count"], *functions], "by": ["kind", "cell"]})
    assert got.schema.names == ["kind", "cell", "count", "t_sum", "t_min", "t_max", "t_mean", "t_count"]
    frame = plain(batch).to_pandas()
    groups = frame.groupby(["kind", "cell"], dropna=False, sort=False)["t"]
    wanted = groups.agg(["size", lambda t: t.sum(min_count=1), "min", "max", "mean", "count"]).reset_index()
    assert got.num_rows == len(wanted)
    rows = {(row["kind"], row["cell"]): list(row.values())[2:] for row in got.to_pylist()}
    assert [row["kind"] for row in got.to_pylist()][:4] == KINDS  # in the order of their first occurrence
    for row in wanted.itertuples(index=False):
        key = (None if pd.isna(row[0]) else row[0], None if pd.isna(row[1]) else int(row[1]))
        for made, expected in zip(rows[key], row[2:], strict=True):
            if pd.isna(expected):
                assert made is None
            else:
                assert made == pytest.approx(expected, rel=1e-12)


def test_aggregates_without_groups_are_one_row(bench: Bench) -> None:
    batch = particles()
    step = {"aggregate": [["count"], ["count", "x", "there"], ["sum", "id"], ["min", "name"], ["mean", "t"]]}
    (row,) = derived(bench, batch, step).to_pylist()
    t = plain(batch).to_pandas()["t"]
    assert row == {
        "count": ROWS,
        "there": ROWS - batch["x"].null_count,
        "id_sum": sum(range(ROWS)),
        "name_min": min(one for one in batch["name"].to_pylist() if one),
        "t_mean": pytest.approx(t.mean(), rel=1e-12),
    }
    # Later steps work on the result of the aggregate.
    after = derived(
        bench,
        batch,
        {"aggregate": [["mean", "t"]], "by": ["kind"]},
        {"filter": ["is_valid", "kind"]},
        {"sort": [{"column": "kind", "order": "descending"}]},
    )
    means = plain(batch).to_pandas().groupby("kind")["t"].mean().sort_index(ascending=False)
    assert after["kind"].to_pylist() == list(means.index)
    assert after["t_mean"].to_pylist() == pytest.approx(means.tolist(), rel=1e-12)


@pytest.mark.parametrize(
    "step",
    [
        {"filter": [">", "t", 350]},
        {"sort": ["kind", "x"]},
        {"aggregate": [["sum", "t"], ["count"]], "by": ["kind"]},
        {"project": ["kind", "v"]},
    ],
)
def test_frames_without_rows_are_frames_without_rows(bench: Bench, step: dict[str, Any]) -> None:
    batch = particles(0)
    assert derived(bench, batch, step).num_rows == 0
    (row,) = derived(bench, batch, step, {"aggregate": [["count"]]}).to_pylist()
    assert row == {"count": 0}


def test_a_partition_is_a_stream_in_parts(bench: Bench) -> None:
    batch = particles()
    (frame,) = frames(bench, batch, {"project": ["id", "kind"]}, {"partition": "kind", "values": ["ion", "electron"]})
    kinds = np.array(plain(batch)["kind"].to_pylist(), object)
    ids = np.array(batch["id"])
    parts = [ids[kinds == "ion"], ids[kinds == "electron"], ids[(kinds != "ion") & (kinds != "electron")]]
    assert [part["id"].to_pylist() for part in frame.batches] == [part.tolist() for part in parts]

    (frame,) = frames(bench, batch, {"partition": "x", "bounds": [-1, 0.5]}, strategy="c_abi")
    x = plain(batch).to_pandas()["x"].to_numpy()
    expected = [x < -1, (x >= -1) & (x < 0.5), x >= 0.5, np.isnan(x)]  # the last part: NaN and nulls
    assert [part["id"].to_pylist() for part in frame.batches] == [ids[one].tolist() for one in expected]
    assert sum(part.num_rows for part in frame.batches) == ROWS

    name = bench.name()
    one = {"name": "by", "steps": [{"partition": "cell", "values": [3, 4]}]}
    with bench.session.stream(name, batch.schema, operators=[one]) as stream:
        stream.offload(batch).wait(WAIT)
    assert status(bench, f"{name}.by").parts == 3
    with wherry.open(f"{name}.by", bench.file, timeout=WAIT, part=1) as reader:
        assert set(next(reader).batch["cell"].to_pylist()) == {4}


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_compressed_bodies_travel_as_they_are_stored(bench: Bench, compression: str) -> None:
    """Numbers that compress well take less memory and fewer bytes on the wire. Readers see the same rows."""
    batch = pa.record_batch({"n": pa.array(np.repeat(np.arange(100), 1000)), "kind": pa.array(["ion"] * 100_000)})
    name = bench.name()
    operators = [{"name": "small", "compression": compression}, {"name": "plain"}]
    with bench.session.stream(name, batch.schema, operators=operators) as stream:
        stream.offload(batch).wait(WAIT)
    for one in ("small", "plain"):
        (frame,) = ended(bench, f"{name}.{one}")
        assert frame.batch.equals(batch)
    small, whole = (status(bench, f"{name}.{one}").held_bytes for one in ("small", "plain"))
    assert small < whole / 3
    host, _, port = flight_of(bench.file)[0].removeprefix("grpc://").rpartition(":")
    with wire((host, int(port))) as relay, flight.FlightClient(f"grpc://127.0.0.1:{relay.port}") as client:
        for one in ("small", "plain"):
            relay.taken()
            ((_, got),) = wherry.flight_frames(client, bench.options, f"{name}.{one}", follow=False)
            assert got.equals(batch)
            taken = relay.taken()
            assert taken < small + 50_000 if one == "small" else taken > whole
        # A reader can also filter a compressed stream.
        ((_, got),) = wherry.flight_frames(
            client, bench.options, f"{name}.small", follow=False, filter=["==", "n", 7], compression="zstd"
        )
        assert got.num_rows == 1000


def test_a_step_in_parts_is_operated_on_as_a_whole(bench: Bench) -> None:
    """Each part has its own dictionary."""
    name = bench.name()
    data = [particles(300, seed) for seed in (1, 2, 3)]
    words: list[list[str | None]] = [["a", "b"], ["b", "c"], ["d", None]]
    data = [
        one.set_column(5, "kind", pa.array(some * 150, pa.string()).dictionary_encode())
        for one, some in zip(data, words, strict=True)
    ]
    operators = [
        {"name": "sums", "steps": [{"aggregate": [["sum", "id"], ["count"]], "by": ["kind"]}]},
        {"name": "sorted", "steps": [{"sort": ["t"]}, {"project": ["t", "kind"]}]},
    ]
    with ExitStack() as stack:
        for part, one in enumerate(data):
            session = stack.enter_context(wherry.Session(str(bench.file)))
            stream = session.stream(name, one.schema, part=part, parts=3, operators=operators)
            stack.enter_context(stream)
            stream.offload(one, tag=4).wait(WAIT)
        with pytest.raises(wherry.InvalidArgument, match="all parts must agree: the list of operators"):
            bench.session.stream(name, data[0].schema, part=0, parts=3)
    whole = pd.concat([plain(one).to_pandas() for one in data], ignore_index=True)
    (frame,) = ended(bench, f"{name}.sums")
    wanted = whole.groupby("kind", dropna=False)["id"].agg(["sum", "size"])
    got = {row["kind"]: (row["id_sum"], row["count"]) for row in frame.batch.to_pylist()}
    assert got == {None if pd.isna(k) else k: (int(r["sum"]), int(r["size"])) for k, r in wanted.iterrows()}
    (frame,) = ended(bench, f"{name}.sorted")
    wanted = whole.sort_values("t", kind="stable", na_position="last")
    assert str(frame.batch["kind"].to_pylist()) == str([None if pd.isna(k) else k for k in wanted["kind"]])


def test_files_hold_the_originals(bench: Bench, tmp_path: Any) -> None:
    name, batch = bench.name(), particles()
    options = {"sink_dir": tmp_path, "sink_format": "parquet", "when_full": "wait", "keep_frames": 2}
    one = {"name": "hot", "steps": [{"filter": [">", "t", 350]}]}
    with (
        bench.session.stream(name, batch.schema, operators=[one], **options) as stream,
        wherry.open(f"{name}.hot", bench.file, timeout=WAIT) as reader,
    ):
        for tag in range(6):
            stream.offload(batch, tag=tag, timeout=WAIT).wait(WAIT)
            assert next(reader).tag == tag
    assert eventually(lambda: len(list(tmp_path.glob("*.parquet"))) == 6)
    for file in tmp_path.glob("*.parquet"):
        assert str(plain(pq.read_table(file)).to_pylist()) == str(plain(batch).to_pylist())


REFUSED: list[tuple[Any, str]] = [
    ([{"name": "a", "steps": [{"filter": [">", "nothing", 3]}]}], 'operators: "a": step 0: .*no column "nothing"'),
    ([{"name": "a", "steps": [{"filter": [">", "name", 3]}]}], 'operators: "a": step 0: filter: '),
    ([{"name": "a", "steps": [{"project": ["id"]}, {"sort": ["x"]}]}], 'step 1: there is no column "x"'),
    ([{"name": "a", "steps": [{"project": ["id", "id"]}]}], '"id" is named twice'),
    ([{"name": "a", "steps": [{"sort": ["v"]}]}], 'column "v" of type fixed_size_list.* has no order'),
    ([{"name": "a", "steps": [{"sort": [{"column": "x", "order": "up"}]}]}], '"order" is "ascending" or "descending"'),
    ([{"name": "a", "steps": [{"aggregate": [["mean", "name"]]}]}], '"mean" takes numbers, and column "name"'),
    ([{"name": "a", "steps": [{"aggregate": [["median", "x"]]}]}], 'unknown function "median"'),
    ([{"name": "a", "steps": [{"aggregate": [["sum", "x"], ["sum", "x"]]}]}], '"x_sum" would be two columns'),
    ([{"name": "a", "steps": [{"aggregate": [["count"]], "by": ["v"]}]}], 'operators: "a": '),
    ([{"name": "a", "steps": [{"aggregate": []}]}], "computes nothing"),
    ([{"name": "a", "steps": [{"partition": "kind", "values": ["ion"]}, {"sort": ["x"]}]}], "a partition is the last"),
    ([{"name": "a", "steps": [{"partition": "x", "bounds": ["low"]}]}], "step 0: "),
    ([{"name": "a", "steps": [{"partition": "x"}]}], '"values" or "bounds"'),
    ([{"name": "a", "steps": [{"partition": "x", "values": list(range(65))}]}], "a list of 1 to 64"),
    ([{"name": "a", "steps": [{"explode": "x"}]}], "unknown operator"),
    ([{"name": "a", "steps": [{"filter": ["is_null", "x"], "project": ["x"]}]}], 'unknown key "project"'),
    ([{"name": "a", "steps": [{"sort": ["x"]}] * 17}], '"steps" is a list of at most 16'),
    ([{"name": "a", "compression": "gzip"}], '"compression" is "lz4" or "zstd", not "gzip"'),
    ([{"name": f"n{i}"} for i in range(9)], "want a list of 1 to 8"),
    ([{"name": "a"}, {"name": "a"}], 'two are called "a"'),
    ([{"name": "a/b"}], '"name" is a text of'),
    ([{"steps": []}], '"name" is a text of'),
    ([{"name": "a", "when": 3}], 'unknown key "when"'),
    ([{"name": "a", "steps": [{"filter": ["in", "name", ["y" * 70_000]]}]}], "over the limit of 65536"),
    ({"name": "a"}, "want a list of dicts"),
    ([{"name": "a", "steps": [{"filter": [">", "x", math.nan]}]}], "not numbers, texts"),
]


@pytest.mark.parametrize(("operators", "why"), REFUSED, ids=range(len(REFUSED)))
def test_what_does_not_fit_is_refused_when_the_stream_is_opened(bench: Bench, operators: Any, why: str) -> None:
    name = bench.name()
    with pytest.raises(wherry.InvalidArgument, match=why) as refused:
        bench.session.stream(name, particles().schema, operators=operators)
    assert "\n" not in str(refused.value)
    assert not [one for one in wherry.streams(bench.file) if one.name == name or one.name.startswith(f"{name}.")]


def test_an_expression_after_an_aggregate_is_refused(bench: Bench) -> None:
    steps = [{"aggregate": [["mean", "x"]], "by": ["kind"]}, {"filter": pc.field("x_mean") > 0}]
    with pytest.raises(wherry.Unsupported, match="after an aggregate"):
        bench.session.stream(bench.name(), particles().schema, operators=[{"name": "a", "steps": steps}])


def test_names_that_are_taken_are_refused_as_a_whole(bench: Bench) -> None:
    name, schema = bench.name(), particles().schema
    with bench.session.stream(f"{name}.hot", schema):
        with pytest.raises(wherry.AlreadyExists, match=rf'"{name}\.hot" is open already'):
            bench.session.stream(name, schema, operators=[{"name": "cold"}, {"name": "hot"}])
        assert not [one for one in wherry.streams(bench.file) if one.name in (name, f"{name}.cold")]
    with bench.session.stream(name, schema, operators=[{"name": "hot"}]), pytest.raises(wherry.AlreadyExists):
        bench.session.stream(f"{name}.hot", schema)


def test_a_failing_operator_is_seen_and_loses_nothing(bench: Bench) -> None:
    """The host wrote offsets that point outside the values. The agent notices when an operator follows them."""
    name = bench.name()
    good = pa.record_batch({"n": pa.array([1, 2, 3]), "s": pa.array(["a", "bb", "ccc"])})
    offsets = np.array([0, 1000, 2, 3], np.int32)
    texts = pa.Array.from_buffers(pa.string(), 3, [None, pa.py_buffer(offsets), pa.py_buffer(b"abc")])
    broken = pa.record_batch([pa.array([1, 2, 3]), texts], ["n", "s"])
    operators = [
        {"name": "sorted", "steps": [{"sort": ["s"]}]},
        {"name": "count", "steps": [{"aggregate": [["count"]]}]},
    ]
    with bench.session.stream(name, good.schema, operators=operators, when_full="wait") as stream:
        for tag, batch in enumerate((good, broken, good)):
            stream.offload(batch, tag=tag).wait(WAIT)
        assert eventually(lambda: status(bench, name).operator_lag == 0)
    assert [frame.tag for frame in wherry.open(name, bench.file, follow=False)] == [0, 1, 2]
    made = list(wherry.open(f"{name}.sorted", bench.file, timeout=WAIT))
    assert [(frame.tag, frame.sequence, frame.skipped) for frame in made] == [(0, 0, 0), (2, 2, 1)]
    assert [frame.tag for frame in wherry.open(f"{name}.count", bench.file, timeout=WAIT)] == [0, 1, 2]
    found = status(bench, name)
    assert found.operator_errors == 1
    assert found.operator_error.startswith(f'stream "{name}.sorted": ')
    assert read_metrics(bench.agent.session)[f'wherry_stream_operator_errors_total{{stream="{name}"}}'] == 1


def test_under_wait_nothing_is_lost_and_the_host_waits_for_the_slowest(bench: Bench) -> None:
    name = bench.name()
    batch = pa.record_batch({"n": pa.array(np.arange(1000))})
    one = {"name": "odd", "steps": [{"filter": ["in", "n", [1, 3, 5]]}]}
    with bench.session.stream(name, batch.schema, operators=[one], when_full="wait", keep_frames=3) as stream:
        posted = [stream.offload(batch, tag=tag) for tag in range(10)]
        posted[2].wait(WAIT)
        assert eventually(lambda: status(bench, f"{name}.odd").held_frames == 3)
        with pytest.raises(wherry.DeadlineExceeded):  # without a reader, three results and three frames wait
            posted[9].wait(0.2)
        with wherry.open(f"{name}.odd", bench.file, timeout=WAIT) as reader:
            for tag in range(10):
                frame = next(reader)
                assert (frame.tag, frame.skipped, frame.batch["n"].to_pylist()) == (tag, 0, [1, 3, 5])
                del frame
        posted[9].wait(WAIT)


def test_under_evict_the_host_does_not_wait(bench: Bench) -> None:
    name = bench.name()
    batch = pa.record_batch({"n": pa.array(np.random.default_rng(1).integers(0, 1 << 40, 200_000))})
    one = {"name": "sorted", "steps": [{"sort": ["n"]}]}
    with bench.session.stream(name, batch.schema, operators=[one], keep_frames=2) as stream:
        for tag in range(50):
            stream.offload(batch, tag=tag, timeout=WAIT).wait(WAIT)
    with wherry.open(f"{name}.sorted", bench.file, timeout=WAIT) as reader:
        made = {frame.tag: frame.batch["n"][0].as_py() for frame in reader}
    assert eventually(lambda: status(bench, name).operator_lag == 0)
    found = status(bench, name)
    assert found.total_frames == 50
    assert found.operator_errors == 0
    assert status(bench, f"{name}.sorted").next == 50  # the latest frame is never skipped
    assert set(made.values()) == {min(batch["n"].to_pylist())}


def test_a_full_budget_is_back_pressure(make_agent: Callable[..., Agent]) -> None:
    """Results and frames do not all fit at once. As long as a reader reads, no result is lost."""
    agent = make_agent("--budget", "32MiB")
    batch = pa.record_batch({"n": pa.array(np.arange(500_000))})
    one = {"name": "most", "steps": [{"filter": [">=", "n", 10]}]}
    with wherry.Session(str(agent.session_file)) as session:
        with session.stream("full", batch.schema, operators=[one], when_full="wait", keep_frames=0) as stream:
            posted = [stream.offload(batch, tag=tag) for tag in range(20)]
            with wherry.open("full.most", agent.session_file, timeout=WAIT) as reader:
                for tag in range(20):
                    frame = next(reader)
                    assert (frame.tag, frame.rows, frame.batch["n"][0].as_py()) == (tag, 499_990, 10)
                    del frame
            for ticket in posted:
                ticket.wait(WAIT)
        # A result that can never fit is an error.
        big = pa.record_batch({"n": pa.array(np.arange(2_300_000))})
        with session.stream("big", big.schema, operators=[{"name": "sorted", "steps": [{"sort": ["n"]}]}]) as stream:
            stream.offload(big, tag=1).wait(WAIT)
            assert eventually(lambda: wherry.streams(agent.session_file)[0].operator_errors == 1)
        assert [frame.tag for frame in wherry.open("big", agent.session_file, follow=False)] == [1]


def test_a_stream_that_is_opened_anew_has_its_own_results(bench: Bench) -> None:
    name, batch = bench.name(), particles()
    for run in range(3):
        one = {"name": "some", "steps": [{"filter": ["<", "id", 10 * (run + 1)]}]}
        with bench.session.stream(name, batch.schema, operators=[one]) as stream:
            stream.offload(batch, tag=run).wait(WAIT)
            with wherry.open(f"{name}.some", bench.file, timeout=WAIT) as reader:
                frame = next(reader)
                assert frame.tag == run
                assert frame.batch.num_rows == 10 * (run + 1)
    assert eventually(lambda: not status(bench, f"{name}.some").open)


def test_an_embedded_agent_operates_too(monkeypatch: pytest.MonkeyPatch, wherryd: Any) -> None:
    monkeypatch.setenv("WHERRY_AGENT", "embedded")
    batch = particles()
    with wherry.Session("embedded") as session:
        operators = [{"name": "few", "steps": [{"filter": ["<", "id", 5]}]}]
        with session.stream("here", batch.schema, operators=operators) as stream:
            stream.offload(batch).wait(WAIT)
        with wherry.open("here.few", session.info.session_file, timeout=WAIT) as reader:
            assert sorted(next(reader).batch["id"].to_pylist()) == [0, 1, 2, 3, 4]


def test_a_drained_agent_works_off_what_waits_for_operators(make_agent: Callable[..., Agent]) -> None:
    """SIGTERM arrives while frames wait for unread results. The agent ends when all results have been read."""
    agent = make_agent("--drain-ms", "300000")
    data = {"n": np.arange(1000)}
    session = wherry.Session(str(agent.session_file))
    one = {"name": "few", "steps": [{"filter": ["<", "n", 3]}]}
    stream = session.stream("late", data, operators=[one], when_full="wait", keep_frames=1)
    posted = [stream.offload(data, tag=tag) for tag in range(4)]
    posted[1].wait(WAIT)
    reader = wherry.open("late.few", agent.session_file, timeout=WAIT)
    agent.process.terminate()
    with pytest.raises(subprocess.TimeoutExpired):
        agent.process.wait(0.2)
    for tag in range(3):  # each read makes room for the next result; the agent ends after the last
        frame = next(reader)
        assert frame.tag == tag
        assert frame.batch["n"].to_pylist() == [0, 1, 2]
        del frame
    assert agent.process.wait(WAIT) == 0
    assert "worked off" not in agent.log.read_text()
    reader.close()
    with pytest.raises(wherry.Error):
        session.close()


def test_the_ticket_ends_before_the_operators(bench: Bench) -> None:
    """The agent runs operators after the host's offload, so the frame is available when the ticket ends."""
    name, batch = bench.name(), particles()
    with bench.session.stream(name, batch.schema, operators=[{"name": "x", "steps": [{"sort": ["x"]}]}]) as stream:
        stream.offload(batch, tag=1).wait(WAIT)
        assert [frame.tag for frame in wherry.open(name, bench.file, follow=False)] == [1]


def test_the_flight_info_names_the_generation(bench: Bench) -> None:
    name, data = bench.name(), {"x": np.zeros(3)}
    seen = []
    for _ in range(2):
        with bench.session.stream(name, data) as stream:
            stream.offload(data).wait(WAIT)
        info = bench.client.get_flight_info(flight.FlightDescriptor.for_path(name), bench.options)
        ((about, _),) = wherry.flight_frames(bench.client, bench.options, name, follow=False)
        assert json.loads(info.app_metadata)["generation"] == about["generation"] == status(bench, name).generation
        seen.append(about["generation"])
    assert seen[0] < seen[1]
