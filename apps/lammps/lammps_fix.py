# SPDX-License-Identifier: Apache-2.0
"""The main job with `fix wherry`: what a frame costs LAMMPS, compared in one run with the ways that users have today.

    python apps/lammps/lammps_fix.py                           # 256,000 atoms, a minute or two
    python apps/lammps/lammps_fix.py --atoms 4000 --rounds 2   # a few seconds

One LAMMPS process has one core; the agent, the reader and the Flight server share the other. In each round every way
writes one frame, and each round begins with a different way (ways.py defines the timing). An independent reader follows
the stream of `fix wherry` through Arrow Flight and computes temperature and kinetic energy with DuckDB. They must agree
with LAMMPS's own to 1e-9, every frame, in order. Positions that were posted alone are also compared with LAMMPS's. With
--check, a second part compares the time of whole runs, with and without output at every step. That includes the agent's
effect on the force computation.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from fix_figures import Measured, Report, print_details, print_table, summary
from lammps_lj import Expected, ReaderProcess, compare, interrupted, parse_bytes
from lammps_reader import Figures
from melt import JobFailed, Melt
from rich.console import Console
from ways import ALL, BOTH, CLOCK, Dump, Fix, FixWherry, Way, flight_sink, scratch

import wherry

PLUGINS = Path(__file__).resolve().parents[2] / "build" / "release" / "apps" / "lammps" / "plugin"
STREAM = "particles"
POSITIONS = "positions"
SHM = Path("/dev/shm")
WARM_UP = 8
"""Warm-up frames before the first round. Source: SnapshotCopy (plugin/snapshot_copy.hpp) tries two copies four times
each."""
TOLERANCE = 1e-9


def before_all(options: argparse.Namespace) -> list[str]:
    """Commands whose fixes run first in each step: the one that records LAMMPS's own figures, then the clock."""
    load = [f"plugin load {options.plugins / name}" for name in ("wherryplugin.so", "peersplugin.so")]
    return [
        *load,
        "compute truth_temp all temp",
        "compute truth_ke all ke",
        "compute truth_x all reduce sum x y z",
        f"fix truth all ave/time {options.every} 1 {options.every} c_truth_temp c_truth_ke "
        "c_truth_x[1] c_truth_x[2] c_truth_x[3]",
        f"fix {CLOCK} all peer/clock {options.every}",
    ]


def fixes(options: argparse.Namespace, agent: str, flight: str, directory: Path, adios: bool) -> list[str]:
    """Commands that define all fixes of the job, inactive, and last the fix that stops the clock."""
    every = options.every
    commands = [
        f"fix wherry_all all wherry {every} {STREAM} {ALL} agent {agent} keep 16 full wait",
        f"fix wherry_xv all wherry {every} xv {BOTH} agent {agent} keep 4",
        f"fix wherry_x all wherry {every} {POSITIONS} x agent {agent} keep {options.rounds + 1 + WARM_UP}",
        f"fix arrow_all all peer/arrow {every} {directory}/arrow_all {ALL}",
        f"fix arrow_xv all peer/arrow {every} {directory}/arrow_xv {BOTH}",
        f"fix arrow_x all peer/arrow {every} {directory}/arrow_x x",
        f"fix flight_all all peer/flight {every} {flight} {ALL}",
        f"fix flight_x all peer/flight {every} {flight} x",
    ]
    if adios:
        commands += [
            f"fix adios_all all peer/adios {every} {directory}/all.bp {ALL}",
            f"fix adios_x all peer/adios {every} {directory}/x.bp x",
        ]
    if options.check:
        commands += [
            f"fix wherry_each all wherry 1 each {ALL} agent {agent} keep 4",
            f"fix wherry_x_each all wherry 1 each_x x agent {agent} keep 4",
            f"fix arrow_each all peer/arrow 1 {directory}/arrow_each {ALL}",
        ]
    inactive = [f"fix_modify {command.split()[1]} active no" for command in commands]
    return [*commands, *inactive, f"fix {CLOCK}_end all peer/clock {every} {CLOCK}"]


def ways(shm: Path, disk: Path, adios: bool) -> list[Way]:
    """All ways of the first part."""
    found: list[Way] = []
    for columns, name in ((ALL, "all"), (BOTH, "xv"), ("x", "x")):
        found += [
            FixWherry("wherry", "fix wherry", columns, f"wherry_{name}"),
            Fix("arrow_shm", "Arrow, serialised into /dev/shm", columns, f"arrow_{name}"),
        ]
        if columns == BOTH:
            continue
        found.append(Fix("flight", "Flight DoPut, same machine", columns, f"flight_{name}"))
        if adios:
            found.append(Fix("adios_bp5_shm", "ADIOS2 BP5, /dev/shm", columns, f"adios_{name}"))
        found += [
            Dump("dump_binary", "dump custom, binary, /dev/shm", columns, shm / f"dump_{name}.bin"),
            Dump("dump_binary_disk", "dump custom, binary, disk", columns, disk / f"dump_{name}.bin"),
            Dump("dump_text", "dump custom, text, /dev/shm", columns, shm / f"dump_{name}.txt"),
        ]
    return found


def warm_up(
    melt: Melt, chosen: Sequence[Way], options: argparse.Namespace, reader: ReaderProcess, report: Report
) -> None:
    """Writes frames with all fixes at once. This touches pages, makes connections, and lets `fix wherry` choose how to
    copy."""
    fixes = [way.fix for way in chosen if isinstance(way, Fix)]
    for fix in fixes:
        melt.command(f"fix_modify {fix} active yes")
    for _ in range(WARM_UP):
        melt.advance(options.every)
        for columns in (ALL, "x"):
            note_expected(melt, columns, report)
        reader.wait_until(lambda: len(reader.figures) == len(report.expected), 60.0, "read a frame")
    for fix in fixes:
        melt.command(f"fix_modify {fix} active no")


def take_turns(
    melt: Melt,
    chosen: Sequence[Way],
    options: argparse.Namespace,
    reader: ReaderProcess,
    report: Report,
    console: Console,
) -> None:
    """The first part: rounds of one frame by each way. Each round begins with a different way."""
    report.measured = [Measured(way) for way in chosen]
    warm_up(melt, chosen, options, reader, report)
    for number in range(options.rounds + 1):
        shift = number * 5 % len(chosen)
        for one in report.measured[shift:] + report.measured[:shift]:
            cost = one.way.frame(melt, options.every)
            if number > 0:  # the first round warms everything up
                one.costs.append(cost)
            if one.way.name == "wherry":
                note_expected(melt, one.way.columns, report)
            # The reader's work must not count in the time of the next way.
            reader.wait_until(lambda: len(reader.figures) == len(report.expected), 60.0, "read a frame")
        console.print(f"round {number} of {options.rounds}" + (" (warm-up)" if number == 0 else ""), highlight=False)


def note_expected(melt: Melt, columns: str, report: Report) -> None:
    """LAMMPS's own values of the frame that was posted last, one step ago."""
    temp, ke, x, y, z = melt.fix_vector("truth", 5)
    atoms = len(melt.columns()["id"])
    if columns == ALL:
        report.expected.append(Expected(melt.step - 1, atoms, temp, ke / atoms, (x, y, z)))
    elif columns == "x":
        report.positions[melt.step - 1] = (x, y, z)


def compare_whole_runs(melt: Melt, options: argparse.Namespace, report: Report) -> None:
    """The second part: compares runs with output at every step and runs without output, from first step to last."""
    steps = 20  # each run has one rebuild of the neighbour lists (melt.py)
    names = {"wherry": "wherry_each", "wherry, positions": "wherry_x_each", "arrow_shm": "arrow_each"}

    def step_ms(fix: str | None) -> float:
        if fix is not None:
            melt.command(f"fix_modify {fix} active yes")
        _, before = melt.fix_vector(CLOCK, 2)
        melt.advance(steps)
        _, after = melt.fix_vector(CLOCK, 2)
        if fix is not None:
            melt.command(f"fix_modify {fix} active no")
        return 1e3 * float(after - before) / float(steps)

    for number in range(options.check + 1 if options.check else 0):
        without = step_ms(None)
        for name, fix in names.items():
            cost = step_ms(fix)
            after = step_ms(None)
            if number > 0:
                report.whole_runs.setdefault(name, []).append(cost - (without + after) / 2)
                report.whole_runs.setdefault("a step without output", []).append(after)
            without = after


def check_positions(session_file: str, report: Report) -> None:
    """Compares frames that have positions alone, read through Flight, with LAMMPS's own sums."""
    client, call = wherry.flight_client(session_file)
    seen = []
    for about, batch in wherry.flight_frames(client, call, POSITIONS, follow=False):
        step = int(about["tag"])
        seen.append(step)
        read = batch.column("x").flatten().to_numpy().reshape(-1, 3).sum(axis=0)
        want = np.array(report.positions[step])
        if not np.all(np.abs(read - want) <= TOLERANCE * np.abs(want)):
            report.problems.append(f"positions of step {step} sum up to {read} for the reader and {want} in LAMMPS")
    if seen != sorted(report.positions):
        report.problems.append(f"positions were posted at steps {sorted(report.positions)} and read of {seen}")


def has_adios() -> bool:
    """Whether the plugin was built with ADIOS2, whose wheel is an option."""
    return importlib.util.find_spec("adios2") is not None


def run(options: argparse.Namespace, cells: int, cores: tuple[int, int], console: Console) -> Report:
    """Runs the job."""
    application, agent = cores
    available = os.sched_getaffinity(0)
    for plugin in ("wherryplugin.so", "peersplugin.so"):
        if not (options.plugins / plugin).exists():
            raise JobFailed(f"{options.plugins / plugin} does not exist: run `make build-run` first")
    report = Report()
    with contextlib.ExitStack() as stack:
        session = stack.enter_context(
            wherry.Session(agent=options.agent, name="lammps_fix", embedded_budget=options.budget, embedded_core=agent)
        )
        console.print(str(session.info), highlight=False, markup=False)
        report.session = {"transports": session.info.transports, "one_sided": str(session.info.heap)}
        flight = stack.enter_context(flight_sink(agent))
        shm = stack.enter_context(scratch(SHM, f"wherry-lammps-{os.getpid()}"))
        disk = stack.enter_context(scratch(options.json.resolve().parent, f"lammps-{os.getpid()}"))
        os.sched_setaffinity(0, {application})
        stack.callback(os.sched_setaffinity, 0, available)
        melt = stack.enter_context(contextlib.closing(Melt(cells, before_all(options))))
        report.versions = {"lammps": melt.version, "agent": session.info.agent_version}
        adios = has_adios()
        for command in fixes(options, session.info.session_file, flight, shm, adios):
            melt.command(command)
        melt.advance(options.every + 1, prepare=True)  # each run's frame is written in its last step but one
        with contextlib.closing(ReaderProcess(session.info.session_file, {agent}, STREAM)) as reader:
            reader.wait_until(lambda: reader.ready, 30.0, "start")
            take_turns(melt, ways(shm, disk, adios), options, reader, report, console)
            compare_whole_runs(melt, options, report)
            check_positions(session.info.session_file, report)
            melt.command("unfix wherry_all")  # so that the reader sees the end of its stream
            reader.wait_until(lambda: reader.ended, 60.0, "come to the end of the stream")
            report.problems += compare_figures(report, reader.figures)
    return report


def compare_figures(report: Report, read: Sequence[Figures]) -> list[str]:
    """The errors in the frames of `fix wherry`, by the independent reader."""
    problems, worst = compare(report.expected, read)
    report.session["largest_relative_difference"] = f"{worst:.1e}"
    return problems


def arguments_of(arguments: list[str] | None) -> tuple[argparse.Namespace, int]:
    """The command line, checked, and the number of unit cells along an edge."""
    parser = argparse.ArgumentParser(
        prog="python apps/lammps/lammps_fix.py",
        description="LAMMPS runs with `fix wherry` and with what its users do today; a table says what each costs.",
        epilog="Exit status: 0: every frame arrived and agrees; 1: not; 2: wrong command line; 130: Ctrl-C.",
    )
    parser.add_argument("--atoms", type=int, default=256_000, help="4 n^3: 4000, 32000, 108000, 256000 (default), ...")
    parser.add_argument("--every", type=int, default=2, help="steps between two frames (default: 2)")
    parser.add_argument("--rounds", type=int, default=7, help="frames of each way (default: 7)")
    parser.add_argument("--check", type=int, default=0, help="rounds of the check by whole runs (default: none)")
    parser.add_argument("--json", type=Path, default=Path("build/lammps-fix.json"), help="the summary file")
    parser.add_argument("--budget", type=parse_bytes, default=parse_bytes("2GiB"), help="memory of the embedded agent")
    parser.add_argument("--agent", default="embedded", help="embedded (default), auto, or a session file")
    parser.add_argument("--plugins", type=Path, default=PLUGINS, help="directory of wherryplugin.so")
    options = parser.parse_args(arguments)
    cells = round((options.atoms / 4) ** (1 / 3)) if options.atoms > 0 else 0
    if cells < 4 or 4 * cells**3 != options.atoms:
        parser.error(
            f"--atoms {options.atoms} does not fill a cube of fcc cells: 4 n^3, n >= 4, such as 4000 or 256000"
        )
    if options.every < 2 or options.rounds < 1 or options.check < 0:
        parser.error("--every has to be at least 2, --rounds 1, and --check 0")
    return options, cells


@contextlib.contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """SIGTERM ends the job as Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def main(arguments: list[str] | None = None) -> int:
    """Runs the job. 0: every frame arrived and agrees; 1: not, or something failed; 130: interrupted."""
    options, cells = arguments_of(arguments)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    console = Console(soft_wrap=True)
    available = sorted(os.sched_getaffinity(0))
    cores = (available[0], available[-1])
    options.json.parent.mkdir(parents=True, exist_ok=True)
    try:
        with ended_by_sigterm():
            report = run(options, cells, cores, console)
    except KeyboardInterrupt:
        print("interrupted: simulation, reader and agent were ended", file=sys.stderr)
        return 130
    except (JobFailed, wherry.Error, OSError) as error:
        print(f"lammps_fix: {error}", file=sys.stderr)
        return 1
    print_details(console, report)
    options.json.write_text(json.dumps(summary(options, cores, report), indent=1) + "\n")
    console.print(f"summary: {options.json}", highlight=False)
    for problem in report.problems:
        print(f"lammps_fix: {problem}", file=sys.stderr)
    if report.problems:
        return 1
    console.print(
        f"PASS: {len(report.expected)} frames read once, in order and complete; temperature and kinetic energy agree "
        f"with LAMMPS to {report.session['largest_relative_difference']} (allowed: {TOLERANCE:g})",
        highlight=False,
    )
    print_table(console, report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
