# SPDX-License-Identifier: Apache-2.0
"""The main job: LAMMPS melts a Lennard-Jones crystal, Wherry takes the particles, and another process checks the
physics.

    python apps/lammps/lammps_lj.py                                  # 256,000 atoms, half a minute
    python apps/lammps/lammps_lj.py --atoms 32000 --steps 100        # a few seconds

The application has one core and the agent another. Every --every steps the job offloads `id`, `type`, `x` and `v`
straight out of LAMMPS's own arrays. LAMMPS overwrites `x` and `v` in its next step. So the job does its bookkeeping
while the agent pulls, and waits for the ticket before LAMMPS continues. A second process (lammps_reader) follows the
stream through Arrow Flight and computes temperature and kinetic energy with DuckDB. The job compares them with LAMMPS's
own numbers: every frame must arrive once, in order and complete, and agree to 1e-9. In the same run, after each hold,
it measures the cost of serialising the same frame on the host (paper 004, section V-G, "host serialization").
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import queue
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa
from host_serialisation import HostSerialisation, schema_of
from lammps_reader import Figures
from melt import JobFailed, Melt
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

import wherry
from wherry.system import this_machine

READER = Path(__file__).resolve().with_name("lammps_reader.py")
STREAM = "lammps"
TOLERANCE = 1e-9
"""Largest allowed relative difference between LAMMPS's figures and the reader's. The real difference, from the order of
summation, is about 1e-14."""


@dataclass(frozen=True, slots=True)
class Expected:
    """LAMMPS's own figures of one frame; see Figures for their meaning."""

    step: int
    atoms: int
    temp: float
    ke: float
    position_sum: tuple[float, float, float]


@dataclass(slots=True)
class FrameTimes:
    """One frame as the host saw it."""

    step: int
    rows: int
    bytes: int
    call_us: float
    """The offload() call."""
    hold_ms: float
    """From that call's return until the sources were seen to be free. An upper bound if `covered` is set."""
    stall_ms: float
    """The part of the hold that bookkeeping did not cover: time lost to the application."""
    covered: bool
    """The sources were free before the bookkeeping ended."""
    agent_ms: float
    """First get issued to last byte in place, on the agent's clock."""
    agent_gb_s: float
    """Bytes over agent_ms, in 10^9 bytes per second."""
    host_convert_write_ms: float
    """The host serialises by itself, the paper's way: copy into Arrow arrays, and write."""
    host_wrap_write_ms: float
    """The same, the best way: wrap without a copy, write into a reused buffer."""
    simulate_s: float
    """LAMMPS's time since the frame before."""


def compare(expected: Sequence[Expected], read: Sequence[Figures]) -> tuple[list[str], float]:
    """The errors in the read frames, a line each, and the largest relative difference of any figure.

    Nothing is wrong if every expected frame was read exactly once, in order, complete, with ids that are a
    permutation of 1..atoms, and with figures that agree to TOLERANCE.
    """
    problems: list[str] = []
    worst = 0.0
    if len(read) != len(expected):
        problems.append(f"{len(expected)} frames were offloaded, {len(read)} were read")
    for index, (want, got) in enumerate(zip(expected, read, strict=False)):
        where = f"frame {index} (step {want.step})"
        if got.sequence != index or got.tag != want.step:
            problems.append(f"{where}: the reader's frame here has sequence {got.sequence}, step {got.tag}")
            continue
        if got.skipped:
            problems.append(f"{where}: {got.skipped} frames were lost before it")
        if got.rows != want.atoms or got.atoms != want.atoms:
            problems.append(f"{where}: {want.atoms} atoms, but {got.rows} rows arrived and {got.atoms} were read")
        if (got.distinct_ids, got.min_id, got.max_id) != (want.atoms, 1, want.atoms):
            problems.append(
                f"{where}: ids are no permutation of 1..{want.atoms}: {got.distinct_ids} different ones "
                f"from {got.min_id} to {got.max_id}"
            )
        pairs = [("temperature", want.temp, got.temp), ("kinetic energy", want.ke, got.ke)]
        pairs += [
            (f"sum of {axis}", a, b) for axis, a, b in zip("xyz", want.position_sum, got.position_sum, strict=True)
        ]
        for what, ours, theirs in pairs:
            difference = abs(theirs - ours) / max(abs(ours), sys.float_info.min)
            if not difference <= TOLERANCE:  # also for a NaN
                problems.append(f"{where}: {what} is {ours!r} in LAMMPS and {theirs!r} for the reader")
            worst = max(worst, difference) if not math.isnan(difference) else math.inf
    return problems, worst


class ReaderProcess:
    """lammps_reader as a child process. A thread waits for its lines and collects them."""

    def __init__(self, session_file: str, cores: set[int], stream: str = STREAM) -> None:
        environment = dict(os.environ)
        package_root = str(Path(wherry.__file__).resolve().parent.parent)
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [package_root, environment.get("PYTHONPATH", "")]))
        command = [sys.executable, str(READER), "--agent", session_file, "--stream", stream]
        command += ["--cores", ",".join(str(core) for core in sorted(cores))]
        # In a separate session, so Ctrl-C reaches this process alone, which then ends the reader.
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
        )
        self._lines: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._errors: list[str] = []
        self.figures: list[Figures] = []
        self.ready = self.ended = False
        self._threads = [threading.Thread(target=self._collect, daemon=True), threading.Thread(target=self._complain)]
        self._threads[1].daemon = True
        for thread in self._threads:
            thread.start()

    def _collect(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(json.loads(line))

    def _complain(self) -> None:
        assert self._process.stderr is not None
        self._errors.extend(line.rstrip() for line in self._process.stderr)

    def poll(self) -> None:
        """Reads what the reader has written so far. Raises JobFailed if the reader ended early."""
        gone = self._process.poll() is not None
        if gone:
            for thread in self._threads:
                thread.join(timeout=10)
        while not self._lines.empty():
            line = self._lines.get()
            if "ready" in line:
                self.ready = True
            elif "end" in line:
                self.ended = True
            else:
                self.figures.append(Figures(**{**line, "position_sum": tuple(line["position_sum"])}))
        if gone and not self.ended:
            reason = self._errors[-1] if self._errors else f"exit status {self._process.returncode}"
            raise JobFailed(f"the reader ended early after {len(self.figures)} frames: {reason}")

    def wait_until(self, condition: Callable[[], bool], timeout: float, what: str) -> None:
        """Polls until `condition()` holds. Raises JobFailed if that takes longer than `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > deadline:
                raise JobFailed(f"the reader did not {what} within {timeout:g} s ({len(self.figures)} frames read)")
            time.sleep(0.01)
            self.poll()

    def close(self) -> None:
        """Ends the process if it still runs, and waits for it."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        for thread in self._threads:
            thread.join(timeout=5)
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()


def wait_for(ticket: Any, reader: ReaderProcess, timeout: float = 60.0) -> None:
    """Waits until the ticket's sources are free. Fails also if the reader died meanwhile, because then it would never
    make room."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            ticket.wait(timeout=1.0)
            return
        except wherry.DeadlineExceeded:
            reader.poll()
            if time.monotonic() > deadline:
                raise JobFailed(f"the agent did not take a frame within {timeout:g} s") from None


@dataclass(slots=True)
class Report:
    """All results of the job. The summary file has them as JSON."""

    times: list[FrameTimes] = field(default_factory=list)
    expected: list[Expected] = field(default_factory=list)
    session: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    def totals(self) -> dict[str, dict[str, float]]:
        """Median, min and max over the frames of each figure."""
        names = [
            "call_us",
            "hold_ms",
            "stall_ms",
            "agent_ms",
            "agent_gb_s",
            "host_convert_write_ms",
            "host_wrap_write_ms",
        ]
        return {
            name: {
                "median": statistics.median(getattr(times, name) for times in self.times),
                "min": min(getattr(times, name) for times in self.times),
                "max": max(getattr(times, name) for times in self.times),
            }
            for name in [*names, "simulate_s"]
        }


def simulate(
    options: argparse.Namespace, cells: int, cores: tuple[int, int], console: Console
) -> tuple[Report, list[Figures]]:
    """Runs the job. Returns the figures of LAMMPS and of the clock, and what the reader read."""
    application, agent = cores
    available = os.sched_getaffinity(0)
    with contextlib.ExitStack() as stack:
        session = stack.enter_context(
            wherry.Session(agent=options.agent, name="lammps_lj", embedded_budget=options.budget, embedded_core=agent)
        )
        console.print(str(session.info), highlight=False, markup=False)
        # Runs after the agent has started, which takes its own core, and before LAMMPS touches its memory.
        os.sched_setaffinity(0, {application})
        stack.callback(os.sched_setaffinity, 0, available)
        melt = stack.enter_context(contextlib.closing(Melt(cells)))
        return offload_frames(session, melt, options, available - {application} or available, console)


def offload_frames(
    session: wherry.Session, melt: Melt, options: argparse.Namespace, reader_cores: set[int], console: Console
) -> tuple[Report, list[Figures]]:
    """Simulates, offloads and waits for the reader. The stream and its tickets are destroyed when it returns, because
    an embedded agent ends with the last object of its session."""
    columns = melt.columns()
    schema = schema_of(columns)
    nbytes = sum(values.nbytes for values in columns.values())
    # "wait": the agent drops no frame that was not read. If the reader falls 16 frames behind, the application waits.
    stream = session.stream(
        STREAM, schema, strategy="ipc_page_aligned", keep_frames=16, when_full="wait", announce=[nbytes]
    )
    with contextlib.closing(ReaderProcess(session.info.session_file, reader_cores)) as reader:
        reader.wait_until(lambda: reader.ready, 30.0, "start")
        baseline = HostSerialisation(schema)
        baseline.convert_and_write(columns)  # the first serialisation in a process includes Arrow's initialisation
        baseline.wrap_and_write(columns)
        del columns
        report = Report(
            session={"transports": session.info.transports, "one_sided": str(session.info.heap)},
            versions={"lammps": melt.version, "agent": session.info.agent_version, "pyarrow": pa.__version__},
        )
        start = time.perf_counter()
        with frames_shown(console, options.steps // options.every) as show:
            for _ in range(options.steps // options.every):
                one_frame(melt, stream, reader, baseline, options.every, report)
                reader.poll()
                show(report.times[-1], report.expected[-1], len(reader.figures))
        stream.close()
        report.seconds = time.perf_counter() - start
        reader.wait_until(lambda: reader.ended, 60.0, "come to the end of the stream")
        return report, reader.figures


def one_frame(
    melt: Melt, stream: Any, reader: ReaderProcess, baseline: HostSerialisation, every: int, report: Report
) -> None:
    """Simulates `every` steps, offloads the result, and appends to the report."""
    clock = time.perf_counter_ns
    t0 = clock()
    melt.advance(every)
    t1 = clock()
    columns = melt.columns()
    rows = len(columns["id"])

    t2 = clock()
    ticket = stream.offload(columns, tag=melt.step)
    t3 = clock()

    # Bookkeeping, while the agent pulls. It may read the arrays, as the agent does, but must not write to them yet.
    x, y, z = (float(total) for total in columns["x"].sum(axis=0))
    report.expected.append(Expected(melt.step, rows, melt.temperature(), melt.kinetic_energy(), (x, y, z)))
    covered = bool(ticket.ready())
    t4 = clock()
    wait_for(ticket, reader)
    t5 = clock()  # from here on, x and v may be overwritten

    nbytes = sum(values.nbytes for values in columns.values())
    convert_ns, wrap_ns = baseline.convert_and_write(columns), baseline.wrap_and_write(columns)
    report.times.append(
        FrameTimes(
            step=melt.step,
            rows=rows,
            bytes=nbytes,
            call_us=(t3 - t2) / 1e3,
            hold_ms=(t5 - t3) / 1e6,
            stall_ms=(t5 - t4) / 1e6,
            covered=covered,
            agent_ms=ticket.transfer_ns / 1e6,
            agent_gb_s=nbytes / max(ticket.transfer_ns, 1),
            host_convert_write_ms=convert_ns / 1e6,
            host_wrap_write_ms=wrap_ns / 1e6,
            simulate_s=(t1 - t0) / 1e9,
        )
    )


class frames_shown:  # noqa: N801 - used as a function
    """Prints one line for each frame and, on a terminal, a progress bar below."""

    def __init__(self, console: Console, total: int) -> None:
        self._console = console
        self._progress: Progress | None = None
        if console.is_terminal:
            self._progress = Progress(
                TextColumn("frames"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("checked {task.fields[read]}"),
                TimeRemainingColumn(),
                console=console,
            )
            self._task = self._progress.add_task("frames", total=total, read=0)

    def __enter__(self) -> Callable[[FrameTimes, Expected, int], None]:
        if self._progress is not None:
            self._progress.start()
        heading = f"{'step':>6} {'atoms':>9} {'MB':>6} {'call us':>8} {'hold ms':>8} {'own serialisation ms':>21} "
        self._console.print(heading + f"{'agent GB/s':>11} {'temp':>9}", highlight=False)
        return self._show

    def _show(self, times: FrameTimes, expected: Expected, read: int) -> None:
        text = (
            f"{times.step:6d} {times.rows:9,d} {times.bytes / 1e6:6.1f} {times.call_us:8.1f} {times.hold_ms:8.2f} "
            f"{times.host_convert_write_ms:21.2f} {times.agent_gb_s:11.2f} {expected.temp:9.6f}"
        )
        self._console.print(text, highlight=False, markup=False)
        if self._progress is not None:
            self._progress.update(self._task, advance=1, read=read)

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()


def summary(
    options: argparse.Namespace, cores: tuple[int, int], report: Report, problems: list[str], worst: float, read: int
) -> dict[str, Any]:
    """The summary file: the configuration, the verdict, medians with min and max, and every frame."""
    versions = {**report.versions, "duckdb": metadata.version("duckdb"), "numpy": np.__version__}
    return {
        "schema": 1,
        "name": "lammps_lj",
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "wherry": wherry.__version__,
        "machine": asdict(this_machine()),
        "versions": versions,
        "pinning": {"application": cores[0], "agent": cores[1]},
        **report.session,
        "parameters": {"atoms": options.atoms, "steps": options.steps, "every": options.every},
        "verdict": {
            "pass": not problems,
            "problems": problems,
            "frames_offloaded": len(report.expected),
            "frames_read": read,
            "tolerance": TOLERANCE,
            "largest_relative_difference": worst if math.isfinite(worst) else None,
        },
        "seconds": report.seconds,
        "totals": report.totals(),
        "frames": [asdict(times) for times in report.times],
    }


def print_totals(console: Console, report: Report) -> None:
    """Prints medians with min and max, and what they mean for the host."""
    totals = report.totals()
    rows = sum(times.rows for times in report.times)
    nbytes = sum(times.bytes for times in report.times)
    call = sum(times.call_us for times in report.times) / 1e3
    stall = sum(times.stall_ms for times in report.times)
    own = sum(times.host_convert_write_ms for times in report.times)
    best = sum(times.host_wrap_write_ms for times in report.times)

    def say(text: str) -> None:
        console.print(text, highlight=False, markup=False)

    say(
        f"\n{len(report.times)} frames, {rows:,} rows, {nbytes / 1e6:,.0f} MB in {report.seconds:.1f} s; "
        f"median [min, max]:"
    )
    for name, what, unit in [
        ("call_us", "offload call", "us"),
        ("hold_ms", "sources held", "ms"),
        ("stall_ms", "  of it not covered by bookkeeping", "ms"),
        ("agent_gb_s", "agent throughput", "GB/s"),
        ("host_convert_write_ms", "host serialising itself, convert and write", "ms"),
        ("host_wrap_write_ms", "host serialising itself, wrap and write", "ms"),
    ]:
        one = totals[name]
        say(f"  {what:44} {one['median']:9.2f} {unit:5}[{one['min']:.2f}, {one['max']:.2f}]")
    say(
        f"in total the host spent {call:.2f} ms in offload calls and {stall:.1f} ms waiting; "
        f"serialising itself would have cost it {own:.1f} ms ({best:.1f} ms at best)"
    )


def parse_bytes(text: str) -> int:
    """ "1GiB", "512 MB", "4096" as a number of bytes."""
    units = {"": 1, "b": 1}
    for power, letter in enumerate("kmgt", start=1):
        units |= {letter: 1024**power, f"{letter}ib": 1024**power, f"{letter}b": 1000**power}
    digits = text.strip().rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
    unit = text.strip()[len(digits) :].strip().lower()
    try:
        return round(float(digits) * units[unit])
    except (KeyError, ValueError):
        raise argparse.ArgumentTypeError(f"{text!r} is not a size: 512MiB, say") from None


def arguments_of(arguments: list[str] | None) -> tuple[argparse.Namespace, int]:
    """The command line, checked, and the number of unit cells along an edge."""
    parser = argparse.ArgumentParser(
        prog="python apps/lammps/lammps_lj.py",
        description="LAMMPS runs, Wherry offloads, an independent reader checks the physics.",
        epilog="Exit status: 0: every frame arrived and agrees; 1: not; 2: wrong command line; 130: Ctrl-C.",
    )
    parser.add_argument("--atoms", type=int, default=256_000, help="4 n^3: 4000, 32000, 108000, 256000 (default), ...")
    parser.add_argument("--steps", type=int, default=300, help="time steps (default: 300)")
    parser.add_argument("--every", type=int, default=10, help="steps between two offloads (default: 10)")
    parser.add_argument("--json", type=Path, default=Path("build/lammps-lj.json"), help="the summary file")
    parser.add_argument("--budget", type=parse_bytes, default=parse_bytes("1GiB"), help="memory of the embedded agent")
    parser.add_argument("--agent", default="embedded", help="embedded (default), auto, or a session file")
    options = parser.parse_args(arguments)
    cells = round((options.atoms / 4) ** (1 / 3)) if options.atoms > 0 else 0
    if cells < 4 or 4 * cells**3 != options.atoms:
        near = ", ".join(str(4 * max(n, 4) ** 3) for n in (cells, cells + 1))
        parser.error(f"--atoms {options.atoms} does not fill a cube of fcc cells: 4 n^3, n >= 4; near it: {near}")
    if options.every < 1 or options.steps < options.every:
        parser.error("--every has to be at least 1, --steps at least --every")
    return options, cells


def interrupted(_signal: int, _frame: FrameType | None) -> None:
    """SIGTERM ends the job as Ctrl-C does: both processes and the agent go."""
    raise KeyboardInterrupt


def main(arguments: list[str] | None = None) -> int:
    """Runs the job. 0: every frame arrived and agrees; 1: not, or something failed; 130: interrupted."""
    options, cells = arguments_of(arguments)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    console = Console(soft_wrap=True)
    available = sorted(os.sched_getaffinity(0))
    cores = (available[0], available[-1])
    before = signal.signal(signal.SIGTERM, interrupted)
    try:
        report, read = simulate(options, cells, cores, console)
    except KeyboardInterrupt:
        print("interrupted: simulation, reader and agent were ended", file=sys.stderr)
        return 130
    except (JobFailed, wherry.Error, OSError) as error:
        print(f"lammps_lj: {error}", file=sys.stderr)
        return 1
    finally:
        signal.signal(signal.SIGTERM, before)
    problems, worst = compare(report.expected, read)
    print_totals(console, report)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(summary(options, cores, report, problems, worst, len(read)), indent=1)
    options.json.write_text(text + "\n")
    console.print(f"summary: {options.json}", highlight=False)
    for problem in problems:
        print(f"lammps_lj: {problem}", file=sys.stderr)
    if problems:
        return 1
    console.print(
        f"PASS: {len(read)} of {len(report.expected)} frames read once, in order and complete; temperature and kinetic "
        f"energy agree with LAMMPS to {worst:.1e} (allowed: {TOLERANCE:g})",
        highlight=False,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
