# SPDX-License-Identifier: Apache-2.0
"""The ways by which a LAMMPS user gets a frame out of a run, and the time that each takes from the time steps.

Host time lost to a frame is what one clock of LAMMPS fixes (`peer/clock`) measures, for all ways alike: the time that
fixes and dumps take in the frame's step, before the forces, after them, and from the end of the step to the beginning
of the next one. No run ends with a frame's step, so LAMMPS's thermo output is in no frame's time.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from melt import JobFailed, Melt

CLOCK = "clock"
SINK = Path(__file__).resolve().with_name("flight_sink.py")
ALL = "id type x v"
BOTH = "x v"
DUMPED = {ALL: "id type x y z vx vy vz", "x": "x y z"}


@dataclass(frozen=True, slots=True)
class Cost:
    """A frame's cost for the host, in seconds."""

    lost: float
    calls: float = 0.0
    copies: float = 0.0
    waits: float = 0.0
    """The parts of `lost` that `fix wherry` spent in calls of Wherry, in copies and in waits, by its own clock."""


@dataclass(frozen=True)
class Way:
    """One way to write a frame of `columns`."""

    name: str
    """In the summary: "wherry", "dump_binary", ..."""
    label: str
    columns: str

    def frame(self, melt: Melt, steps: int) -> Cost:
        """Runs `steps` steps. The last but one has a frame; its number is a multiple of `steps`."""
        raise NotImplementedError


def clock(melt: Melt) -> float:
    """Seconds that frames have taken so far."""
    return melt.fix_vector(CLOCK, 2)[0]


@dataclass(frozen=True)
class Fix(Way):
    """A fix that is defined all the time, and is active only for its own frames."""

    fix: str

    def frame(self, melt: Melt, steps: int) -> Cost:
        """Activates the fix during the block."""
        melt.command(f"fix_modify {self.fix} active yes")
        before, own = clock(melt), self.own(melt)
        melt.advance(steps)
        lost = clock(melt) - before
        calls, copies, waits = (now - then for now, then in zip(self.own(melt), own, strict=True))
        melt.command(f"fix_modify {self.fix} active no")
        return Cost(lost, calls, copies, waits)

    def own(self, _melt: Melt) -> tuple[float, ...]:
        """The fix's own values: seconds in calls, copies, waits."""
        return (0.0,) * 3


class FixWherry(Fix):
    """`fix wherry`."""

    def own(self, melt: Melt) -> tuple[float, ...]:
        """See FixWherry::compute_vector."""
        return melt.fix_vector(self.fix, 5)[2:]


@dataclass(frozen=True)
class Dump(Way):
    """LAMMPS's `dump custom`, with one file for each frame: text, or binary if the file's name ends so."""

    file: Path

    def frame(self, melt: Melt, steps: int) -> Cost:
        """Defines the dump, runs, and ends it. The file is opened before the first step, and closed after the last."""
        melt.command(f"dump peer all custom {steps} {self.file} {DUMPED[self.columns]}")
        melt.command("dump_modify peer first no")
        before = clock(melt)
        melt.advance(steps, prepare=True)
        lost = clock(melt) - before
        melt.command("undump peer")
        if not self.file.stat().st_size:
            raise JobFailed(f"{self.file} is empty: LAMMPS dumped nothing")
        self.file.unlink()
        return Cost(lost)


@contextlib.contextmanager
def flight_sink(core: int) -> Iterator[str]:
    """A Flight server on that core, as a process of its own; its address."""
    with subprocess.Popen(
        [sys.executable, str(SINK), "--cores", str(core)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        try:
            port = server.stdout.readline().strip()
            if not port:
                raise JobFailed("the Flight server that is to be compared with did not start")
            yield f"grpc://127.0.0.1:{port}"
        finally:
            server.stdin.close()
            try:
                server.wait(timeout=10)
            except subprocess.TimeoutExpired:
                server.kill()


@contextlib.contextmanager
def scratch(root: Path, name: str) -> Iterator[Path]:
    """An empty directory below `root` that is removed afterwards."""
    path = root / name
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
