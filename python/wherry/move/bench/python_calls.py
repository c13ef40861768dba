# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of an offload call in Python, with columns named in each call and with columns bound once."""

from __future__ import annotations

import gc
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from wherry.move.bench.schema import PythonCall
from wherry.move.session import Session
from wherry.move.ticket import Ticket

COLUMNS = (1, 4, 16)
ROWS = 8192  # 64 KiB in each column
SWEEP_BYTES = 64 << 20
"""The bytes that a time step touches between two cold calls. They exceed the caches of one core."""
TARGETS = {"warm": 5.0, "cold": 60.0}
"""The targets in microseconds for a call of bound columns (16 columns)."""


def measure(document: dict[str, Any], *, quick: bool) -> None:
    """Adds the rows and the bars to a run's document. The embedded agent runs on another core, if there is one."""
    allowed = os.sched_getaffinity(0)
    cores = sorted(allowed)
    collecting = gc.isenabled()
    try:
        os.sched_setaffinity(0, {cores[0]})  # the embedded agent runs on another core
        gc.disable()
        with Session(agent="embedded", name="bench_python", embedded_core=cores[-1]) as session:
            document.setdefault("transports", session.info.transports)
            document.setdefault("one_sided", session.info.heap)
            rounds = 5 if quick else 11
            rows = [row for columns in COLUMNS for row in _calls(session, columns, rounds, document["bars"])]
    finally:
        os.sched_setaffinity(0, allowed)
        if collecting:
            gc.enable()
    document["results"]["python"] = [asdict(row) for row in rows]


def _calls(session: Session, columns: int, rounds: int, bars: dict[str, Any]) -> list[PythonCall]:
    """Measures both ways in alternation in each round."""
    print(f"bench move: python: {columns} columns", file=sys.stderr, flush=True)
    data = {f"c{i}": np.full(ROWS, float(i)) for i in range(columns)}
    sweep = np.zeros(SWEEP_BYTES // 8)
    figures: dict[tuple[str, str], list[float]] = {}
    with session.stream(f"python-{columns}", data, strategy="ipc_page_aligned") as stream, stream.bind(data) as step:
        ways: dict[str, Callable[[], Ticket]] = {"offload": lambda: stream.offload(data), "bind": step.post}
        for way in ways.values():
            _times(way, 64, None)  # warm up: the first calls use cold destination buffers
        for _ in range(rounds):
            for name, way in ways.items():
                figures.setdefault((name, "warm"), []).append(statistics.median(_times(way, 256, None)))
            for name, way in ways.items():
                figures.setdefault((name, "cold"), []).append(statistics.median(_times(way, 9, sweep)))
    if columns == max(COLUMNS):
        for state, target in TARGETS.items():
            bars[f"python_call_us_{columns}col_{state}"] = _bar(figures["bind", state], target)
    return [
        PythonCall(
            columns=columns,
            size=columns * ROWS * 8,
            call=call,
            warm_us=statistics.median(figures[call, "warm"]),
            cold_us=statistics.median(figures[call, "cold"]),
        )
        for call in ("offload", "bind")
    ]


def _times(call: Callable[[], Ticket], count: int, sweep: np.ndarray[Any, Any] | None) -> list[float]:
    """The times of `count` calls in microseconds, with one offload in flight. `sweep`: memory that is swept before each
    call."""
    times = []
    for _ in range(count):
        if sweep is not None:
            sweep += 1.0
        start = time.perf_counter_ns()
        ticket = call()
        stop = time.perf_counter_ns()
        times.append((stop - start) * 1e-3)
        ticket.wait()
    return times


def _bar(rounds: list[float], target: float) -> dict[str, Any]:
    value = statistics.median(rounds)
    return {
        "value": value, "min": min(rounds), "max": max(rounds), "target": f"<= {target:g}", "pass": value <= target,
        "unit": "us", "published": None,
    }  # fmt: skip
