# SPDX-License-Identifier: Apache-2.0
"""`fix wherry`: its errors, its frames compared with LAMMPS's own arrays, its use in lmp, and the comparison job."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import fix_figures
import lammps_fix
import numpy as np
import pytest
from agents import Agent
from ways import ALL, BOTH, Cost, Way

import wherry
from wherry import report
from wherry.system import paths

APPS = paths.PACKAGE.parent.parent / "apps" / "lammps"


@pytest.fixture
def plugin(wherryd: Path) -> Path:
    """The plugin with fix wherry, from the same build as the agent."""
    found = next(
        (
            wherryd.parent / up / "apps/lammps/plugin"
            for up in ("", "..", "../..", "../../..")
            if (wherryd.parent / up / "apps/lammps/plugin/wherryplugin.so").exists()
        ),
        None,
    )
    assert found is not None, f"wherryplugin.so was not built beside {wherryd}: `make build`"
    return found.resolve() / "wherryplugin.so"


def in_lammps(script: str, *arguments: str) -> Any:
    """Runs Python lines that use `melt`, a small simulation, and print JSON. They run in a process, because LAMMPS
    starts MPI."""
    lines = f"""
import json, sys
from melt import Melt
import numpy as np
melt = Melt(5)
plugin, agent = sys.argv[1:3]
melt.command("plugin load " + plugin)
{script}
melt.close()
"""
    environment = os.environ | {"PYTHONPATH": f"{paths.PACKAGE.parent}{os.pathsep}{APPS}", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", "import wherry\n" + lines, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def files_in_shared_memory() -> set[str]:
    """The jobs' files in /dev/shm, which exist only while a job runs."""
    return {name for name in os.listdir("/dev/shm") if name.startswith("wherry-lammps-")}


REFUSED = {
    "fix w all wherry 10 particles": "missing argument",
    "fix w all wherry 0 particles x": "of every N steps, is at least 1, not 0",
    "fix w all wherry ten particles x": "Expected integer",
    "fix w mobile wherry 10 particles x": "takes the group all, not mobile",
    "fix w all wherry 10 particles keep 4": "name the per-atom attributes",
    "fix w all wherry 10 particles x speed": "no per-atom attribute speed",
    "fix w all wherry 10 particles mass": "no per-atom attribute mass",
    "fix w all wherry 10 particles x v x": "attribute x is named twice",
    "fix w all wherry 10 particles x q": "atom style atomic has no attribute q",
    "fix w all wherry 10 particles x keep 4 v": "v is not a keyword",
    "fix w all wherry 10 particles x keep": "missing argument",
    "fix w all wherry 10 particles x full perhaps": "full is wait or evict, not perhaps",
    "fix w all wherry 10 particles x strategy raw": "raw is not a strategy for columns",
    "fix w all wherry 10 particles x keep -1": "keep is a positive number",
    "fix w all wherry 10 particles x agent /nowhere/agent.json": "/nowhere/agent.json",
    "fix w all wherry 10 bad/name x": "stream name",
}


@pytest.mark.agent
@pytest.mark.timeout(120)
def test_wrong_arguments_are_refused_by_name(plugin: Path, agent: Agent) -> None:
    script = f"""
melt.command("group mobile id 1:10")
said = {{}}
for command in {list(REFUSED)!r}:
    try:
        melt.command(command + (" agent " + agent if "bad/name" in command else ""))
        melt.advance(0, prepare=True)
        said[command] = "nothing"
    except Exception as error:
        said[command] = str(error)
print(json.dumps(said))
"""
    said = in_lammps(script, str(plugin), str(agent.session_file))
    for command, words in REFUSED.items():
        assert words.lower() in said[command].lower(), command


@pytest.mark.agent
@pytest.mark.timeout(120)
def test_frames_hold_what_lammps_had(plugin: Path, agent: Agent) -> None:
    """Compares all kinds of attributes with LAMMPS's arrays, at every step and after LAMMPS has sorted the atoms
    again."""
    script = """
names = ["v", "id", "x", "f", "type", "image"]
melt.command(f"fix w all wherry 5 particles {' '.join(names)} agent {agent} keep 100 full wait")
melt.command("fix_modify w active yes")
melt.advance(0, prepare=True)
want = []
for _ in range(10):
    melt.advance(5)
    arrays = melt._lammps.numpy
    rows = len(melt.columns()["id"])
    want.append([float(np.float64(arrays.extract_atom(name)[:rows]).sum()) for name in names]
                + [melt.step, rows, int((arrays.extract_atom("id")[:rows] * np.arange(rows)).sum())])
melt.command("fix_modify w active no")
melt.advance(5)
vector = melt.fix_vector("w", 7)
melt.command("unfix w")
print(json.dumps([want, vector]))
"""
    want, vector = in_lammps(script, str(plugin), str(agent.session_file))
    frames = list(wherry.open("particles", agent.session_file, follow=False))
    assert len(frames) == 10
    for frame, (*sums, step, rows, order) in zip(frames, want, strict=True):
        batch = frame.batch
        assert (frame.tag, batch.num_rows) == (step, rows)
        assert batch.schema.names == ["v", "id", "x", "f", "type", "image"]
        for name, total in zip(batch.schema.names, sums, strict=True):
            column = batch.column(name)
            values = column.flatten() if name in "vxf" else column
            # Both add the same numbers in the same order, so that rounding is equal.
            shaped = values.to_numpy().astype(np.float64)
            assert (shaped.reshape(-1, 3) if name in "vxf" else shaped).sum() == pytest.approx(
                total, rel=1e-12, abs=1e-9
            )
        assert int((batch.column("id").to_numpy() * np.arange(rows)).sum()) == order
    posted, moved, calls, copies, waits, total, early = vector
    assert (posted, moved) == (10, 10 * 500 * (24 * 3 + 12))
    assert min(calls, copies, waits, early) > 0
    assert total == pytest.approx(calls + copies + waits)


@pytest.mark.agent
@pytest.mark.timeout(120)
def test_arrays_that_lammps_moves_are_read_where_they_are(plugin: Path, agent: Agent) -> None:
    """The fix keeps arrays registered. With 64 times as many atoms, LAMMPS moves to larger arrays at other
    addresses."""
    script = """
melt.command(f"fix w all wherry 5 particles x id agent {agent} keep 100 full wait")
melt.command("fix_modify w active yes")
melt.advance(0, prepare=True)
want = []
for more in (False, True, False):
    if more:
        melt.command("replicate 4 4 4")
        melt.advance(0, prepare=True)
    melt.advance(5)
    arrays = melt._lammps.numpy
    rows = len(melt.columns()["id"])
    sums = [arrays.extract_atom(name)[:rows].sum() for name in ("x", "id")]
    want.append([melt.step, rows, float(sums[0]), int(sums[1])])
melt.command("unfix w")
print(json.dumps(want))
"""
    want = in_lammps(script, str(plugin), str(agent.session_file))
    assert [rows for _, rows, _, _ in want] == [500, 32_000, 32_000]
    frames = {frame.tag: frame.batch for frame in wherry.open("particles", agent.session_file, follow=False)}
    for step, rows, x, ids in want:
        batch = frames[step]
        assert batch.num_rows == rows
        assert batch.column("x").flatten().to_numpy().sum() == pytest.approx(x, rel=1e-9)
        assert int(batch.column("id").to_numpy().sum()) == ids


@pytest.mark.agent
@pytest.mark.timeout(120)
def test_the_program_lmp(tmp_path: Path, plugin: Path, agent: Agent) -> None:
    """Runs lmp as docs/guide/lammps.md describes, without Python."""
    script = tmp_path / "in.melt"
    script.write_text(f"""
units lj
lattice fcc 0.8442
region box block 0 4 0 4 0 4
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
fix nve all nve
plugin load {plugin}
fix w all wherry 10 particles id x v agent {agent.session_file}
thermo_style custom step temp f_w f_w[1]
thermo 10
run 30
""")
    site = Path(np.__file__).resolve().parents[1]
    environment = os.environ | {"LD_LIBRARY_PATH": f"{site}/libucx/lib:{sys.prefix}/lib", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [str(site / "lammps" / "lmp"), "-in", str(script), "-log", "none"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    frames = [(frame.tag, frame.batch.num_rows) for frame in wherry.open("particles", agent.session_file, follow=False)]
    assert frames == [(10, 256), (20, 256), (30, 256)]


@pytest.mark.agent
@pytest.mark.timeout(120)
def test_the_agent_goes_away(plugin: Path, agent: Agent) -> None:
    """LAMMPS ends with an error that names the cause, and does not hang."""
    script = f"""
import os, signal
melt.command(f"fix w all wherry 1 particles x v agent {{agent}}")
melt.advance(0, prepare=True)
melt.advance(3)
os.kill({agent.process.pid}, signal.SIGKILL)
try:
    melt.advance(100)
    said = "nothing"
except Exception as error:
    said = str(error)
print(json.dumps(said))
"""
    said = in_lammps(script, str(plugin), str(agent.session_file))
    assert "fix wherry, stream particles, step " in said
    assert "agent" in said


@pytest.mark.agent
@pytest.mark.timeout(240)
def test_the_whole_comparison_on_a_small_box(tmp_path: Path, wherryd: Path, plugin: Path) -> None:
    """As `make run` does. The test does not check speed."""
    before = files_in_shared_memory()
    target = tmp_path / "new" / "fix.json"
    line = [sys.executable, str(APPS / "lammps_fix.py"), "--atoms", "4000", "--rounds", "2", "--check", "1"]
    line += ["--every", "3", "--json", str(target), "--plugins", str(plugin.parent)]
    environment = os.environ | {"PYTHONPATH": str(paths.PACKAGE.parent), "WHERRY_WHERRYD": str(wherryd)}
    done = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASS: 11 frames read once, in order and complete" in done.stdout
    summary = json.loads(target.read_text())
    assert set(summary["bars"]) == set(fix_figures.BARS)
    for name, bar in summary["bars"].items():
        assert bar["min"] <= bar["value"] <= bar["max"], name
        assert ("pass" in bar) == (fix_figures.BARS[name][2] is not None)
    assert {row["way"] for row in summary["results"]["whole_runs"]} >= {"wherry", "arrow_shm"}
    ways = {(row["way"], row["columns"]) for row in summary["results"]["host_time"]}
    assert ways >= {
        (way, columns)
        for way in ("wherry", "arrow_shm", "flight", "adios_bp5_shm", "dump_binary", "dump_text")
        for columns in (ALL, "x")
    }
    table, sentence = done.stdout.rpartition("PASS: ")[2].split("\n", 1)[1].rsplit("\n", 2)[:2]
    assert "fix wherry" in table
    assert sentence.startswith("A frame of all columns costs LAMMPS "), "it ends with a table and a sentence"
    for row in summary["results"]["host_time"]:
        assert 0 < row["lost_ms_min"] <= row["lost_ms"] <= row["lost_ms_max"]
    assert files_in_shared_memory() <= before
    assert "LAMMPS with fix wherry" in report.build([target])


def measured(name: str, columns: str, *lost_ms: float) -> fix_figures.Measured:
    """A measurement with one frame for each time in `lost_ms`."""
    way = Way(name, name, columns)
    return fix_figures.Measured(way, [Cost(lost / 1e3) for lost in lost_ms])


def test_bars_are_medians_of_the_ratios_of_a_round() -> None:
    report = fix_figures.Report(
        [
            measured("wherry", ALL, 1.0, 2.0, 4.0),
            measured("arrow_shm", ALL, 3.0, 8.0, 8.0),
            measured("flight", ALL, 30.0, 20.0, 10.0),
            measured("dump_binary", ALL, 20.0, 20.0, 20.0),
            measured("dump_binary_disk", ALL, 10.0, 10.0, 10.0),
            measured("wherry", BOTH, 1.0),
            measured("arrow_shm", BOTH, 2.0),
            measured("wherry", "x", 0.5, 0.5),
            measured("flight", "x", 5.0, 5.0),
            measured("arrow_shm", "x", 4.0, 6.0),
        ]
    )
    bars = fix_figures.bars(report)
    assert {name: (bar["value"], bar.get("pass")) for name, bar in bars.items()} == {
        "lammps_host_lost_ratio": (3.0, True),
        "lammps_host_lost_ratio_positions": (10.0, True),
        "lammps_host_lost_ratio_dump_binary": (5.0, False),
        "lammps_host_lost_ratio_flight": (10.0, True),
        "lammps_host_lost_ratio_without_id": (2.0, None),
    }
    best = bars["lammps_host_lost_ratio"]
    assert (best["min"], best["max"], best["target"]) == (2.0, 4.0, ">= 2")


@pytest.mark.agent
@pytest.mark.timeout(120)
def test_the_clock_counts_fixes_and_dumps_and_no_end_of_a_run(plugin: Path, tmp_path: Path) -> None:
    """LAMMPS prints its thermo output at the end of a run, with any `thermo` setting."""
    script = """
melt.command("plugin load " + plugin.replace("wherryplugin", "peersplugin"))
melt.command("fix clock all peer/clock 4")
melt.command("fix clock_end all peer/clock 4 clock")
melt.command(f"dump peer all custom 4 {agent} id x y z vx vy vz fx fy fz")
def run(steps):
    before = melt.fix_vector("clock", 2)
    melt.advance(steps, prepare=True)
    return [b - a for a, b in zip(before, melt.fix_vector("clock", 2))]
print(json.dumps([run(3), run(2), run(3)]))
"""
    before, across, at_the_end = in_lammps(script, str(plugin), str(tmp_path / "dump"))
    assert before[0] == 0, "no step that is a multiple of 4"
    assert 0 < across[0] < across[1]
    # Step 8 counts only the parts before and after the forces.
    assert 0 < at_the_end[0] < at_the_end[1]
    assert (tmp_path / "dump").read_text().count("ITEM: TIMESTEP") == 3, "of steps 0, 4 and 8"


@pytest.mark.parametrize(
    "line", [["--atoms", "5000"], ["--every", "1"], ["--rounds", "0"], ["--check", "-1"], ["--budget", "much"]]
)
def test_wrong_command_lines_are_refused(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        lammps_fix.arguments_of(line)
    assert caught.value.code == 2
    assert "lammps_fix.py: error: " in capsys.readouterr().err
