# SPDX-License-Identifier: Apache-2.0
"""`fix wherry` on MPI ranks: each rank posts a part of the frame, and readers see a whole frame or none."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from agents import Agent
from jobs import eventually
from test_lammps_fix import plugin  # noqa: F401 (a fixture)

import wherry

pytestmark = [pytest.mark.agent, pytest.mark.usefixtures("mpich_segments"), pytest.mark.timeout(120)]

RANKS = 4
ATOMS = 4000
INPUT = """
units lj
lattice fcc 0.8442
region box block 0 10 0 10 0 10
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
fix nve all nve
plugin load {plugin}
compute ke all ke
compute sums all reduce sum x y z
fix truth all ave/time {every} 1 {every} c_ke c_sums[1] c_sums[2] c_sums[3] file {truth} format " %.17g"
fix w all wherry {every} particles id x v {options}
thermo {every}
thermo_style custom step f_w[1]
run {steps}
"""
"""An input script that writes LAMMPS's own sums for each frame, one line per frame, before rank 0 posts the end of the
frame."""


@contextmanager
def lammps(directory: Path, library: Path, options: str, steps: int, every: int = 1) -> Iterator[subprocess.Popen[str]]:
    """Runs `mpiexec -n 4 lmp`. Afterwards none of its processes may remain."""
    script = directory / "in.melt"
    truth = directory / "truth.txt"
    script.write_text(INPUT.format(plugin=library, truth=truth, options=options, steps=steps, every=every))
    site = Path(np.__file__).resolve().parents[1]
    environment = os.environ | {"LD_LIBRARY_PATH": f"{site}/libucx/lib:{sys.prefix}/lib", "OMP_NUM_THREADS": "1"}
    line = [f"{sys.prefix}/bin/mpiexec", "-n", str(RANKS), str(site / "lammps" / "lmp"), "-in", str(script)]
    process = subprocess.Popen(
        [*line, "-log", "none"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        descendants = processes_below(process.pid)
        for pid in descendants:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        if process.poll() is None:
            process.kill()
        process.communicate()


def processes_below(ancestor: int) -> list[int]:
    """The descendants of process `ancestor`."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
    found = [ancestor]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found[1:]


def named(ancestor: int, name: str) -> list[int]:
    """The descendants of process `ancestor` that run the program `name`."""
    found = []
    for pid in processes_below(ancestor):
        try:
            if Path(f"/proc/{pid}/comm").read_text().strip() == name:
                found.append(pid)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def rank_of(pid: int) -> int:
    """From the launcher's variables."""
    variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return int(next(value for value in variables if value.startswith(b"PMI_RANK=")).removeprefix(b"PMI_RANK="))


def check_frames(agent: Agent, truth: Path) -> list[int]:
    """Checks that every frame is complete and equals LAMMPS's data. Returns the steps."""
    wanted = {}
    for line in truth.read_text().splitlines(keepends=True):
        if line.endswith("\n") and not line.startswith("#"):
            step, *values = line.split()
            wanted[int(step)] = [float(value) for value in values]
    steps = []
    with wherry.open("particles", agent.session_file, follow=False) as reader:
        for frame in reader:
            assert len(frame.batches) == RANKS, "half a frame"
            ids = np.concatenate([batch["id"].to_numpy() for batch in frame.batches])
            assert np.array_equal(np.sort(ids), np.arange(1, ATOMS + 1)), frame.tag
            columns = {
                name: np.concatenate([batch[name].flatten().to_numpy() for batch in frame.batches]).reshape(-1, 3)
                for name in "xv"
            }
            kinetic_energy = math.fsum((columns["v"] ** 2).ravel()) / 2
            sums = [kinetic_energy, *(math.fsum(axis) for axis in columns["x"].T)]
            assert sums == pytest.approx(wanted[frame.tag], rel=1e-12), frame.tag
            steps.append(frame.tag)
    return steps


def test_four_ranks_post_a_hundred_frames(tmp_path: Path, plugin: Path, agent: Agent) -> None:  # noqa: F811
    with lammps(tmp_path, plugin, f"agent {agent.session_file} keep 0", steps=100) as job:
        said, _ = job.communicate(timeout=400)
    assert job.returncode == 0, said
    assert check_frames(agent, tmp_path / "truth.txt") == list(range(1, 101))
    (found,) = wherry.streams(agent.session_file)
    assert (found.parts, found.incomplete_steps, found.discarded_steps, found.open) == (RANKS, 0, 0, False)


def test_a_rank_is_killed(tmp_path: Path, plugin: Path, agent: Agent) -> None:  # noqa: F811
    """Whenever a rank is killed, the existing frames are complete and correct."""

    def frames() -> int:
        return sum(stream.total_frames for stream in wherry.streams(agent.session_file))

    with lammps(tmp_path, plugin, f"agent {agent.session_file} keep 0", steps=1000) as job:
        assert eventually(lambda: job.poll() is not None or frames() >= 20), "no frames"
        victims = {rank_of(pid): pid for pid in named(job.pid, "lmp")}
        assert sorted(victims) == list(range(RANKS)), job.communicate()[0] if job.poll() is not None else victims
        os.kill(victims[2], signal.SIGKILL)
        said, _ = job.communicate(timeout=400)
    assert job.returncode != 0, said
    assert eventually(lambda: not wherry.streams(agent.session_file)[0].open)
    steps = check_frames(agent, tmp_path / "truth.txt")
    assert 20 <= len(steps) < 1000
    assert steps == list(range(1, len(steps) + 1))
    (found,) = wherry.streams(agent.session_file)
    assert (found.incomplete_steps, found.total_frames) == (0, len(steps))


def test_the_first_rank_starts_the_agent_for_all(
    tmp_path: Path,
    plugin: Path,  # noqa: F811
    wherryd: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WHERRY_WHERRYD", str(wherryd))
    with lammps(tmp_path, plugin, "agent embedded budget 67108864", steps=100, every=5) as job:
        assert eventually(lambda: job.poll() is not None or named(job.pid, "wherryd")), "no agent"
        assert eventually(lambda: job.poll() is not None or len((tmp_path / "truth.txt").read_text().splitlines()) > 8)
        agents = named(job.pid, "wherryd")
        said, _ = job.communicate(timeout=400)
    assert job.returncode == 0, said
    assert len(agents) == 1, said
    assert "\n       100   20" in said, "f_w[1]: the frames of rank 0"
    assert "WARNING" not in said, said


def test_an_error_of_one_rank_is_told_by_all(tmp_path: Path, plugin: Path, agent: Agent) -> None:  # noqa: F811
    vectors = pa.list_(pa.field("item", pa.float64(), nullable=False), 3)
    fields = {"id": pa.int32(), "x": vectors, "v": vectors}
    schema = pa.schema([pa.field(name, kind, nullable=False) for name, kind in fields.items()])
    columns = pa.table([[1], [[0.0] * 3], [[0.0] * 3]], schema=schema)
    with (
        wherry.Session(str(agent.session_file)) as session,
        session.stream("particles", columns, part=2, parts=RANKS, strategy="ipc_page_aligned"),
        lammps(tmp_path, plugin, f"agent {agent.session_file}", steps=10) as job,
    ):
        said, _ = job.communicate(timeout=400)
    assert job.returncode != 0
    assert "fix wherry, rank 2: part 2 of stream" in said, said
    assert "is open already" in said, said
