# SPDX-License-Identifier: Apache-2.0
"""`wherry bench route`: the command, and the program that it runs."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from wherry import cli, report
from wherry.bench import load
from wherry.errors import BenchError
from wherry.route import advise, calibration
from wherry.route.bench import run as measured
from wherry.route.bench.schema import RouteBench
from wherry.system import paths

Document = dict[str, Any]
QUIET = Console(stderr=True, quiet=True)


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)
    return path


@pytest.fixture
def built(tmp_path: Path, route: Document, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fake bench_route that writes a valid document without applications, and saves its command line."""
    route["results"].pop("applications")
    route["bars"].pop("offload_speedup_transport")
    program = script(
        tmp_path / "bench_route",
        f"""
import json, sys
arguments = sys.argv[1:]
with open(arguments[arguments.index("--json") + 1], "w") as file:
    file.write({json.dumps(route)!r})
with open({str(tmp_path / "arguments")!r}, "w") as file:
    json.dump(arguments, file)
print("half way", file=sys.stderr)
""",
    )
    for module in ("wherry.bench.program", "wherry.route.programs"):
        monkeypatch.setattr(f"{module}.built", lambda folder, name: program)
    return program


def one_run(seconds: float, mc: float | None, checksum: str = "00") -> dict[str, Any]:
    return {
        "seconds": seconds, "checksum": checksum, "messages": 10, "bytes": 1_000_000_000,
        "statistics": {"bytes_out": 1_000_000_000, "transfers": 50_000},
        "mc_ratio": mc, "mc_estimate": 9.0 if mc is None else None, "mc_missing": "no counter" if mc is None else "",
        "category": "balanced",
    }  # fmt: skip


def test_tables_bars_and_options(built: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "new" / "r.json"
    words = ["bench", "route", "--json", str(target), "--quick", "--only", "sweeps", "--only", "latency"]
    assert cli.main([*words, "--peer", "one:4=./one {lg} {n}"]) == 0
    out, err = capfd.readouterr()
    arguments = json.loads((tmp_path / "arguments").read_text())
    assert arguments[0] == "--json"
    assert arguments[2:] == ["--quick", "--only", "latency,sweeps", "--peer", "one:4=./one {lg} {n}"]
    assert [path.name for path in target.parent.iterdir()] == ["r.json"]
    assert "half way" in err
    assert "Transfer size, number of buffers, routing threads (figure 7)" in out
    assert "Bars: 1 of 1 met" in out
    assert isinstance(load(target), RouteBench)


def test_applications_take_turns_and_become_ratios(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    seconds = {"inline": 0.5, "shared": 2.0, "host": 1.0}

    def run_once(app: str, placement: str, arguments: list[str], directory: Path) -> dict[str, Any]:
        order.append(placement)
        assert directory.is_dir()
        return one_run(seconds[placement], None if app == "transport" else 1.5)

    monkeypatch.setattr(measured, "_run_once", run_once)
    bench = measured.run(tmp_path / "r.json", only=["applications"], progress=QUIET)
    arguments = json.loads((tmp_path / "arguments").read_text())
    assert arguments[arguments.index("--only") + 1] == "link", "the network share refers to it"
    assert order[:6] == ["inline", "shared", "host"] * 2
    rows = {row.app: row for row in bench.results.applications}
    assert set(rows) == set(measured.APPLICATIONS)
    row = rows["histogram"]
    assert (row.speedup, row.inline_speedup) == (2.0, 4.0)
    assert row.network_share == pytest.approx(8.0 / 100.0)  # 1 GB in 1 s over a link of 100 Gbit/s
    assert row.average_transfer == 20_000
    assert (row.mc_ratio, row.mc_estimate, row.mc_missing, row.category) == (1.5, None, "", "balanced")
    row_without = rows["transport"]
    assert (row_without.mc_ratio, row_without.mc_estimate, row_without.mc_missing) == (None, 9.0, "no counter")
    assert (row.published_speedup, row.published_network_share, row.published_mc_ratio) == (1.77, 0.77, 1.5)
    assert bench.bars["offload_speedup_transport"].passed
    assert bench.bars["offload_speedup_sssp"].target is None
    assert load(tmp_path / "r.json") == bench


def test_different_results_in_different_placements_are_no_measurement(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measured, "_run_once", lambda app, placement, *_: one_run(1.0, 1.0, placement))
    (tmp_path / "out").mkdir()
    with pytest.raises(BenchError, match="histogram comes to different results in different placements"):
        measured.run(tmp_path / "out" / "r.json", only=["applications"], progress=QUIET)
    assert list((tmp_path / "out").iterdir()) == [], "half a measurement is none"


def rank_file(directory: Path, rank: int, misses: int | None) -> None:
    names = [field.name for field in dataclasses.fields(advise.RankFile)]
    counts = dict.fromkeys(("forwarded_bytes", "transfers", "flush_full", "bytes_in", "handled"), 0)
    values = [rank, rank, "inline", 2.0, 2.0, 0.0, misses, "" if misses is not None else "no counter",
              counts | {"sent": 1000, "bytes_out": 48_000}]  # fmt: skip
    (directory / f"rank-{rank}.json").write_text(json.dumps(dict(zip(names, values, strict=True))))


def test_memory_to_communication(tmp_path: Path) -> None:
    ratio = 3000 * calibration.line_bytes() / 96_000
    rank_file(tmp_path, 0, 1000)
    rank_file(tmp_path, 1, 2000)
    counted = measured.memory_to_communication("app", tmp_path, alone=True)
    assert counted == {"mc_ratio": ratio, "mc_estimate": None, "mc_missing": "", "category": counted["category"]}
    rank_file(tmp_path, 1, None)
    estimated = measured.memory_to_communication("app", tmp_path, alone=True)
    assert (estimated["mc_ratio"], estimated["mc_missing"]) == (None, "no counter")
    assert estimated["mc_estimate"] > 0
    assert measured.memory_to_communication("app", tmp_path, alone=False)["mc_estimate"] is None


def test_unknown_experiment_is_a_wrong_command_line(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert cli.main(["bench", "route", "--json", str(tmp_path / "r.json"), "--only", "everything"]) == 2
    assert "weak_scaling" in capfd.readouterr().err


# ---- the program itself


def bench_route(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(paths.built("bench", "bench_route")), *words], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.agent
def test_peer_takes_turns_and_has_a_bar(tmp_path: Path) -> None:
    peer = script(
        tmp_path / "peer",
        f"""
import json, sys
with open({str(tmp_path / "calls")!r}, "a") as calls:
    calls.write(" ".join(sys.argv[1:]) + "\\n")
print("chatter")
print(json.dumps(dict(mups=2.0)))
""",
    )
    file = tmp_path / "r.json"
    bench = measured.run(file, quick=True, only=["histogram"], peers=[f"slow:1e9={peer} {{lg}} {{n}}"], progress=QUIET)
    assert (tmp_path / "calls").read_text().splitlines() == ["20 4000000"] * 3 + ["24 4000000"] * 3
    for row in bench.results.peers:
        assert (row.peer, row.mups, row.samples) == ("slow", 2.0, [2.0] * 3)
        assert row.ratio_min <= row.ratio <= row.ratio_max
    for size in (20, 24):
        bar = bench.bars[f"histogram_inline_vs_slow_{size}"]
        assert (bar.target, bar.passed) == (">= 1e+09", False)
    assert "slow" in report.build([file])


@pytest.mark.agent
def test_agent_memory_of_a_quick_run(tmp_path: Path) -> None:
    bench = measured.run(tmp_path / "r.json", quick=True, only=["agent_memory"], progress=QUIET)
    rows = bench.results.agent_memory
    assert [row.nodes for row in rows] == [1, 2, 4, 8]
    for row in rows:
        assert row.rss_bytes - row.idle_rss_bytes > row.inbox_bytes
        assert row.pss_bytes < row.rss_bytes
    assert rows[-1].rss_bytes - rows[0].rss_bytes > rows[-1].inbox_bytes - rows[0].inbox_bytes


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--only", "magic"], "--only magic: there is no such experiment, only histogram, random_sizes"),
        (["--peer", "nothing"], "--peer wants NAME=COMMAND or NAME:TIMES=COMMAND, not nothing"),
        (["--peer", "a:fast=true"], "NAME:TIMES=COMMAND, not a:fast=true"),
        (["--peer", "a:-1=true"], "NAME:TIMES=COMMAND, not a:-1=true"),
        (["--peer", "a=true", "--peer", "a=false"], "two are named a"),
        (["--quick", "--only", "histogram", "--peer", "a=echo no"], 'want a last line {"mups": ...}'),
    ],
)
def test_what_the_program_refuses(tmp_path: Path, words: list[str], message: str) -> None:
    done = bench_route("--json", str(tmp_path / "r.json"), *words)
    assert done.returncode == 1
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.agent
def test_agents_count_what_they_hand_on(tmp_path: Path) -> None:
    done = bench_route("--json", str(tmp_path / "r.json"), "--quick", "--only", "weak_scaling")
    assert done.returncode == 0, done.stderr
    for row in json.loads((tmp_path / "r.json").read_text())["results"]["weak_scaling"]:
        assert 0 < row["agent_transfer_bytes"] <= 1 << 20, row


def agents_of(mark: str) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (entry / "environ").read_bytes() and b"wherryd" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.mark.agent
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_agents_end_with_the_program_however_it_ends(tmp_path: Path, number: signal.Signals) -> None:
    """Most agents are stopped (SIGSTOP), and would not notice that the program has ended."""
    mark = f"MARK_OF_TEST={os.getpid()}-{time.monotonic_ns()}"
    environment = os.environ | dict([mark.split("=", 1)])
    line = [str(paths.built("bench", "bench_route")), "--json", str(tmp_path / "r.json"), "--quick"]
    process = subprocess.Popen([*line, "--only", "weak_scaling"], env=environment, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 300
        while len(agents_of(mark)) < 3 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert len(agents_of(mark)) >= 3
    finally:
        process.send_signal(number)
        status = process.wait(timeout=30)
    assert status == (130 if number == signal.SIGINT else -number)
    deadline = time.monotonic() + 300
    while agents_of(mark) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert agents_of(mark) == []
    assert list(tmp_path.iterdir()) == []
