# SPDX-License-Identifier: Apache-2.0
"""Tickets: the values that they report, and every way in which a wait for them ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from agents import Agent
from inputs import WAIT, Bench, stopped

import wherry
from wherry.system import paths

pytestmark = pytest.mark.agent


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
                assert time.monotonic() - start < 60
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
        with pytest.raises(wherry.Cancelled, match="before the deadline that was given"):
            late.wait(WAIT)
        assert late.ready()
        unseen = stream.offload({"x": np.zeros(10)}, tag=3, deadline=0.05)
        with pytest.raises(wherry.Cancelled, match="before the deadline that was given"):
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
                assert timeout <= time.monotonic() - start < 60
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
while " T " not in open("/proc/{agent.process.pid}/stat").read(): pass
ticket = stream.offload({{"x": x}})
threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT]).start()
try:
    {what}
except KeyboardInterrupt:
    print("interrupted")
finally:
    os.kill({agent.process.pid}, signal.SIGCONT)
"""
    environment = os.environ | {"PYTHONPATH": str(paths.PACKAGE.parent)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=40, env=environment)
    assert done.stdout == "interrupted\n", done.stderr


THREADS = 4


def test_threads_share_a_session(bench: Bench) -> None:
    """Each thread opens and closes its own streams while the others work."""

    def work(thread: int) -> None:
        x = np.full(1000, float(thread))
        for turn in range(20):
            with bench.session.stream(f"of-{thread}-{turn}", {"x": x}) as stream:
                stream.offload({"x": x}).wait(WAIT)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))
    for thread in range(THREADS):
        for turn in (0, 19):
            (frame,) = bench.read(f"of-{thread}-{turn}")
            assert frame.batch["x"].to_pylist() == [float(thread)] * 1000


def test_threads_share_a_stream_and_wait_for_tickets(bench: Bench) -> None:
    name = bench.name()
    each = 50
    with wherry.Session(str(bench.file), max_tickets=1) as session:
        stream = session.stream(name, {"x": np.zeros(1)}, keep_frames=THREADS * each)

        def work(thread: int) -> None:
            for turn in range(each):
                tag = thread * each + turn
                stream.offload({"x": np.full(1 + tag, float(tag))}, tag=tag, timeout=WAIT)

        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(work, range(THREADS)))
        session.drain(WAIT)
        stream.close()
    frames = bench.read(name)
    assert sorted(frame.tag for frame in frames) == list(range(THREADS * each))
    for frame in frames:
        assert frame.batch["x"].to_pylist() == [float(frame.tag)] * (1 + frame.tag)


@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_a_process_that_ends_delivers_what_is_in_flight(make_agent: Callable[..., Agent], transport: str) -> None:
    agent = make_agent()
    script = f"""
import sys, numpy as np, wherry
session = wherry.Session({str(agent.session_file)!r}, transport={transport!r})
stream = session.stream("s", {{"x": np.zeros(1)}}, keep_frames=50)
for tag in range(50):
    stream.offload({{"x": np.full(100_000, float(tag))}}, tag=tag)
sys.exit(0)
"""
    environment = os.environ | {"PYTHONPATH": str(paths.PACKAGE.parent)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    with wherry.open("s", agent.session_file, follow=False, timeout=WAIT) as reader:
        assert [frame.tag for frame in reader] == list(range(50))


def test_a_process_that_ends_says_what_it_could_not_deliver(make_agent: Callable[..., Agent]) -> None:
    agent = make_agent()
    script = f"""
import os, signal, numpy as np, wherry, wherry.move.ticket
wherry.move.ticket._AT_EXIT_S = 0.2
session = wherry.Session({str(agent.session_file)!r})
stream = session.stream("s", {{"x": np.zeros(1)}})
os.kill({agent.process.pid}, signal.SIGSTOP)
while " T " not in open("/proc/{agent.process.pid}/stat").read(): pass
stream.offload({{"x": np.zeros(10)}})
"""
    environment = os.environ | {"PYTHONPATH": str(paths.PACKAGE.parent)}
    try:
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, env=environment
        )
    finally:
        agent.process.send_signal(signal.SIGCONT)
    assert done.returncode == 0
    assert "wherry: at the end of the process: " in done.stderr
    assert "still in flight" in done.stderr
