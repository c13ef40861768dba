# SPDX-License-Identifier: Apache-2.0
"""Steps: arrays that are bound once and posted repeatedly."""

from __future__ import annotations

import gc
import sys
import weakref

import numpy as np
import pyarrow as pa
import pytest
from agents import Agent
from inputs import WAIT, Bench, stopped

import wherry

pytestmark = pytest.mark.agent


def test_each_post_moves_what_the_arrays_hold_then(bench: Bench) -> None:
    name = bench.name()
    x, when = np.zeros(1000), np.zeros(1000, "M8[ns]")
    xyz = bench.session.empty((1000, 3), np.float32)
    data = {"x": x, "xyz": xyz, "when": when}
    with bench.session.stream(name, data) as stream, stream.bind(data) as step:
        for tag in range(5):
            x[:] = np.arange(1000) * tag
            xyz[:] = tag
            when[:] = np.datetime64(tag, "ns")
            step.post(tag).wait(WAIT)
        assert step.in_flight() == 0
    frames = bench.read(name)
    assert [frame.tag for frame in frames] == list(range(5))
    for tag, frame in enumerate(frames):
        assert np.array_equal(frame.batch["x"], np.arange(1000) * tag)
        assert np.array_equal(frame.batch["xyz"].values, np.full(3000, tag, np.float32))
        assert frame.batch["when"].to_numpy()[7] == np.datetime64(tag, "ns")


def test_arrow_arrays_batches_and_raw_buffers(bench: Bench) -> None:
    name, raw = bench.name(), bench.name()
    batch = pa.record_batch({"s": pa.array(["a", None, "ccc"]), "v": pa.array([True, False, None])})
    with bench.session.stream(name, batch) as stream:
        with stream.bind(batch.slice(1)) as step:
            step.post(1).wait(WAIT)
            step.post(2).wait(WAIT)
        with stream.bind({"s": batch["s"], "v": batch["v"]}) as step, stream.bind(pa.table(batch)) as table:
            step.post(3).wait(WAIT)
            table.post(4).wait(WAIT)
    frames = bench.read(name)
    assert [frame.batch.num_rows for frame in frames] == [2, 2, 3, 3]
    assert frames[1].batch.equals(batch.slice(1))
    assert frames[3].batch.equals(batch)
    block = bytearray(b"old")
    with bench.session.stream(raw, strategy="raw") as stream, stream.bind([block, b"same"]) as step:
        step.post().wait(WAIT)
        block[:] = b"new"
        step.post().wait(WAIT)
    assert [frame.batch["buffer"].to_pylist() for frame in bench.read(raw)] == [[b"old", b"same"], [b"new", b"same"]]


def test_what_would_be_copied_is_refused(bench: Bench) -> None:
    cases = {
        "strides": (np.zeros(20)[::2], "copied"),
        "byte order": (np.zeros(10, ">f8" if sys.byteorder == "little" else "<f8"), "copied"),
        "booleans": (np.zeros(10, "?"), "converted"),
        "strings": (np.array(["a"] * 10), "converted"),
        "days": (np.zeros(10, "M8[D]"), "converted"),
        "masked": (np.ma.masked_array(np.zeros(10), np.zeros(10, "?")), "converted"),
    }
    for what, (array, how) in cases.items():
        with bench.session.stream(bench.name(), {"x": array}) as stream:
            with pytest.raises(wherry.InvalidArgument, match=f"column 'x': .* would be {how} first"):
                stream.bind({"x": array})
            stream.offload({"x": array}).wait(WAIT)  # which says so
            assert what
    with bench.session.stream(bench.name(), {"x": np.zeros(3)}) as stream:
        with pytest.raises(wherry.InvalidArgument, match="a list would be copied"):
            stream.bind({"x": [1.0, 2.0, 3.0]})
        chunks = pa.table({"x": pa.chunked_array([[1.0], [2.0]])})
        with pytest.raises(wherry.InvalidArgument, match="a ChunkedArray would be copied"):
            stream.bind({"x": chunks["x"]})
        with pytest.raises(wherry.InvalidArgument, match="several chunks"):
            stream.bind(chunks.cast(stream.schema))
        with pytest.raises(wherry.InvalidArgument, match="not fixed_size_list"):
            stream.bind({"x": np.zeros((3, 2))})
        with pytest.raises(wherry.InvalidArgument, match="missing 'x'"):
            stream.bind({"y": np.zeros(3)})


def test_the_step_keeps_its_arrays_and_they_cannot_be_resized(bench: Bench) -> None:
    x = np.full(1000, 3.0)
    gone = weakref.ref(x)
    name = bench.name()
    stream = bench.session.stream(name, {"x": x})
    step = stream.bind({"x": x})
    owned = np.zeros(10)
    other = stream.bind({"x": owned})
    with pytest.raises(ValueError, match="resize"):
        owned.resize(20)
    other.release()
    del x, other
    gc.collect()
    assert gone() is not None
    step.post(1).wait(WAIT)
    step.release()
    gc.collect()
    assert gone() is None
    with pytest.raises(wherry.FailedPrecondition, match="bind it again"):
        step.post(2)
    stream.close()
    assert np.array_equal(bench.read(name)[0].batch["x"], np.full(1000, 3.0))


def test_arrays_live_until_what_is_in_flight_has_arrived(bench: Bench) -> None:
    name = bench.name()
    x = np.full(1000, 5.0)
    gone = weakref.ref(x)
    stream = bench.session.stream(name, {"x": x})
    with stopped(bench.agent.process):
        step = stream.bind({"x": x})
        step.post(1)
        step.release()
        del step, x
        gc.collect()
        assert gone() is not None
    bench.session.drain(WAIT)
    stream.offload({"x": np.zeros(1)}).wait(WAIT)  # this post releases frames that have arrived
    gc.collect()
    assert gone() is None
    assert np.array_equal(bench.read(name)[0].batch["x"], np.full(1000, 5.0))


def test_posts_while_earlier_ones_are_in_flight(bench: Bench) -> None:
    x = np.zeros(1000)
    with wherry.Session(str(bench.file), max_tickets=4) as session:
        stream = session.stream(bench.name(), {"x": x})
        step = stream.bind({"x": x})
        with stopped(bench.agent.process):
            tickets = [step.post(tag) for tag in range(4)]
            assert step.in_flight() == 4
            with pytest.raises(wherry.WouldBlock, match="max_tickets"):
                step.post(4)
            with pytest.raises(wherry.WouldBlock, match="max_tickets"):
                step.post(4, timeout=0.05)
        tickets.append(step.post(4, timeout=WAIT))
        for number, ticket in enumerate(tickets):
            ticket.wait(WAIT)
            assert ticket.sequence == number


def test_arguments_are_those_of_offload(bench: Bench) -> None:
    x = np.zeros(10)
    name = bench.name()
    with bench.session.stream(name, {"x": x}) as stream, stream.bind({"x": x}) as step:
        step.post(np.uint64(7), deadline=60, timeout=np.float32(1)).wait(WAIT)  # type: ignore[arg-type]
        step.post((1 << 64) - 1).wait(WAIT)
        for tag in (-1, 1 << 64, 1.5, "x"):
            with pytest.raises(wherry.InvalidArgument, match="tag is"):
                step.post(tag)  # type: ignore[arg-type]
        with pytest.raises(wherry.InvalidArgument, match="deadline is 0: want seconds, more than 0"):
            step.post(deadline=0)
        with pytest.raises(wherry.InvalidArgument, match="timeout is 'x'"):
            step.post(timeout="x")  # type: ignore[arg-type]
    assert [frame.tag for frame in bench.read(name)] == [7, (1 << 64) - 1]


def test_stream_or_session_or_agent_ends(agent: Agent) -> None:
    x = np.zeros(10)
    session = wherry.Session(str(agent.session_file))
    stream = session.stream("s", {"x": x})
    step = stream.bind({"x": x})
    step.post(1).wait(WAIT)
    stream.close()
    with pytest.raises(wherry.FailedPrecondition, match="stream 's' is closed"):
        step.post(2)
    stream = session.stream("s", {"x": x})
    step = stream.bind({"x": x})
    session.close()
    with pytest.raises(wherry.FailedPrecondition, match="is closed"):
        step.post(3)
    with pytest.raises(wherry.FailedPrecondition, match="is closed"):
        stream.bind({"x": x})
    session = wherry.Session(str(agent.session_file))
    stream = session.stream("t", {"x": x})
    step = stream.bind({"x": x})
    step.post(1).wait(WAIT)
    agent.process.kill()
    agent.process.wait()
    with pytest.raises(wherry.Unavailable):
        step.post(2).wait(WAIT)
    with pytest.raises(wherry.Unavailable):
        step.post(3)
    with pytest.raises(wherry.Unavailable):
        session.close()
