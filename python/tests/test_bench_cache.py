# SPDX-License-Identifier: Apache-2.0
"""`wherry bench probe --only cache`: its rows and bars, its sections of the report, and its programs."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from test_report import parsed

from wherry import report
from wherry.bench import load
from wherry.errors import BenchError, NotFound
from wherry.probe.bench import cache, run
from wherry.probe.bench.schema import FAR, NEAR, ProbeResults, basis_of
from wherry.system import built

LEVELS = ("32768:8", "1048576:8")


def trace_run(system: str, direct: bool, buffers: int, loads: int, fills: int) -> dict[str, Any]:
    level = {"bytes": 1 << 15, "ways": 8, "loads": 9000, "load_misses": 1000, "stores": 9000, "store_misses": 1000}
    last = level | {"load_misses": loads, "store_misses": fills}
    return {"system": system, "source": "a book", "into_cache": direct, "buffer_bytes": buffers, "payload": 8,
            "routed_bytes": 64_000, "levels": [level, level, last], "written_back": 500}  # fmt: skip


def touched(place: str, ns: float, counted: float | None = None) -> dict[str, Any]:
    return {"place": place, "size": 65536, "ring_bytes": 65536, "received_bytes": 10 << 16, "ns_per_line": 64 * ns,
            "least_ns": 64 * ns, "most_ns": 64 * ns, "counted_share": counted, "not_counted": "no counter",
            "samples": [ns, ns]}  # fmt: skip


def beside(kind: str, intensity: float, kept: float) -> dict[str, Any]:
    return {"neighbour": kind, "intensity": intensity, "working_set_bytes": 1, "neighbour_gbytes_per_s": 1.0,
            "agent_gbytes_per_s": 2.0, "kept": kept, "least": kept, "most": kept, "samples": [kept]}  # fmt: skip


MEASURED: dict[str, Any] = {
    "pinning": {"agent": 0, "other": 1},
    "results": {
        "cache_agent": [{"buffer_bytes": 1 << 20, "payload": 8, "gbytes_per_s": 2.0, "least": 1.0, "most": 3.0,
                         "references_per_line": None, "misses_per_line": None, "not_counted": "no counter",
                         "samples": [2.0]}],
        "cache_touch": [touched("last level", 0.1), touched("beyond the last level", 0.2), touched("flushed", 0.3)],
        "cache_neighbour": [beside("none", 0, 1), beside(FAR, 0.5, 0.9), beside(FAR, 1.0, 0.8),
                            beside(NEAR, 1.0, 0.99)],
    },
}  # fmt: skip
SIMULATED: dict[str, Any] = {
    "absent": "",
    "runs": [
        trace_run("xeon_6326", True, 1 << 20, 7, 7), trace_run("xeon_6326", True, 1 << 26, 100, 1000),
        trace_run("bluefield_3", False, 1 << 25, 1000, 500), trace_run("bluefield_3", True, 1 << 25, 1, 1),
    ],
}  # fmt: skip


def test_rows_and_bars_of_what_the_programs_say() -> None:
    results = ProbeResults()
    cache.take(results, MEASURED["results"], SIMULATED)
    assert [(row.miss_share, row.share_is) for row in results.cache_touch] == [
        (0, "estimated"), (pytest.approx(0.5), "estimated"), (1, "estimated"),
    ]  # fmt: skip
    bars = cache.cache_bars(results)
    assert {name: bar["value"] for name, bar in bars.items()} == {
        "cache_traffic_without": pytest.approx(1.5), "cache_loads_direct": pytest.approx(0.1),
        "cache_flushed_times": pytest.approx(3), "cache_neighbour_kept": 0.8,
    }  # fmt: skip
    assert bars["cache_neighbour_kept"]["published"].startswith("0.83")
    assert bars["cache_traffic_without"]["published"] == "1.6"
    assert bars["cache_loads_direct"]["published"].startswith("0.0026:")
    assert basis_of("cache_neighbour_kept", results).beside.startswith("0.99")
    assert cache.cache_bars(ProbeResults()) == {}


def test_a_counter_goes_before_an_estimate() -> None:
    rows = [touched("last level", 0.1, 0.25), touched("flushed", 0.3)]
    assert [(row.miss_share, row.share_is) for row in cache.touch_of(rows)] == [(0.25, "measured"), (1, "estimated")]


@pytest.mark.parametrize(("time", "share"), [(1.0, 0), (1.5, 0.5), (2, 1), (5, 1), (0.5, 0)])
def test_the_estimate_lies_between_no_line_and_all(time: float, share: float) -> None:
    assert cache.estimated_share(time, 1, 2) == pytest.approx(share)


def test_nothing_is_estimated_where_a_flush_costs_nothing() -> None:
    assert cache.estimated_share(1, 1, 1.05) is None
    (row, _) = cache.touch_of([touched("last level", 0.1), touched("flushed", 0.1)])
    assert (row.miss_share, row.share_is) == (None, "not known")


def fake_program(monkeypatch: pytest.MonkeyPatch, folder: Path, measured: Any) -> None:
    for name, said in (("bench_probe_cache", measured), ("route_trace", SIMULATED)):
        (folder / f"{name}.json").write_text(json.dumps(said))
        (folder / name).write_text(f'#!/bin/sh\ncp {folder}/{name}.json "$2"\n')
        (folder / name).chmod(0o755)
    monkeypatch.setattr("wherry.bench.program.built", lambda _, name: folder / name)


def test_a_run_becomes_sections_of_the_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake_program(monkeypatch, tmp_path, MEASURED)
    file = tmp_path / "b.json"
    bench = run.run(file, only=["cache"], say=lambda text: None)
    assert load(file) == bench
    assert bench.pinning == {"agent": 0, "other": 1}
    page = report.build([file])
    words = " ".join(parsed(page).text)
    assert page.count('<svg class="wide" ') == 4
    for part in ("Receive and touch each byte", "Simulated: each load and store", "no counter", "memory loads over"):
        assert part in words, part


def test_rows_of_another_program_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake_program(monkeypatch, tmp_path, {"results": {"cache_agent": [{"pace": 1}]}, "pinning": {}})
    with pytest.raises(BenchError, match="does not describe"):
        run.run(tmp_path / "b.json", only=["cache"], say=lambda text: None)
    assert not (tmp_path / "b.json").exists()


# ---- the programs


def program(name: str) -> str:
    try:
        return str(built("bench", name))
    except NotFound as why:
        pytest.skip(str(why))


def trace(*words: str) -> dict[str, Any]:
    line = [program("route_trace"), *words]
    said: dict[str, Any] = json.loads(subprocess.run(line, check=True, capture_output=True, timeout=120).stdout)
    return said


@pytest.mark.parametrize("direct", [False, True])
def test_what_arrives_is_loaded_from_memory_once_or_not_at_all(direct: bool) -> None:
    """Rings of 1 MiB in a last level of 8 MiB: only lines that a device writes past the caches can miss."""
    sizes = ["--level", "32768:8", "--level", "8388608:16", "--buffer-bytes", str(1 << 20), "--payload", "56"]
    said = trace(*sizes, "--warm-bytes", str(4 << 20), "--bytes", str(2 << 20), *(["--into-cache"] if direct else []))
    lines = said["routed_bytes"] / 64
    last = said["levels"][-1]
    assert last["load_misses"] / lines == pytest.approx(0 if direct else 1, abs=0.002)
    assert last["store_misses"] / lines == pytest.approx(0, abs=0.002)
    # The first level is smaller than a buffer, so each line of an input or a lane misses there.
    first = said["levels"][0]
    assert (first["load_misses"] + first["store_misses"]) / lines == pytest.approx(2, rel=0.1)


def test_lanes_beyond_the_last_level_are_filled_from_memory() -> None:
    sizes = ["--level", "32768:8", "--level", "1048576:8", "--buffer-bytes", str(8 << 20), "--payload", "56"]
    said = trace(*sizes, "--into-cache", "--warm-bytes", str(8 << 20), "--bytes", str(4 << 20))
    last = said["levels"][-1]
    lines = said["routed_bytes"] / 64
    assert last["load_misses"] / lines < 0.05, "a buffer is routed soon after it has arrived"
    assert last["store_misses"] / lines == pytest.approx(1, rel=0.1)
    assert said["written_back"] / lines == pytest.approx(2, rel=0.1), "inputs and lanes are dirty"


def cachegrind(folder: Path, size: int) -> dict[str, int]:
    """All misses of a run that routes `size` bytes, as Valgrind counts them for the uninstrumented program."""
    out = folder / f"{size}.out"
    first, last = (level.replace(":", ",") + ",64" for level in LEVELS)
    line = ["valgrind", "--tool=cachegrind", f"--D1={first}", f"--LL={last}", f"--cachegrind-out-file={out}",
            program("route_trace_plain"), *plain(size)]  # fmt: skip
    subprocess.run(line, check=True, capture_output=True, timeout=300)
    text = out.read_text()
    events, summary = (re.search(rf"^{key}: (.*)$", text, re.MULTILINE) for key in ("events", "summary"))
    assert events
    assert summary
    return dict(zip(events[1].split(), map(int, summary[1].split()), strict=True))


def plain(size: int) -> list[str]:
    levels = [word for level in LEVELS for word in ("--level", level)]
    return [*levels, "--whole", "--buffer-bytes", str(2 << 20), "--bytes", str(size)]


def test_misses_are_those_that_cachegrind_counts(tmp_path: Path) -> None:
    """Compares with Cachegrind, another model, fed by a simulated CPU instead of by the compiler, for the second half
    of a run of twice the length. Cachegrind also sees stack accesses, which almost never miss."""
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed: tools/debian-packages.txt names it")
    size = 2 << 20
    half, whole = (cachegrind(tmp_path, part) for part in (size, 2 * size))
    said = trace(*plain(size), "--warm-bytes", str(size))
    for level, names in zip(said["levels"], (("D1mr", "D1mw"), ("DLmr", "DLmw")), strict=True):
        for ours, theirs in zip(("load_misses", "store_misses"), names, strict=True):
            assert level[ours] == pytest.approx(whole[theirs] - half[theirs], rel=0.05, abs=0.01 * size / 64), theirs
