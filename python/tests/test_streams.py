# SPDX-License-Identifier: Apache-2.0
"""Streams: retention, sinks, strategies, several sessions, and agents that die."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import nanoarrow as na
import numpy as np
import pyarrow as pa
import pyarrow.flight as flight
import pyarrow.parquet as pq
import pytest
from agents import Agent, process_exists
from inputs import STRATEGIES, WAIT, Bench, stopped
from jobs import eventually

import wherry
from wherry.session import sessionfile
from wherry.session.metrics import read_metrics, sessions

pytestmark = pytest.mark.agent


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
    large = np.zeros(20 << 17)  # 20 MiB exceed one window of gets, so the agent needs several polls
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


def test_an_announced_size_is_resident_before_the_first_offload(make_agent: Callable[..., Agent]) -> None:
    agent = make_agent()

    def resident() -> int:  # KiB of shared memory that the agent has touched
        status = Path(f"/proc/{agent.process.pid}/status").read_text()
        return int(status.split("RssShmem:")[1].split()[0])

    x = np.arange(8 << 20, dtype="f8")  # 64 MiB
    with wherry.Session(str(agent.session_file)) as session:
        stream = session.stream("s", {"x": x}, "ipc_page_aligned", keep_frames=1, announce=[x.nbytes])
        set_aside = read_metrics(agent.session)["wherry_agent_touched_bytes"]
        assert set_aside >= x.nbytes
        deadline = time.monotonic() + WAIT
        while (now := resident()) < set_aside / 1024:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        stream.offload({"x": x}).wait(WAIT)
        assert resident() - now < 4096
        stream.close()


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
    """A correct client does not send this, because Arrow C++ aborts when it makes an array from it."""
    key, value = na.int32(nullable=False), na.int32()
    keys = na.c_array_from_buffers(key, 3, [b"\1", np.zeros(3, "i4")], null_count=2)  # one too many
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
    with pytest.raises(wherry.FailedPrecondition, match="closed"):
        stream.offload({"x": np.zeros(1)})
    stream.close()


def clients_of(agent: Agent) -> list[str]:
    return [one.name for one in sessions(read_metrics(sessionfile.load_session(agent.session_file)))]


def test_leaving_a_session_closes_its_streams_and_leaves_the_agent(agent: Agent) -> None:
    """Arrays, tickets and the stream's frames stay valid after the session."""
    with wherry.Session(str(agent.session_file), name="leaver") as session:
        x = session.empty((1000, 3))
        region = session.register(np.zeros(10))
        x[:] = 7.0
        stream = session.stream("particles", {"x": x})
        ticket = stream.offload({"x": x}, tag=3)
        assert clients_of(agent) == ["leaver"]
    assert [frame.tag for frame in wherry.open("particles", agent.session_file, timeout=WAIT)] == [3]  # it ends
    assert eventually(lambda: clients_of(agent) == [])
    assert ticket.ready()
    ticket.wait(0)
    assert ticket.sequence == 0
    with pytest.raises(wherry.FailedPrecondition, match="stream 'particles' is closed"):
        stream.offload({"x": x})
    x += 1.0
    assert x.sum() == 8.0 * 3000
    region.unregister()
    del ticket, stream, x
    gc.collect()


def test_leaving_a_session_ends_its_embedded_agent_whatever_is_still_held(wherryd: Path) -> None:
    with wherry.Session("embedded", embedded_budget=64 << 20) as session:
        pid = session.info.agent_pid
        x = session.empty(1000)
        stream = session.stream("s", {"x": x})
        ticket = stream.offload({"x": x})
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert ticket.ready()
    assert x.sum() == 0
    assert stream.name == "s"


def test_what_a_closed_session_leaves_undone_is_said(agent: Agent) -> None:
    session = wherry.Session(str(agent.session_file))
    stream = session.stream("s", {"x": np.zeros(1)}, keep_frames=1, when_full="wait")
    tickets = [stream.offload({"x": np.zeros(1000)}) for _ in range(4)]  # all but the first wait for a reader
    tickets[0].wait(WAIT)
    with pytest.raises(wherry.DeadlineExceeded, match="still in flight"):
        session.close(timeout=0.1)
    session.close()
    for ticket in tickets[1:]:
        assert ticket.ready()
        with pytest.raises(wherry.Cancelled, match="the session was closed before it was done"):
            ticket.wait()
    assert eventually(lambda: clients_of(agent) == [])


def test_a_failure_that_nobody_saw_is_raised_when_the_session_is_left(agent: Agent) -> None:
    def leave(failure: Exception | None) -> None:
        with wherry.Session(str(agent.session_file)) as session:
            stream = session.stream("s", {"x": np.zeros(1)}, keep_frames=1, when_full="wait")
            for _ in range(2):
                stream.offload({"x": np.zeros(1000)}, deadline=0.05)
            if failure is not None:
                raise failure

    with pytest.raises(wherry.Cancelled, match="offload 2"):
        leave(None)
    with pytest.raises(ZeroDivisionError):
        leave(ZeroDivisionError("the body's own failure comes first"))


@pytest.mark.parametrize("with_signal", [signal.SIGKILL, signal.SIGTERM])
def test_an_agent_that_dies_is_noticed_everywhere(
    make_agent: Callable[..., Agent], with_signal: signal.Signals
) -> None:
    agent = make_agent("--drain-ms", "500")
    session = wherry.Session(str(agent.session_file), max_tickets=4)
    memory = session.empty(1000)
    stream = session.stream("s", {"x": np.zeros(1)}, keep_frames=1, when_full="wait")
    raw = session.stream("raw", strategy="raw")
    tickets = [stream.offload({"x": memory}) for _ in range(4)]  # only the first is delivered
    tickets[0].wait(WAIT)
    killer = threading.Timer(0.2, agent.process.send_signal, [with_signal])
    killer.start()
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
    with pytest.raises(wherry.Unavailable):
        session.close()
    gc.collect()


def test_no_agent_no_program(monkeypatch: pytest.MonkeyPatch, bench: Bench, tmp_path: Path) -> None:
    """Only sessions that need an embedded agent need the program wherryd."""
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
    while process_exists(pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_flight_of_an_unknown_stream(bench: Bench) -> None:
    with pytest.raises(wherry.NotFound):
        list(wherry.flight_frames(bench.client, bench.options, "nobody", follow=False))
    assert isinstance(bench.client, flight.FlightClient)
