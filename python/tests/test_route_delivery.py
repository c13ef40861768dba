# SPDX-License-Identifier: Apache-2.0
"""Exact delivery. The test stops and continues ranks and agents at random while messages of random sizes are in flight.
The receivers must account for every message and byte (src/route/client/delivery_testing_main.cpp)."""

from __future__ import annotations

import json
import os
import random
import signal
import time

import pytest
from jobs import Jobs, built

RANKS = 8
SHAPE = ("--nodes", "4", "--ranks-per-node", "2")


def deliver(jobs: Jobs, *words: str, messages: int, seconds: float = 300) -> tuple[dict[str, int], int]:
    """Runs a job; returns the sums that its ranks report, and the number of stalls."""
    job = jobs.start(*SHAPE, *words, "--", built("route_delivery"), str(messages))
    chance = random.Random(1)
    stalls = 0
    deadline = time.monotonic() + seconds
    while job.poll() is None:
        assert time.monotonic() < deadline, "the job does not end"
        victims = [
            pid
            for word in ("route_delivery", "wherryd")
            for pid, line in jobs.processes(word).items()
            if "-m" not in line.split()
        ]
        stopped = chance.sample(victims, min(len(victims), chance.randint(1, 3)))
        for pid in stopped:
            try:
                os.kill(pid, signal.SIGSTOP)
            except ProcessLookupError:
                continue
        time.sleep(chance.uniform(0.001, 0.05))
        for pid in stopped:
            try:
                os.kill(pid, signal.SIGCONT)
                stalls += 1
            except ProcessLookupError:
                continue
        time.sleep(chance.uniform(0.01, 0.2))
    out, err = job.communicate()
    assert (job.returncode, err) == (0, "")
    return json.loads(out.split(" ", 1)[1]), stalls


def test_ten_million_messages_through_stalling_agents(jobs: Jobs) -> None:
    found, stalls = deliver(jobs, "--placement", "host", messages=10_000_000 // RANKS)
    assert found["messages"] == 10_000_000
    assert found["wrong"] == 0
    assert stalls > 10


@pytest.mark.parametrize("placement", ["inline", "shared"])
def test_other_placements(jobs: Jobs, placement: str) -> None:
    found, _ = deliver(jobs, "--placement", placement, messages=100_000)
    assert (found["messages"], found["wrong"]) == (100_000 * RANKS, 0)


@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize("placement", ["inline", "host"])
def test_between_network_namespaces(jobs: Jobs, placement: str) -> None:
    found, _ = deliver(jobs, "--netns", "--placement", placement, messages=20_000)
    assert (found["messages"], found["wrong"]) == (20_000 * RANKS, 0)


@pytest.mark.parametrize("threads", [2, 3])
def test_several_routing_threads(jobs: Jobs, threads: int) -> None:
    jobs.environment["WHERRY_ROUTING_THREADS"] = str(threads)
    found, _ = deliver(jobs, "--placement", "host", messages=50_000)
    assert (found["messages"], found["wrong"]) == (50_000 * RANKS, 0)
