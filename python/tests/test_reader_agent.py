# SPDX-License-Identifier: Apache-2.0
"""Reading from a real agent."""

from __future__ import annotations

import fcntl
import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.flight as flight
import pytest
from agents import Agent
from inputs import STRATEGIES, WAIT
from samples import batch

import wherry
from wherry.errors import Error, NotFound, PermissionDenied, ResourceExhausted
from wherry.move import reader
from wherry.session.metrics import read_metrics

Write = Callable[..., Path]


@pytest.fixture
def session(agent: Agent) -> Iterator[Any]:
    import wherry

    with wherry.Session(agent=str(agent.session_file), name="test_reader") as opened:
        yield opened


@pytest.mark.agent
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_real_agent_delivers_what_was_offloaded(agent: Agent, session: Any, strategy: str) -> None:
    data = [batch(i, rows) for i, rows in enumerate((1, 100, 4097))]
    stream = session.stream("s", data[0].schema, strategy=strategy)
    for i, one in enumerate(data):
        stream.offload(one, tag=100 + i).wait(timeout=60)
    stream.close()
    with reader.open("s", agent.session_file, timeout=60) as frames:
        local = list(frames)
    client, options = wherry.flight_client(agent.session_file)
    with client:
        remote = list(wherry.flight_frames(client, options, "s"))
    assert [(f.sequence, f.tag, f.rows, f.skipped) for f in local] == [
        (0, 100, 1, 0),
        (1, 101, 100, 0),
        (2, 102, 4097, 0),
    ]
    assert [about["tag"] for about, _ in remote] == [100, 101, 102]
    for want, frame, (_, got) in zip(data, local, remote, strict=True):
        frame.batch.validate(full=True)
        assert frame.batch.equals(want)
        assert got.equals(want)


@pytest.mark.agent
def test_real_agent_numpy_columns_round_trip(agent: Agent, session: Any) -> None:
    rng = np.random.default_rng(8)
    data = {"id": np.arange(5000, dtype=np.int32), "x": rng.random((5000, 3)), "f": rng.random(5000).astype(np.float32)}
    stream = session.stream("p", data, strategy="ipc_page_aligned")
    stream.offload(data, tag=1).wait(timeout=60)
    with reader.open("p", agent.session_file, follow=False) as frames:
        got = next(frames).batch
    np.testing.assert_array_equal(got.column("id").to_numpy(), data["id"])
    np.testing.assert_array_equal(got.column("f").to_numpy(), data["f"])
    np.testing.assert_array_equal(got.column("x").flatten().to_numpy().reshape(-1, 3), data["x"])


@pytest.mark.agent
def test_real_agent_keeps_frames_in_place_while_they_are_read(agent: Agent, session: Any) -> None:
    stream = session.stream("s", batch().schema, keep_frames=1)
    stream.offload(batch(1)).wait(timeout=60)
    with reader.open("s", agent.session_file, follow=False) as frames:
        kept = next(frames)
        for i in range(2, 30):
            stream.offload(batch(i)).wait(timeout=60)
        assert kept.batch.equals(batch(1)), "evicted from the stream, but not from under its reader"
        latest = next(frames)
        assert latest.sequence == 28
        assert latest.skipped == 27


@pytest.mark.agent
def test_real_agent_back_pressure_ends_when_a_frame_was_read(agent: Agent, session: Any) -> None:
    stream = session.stream("s", batch().schema, keep_frames=2, when_full="wait")
    tickets = [stream.offload(batch(i)) for i in range(4)]
    tickets[1].wait(timeout=60)
    time.sleep(0.2)
    assert not tickets[2].ready(), "two frames are kept, and nobody has read them"
    with reader.open("s", agent.session_file, timeout=60) as frames:
        for i in range(4):
            assert next(frames).batch.equals(batch(i))
    for ticket in tickets:
        ticket.wait(timeout=60)


@pytest.mark.agent
def test_real_agent_lists_streams_everywhere_alike(agent: Agent, session: Any) -> None:
    stream = session.stream("a", batch().schema)
    stream.offload(batch()).wait(timeout=60)
    session.stream("b", batch().schema, strategy="arrays").close()
    found = {stream.name: stream for stream in reader.streams(agent.session_file)}
    assert (found["a"].open, found["a"].held_frames, found["a"].held_rows) == (True, 1, 100)
    assert (found["b"].open, found["b"].strategy, found["b"].total_frames) == (False, "arrays", 0)
    client, options = wherry.flight_client(agent.session_file)
    with client:
        (answer,) = client.do_action(flight.Action("streams", b""), options)
        listed = {entry["name"]: entry for entry in json.loads(answer.body.to_pybytes())}
    assert listed["a"]["total_bytes"] == found["a"].total_bytes


@pytest.mark.agent
def test_real_agent_refuses_a_wrong_token(agent: Agent, tmp_path: Path) -> None:
    document = json.loads(agent.session_file.read_text()) | {"token": "00" * 16}
    other = tmp_path / "other.json"
    other.write_text(json.dumps(document))
    other.chmod(0o600)
    locked = other.open("rb")  # as a running agent locks its file
    fcntl.flock(locked, fcntl.LOCK_EX)
    with pytest.raises(PermissionDenied):
        reader.streams(other)
    client, options = wherry.flight_client(other)
    with locked, client, pytest.raises(PermissionDenied):
        list(wherry.flight_frames(client, options, "s"))


@pytest.mark.agent
def test_real_agent_unknown_stream(agent: Agent) -> None:
    with pytest.raises(NotFound, match="streams: none yet"):
        reader.open("s", agent.session_file)
    client, options = wherry.flight_client(agent.session_file)
    with client, pytest.raises(NotFound, match="has no stream 's'"):
        list(wherry.flight_frames(client, options, "s"))


@pytest.mark.agent
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_real_agent_that_dies_ends_its_followers(agent: Agent, session: Any, how: signal.Signals) -> None:
    stream = session.stream("s", batch().schema)
    stream.offload(batch()).wait(timeout=60)
    results: list[Any] = []

    def follow() -> None:
        try:
            with reader.open("s", agent.session_file, timeout=60) as frames:
                results.extend(frame.batch.num_rows for frame in frames)
        except Error as error:
            results.append(error)

    follower = threading.Thread(target=follow)
    follower.start()
    deadline = time.monotonic() + 300
    while not results and time.monotonic() < deadline:
        time.sleep(0.01)
    agent.stop(how)
    follower.join(timeout=60)
    assert not follower.is_alive()
    assert results[0] == 100
    assert all(isinstance(error, Error) for error in results[1:])


def test_a_reader_that_keeps_its_frames_does_not_stop_writers(
    make_agent: Callable[..., Agent],
) -> None:
    """The reader gets an error when it asks for more frames. The writer and readers that release frames continue."""
    agent = make_agent("--budget", "64MiB")
    megabytes = np.zeros(4 << 17)
    with (
        wherry.Session(str(agent.session_file)) as session,
        session.stream("s", {"x": megabytes}, keep_frames=4) as stream,
    ):
        kept = []
        follower = reader.open("s", agent.session_file, timeout=WAIT)

        def keep_all() -> None:
            for step in range(32):
                stream.offload({"x": megabytes}, tag=step).wait(WAIT)
                kept.append(follower.read(WAIT))

        with pytest.raises(Error, match=r"agent\.reader_budget.*release frames, copy what is to be kept"):
            keep_all()
        assert 6 <= len(kept) <= 7, "half of the budget: frames of 4 MiB and some bytes take 5 MiB of it"
        other = reader.open("s", agent.session_file, timeout=WAIT)
        for step in range(100, 140):
            stream.offload({"x": megabytes}, tag=step).wait(WAIT)
            frame = other.read(WAIT)
        assert frame is not None
        assert [one.tag for one in kept if one is not None] == list(range(len(kept)))
        kept.clear()
        assert follower.read(WAIT) is not None


def test_readers_that_keep_all_they_may_do_not_stop_writers(make_agent: Callable[..., Agent]) -> None:
    """This also holds if the agent's memory for a frame is larger than the frame: here 1 MiB and some bytes take 1.25
    MiB."""
    agent = make_agent("--budget", "64MiB")
    x = np.zeros(1 << 17)
    with (
        wherry.Session(str(agent.session_file)) as session,
        session.stream("s", {"x": x}, keep_frames=1) as stream,
    ):
        kept: list[Any] = []
        refused_at_once = False
        while not refused_at_once:
            one = reader.open("s", agent.session_file)
            held = len(kept)
            for _ in range(64):
                stream.offload({"x": x}).wait(WAIT)
                try:
                    kept.append((one, one.read(WAIT)))
                except ResourceExhausted as error:
                    assert "agent.reader_budget" in str(error)  # noqa: PT017
                    break
            refused_at_once = len(kept) == held
        assert len(kept) >= 25, "half of the budget"
        assert read_metrics(agent.session)["wherry_agent_lent_bytes"] == len(kept) * 1280 << 10
        stream.offload({"x": x}).wait(WAIT)
        client, options = wherry.flight_client(agent.session_file)
        with client, pytest.raises(ResourceExhausted, match=r"agent\.reader_budget.*release frames"):
            list(wherry.flight_frames(client, options, "s", follow=False))


def test_a_loop_over_frames_of_which_three_fit_goes_on(make_agent: Callable[..., Agent]) -> None:
    agent = make_agent("--budget", "64MiB")
    large = np.zeros(20 << 17)
    with (
        wherry.Session(str(agent.session_file)) as session,
        session.stream("s", {"x": large}, keep_frames=3, when_full="wait") as stream,
    ):
        frames = iter(reader.open("s", agent.session_file, timeout=WAIT))
        stream.offload({"x": large}, tag=0).wait(WAIT)
        for step in range(8):
            frame = next(frames)  # the frame before is still held here
            assert frame.tag == step
            stream.offload({"x": large}, tag=step + 1).wait(WAIT)
