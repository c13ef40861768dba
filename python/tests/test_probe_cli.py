# SPDX-License-Identifier: Apache-2.0
"""`wherry probe list | run | compare`: real measurements on this machine, and substitutes for the program."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from jobs import eventually
from test_probe_lines import END, FAILED, PATH, START, WRONG, collected, row

from wherry import cli
from wherry.errors import BenchError, NotFound
from wherry.probe.measuring import known_paths, measure
from wherry.probe.schema import load, write
from wherry.system import wherry_probe

SHORT = ("--seconds", "0.5", "--rounds", "3")
STAND_IN = """
import json, sys, time
for line in {lines!r}:
    print(line, flush=True)
{more}
sys.exit({status})
"""


def stand_in(monkeypatch: pytest.MonkeyPatch, folder: Path, lines: list[str], status: int = 0, more: str = "") -> Path:
    """Replaces wherry-probe by a program that writes `lines`."""
    program = folder / "stand-in"
    program.write_text(f"#!{sys.executable}\n" + STAND_IN.format(lines=lines, status=status, more=more))
    program.chmod(0o755)
    monkeypatch.setenv("WHERRY_PROBE", str(program))
    return program


def texts(*documents: dict[str, Any]) -> list[str]:
    return [json.dumps(document) for document in documents]


# ---- the program itself


def test_every_path_is_listed(capfd: pytest.CaptureFixture[str]) -> None:
    found = {path.id: path for path in known_paths()}
    assert {"cpu.memcpy", "cpu.chase", "ipc.shm", "ipc.cma.get", "ucx.get.shm", "ucx.am.tcp", "wake.nap"} <= set(found)
    assert {path.id for path in found.values() if path.provenance != "measured"} == {
        f"sim.{design}.{flow}" for design in ("bram", "ddr4", "softcore", "linux") for flow in ("h2c", "c2h")
    }
    assert cli.main(["probe", "list", "--only", "wake", "--json"]) == 0
    assert [one["id"] for one in json.loads(capfd.readouterr().out)] == [name for name in found if "wake" in name]
    assert cli.main(["probe", "list"]) == 0
    assert "ipc.cma.get" in capfd.readouterr().out


def test_simulated_paths_run_when_they_are_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "run.json"
    assert cli.main(["probe", "run", "--only", "sim.bram", "--bytes", "4096", *SHORT, "--json", str(file)]) == 0
    run = load(file)
    assert {path.id for path, _ in run.rows} == {"sim.bram.h2c", "sim.bram.c2h"}
    for path, found in run.rows:
        assert path.provenance == "simulated"
        assert found.least == pytest.approx(found.most, rel=0.02), "each round says the same"
        if found.notice == "interrupt":
            assert 52_000 < found.p50_ns < 60_000, "the time is the simulation's"
    assert "simulated host to simulated card, bram, simulated" in capfd.readouterr().out


def test_a_run_measures_and_writes_one_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "run.json"
    words = ["probe", "run", "--only", "cpu.memcpy", "--only", "ipc.cma", "--bytes", "4096", "--depth", "1", *SHORT]
    assert cli.main([*words, "--json", str(file)]) == 0
    run = load(file)
    assert {path.id for path, _ in run.rows} == {"cpu.memcpy", "ipc.cma.get", "ipc.cma.put"}
    for path, found in run.rows:
        assert len(found.rounds) == 3, path.id
        assert found.least <= found.p50_ns <= found.most
        assert found.p50_ns <= found.p99_ns * 1.05
        assert found.gbytes_per_s == pytest.approx(found.transfers_per_s * 4096 / 1e9)
    out = capfd.readouterr()
    assert "ipc.cma.get: memory of another process to host memory, measured" in out.out
    assert cli.main([*words, "--json", str(file)]) == 1
    assert "overwrites nothing" in capfd.readouterr().err


def test_spoiled_data_is_told_by_every_path(capfd: pytest.CaptureFixture[str]) -> None:
    run = measure(more=["--bytes", "64", "--bytes", "4096", "--depth", "1", *SHORT, "--spoil"])
    here = [path for path in run.paths if not path.absent]
    assert len(here) >= 20
    for path in here:
        assert path.rows == [], f"{path.id} noticed nothing"
        assert path.troubles, path.id
        assert all(trouble.wrong for trouble in path.troubles), path.troubles


def test_paths_that_are_none_are_refused(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BenchError, match="refused what it was asked for"):
        measure(only=["cpu.telepathy"])
    assert "no path or group is named 'cpu.telepathy'" in capfd.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    file = tmp_path / "run.json"
    command = [sys.executable, "-m", "wherry", "probe", "run", "--only", "ipc", "--json", str(file)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stderr is not None
        assert "%" in process.stderr.readline()
        os.killpg(process.pid, number)  # as a terminal does
        status = process.wait(60)
    assert status == (130 if number == signal.SIGINT else -signal.SIGTERM)
    assert list(tmp_path.iterdir()) == []
    assert eventually(lambda: _members(process.pid) == [])


def _members(group: int) -> list[str]:
    """The running processes of a process group."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(entry.parent.name)
    return found


def test_a_program_that_nobody_reads_ends() -> None:
    with subprocess.Popen([str(wherry_probe()), "run", "--progress-ms", "0"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"{")
        process.stdout.close()
        assert process.wait(150) == 130


# ---- the program's allowed output


def test_wrong_data_is_status_1(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    stand_in(monkeypatch, tmp_path, texts(START, row(), WRONG | {"bytes": 8}, PATH, END), 1)
    file = tmp_path / "run.json"
    assert cli.main(["probe", "run", "--json", str(file)]) == 1
    assert "a.b, 8 B : WRONG DATA: byte 3" in capfd.readouterr().out
    assert load(file).wrong == 1


def test_nothing_measured_is_status_2(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stand_in(monkeypatch, tmp_path, texts(START, FAILED, PATH | {"absent": "no device"}, END), 2)
    assert cli.main(["probe", "run"]) == 2
    stand_in(monkeypatch, tmp_path, texts(START, row(refused="over the bound"), PATH, END), 2)
    assert cli.main(["probe", "run"]) == 2


def test_a_program_that_dies_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stand_in(monkeypatch, tmp_path, texts(START, row()), 0, "import os; os.kill(os.getpid(), 9)")
    with pytest.raises(BenchError, match="was killed by signal 9"):
        measure()
    stand_in(monkeypatch, tmp_path, texts(START, row()))
    with pytest.raises(BenchError, match="ended before its run did"):
        measure()


def test_a_line_that_is_none_ends_the_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stand_in(monkeypatch, tmp_path, [*texts(START), "UCX WARN"], 0, "time.sleep(1000)")
    begin = time.monotonic()
    with pytest.raises(BenchError, match="wherry-probe wrote"):
        measure()
    assert time.monotonic() - begin < 500


def test_a_program_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WHERRY_PROBE", str(tmp_path / "nothing"))
    with pytest.raises(NotFound, match=r"\$WHERRY_PROBE names .*nothing, which is not an executable file"):
        wherry_probe()


# ---- compare


def test_compare_shows_what_differs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    a, b, other = (tmp_path / name for name in ("a.json", "b.json", "other.json"))
    write(collected(START, row(), row(bytes=64), PATH, END), a)
    write(collected(START, row(rounds=[9000.0] * 7), row(bytes=64), PATH, END), b)
    write(collected(START | {"machine_key": "another"}, row(), PATH, END), other)
    assert cli.main(["probe", "compare", str(a), str(b)]) == 0
    out = capfd.readouterr().out
    assert "no difference in 1 of 2 paths and shapes" in out
    assert "slower" in out
    assert "64 B" not in out
    assert cli.main(["probe", "compare", str(a), str(a), "--all"]) == 0
    assert "no difference in 2 of 2" in (out := capfd.readouterr().out)
    assert "64 B" in out
    assert cli.main(["probe", "compare", str(a), str(other)]) == 1
    assert "--across compares them all the same" in capfd.readouterr().err
    assert cli.main(["probe", "compare", str(a), str(other), "--across"]) == 0
    assert cli.main(["probe", "compare", str(a)]) == 1
    assert "has one series" in capfd.readouterr().err
