# SPDX-License-Identifier: Apache-2.0
"""Time steps whose columns are offloaded while the next step computes: measures the host's cost and checks the bytes.

Host time lost: the time that a step spends in the call that offloads its columns, and in the wait until it may write to
them again. It does not include the computation. Both ways run in alternation on the same machine with the same columns.
"""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Iterable
from contextlib import closing

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from wherry.errors import Error
from wherry.move.session import Session
from wherry.move.tour.ways import Columns, DoPut, Way, Wherry, put_server
from wherry.units import bytes_text, counted, time_text

NAMES = ("x", "y", "z")
ROWS = 65_536
FRAMES = 24
ROUNDS = 5
FRAME_BYTES = len(NAMES) * ROWS * 8


def show(console: Console) -> None:
    """Runs this part, and prints a table and a sentence. Raises Error if a byte is wrong."""
    base = np.random.default_rng(1).random((len(NAMES), ROWS))
    with (
        Session(agent="embedded", name="wherry demo", embedded_budget=256 << 20) as session,
        put_server() as location,
        closing(DoPut(location, NAMES, ROWS)) as put,
    ):
        wherry = Wherry(session, NAMES, ROWS, FRAMES)
        ways: dict[str, Way] = {"wherry": wherry, "DoPut": put}
        lost: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        gc.disable()
        try:
            for number in range(ROUNDS):
                for name, way in ways.items():
                    times = _round(way, base, number)
                    if number:  # the first round is the warm-up
                        lost[name].append(times)
        finally:
            gc.enable()
        checked = [
            ("read here, without a copy", _check("Wherry", wherry.frames(), base)),
            ("read with Arrow Flight", _check("Wherry, by Flight", wherry.frames_by_flight(), base)),
            ("", _check("DoPut", put.frames(), base)),
        ]
    of = {name: [statistics.median(part) for part in zip(*times, strict=True)] for name, times in lost.items()}
    console.print(_table(of))
    for how, bytes_ in checked[:2]:
        console.print(f"  {how}: {counted(FRAMES, 'frame')}, {bytes_text(bytes_)}, every byte as it was posted")
    console.print(f"  {sentence(sum(of['wherry']), sum(of['DoPut']))}")


def _round(way: Way, base: np.ndarray, number: int) -> tuple[float, float]:
    """The seconds per frame in calls and in waits."""
    calls = waits = 0.0
    for step in range(FRAMES):
        slot = step % 2
        start = time.perf_counter()
        way.wait(slot)
        waits += time.perf_counter() - start
        compute(way.columns(slot), base, step)
        start = time.perf_counter()
        way.post(slot, step)
        calls += time.perf_counter() - start
    way.end()
    return calls / FRAMES, waits / FRAMES


def compute(columns: Columns, base: np.ndarray, step: int) -> None:
    """A time step: some milliseconds of arithmetic with a reproducible result."""
    for column, first in zip(columns.values(), base, strict=True):
        np.add(first, float(step), out=column)
        np.sqrt(column, out=column)
        for _ in range(8):
            np.multiply(column, column, out=column)
            np.sqrt(column, out=column)


def _check(name: str, frames: Iterable[tuple[int, pa.RecordBatch]], base: np.ndarray) -> int:
    """Compares frames with recomputed steps, and returns the number of compared bytes. Raises Error at the first
    difference."""
    wanted: Columns = {one: np.zeros(ROWS) for one in NAMES}
    tags, compared = [], 0
    for tag, batch in frames:
        compute(wanted, base, tag)
        for column, values in wanted.items():
            got = batch.column(column).to_numpy()
            if got.tobytes() != values.tobytes():
                raise Error(f"{name}: column {column} of frame {tag} is not what was posted")
            compared += values.nbytes
        tags.append(tag)
    if tags != [*range(FRAMES)]:
        raise Error(f"{name}: {counted(len(tags), 'frame')} came back ({tags}): want 0 to {FRAMES - 1}")
    return compared


def _table(of: dict[str, list[float]]) -> Table:
    title = f"Host time lost a frame ({len(NAMES)} columns of numpy, {bytes_text(FRAME_BYTES)})"
    table = Table(title=title, title_justify="left", title_style="bold", box=None)
    table.add_column("way", no_wrap=True)
    for column in ("call", "wait", "lost"):
        table.add_column(column, justify="right", no_wrap=True)
    for name, label in (("wherry", "Wherry (step.post)"), ("DoPut", "Arrow Flight DoPut (pyarrow)")):
        table.add_row(label, *(time_text(value) for value in (*of[name], sum(of[name]))))
    return table


def sentence(wherry: float, put: float) -> str:
    """A sentence that says which way is faster in this run."""
    ratio = put / wherry
    compared = f"{ratio:.2g} times" if ratio < 10 else f"{ratio:.0f} times"
    if ratio > 1.05:
        verdict = f"Flight's DoPut takes {compared} as much of the host's time as Wherry"
    elif ratio < 0.95:
        verdict = f"here Wherry takes {wherry / put:.2g} times as much of the host's time as Flight's DoPut"
    else:
        verdict = "here both take the same time of the host"
    cores = counted(len(os.sched_getaffinity(0)), "core")
    return f"{verdict} ({cores}; Wherry through shared memory, DoPut through a Unix socket of the same machine)."
