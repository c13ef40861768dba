# SPDX-License-Identifier: Apache-2.0
"""The memory that an offload reads: its lifetime, allocation by Wherry, and registration."""

from __future__ import annotations

import contextlib
import gc
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from agents import Agent
from inputs import WAIT, Bench, back, stopped

import wherry

pytestmark = pytest.mark.agent


def test_sources_live_until_they_were_read(bench: Bench) -> None:
    """The caller drops all references at once, before the agent has begun to read."""
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
            # If a source had been freed, these arrays would reuse and overwrite it.
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
    """The posted data arrive, whatever the order in which the caller drops the objects."""
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
    """Python frees an object in the thread that drops the last reference. Two threads must not use the session at
    once."""
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
