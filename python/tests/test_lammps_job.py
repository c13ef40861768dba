# SPDX-License-Identifier: Apache-2.0
"""The main job: each part (the verdict, the baseline, LAMMPS's arrays, DuckDB's figures), and the whole job with a
small box."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import lammps_lj
import lammps_reader
import numpy as np
import pyarrow as pa
import pytest
from host_serialisation import HostSerialisation, schema_of
from lammps_lj import Expected
from lammps_reader import Figures
from melt import Columns

from wherry import report
from wherry.system import paths

JOB = paths.PACKAGE.parent.parent / "apps" / "lammps" / "lammps_lj.py"


def columns(atoms: int = 1000, seed: int = 1) -> Columns:
    rng = np.random.default_rng(seed)
    return {
        "id": (rng.permutation(atoms) + 1).astype(np.int32),
        "type": np.ones(atoms, dtype=np.int32),
        "x": rng.random((atoms, 3)) * 20,
        "v": rng.normal(size=(atoms, 3)),
    }


def expected(step: int, data: Columns) -> Expected:
    atoms = len(data["id"])
    energy = float((data["v"] ** 2).sum()) / 2
    x, y, z = data["x"].sum(axis=0)
    return Expected(step, atoms, 2 * energy / (3 * (atoms - 1)), energy / atoms, (float(x), float(y), float(z)))


def batch_of(data: Columns) -> pa.RecordBatch:
    schema = schema_of(data)
    arrays = [
        pa.FixedSizeListArray.from_arrays(pa.array(data[field.name].reshape(-1)), type=field.type)
        if pa.types.is_fixed_size_list(field.type)
        else pa.array(data[field.name])
        for field in schema
    ]
    return pa.record_batch(arrays, schema=schema)


def figures(sequence: int, step: int, data: Columns) -> Figures:
    about = {"sequence": sequence, "tag": step, "skipped": 0, "rows": len(data["id"])}
    return lammps_reader.analyse(duckdb.connect(), about, batch_of(data))


@pytest.fixture
def run() -> tuple[list[Expected], list[Figures]]:
    data = [columns(seed=seed) for seed in range(3)]
    steps = [10, 20, 30]
    want = [expected(step, one) for step, one in zip(steps, data, strict=True)]
    got = [figures(index, step, one) for index, (step, one) in enumerate(zip(steps, data, strict=True))]
    return want, got


def test_duckdb_agrees_with_numpy(run: tuple[list[Expected], list[Figures]]) -> None:
    problems, worst = lammps_lj.compare(*run)
    assert problems == []
    assert worst < 1e-13


def test_duckdb_result_leaves_the_connection_usable() -> None:
    connection = duckdb.connect()
    about = {"sequence": 0, "tag": 0, "skipped": 0, "rows": 100}
    for seed in range(3):
        data = columns(100, seed)
        assert lammps_reader.analyse(connection, about, batch_of(data)).ke == pytest.approx(expected(0, data).ke)


def test_lost_frame(run: tuple[list[Expected], list[Figures]]) -> None:
    want, got = run
    problems, _ = lammps_lj.compare(want, got[:2])
    assert problems == ["3 frames were offloaded, 2 were read"]


def test_frame_read_twice(run: tuple[list[Expected], list[Figures]]) -> None:
    want, got = run
    problems, _ = lammps_lj.compare(want, [got[0], got[0], got[1], got[2]])
    assert "3 frames were offloaded, 4 were read" in problems[0]
    assert "frame 1 (step 20): the reader's frame here has sequence 0, step 10" in problems


def test_frames_out_of_order(run: tuple[list[Expected], list[Figures]]) -> None:
    want, got = run
    problems, _ = lammps_lj.compare(want, [got[0], got[2], got[1]])
    assert len(problems) == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"skipped": 2}, "2 frames were lost before it"),
        ({"rows": 999}, "1000 atoms, but 999 rows arrived"),
        ({"atoms": 999}, "999 were read"),
        ({"distinct_ids": 999}, "ids are no permutation of 1..1000: 999 different ones from 1 to 1000"),
        ({"min_id": 0}, "from 0 to 1000"),
        ({"max_id": 1001}, "from 1 to 1001"),
        ({"temp": float("nan")}, "temperature is .* and nan for the reader"),
        ({"position_sum": (0.0, 0.0, 0.0)}, "sum of x is"),
    ],
)
def test_each_fault_of_a_frame_is_named(
    run: tuple[list[Expected], list[Figures]], change: dict[str, Any], message: str
) -> None:
    want, got = run
    got[1] = dataclasses.replace(got[1], **change)
    problems, _ = lammps_lj.compare(want, got)
    assert problems
    assert all(problem.startswith("frame 1 (step 20): ") for problem in problems)
    assert any(re.search(message, problem) for problem in problems)


def test_a_single_torn_velocity_is_found(run: tuple[list[Expected], list[Figures]]) -> None:
    want, got = run
    torn = columns(seed=1)
    torn["v"][500, 2] *= 1 + 1e-4
    got[1] = figures(1, 20, torn)
    problems, worst = lammps_lj.compare(want, got)
    assert any("temperature" in problem and repr(want[1].temp) in problem for problem in problems)
    assert worst > lammps_lj.TOLERANCE


def test_schema_of_numpy_columns() -> None:
    assert schema_of(columns()) == pa.schema(
        [
            pa.field("id", pa.int32(), nullable=False),
            pa.field("type", pa.int32(), nullable=False),
            pa.field("x", pa.list_(pa.field("item", pa.float64(), nullable=False), 3), nullable=False),
            pa.field("v", pa.list_(pa.field("item", pa.float64(), nullable=False), 3), nullable=False),
        ]
    )


def test_both_baselines_really_serialise() -> None:
    data = columns()
    baseline = HostSerialisation(schema_of(data))
    assert baseline.convert_and_write(data) > 0
    assert baseline.wrap_and_write(data) > 0
    assert baseline._buffer is not None
    written = pa.ipc.open_stream(io.BytesIO(baseline._buffer.to_pybytes())).read_all()
    assert written.equals(pa.Table.from_batches([batch_of(data)]))


@pytest.mark.parametrize(
    ("text", "size"), [("1GiB", 1 << 30), ("512 MB", 512_000_000), ("4096", 4096), ("2k", 2048), ("1.5MiB", 3 << 19)]
)
def test_parse_bytes(text: str, size: int) -> None:
    assert lammps_lj.parse_bytes(text) == size


@pytest.mark.parametrize(
    "line",
    [
        ["--atoms", "1000"],
        ["--atoms", "-4"],
        ["--atoms", "4"],
        ["--every", "0"],
        ["--steps", "5"],
        ["--budget", "much"],
    ],
    ids=" ".join,
)
def test_wrong_command_lines(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        lammps_lj.arguments_of(line)
    assert caught.value.code == 2
    assert "lammps_lj.py: error: " in capsys.readouterr().err


@pytest.mark.agent
@pytest.mark.timeout(120)
def test_the_whole_job_on_a_small_box(tmp_path: Path, wherryd: Path) -> None:
    """Like `make run`, in a separate process: LAMMPS, an embedded agent, and the reader."""
    target = tmp_path / "new" / "lammps.json"
    line = [sys.executable, str(JOB), "--atoms", "4000", "--steps", "40", "--every", "10"]
    line += ["--budget", "64MiB", "--json", str(target)]
    environment = os.environ | {"PYTHONPATH": str(paths.PACKAGE.parent), "WHERRY_WHERRYD": str(wherryd)}
    done = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASS: 4 of 4 frames read once, in order and complete" in done.stdout

    summary = json.loads(target.read_text())
    assert (summary["schema"], summary["name"]) == (1, "lammps_lj")
    assert summary["parameters"] == {"atoms": 4000, "steps": 40, "every": 10}
    verdict = summary["verdict"]
    assert (verdict["pass"], verdict["problems"]) == (True, [])
    assert (verdict["frames_offloaded"], verdict["frames_read"]) == (4, 4)
    assert verdict["largest_relative_difference"] <= lammps_lj.TOLERANCE
    assert [frame["step"] for frame in summary["frames"]] == [10, 20, 30, 40]
    for frame in summary["frames"]:
        assert set(frame) == {member.name for member in dataclasses.fields(lammps_lj.FrameTimes)}
        assert frame["rows"] == 4000
        assert frame["bytes"] == 4000 * (4 + 4 + 24 + 24)
    for figure in summary["totals"].values():
        assert 0 <= figure["min"] <= figure["median"] <= figure["max"]
    assert len(set(summary["pinning"].values())) == min(2, len(os.sched_getaffinity(0)))
    assert "4 of 4 frames read and checked" in report.build([target])


def test_sizes_that_fit() -> None:
    assert lammps_lj.arguments_of([])[1] == 40
    assert lammps_lj.arguments_of(["--atoms", "32000"])[1] == 20


# ---- what it leaves behind


def job_line(target: Path, *more: str) -> list[str]:
    line = [sys.executable, str(JOB), "--atoms", "4000", "--every", "10", "--budget", "64MiB"]
    return [*line, "--json", str(target), *more]


def shared_memory_of(pid: int) -> list[str]:
    """MPICH's segments of a process. Their names contain its pid."""
    return [name for name in os.listdir("/dev/shm") if name.startswith(f"mpich_shm_{pid:x}_")]


def start(line: list[str], wherryd: Path) -> subprocess.Popen[str]:
    search = f"{paths.PACKAGE.parent}{os.pathsep}{JOB.parent}"
    environment = os.environ | {"PYTHONPATH": search, "WHERRY_WHERRYD": str(wherryd), "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.agent
@pytest.mark.timeout(120)
def test_the_job_leaves_no_shared_memory(tmp_path: Path, wherryd: Path) -> None:
    with start(job_line(tmp_path / "j.json", "--steps", "20"), wherryd) as job:
        out, err = job.communicate(timeout=100)
    assert job.returncode == 0, out + err
    assert shared_memory_of(job.pid) == []


@pytest.mark.agent
@pytest.mark.timeout(120)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_a_job_that_is_ended_leaves_no_shared_memory(tmp_path: Path, wherryd: Path, number: signal.Signals) -> None:
    with start(job_line(tmp_path / "j.json", "--steps", "1000000"), wherryd) as job:
        assert job.stdout
        while not re.match(r" +20 +4,000 ", line := job.stdout.readline()):  # the second frame's row
            assert line, "the job ended before its second frame"
        job.send_signal(number)
        job.communicate(timeout=60)
    assert job.returncode != 0
    assert shared_memory_of(job.pid) == []


@pytest.mark.timeout(120)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_signal_while_mpi_starts_leaves_no_shared_memory(wherryd: Path, number: signal.Signals) -> None:
    """A thread that only watches for the segment sends the signal as soon as it exists."""
    lines = f"""
import os, signal, threading
import melt
def watch():
    while f"mpich_shm_{{os.getpid():x}}_" not in " ".join(os.listdir("/dev/shm")):
        pass
    os.kill(os.getpid(), {int(number)})
signal.signal(signal.SIGTERM, signal.default_int_handler)
threading.Thread(target=watch, daemon=True).start()
melt.start_mpi()
"""
    with start([sys.executable, "-c", lines], wherryd) as process:
        # If the thread missed the segment between two checks, the process ends by itself.
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0 or "KeyboardInterrupt" in err, err
    assert shared_memory_of(process.pid) == []
