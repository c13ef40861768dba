# SPDX-License-Identifier: Apache-2.0
"""An agent runs for months, so it must free the resources of clients and readers that left or died. `make soak` tests
the same for an hour."""

from __future__ import annotations

import fcntl
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from agents import Agent
from soak import Soak, Usage

from wherry.session.metrics import read_metrics
from wherry.system import paths

pytestmark = [pytest.mark.agent, pytest.mark.timeout(600)]


def test_clients_and_readers_that_come_go_and_die_leave_nothing_behind(make_agent: Callable[..., Agent]) -> None:
    agent = make_agent("--log-level", "error")
    soak = Soak(agent.session)
    try:
        for _ in range(6):
            soak.round()
        base = soak.settled()
        for _ in range(12):
            soak.round()
        last = soak.settled(base)
        assert last.within(base), f"{base}, then {last}, after {soak.counts}"
    finally:
        soak.close()


def test_cancelled_calls_on_one_connection_leave_no_memory_behind(make_agent: Callable[..., Agent]) -> None:
    agent = make_agent("--log-level", "error")
    soak = Soak(agent.session)
    try:
        for _ in range(20):
            soak._cancel()
        base = soak.settled()
        for _ in range(200):  # 4000 calls, each of which once leaked 1 to 3 KB
            soak._cancel()
        last = soak.settled(base)
        assert last.within(base), f"{base}, then {last}, after {soak.counts}"
    finally:
        soak.close()


def _abandoned_segments() -> set[Path]:
    """This user's shared-memory segments whose process has ended, so that their directory is no longer locked
    (segment_directory.hpp)."""
    found = set(Path("/dev/shm").glob("ucx_*"))
    for directory in Path("/dev/shm").glob(f"wherry-{os.getuid()}/p-*"):
        try:
            descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            found |= {directory, *directory.iterdir()}
        except BlockingIOError:
            pass
        finally:
            os.close(descriptor)
    return found


def test_clients_killed_while_they_start_leave_no_segment_behind(make_agent: Callable[..., Agent]) -> None:
    agent = make_agent("--log-level", "error", "--flight", "off")
    program = str(paths.built("src", "fault_client"))
    before = _abandoned_segments()
    begin = time.monotonic()
    subprocess.run([program, str(agent.session_file), "load", "whole", "1"], check=True, timeout=60)
    whole = time.monotonic() - begin
    for i in range(40):
        with subprocess.Popen(
            [program, str(agent.session_file), "load", f"k{i}", "1"], stderr=subprocess.DEVNULL
        ) as one:
            time.sleep(whole * i / 40)  # kills in all phases of its run, as far as possible
            one.kill()
    deadline = time.monotonic() + 300
    # This user's next process with shared memory removes the segments. Processes of other tests may die in the
    # meantime.
    while True:
        subprocess.run([program, str(agent.session_file), "load", "last", "1"], check=True, timeout=60)
        if (left := _abandoned_segments()) <= before:
            break
        assert time.monotonic() < deadline, left - before
    while read_metrics(agent.session)["wherry_agent_sessions"] != 0:
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("transport", ["auto", "tcp"])
def test_clients_killed_with_offloads_in_flight_leave_no_descriptor_behind(
    make_agent: Callable[..., Agent], transport: str
) -> None:
    agent = make_agent("--log-level", "error", "--flight", "off")
    program = str(paths.built("src", "fault_client"))

    def kill(times: int) -> None:
        for _ in range(times):
            before = read_metrics(agent.session)["wherry_move_offloads_total"]
            line = [program, str(agent.session_file), "die", *([] if transport == "auto" else [transport])]
            with subprocess.Popen(line) as one:
                deadline = time.monotonic() + 300
                while read_metrics(agent.session)["wherry_move_offloads_total"] < before + 2:
                    assert one.poll() is None
                    assert time.monotonic() < deadline
                    time.sleep(0.002)
                one.kill()
            while read_metrics(agent.session)["wherry_agent_sessions"] != 0:
                assert time.monotonic() < deadline
                time.sleep(0.002)

    kill(3)  # the first client makes the transport open its own descriptors
    base = Usage.of(agent.session.pid)
    kill(12)
    deadline = time.monotonic() + 300
    while not (last := Usage.of(agent.session.pid)).descriptors <= base.descriptors:
        assert time.monotonic() < deadline, f"{base}, then {last}: sockets of dead clients"
        time.sleep(0.05)
