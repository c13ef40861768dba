# SPDX-License-Identifier: Apache-2.0
"""`wherry bench probe`: how its bars are computed, and its chapters of the report."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from test_bench_schema import row_type
from test_probe_cli import stand_in, texts
from test_probe_lines import END, PATH, START, WRONG, collected, row
from test_report import parsed

from wherry import report
from wherry.bench import load as load_bench
from wherry.errors import BenchError, NotFound
from wherry.probe import rules
from wherry.probe.bench import designs, gains
from wherry.probe.bench.bars import EXPERIMENT_OF, TARGETS, bars_of
from wherry.probe.bench.dma import DMA_TARGETS, SCHEMA
from wherry.probe.bench.run import figures_of, run, same_of, spoiled_of
from wherry.probe.bench.schema import (
    CACHE_USES,
    DMA_USES,
    EXPERIMENTS,
    USES,
    ProbeBench,
    ProbeResults,
    Same,
    Spoiled,
    Suite,
    basis_of,
)
from wherry.probe.model.rows import TARGETS as MODEL_TARGETS
from wherry.probe.schema import write
from wherry.system import repository


def suite(name: Any, seconds: float, cost: float = 20.0) -> Suite:
    return Suite(name, seconds, 10, 0, 0, 0, 0, cost, 9.0)


def test_bars_say_what_was_measured() -> None:
    results = ProbeResults(
        suites=[suite("quick", 19.0), suite("full", 181.0, 31.0)],
        same=[Same("a", 1, "", 1.0, 0.9, 1.1, "no difference")] * 19 + [Same("b", 1, "", 2.0, 1.9, 2.1, "slower")],
        spoiled=[Spoiled("a", 2, 2), Spoiled("b", 2, 1)],
    )
    bars = bars_of(results, [])
    assert {name: bar["pass"] for name, bar in bars.items()} == {
        "probe_quick_s": True, "probe_full_s": False, "harness_ns": False, "aa_no_difference": True,
        "flipped_byte_noticed": False, "paths_without_figures": True,
    }  # fmt: skip
    assert (bars["aa_no_difference"]["value"], bars["flipped_byte_noticed"]["value"]) == (0.95, 0.5)
    assert bars_of(ProbeResults(), None) == {}
    assert bars_of(results, ["a", "b"])["paths_without_figures"]["value"] == 2
    assert list(TARGETS) == list(USES)
    assert set(EXPERIMENT_OF) == {*TARGETS, *CACHE_USES, *MODEL_TARGETS, *designs.TARGETS, *DMA_TARGETS}
    assert set(designs.TARGETS) == set(designs.USES)
    assert list(DMA_TARGETS) == list(DMA_USES)
    for name in EXPERIMENT_OF:
        assert basis_of(name, results).uses


def written(size: int, kind: str, ratios: list[float]) -> dict[str, Any]:
    """A row as bench_move or bench_route writes it."""
    common = {"size": size, "memory": kind, "placement": kind, "ratios": ratios}
    return common | {"default_gbps": 10.0, "profile_gbps": 11.0, "default_mmps": 1.0, "profile_mmps": 2.0,
                     "turn_ratios": [4.0] * len(ratios), "paced_ratios": [1.0] * len(ratios)}  # fmt: skip


def test_gains_are_those_of_all_processes() -> None:
    documents = [
        {"results": {"profile": [written(64, "heap", one), written(64, "mapped", [1.0]), written(128, "heap", [1.2])]}}
        for one in ([1.0, 1.1, 1.2], [1.3, 1.3, 1.3], [1.1, 1.1, 9.0])
    ]
    rows = gains.rows_of("move", documents)
    heap = rows[0]
    assert (heap.kind, heap.size, heap.rounds) == ("heap", 64, 9)
    assert (heap.throughput, heap.throughput_least, heap.throughput_most) == (1.2, 1.1, 1.3)
    assert (heap.turn, heap.turn_least, heap.turn_most, heap.paced) == (4.0, 4.0, 4.0, 1.0)
    found = bars_of(ProbeResults(gains=rows), None)
    assert set(found) == {"profile_move_gain", "profile_move_worst_size"}
    worst = found["profile_move_worst_size"]
    assert worst["value"] == pytest.approx(1.2**0.5)
    assert worst["min"] == pytest.approx(1.1**0.5)
    assert found["profile_move_gain"]["value"] == pytest.approx(4.0)
    assert found["profile_move_gain"]["pass"]
    slower = [dataclasses.replace(rows[0], service="route", throughput=0.5, throughput_least=0.4, throughput_most=0.6)]
    found = bars_of(ProbeResults(gains=slower), None)
    assert found["profile_route_gain"]["value"] == found["profile_route_worst_size"]["value"] == 0.5
    assert not found["profile_route_worst_size"]["pass"]
    assert gains.rows_of("route", [{"results": {"profile": [written(8, "host", [0.9])]}}])[0].profile == 2.0
    none: dict[str, Any] = {"results": {"profile": []}}
    for broken in ([none], [documents[0], {"results": {"profile": [written(1, "x", [1.0])]}}]):
        with pytest.raises(BenchError, match="wrote no rows"):
            gains.rows_of("move", broken)


def test_programs_get_the_settings_that_are_theirs() -> None:
    settings = [
        rules.Setting(key, 5, "a rule", "") for key in ("move.window", "poll.spin_us", "route.buffers", "advise.x")
    ]
    assert gains.words(settings, "move") == ["--set", "move.window=5", "--set", "poll.spin_us=5"]
    assert gains.words(settings, "route") == ["--set", "route.buffers=5"]


def test_rows_of_runs() -> None:
    found = collected(
        START, row(), row(series=1), row(bytes=8, refused="x"), row(bytes=16, notice="blocking"), PATH, END
    )
    assert [(one.size, one.shape) for one in figures_of(found)] == [(4096, ""), (16, "blocking")]
    assert [one.verdict for one in same_of(found)] == ["no difference"]
    spoiled = collected(START, row(), WRONG, PATH, PATH | {"id": "c", "absent": "no device"}, END)
    assert spoiled_of(spoiled) == [Spoiled("a.b", 2, 1)]
    silent = collected(START, PATH, END)
    assert spoiled_of(silent) == [Spoiled("a.b", 0, 0)]
    assert bars_of(ProbeResults(spoiled=spoiled_of(silent)), None)["flipped_byte_noticed"]["value"] == 0


def test_a_run_with_a_stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lines = texts(START, row(), row(series=1), PATH, PATH | {"id": "c", "absent": "no device"}, END)
    stand_in(monkeypatch, tmp_path, lines)
    said: list[str] = []
    bench = run(tmp_path / "b.json", quick=True, only=["quick", "twice"], say=said.append)
    assert load_bench(tmp_path / "b.json") == bench
    assert [one.suite for one in bench.results.suites] == ["quick", "twice"]
    assert bench.bars["aa_no_difference"].passed
    others = ("model_", "thesis_", "cache_", "profile_", "sim_", "dma_")
    assert {name for name in bench.not_run if not name.startswith(others)} == {
        "probe_full_s", "flipped_byte_noticed",
    }  # fmt: skip
    assert [one.id for one in bench.results.absent] == ["c"]
    assert said == ["the quick suite", "the quick suite, everything twice"]
    page = report.build([tmp_path / "b.json"])
    words = " ".join(parsed(page).text)
    assert page.count('<svg class="wide" ') == 4
    for part in ("Bars of probe", "No difference in 1 of 1.", "bars not run", "of 1 paths and shapes"):
        assert part in words


def test_the_model_needs_no_program(tmp_path: Path) -> None:
    said: list[str] = []
    bench = run(tmp_path / "b.json", only=["model"], say=said.append)
    assert (set(bench.bars), said) == (set(MODEL_TARGETS), [])
    assert all(bar.passed for bar in bench.bars.values())
    page = report.build([tmp_path / "b.json"])
    assert page.count('<svg class="wide" ') == 5
    assert "The 13 bandwidths of paper 000" in page


DMA_ROW: dict[str, Any] = {
    "name": "h2c_4k_depth16", "way": "h2c", "bytes": 4096, "depth": 16, "channels": 1, "bell": "tail", "rtt_ns": 800,
    "gbytes_per_s": 14.4, "millions_per_s": 3.5, "bound_gbytes_per_s": 14.6, "share": 0.99, "latency_us": 4.5,
    "unfair": 0.0, "up_use": 0.1, "down_use": 0.99, "status_words": 1.0, "cycles": 100,
}  # fmt: skip


def test_the_dma_engine_is_another_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bars = {name: {"value": 0.97} for name in DMA_TARGETS}
    document = {"schema": SCHEMA, "simulated": True, "rates": [DMA_ROW], "bars": bars}
    (tmp_path / "answer.json").write_text(json.dumps(document))
    program = tmp_path / "dma_card_bench"
    program.write_text(f'#!/bin/sh\ncp {tmp_path}/answer.json "$2"\n')
    program.chmod(0o755)
    monkeypatch.setattr("wherry.probe.measuring.built", lambda folder, name: program)
    bench = run(tmp_path / "b.json", only=["dma"], say=lambda text: None)
    assert bench.results.dma[0].share == 0.99
    assert set(bench.bars) == set(DMA_TARGETS)
    assert not bench.bars["dma_h2c_4k_depth16"].passed
    assert bench.bars["dma_h2c_512b"].passed
    assert "Simulated: RTL, driver and PCIe; no card" in " ".join(parsed(report.build([tmp_path / "b.json"])).text)
    program.write_text("#!/bin/sh\necho wrong bytes >&2\nexit 1\n")
    with pytest.raises(BenchError, match="wrong bytes"):
        run(tmp_path / "b.json", only=["dma"], say=lambda text: None)
    document["schema"] = "another"
    (tmp_path / "answer.json").write_text(json.dumps(document))
    program.write_text(f'#!/bin/sh\ncp {tmp_path}/answer.json "$2"\n')
    with pytest.raises(BenchError, match="another"):
        run(tmp_path / "b.json", only=["dma"], say=lambda text: None)


def test_a_build_without_rtl_has_no_dma_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def missing(folder: str, name: str) -> Path:
        raise NotFound(f"{name} is not built")

    monkeypatch.setattr("wherry.probe.measuring.built", missing)
    bench = run(tmp_path / "b.json", only=["dma", "model"], say=lambda text: None)
    assert bench.not_run["dma_64b_mps"] == "dma_card_bench is not built"
    assert set(bench.bars) == set(MODEL_TARGETS)


def test_wrong_data_fails_the_benchmark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stand_in(monkeypatch, tmp_path, texts(START, row(), WRONG, PATH, END), 1)
    with pytest.raises(BenchError, match=r"wrong data from a\.b"):
        run(tmp_path / "b.json", only=["quick"], say=lambda text: None)
    assert not (tmp_path / "b.json").exists()
    bench = run(tmp_path / "b.json", only=["spoiled"], say=lambda text: None)
    assert bench.results.spoiled == [Spoiled("a.b", 2, 1)]


def test_the_file_of_a_run_is_a_chapter(tmp_path: Path) -> None:
    wake = [row(id=f"wake.{name}", bytes=64, gbytes_per_s=0.0) for name in ("spin", "futex")]
    chase = [row(id="cpu.chase", bytes=size, depth=depth) for size in (4096, 1 << 20) for depth in (1, 8)]
    paths = [PATH | {"id": name, "group": name.split(".")[0]} for name in ("wake.spin", "wake.futex", "cpu.chase")]
    simulated = PATH | {"id": "sim.x", "group": "sim", "provenance": "simulated"}
    write(
        collected(START, row(), row(bytes=64), row(id="sim.x"), *wake, *chase, PATH, *paths, simulated, END),
        tmp_path / "run.json",
    )
    page = report.build([tmp_path / "run.json"])
    parts = parsed(page)
    for reference in parts.references:
        assert reference.startswith("#"), f"the page needs {reference}"
    words = " ".join(parts.text)
    for part in (
        "wherry probe run",
        "wake.futex: 1.5 us",
        "Measured on this machine.",
        "Simulated: the time is that of",
    ):
        assert part in words
    assert page.count('<svg class="wide" ') == 6, "measured and simulated rows have plots of their own"


def test_documentation_names_every_experiment_and_bar() -> None:
    root = repository()
    assert root is not None
    page = (root / "docs" / "guide" / "probe.md").read_text() + (
        root / "docs" / "design" / "probe-cache.md"
    ).read_text()
    for name in (*TARGETS, *CACHE_USES, *DMA_TARGETS, *(section.name for section in dataclasses.fields(ProbeResults))):
        assert f"`{name}`" in page, name
    assert EXPERIMENTS == (
        "quick", "full", "twice", "spoiled", "cache", "model", "thesis", "designs", "dma", "profile",
    )  # fmt: skip
    assert json.loads((root / "python/wherry/probe/bench/published.json").read_text())["values"]
    for section in dataclasses.fields(ProbeResults):
        assert dataclasses.is_dataclass(row_type(ProbeResults, section))
    assert ProbeBench.__doc__
