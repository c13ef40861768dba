# SPDX-License-Identifier: Apache-2.0
"""Measures what readers and operators on the agent cost the host: without either; with a reader of the frames as they
are, or compressed (LZ4); and with operators that were declared at open and compress, or sort, filter and compress.

    python -m wherry.move.bench.readers SESSION_FILE STREAM CODEC CORE     a reader, in a process of its own
"""

from __future__ import annotations

import gc
import os
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any

import numpy as np

from wherry.errors import BenchError, Error
from wherry.move.bench.schema import BENCHMARK, Reader, ReaderLoad
from wherry.move.connection import Agent
from wherry.move.flight import flight_client, flight_frames
from wherry.move.reader import StreamStatus, streams
from wherry.move.session import Session
from wherry.move.stream import Step

COLUMNS, ROWS = 4, 1 << 18
"""A frame of 8 MiB. LZ4 compresses it to about a third."""
SWEEP_BYTES = 64 << 20
"""The memory that the host's time step sweeps between a post and the wait. This work hides the transfer."""
READERS: tuple[Reader, ...] = ("plain", "lz4")
OPERATORS: dict[Reader, list[dict[str, Any]]] = {
    "lz4_operator": [{"name": "packed", "compression": "lz4"}],
    "sort_operator": [
        {"name": "sorted", "steps": [{"filter": [">", "c1", 0.0]}, {"sort": ["c0"]}], "compression": "lz4"}
    ],
}
WAYS: tuple[Reader, ...] = ("none", *READERS, *OPERATORS)
WARM_UP = 8
TARGET = 1.1
"""Host time with LZ4 on the agent over host time without it: 1, plus a margin for the clock's noise."""


def measure(document: dict[str, Any], *, quick: bool) -> None:
    """Adds the rows and the bars to a run's document.

    The host has a core for itself if there are two. Agent and reader share another one. Ways take turns, round by
    round. Raises BenchError if a reader or an operator fails.
    """
    print("bench move: readers", file=sys.stderr, flush=True)
    allowed = os.sched_getaffinity(0)
    cores = sorted(allowed)
    collecting = gc.isenabled()
    rounds, frames = (5, 12) if quick else (21, 24)
    figures: dict[Reader, list[tuple[float, float, float]]] = {way: [] for way in WAYS}
    grid = np.linspace(0.0, 1.0, ROWS)
    data = {f"c{i}": np.round(np.sin((i + 1) * grid), 3) for i in range(COLUMNS)}
    sweep = np.zeros(SWEEP_BYTES // 8)
    readers: dict[Reader, subprocess.Popen[str]] = {}
    try:
        os.sched_setaffinity(0, {cores[0]})
        gc.disable()
        with Session(agent="embedded", name="bench_readers", embedded_core=cores[-1]) as session:
            document.setdefault("transports", session.info.transports)
            document.setdefault("one_sided", session.info.heap)
            with ExitStack() as stack:
                steps = {}
                for way in WAYS:
                    stream = stack.enter_context(
                        session.stream(
                            f"readers-{way}",
                            data,
                            strategy="ipc_page_aligned",
                            keep_frames=4,
                            operators=OPERATORS.get(way),
                        )
                    )
                    steps[way] = stack.enter_context(stream.bind(data))
                    if way in READERS:
                        readers[way] = _start(session.info.session_file, stream.name, way, cores[-1])
                    _run(steps[way], sweep, WARM_UP)  # warm up: the first calls use cold destination buffers
                for _ in range(rounds):
                    for way in WAYS:
                        figures[way].append(_run(steps[way], sweep, frames))
                        if way in OPERATORS:
                            _settle(session.info.session_file, f"readers-{way}")
                posted = WARM_UP + rounds * frames
                worked = {
                    way: posted - _settle(session.info.session_file, f"readers-{way}").operator_skipped
                    for way in OPERATORS
                }
            read = {way: _read(way, reader) for way, reader in readers.items()}  # the streams have ended
    finally:
        os.sched_setaffinity(0, allowed)
        if collecting:
            gc.enable()
        for reader in readers.values():
            reader.kill()
            reader.communicate()
    taken = {"none": 0} | worked | read
    document["results"]["readers"] = [
        asdict(
            ReaderLoad(
                reader=way,
                size=COLUMNS * ROWS * 8,
                call_us=statistics.median(one[0] for one in figures[way]),
                wait_us=statistics.median(one[1] for one in figures[way]),
                step_us=statistics.median(one[2] for one in figures[way]),
                read_percent=100.0 * taken[way] / posted,
            )
        )
        for way in WAYS
    ]
    targets: dict[Reader, float | None] = {
        "plain": None,
        "lz4": TARGET,
        "lz4_operator": TARGET,
        "sort_operator": TARGET,
    }
    for name, target in targets.items():
        pairs = zip(figures[name], figures["none"], strict=True)
        bar = f"{name}_host_ratio" if name in OPERATORS else f"{name}_reader_host_ratio"
        document["bars"][bar] = _bar([(a[0] + a[1]) / (b[0] + b[1]) for a, b in pairs], target)


def _run(step: Step, sweep: np.ndarray[Any, Any], frames: int) -> tuple[float, float, float]:
    """Median times in microseconds: of the call, of the wait after the work, and of the whole time step."""
    calls, waits, whole = [], [], []
    for tag in range(frames):
        began = time.perf_counter_ns()
        ticket = step.post(tag)
        posted = time.perf_counter_ns()
        sweep += 1.0
        worked = time.perf_counter_ns()
        ticket.wait()
        ended = time.perf_counter_ns()
        calls.append((posted - began) * 1e-3)
        waits.append((ended - worked) * 1e-3)
        whole.append((ended - began) * 1e-3)
    return statistics.median(calls), statistics.median(waits), statistics.median(whole)


def _start(session_file: str, stream: str, codec: str, core: int) -> subprocess.Popen[str]:
    line = [sys.executable, "-m", "wherry.move.bench.readers", session_file, stream, codec, str(core)]
    reader: subprocess.Popen[str] = BENCHMARK.start(line, stdout=subprocess.PIPE, text=True)
    assert reader.stdout is not None
    if reader.stdout.readline() != "ready\n":
        raise BenchError(f"the {codec} reader did not start: exit status {reader.wait()}")
    return reader


def _read(way: str, reader: subprocess.Popen[str]) -> int:
    """The number of frames that the reader has read by the end of its stream."""
    said, _ = reader.communicate(timeout=60)
    if reader.returncode != 0 or not said.strip().isdecimal():
        raise BenchError(f"the {way} reader failed: exit status {reader.returncode}")
    return int(said)


def _settle(session_file: str, stream: str) -> StreamStatus:
    """Waits until no frame waits for the stream's operators, whose work would count in the next way's time. Returns the
    stream's status."""
    give_up = time.monotonic() + 60
    while True:
        (status,) = [one for one in streams(session_file) if one.name == stream]
        if status.operator_errors:
            raise BenchError(f"operators of {stream}: {status.operator_errors} frames failed: {status.operator_error}")
        if status.operator_lag == 0:
            return status
        if time.monotonic() > give_up:
            raise BenchError(f"operators of {stream}: {status.operator_lag} frames still wait after a minute")
        time.sleep(0.01)


def _bar(rounds: list[float], target: float | None) -> dict[str, Any]:
    value = statistics.median(rounds)
    bar = {"value": value, "min": min(rounds), "max": max(rounds), "unit": "", "published": None}
    return bar if target is None else bar | {"target": f"<= {target:g}", "pass": value <= target}


def _follow(agent: Agent, stream: str, codec: str, core: int) -> int:
    """The reader process: prints "ready", follows the stream to its end, and prints the number of frames read."""
    os.sched_setaffinity(0, {core})
    os.nice(10)
    client, options = flight_client(agent)
    compression = None if codec == "plain" else codec
    frames = 0
    with client:
        print("ready", flush=True)
        for _ in flight_frames(client, options, stream, follow=True, compression=compression):
            frames += 1
    print(frames, flush=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(_follow(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
    except (Error, BrokenPipeError) as problem:
        print(f"readers: {problem}", file=sys.stderr)
        sys.exit(1)
