# SPDX-License-Identifier: Apache-2.0
"""Reading from a scripted agent: leases, faults, arguments. test_reader_flight.py tests Flight, test_reader_agent.py a
real agent."""

from __future__ import annotations

import gc
import math
import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from agents import LocalAgent
from samples import batch

from wherry.errors import (
    DeadlineExceeded,
    Error,
    FailedPrecondition,
    NotFound,
    PermissionDenied,
    Unavailable,
    VersionMismatch,
)
from wherry.move import reader
from wherry.session import sessionfile

Write = Callable[..., Path]


def test_frames_come_in_order_with_their_data_and_figures(scripted: LocalAgent, write_session: Write) -> None:
    for i in range(3):
        scripted.add(batch(i), tag=10 * i)
    with reader.open("s", write_session(), follow=False) as frames:
        seen = list(frames)
    assert [(f.sequence, f.tag, f.rows, f.skipped, f.transfer_ns) for f in seen] == [
        (0, 0, 100, 0, 1000), (1, 10, 100, 0, 1001), (2, 20, 100, 0, 1002)
    ]  # fmt: skip
    for i, frame in enumerate(seen):
        frame.batch.validate(full=True)
        assert frame.batch.equals(batch(i))
        assert frame.source_bytes == batch(i).nbytes


def test_batches_lie_in_the_arena_and_cannot_be_written(scripted: LocalAgent, write_session: Write) -> None:
    scripted.add(batch())
    with reader.open("s", write_session(), follow=False) as frames:
        frame = next(frames)
        first, size = frames._connection.address, frames._connection.arena_bytes
        buffers = [b for column in frame.batch.columns[:3] for b in column.buffers() if b is not None]
        assert len(buffers) >= 4
        for buffer in buffers:
            assert first <= buffer.address < first + size
            assert not buffer.is_mutable
        values = frame.batch.column("id").to_numpy(zero_copy_only=True)
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 1


@pytest.mark.parametrize("keep", ["frame", "batch", "column", "slice", "numpy", "child", "table"])
def test_the_lease_lives_as_long_as_the_last_array(scripted: LocalAgent, write_session: Write, keep: str) -> None:
    scripted.add(batch())
    with reader.open("s", write_session(), follow=False) as frames:
        frame = next(frames)
        keepers: dict[str, Callable[[reader.Frame], Any]] = {
            "frame": lambda frame: frame,
            "batch": lambda frame: frame.batch,
            "column": lambda frame: frame.batch.column("word"),
            "slice": lambda frame: frame.batch.column("id").slice(3, 5),
            "numpy": lambda frame: frame.batch.column("id").to_numpy(zero_copy_only=True)[::2],
            "child": lambda frame: frame.batch.column("x").flatten(),
            "table": lambda frame: pa.Table.from_batches([frame.batch]).select(["x"]),
        }
        kept = keepers[keep](frame)
        del frame
        gc.collect()
        assert scripted.leases == {1}, "something still reads the frame"
        del kept
        assert scripted.wait_for_leases(0)
        assert scripted.released == [1]


def test_iterating_holds_no_more_than_two_frames(scripted: LocalAgent, write_session: Write) -> None:
    for i in range(20):
        scripted.add(batch(i, 10))
    scripted.end()
    most = 0
    with reader.open("s", write_session()) as frames:
        for frame in frames:
            assert frame.rows == 10
            most = max(most, len(scripted.leases))
        del frame
    assert most <= 2
    assert scripted.wait_for_leases(0)
    assert scripted.released == list(range(1, 21))


def test_frames_outlive_a_closed_reader(scripted: LocalAgent, write_session: Write) -> None:
    scripted.add(batch(5))
    with reader.open("s", write_session(), follow=False) as frames:
        kept = next(frames).batch
    with pytest.raises(Error, match="closed"):
        frames.read()
    gc.collect()
    assert scripted.leases == {1}, "the agent must not reuse memory that is still read"
    assert kept.equals(batch(5))
    del kept
    assert scripted.wait_for_leases(0)


def test_frames_outlive_the_agent(scripted: LocalAgent, write_session: Write) -> None:
    scripted.add(batch(5))
    frames = reader.open("s", write_session(), follow=False)
    kept = next(frames).batch
    scripted.break_connections()
    with pytest.raises(Error, match="has gone"):
        frames.read()
    assert kept.equals(batch(5))
    del kept  # the agent is gone; releasing the lease fails silently
    frames.close()


def test_abandoned_reader_closes_its_connection(scripted: LocalAgent, write_session: Write) -> None:
    scripted.add(batch())
    for frame in reader.open("s", write_session()):
        assert frame.sequence == 0
        break
    del frame
    gc.collect()
    assert scripted.wait_for_leases(0)


def test_leases_are_given_back_by_other_threads_while_one_waits(scripted: LocalAgent, write_session: Write) -> None:
    scripted.add(batch())
    with reader.open("s", write_session(), timeout=300) as frames:
        held = [next(frames)]
        waiting = threading.Thread(target=lambda: next(frames, None))
        waiting.start()
        time.sleep(0.1)  # the thread waits for a frame that does not come
        held.clear()
        assert scripted.wait_for_leases(0), "given back while the other thread waits, for up to 300 s"
        scripted.end()
        waiting.join(timeout=60)
        assert not waiting.is_alive()


def test_many_threads_give_back(scripted: LocalAgent, write_session: Write) -> None:
    for i in range(200):
        scripted.add(batch(i, 4))
    with reader.open("s", write_session(), follow=False) as frames:
        shares: list[list[reader.Frame]] = [[] for _ in range(8)]
        for i, frame in enumerate(frames):
            shares[i % 8].append(frame)
        del frame
        threads = [threading.Thread(target=share.clear) for share in shares]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert scripted.wait_for_leases(0)
    assert sorted(scripted.released) == list(range(1, 201))


def test_follow_waits_for_frames_to_come_and_sees_the_end(scripted: LocalAgent, write_session: Write) -> None:
    def later() -> None:
        for i in range(3):
            time.sleep(0.08)
            scripted.add(batch(i))
        scripted.end()

    writer = threading.Thread(target=later)
    with reader.open("s", write_session(), timeout=60) as frames:
        writer.start()
        assert [frame.sequence for frame in frames] == [0, 1, 2]
        assert list(frames) == [], "an ended reader stays at its end"
    writer.join()


@pytest.mark.parametrize("timeout", [math.inf, 1e300])
def test_timeout_without_an_end(scripted: LocalAgent, write_session: Write, timeout: float) -> None:
    scripted.add(batch())
    with reader.open("s", write_session(), timeout=timeout) as frames:
        assert next(frames).sequence == 0
        frame = threading.Timer(0.2, lambda: scripted.add(batch()))
        frame.start()
        read = frames.read(timeout)
        assert read is not None
        assert read.sequence == 1
        frame.join()


def test_timeout_is_an_error_that_reading_survives(scripted: LocalAgent, write_session: Write) -> None:
    with reader.open("s", write_session()) as frames:
        start = time.monotonic()
        with pytest.raises(TimeoutError) as caught:
            frames.read(timeout=0.2)
        assert isinstance(caught.value, DeadlineExceeded)
        assert time.monotonic() - start > 0.19
        scripted.add(batch())
        frame = frames.read(timeout=60)
        assert frame is not None
        assert frame.sequence == 0


def test_from_sequence_and_skipped(scripted: LocalAgent, write_session: Write) -> None:
    for sequence in (4, 5, 9):
        scripted.add(batch(), sequence=sequence)
    with reader.open("s", write_session(), follow=False) as frames:
        assert [(f.sequence, f.skipped) for f in frames] == [(4, 4), (5, 0), (9, 3)]
    with reader.open("s", write_session(), follow=False, from_sequence=5) as frames:
        assert [(f.sequence, f.skipped) for f in frames] == [(5, 0), (9, 3)]


def test_the_stream_that_was_begun_is_the_stream_that_is_read(scripted: LocalAgent, write_session: Write) -> None:
    scripted.add(batch())
    scripted.add(batch())
    with reader.open("s", write_session(), follow=False) as frames:
        assert len(list(frames)) == 2
    asked = [request.get("generation") for request in scripted.log if request["op"] == "next"]
    assert asked == [None, 3, 3]


def test_no_such_stream_names_those_that_there_are(scripted: LocalAgent, write_session: Write) -> None:
    with pytest.raises(NotFound, match=r"no stream 'particels' .* streams: s$"):
        reader.open("particels", write_session())


def test_stream_that_vanishes(scripted: LocalAgent, write_session: Write) -> None:
    with reader.open("s", write_session()) as frames:
        scripted.answer = lambda request: {"ok": True, "what": "no_stream"} if request["op"] == "next" else None
        with pytest.raises(NotFound, match="has no stream 's' any more"):
            frames.read()


def test_wrong_token(scripted: LocalAgent, write_session: Write) -> None:
    with pytest.raises(PermissionDenied, match="refused this reader: wrong token") as caught:
        reader.open("s", write_session(token="0000"))
    assert "0000" not in str(caught.value)


@pytest.mark.parametrize(
    ("greeting", "kind", "message"),
    [
        ({"ok": False, "error": "this agent speaks version 2"}, VersionMismatch, "speaks version 2"),
        ({"ok": False, "error": "the agent serves 64 local readers already"}, Unavailable, "64 local readers"),
        ({"ok": False}, Unavailable, "no reason given"),
        ({"ok": True, "arena_bytes": 1 << 20}, Error, r"sent no arena \(0 descriptors"),
        (b"hello\n", Error, "is not JSON"),
        (b"[1]\n", Error, "is not a JSON object"),
        (b"", Error, "closed the connection before it answered"),
    ],
)
def test_greetings_that_go_wrong(
    scripted: LocalAgent, write_session: Write, greeting: Any, kind: type[Error], message: str
) -> None:
    scripted.answer = lambda request: greeting if request["op"] == "hello" else None
    with pytest.raises(kind, match=message):
        reader.streams(write_session())


def test_arena_that_is_smaller_than_it_says(scripted: LocalAgent, write_session: Write) -> None:
    scripted.arena_bytes *= 2
    with pytest.raises(Error, match="smaller than the"):
        reader.streams(write_session())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offset": 1 << 20}, "outside of the"),
        ({"offset": -64}, "outside of the"),
        ({"bytes": 1 << 40}, "outside of the"),
        ({"offset": 8}, "is not an Arrow IPC stream"),
        ({"bytes": 0}, "is not an Arrow IPC stream"),
        ({"sequence": "first"}, "cannot be used"),
        ({"tag": None}, "cannot be used"),
    ],
)
def test_frames_that_go_wrong_raise_and_are_given_back(
    scripted: LocalAgent, write_session: Write, change: dict[str, Any], message: str
) -> None:
    scripted.add(batch())
    scripted.frames[0] |= change
    if "sequence" in change:
        good = {**scripted.frames[0], "ok": True, "what": "frame", "lease": 1, "skipped": 0}
        scripted.leases.add(1)
        scripted.answer = lambda request: good if request["op"] == "next" else None
    with reader.open("s", write_session(), follow=False) as frames:
        with pytest.raises(Error, match=message):
            frames.read()
        gc.collect()
        assert scripted.wait_for_leases(0)


def test_answers_of_another_kind(scripted: LocalAgent, write_session: Write) -> None:
    with reader.open("s", write_session()) as frames:
        scripted.answer = lambda _: {"ok": False, "error": "this connection holds 1024 frames"}
        with pytest.raises(Error, match=r"refused 'next': this connection holds 1024 frames"):
            frames.read()
        scripted.answer = lambda _: {"ok": True, "what": "magic"}
        with pytest.raises(Error, match="answered 'magic'"):
            frames.read()
        scripted.answer = lambda _: b"]\n"
        with pytest.raises(Error, match="is not JSON"):
            frames.read()


def test_interrupted_request_leaves_the_connection_in_step(
    scripted: LocalAgent, write_session: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted.add(batch(0), tag=7)
    scripted.add(batch(1), tag=8)
    with reader.open("s", write_session(), follow=False) as frames:
        connection = frames._connection

        class Interrupted:
            """The socket, but Ctrl-C interrupts its next recv(), so the reply stays unread."""

            def __getattr__(self, name: str) -> Any:
                return getattr(original, name)

            def recv(self, *_: object) -> bytes:
                raise KeyboardInterrupt

        original: socket.socket = connection._socket
        monkeypatch.setattr(connection, "_socket", Interrupted())
        with pytest.raises(KeyboardInterrupt):
            frames.read()
        monkeypatch.setattr(connection, "_socket", original)
        frame = frames.read()
        assert frame is not None
        assert (frame.sequence, frame.tag) == (0, 7)
        assert frame.batch.equals(batch(0))
        del frame
        assert scripted.wait_for_leases(0)
    assert sorted(scripted.released) == [1, 2], "the frame whose reply was thrown away, and the one that was read"


def test_forked_child_neither_reads_nor_gives_back(scripted: LocalAgent, write_session: Write) -> None:
    """The child closes its connection, so that the agent notices when the parent ends."""
    scripted.add(batch())
    scripted.add(batch())
    with reader.open("s", write_session(), follow=False) as frames:
        frame = next(frames)
        connection = frames._connection
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                with pytest.raises(FailedPrecondition, match=f"process {os.getppid()}, of which"):
                    frames.read()
                del frame
                gc.collect()
                frames.close()
                assert connection._socket.fileno() == -1
                status = 0
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert not scripted.released
        assert next(frames).sequence == 1
        del frame
        assert scripted.wait_for_leases(0)


def test_streams(scripted: LocalAgent, write_session: Write) -> None:
    scripted.add(batch())
    (found,) = reader.streams(write_session())
    assert (found.name, found.strategy, found.open, found.next, found.held_frames) == ("s", "ipc", True, 1, 1)


@pytest.mark.parametrize("value", [{"from_sequence": -1}, {"timeout": -0.5}])
def test_wrong_arguments(value: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="want"):
        reader.open("s", **value)


def test_agents_can_be_named_in_four_ways(
    scripted: LocalAgent, write_session: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_session()

    class Session:
        info = type("Info", (), {"session_file": str(path)})()

    for agent in (path, str(path), sessionfile.load_session(path), Session()):
        assert len(reader.streams(agent)) == 1
    with pytest.raises(NotFound, match="wherry agent start"):
        reader.streams()
    monkeypatch.setenv("WHERRY_AGENT", str(path))
    assert len(reader.streams()) == 1
    Session.info.session_file = ""
    with pytest.raises(Unavailable, match="opened by address"):
        reader.streams(Session())


def test_socket_that_is_not_there(write_session: Write) -> None:
    with pytest.raises(Unavailable, match=r"no agent at .*local\.sock"):
        reader.streams(write_session())
    with pytest.raises(Error, match="offers no local socket"):
        reader.streams(write_session(local_socket=""))
