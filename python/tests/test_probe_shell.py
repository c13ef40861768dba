# SPDX-License-Identifier: Apache-2.0
"""The simulated shell of paper 003: its bars, marks, fit and part of the report
(docs/design/shell-model.md)."""

from __future__ import annotations

import csv
import dataclasses
import functools
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from test_report import parsed

from wherry import report
from wherry.bench import load as load_bench
from wherry.errors import BenchError, NotFound
from wherry.probe.bench.bars import bars_of
from wherry.probe.bench.run import run
from wherry.probe.bench.schema import ProbeResults, basis_of
from wherry.probe.bench.thesis import add_thesis
from wherry.probe.measuring import simulate_shell
from wherry.probe.model import rows, simulated, stored
from wherry.probe.report.plots import LOAD_WAYS
from wherry.probe.shell import cells as of_cells
from wherry.probe.shell.cells import FITTED_SIZES, SIZES, case_of, cells, is_latency, mark_of, why_fitted
from wherry.probe.shell.fitting import OPTIONS, START, fit, misfit, settle
from wherry.system import repository

ROOT = repository() or Path()


@functools.cache
def published() -> dict[str, float]:
    with (ROOT / "spec" / "published" / "replication.csv").open(newline="") as file:
        return {row["id"]: float(row["value"]) for row in csv.DictReader(file)
                if re.match(r"rep_t5_([1-6]|12)_", row["id"])}  # fmt: skip


def fitted_to() -> dict[str, float]:
    """The published cells that the fit may use."""
    sizes = tuple(f"_{SIZES[size]}" for size in FITTED_SIZES)
    return {name: value for name, value in published().items() if name.endswith(sizes)}


@functools.cache
def simulation(values: tuple[tuple[str, int], ...] = ()) -> Mapping[str, float]:
    return cells(simulate_shell(dict(values)))


def cached(values: Mapping[str, int]) -> Mapping[str, float]:
    return simulation(tuple(sorted(values.items())))


@pytest.fixture
def program() -> None:
    try:
        simulation()
    except NotFound as why:
        pytest.skip(str(why))


@pytest.mark.usefixtures("program")
def test_every_cell_of_the_tables_is_simulated() -> None:
    assert set(simulation()) == set(published())
    assert len(published()) == 174


@pytest.mark.usefixtures("program")
def test_the_stored_numbers_are_those_of_the_fit() -> None:
    found = fit(cached, fitted_to())
    stored_values = {row["name"]: row["value"] for row in simulate_shell()["parameters"]}
    assert found == {name: stored_values[name] for name in found}
    # Parameters that were not fitted have the mark "chosen".
    marks = {row["name"]: row["mark"] for row in simulate_shell()["parameters"]}
    assert {name for name, mark in marks.items() if mark == "fitted"} == set(found)


@pytest.mark.usefixtures("program")
def test_the_fit_ends_at_the_same_numbers_from_elsewhere() -> None:
    elsewhere = dict.fromkeys(START, 90) | {"completion": 64, "mps": 1024, "mrrs": 2048, "second_store": 1}
    assert fit(cached, fitted_to(), elsewhere) == fit(cached, fitted_to())


@pytest.mark.usefixtures("program")
def test_each_option_is_worse_than_the_one_that_was_fitted() -> None:
    found, targets = fit(cached, fitted_to()), fitted_to()
    least = misfit(cached(found), targets)
    for name, values in OPTIONS.items():
        for value in set(values) - {found[name]}:
            assert misfit(cached(settle(cached, targets, found | {name: value})), targets) > least, (name, value)


def test_the_fit_moves_with_what_it_is_given() -> None:
    """An invented shell, whose cells are 8 ns longer than at the fit's start. Options do not change them."""

    def made_up(values: Mapping[str, int]) -> dict[str, float]:
        return {"rep_t5_2_out_qdma_128": 4.0 * values["h2c_stream"], "rep_t5_4_w_dm_2k": 4.0 * values["mover_write"]}

    found = fit(made_up, {"rep_t5_2_out_qdma_128": 88.0, "rep_t5_4_w_dm_2k": 40.0})
    assert (found["h2c_stream"], found["mover_write"], found["rx"]) == (22, 10, START["rx"])


def test_a_fitted_cell_does_not_call_itself_predicted() -> None:
    for name in fitted_to():
        assert mark_of(name) == "fitted", name
        assert why_fitted(name)
    held_out = set(published()) - set(fitted_to())
    for name in held_out:
        chosen = (
            "_dm_hbm_" in name  # sim/hbm's preset was set to them
            or name.startswith("rep_t5_12_")
            or name == "rep_t5_5_read_4k"  # one transaction at a time
            or re.fullmatch(r"rep_t5_6_r_\w+_4k", name) is not None
        )
        assert mark_of(name) == ("fitted" if chosen else "predicted"), name
    recorded = simulated.recorded()
    for name in published():
        assert recorded[name].mark == mark_of(name), name


def test_marks_that_are_recorded_reach_the_rows() -> None:
    of = {row.ids[0]: row for row in rows.rows(stored())}
    for name in published():
        figure = of[name].figure
        assert figure is not None, name
        assert (figure.mark, figure.provenance) == (mark_of(name), "simulated")


@pytest.mark.usefixtures("program")
def test_recorded_cells_are_what_the_simulation_says() -> None:
    recorded = simulated.recorded()
    for name, value in simulation().items():
        assert recorded[name].low == pytest.approx(value, rel=1e-5), name


@pytest.mark.usefixtures("program")
def test_latencies_are_within_ten_per_cent_and_held_out_ones_are_no_worse() -> None:
    errors = {name: abs(simulation()[name] / value - 1) for name, value in published().items() if is_latency(name)}
    assert max(errors.values()) <= 0.1
    assert len(errors) == 56
    assert sum(mark_of(name) == "predicted" for name in errors) == 35
    assert max(error for name, error in errors.items() if mark_of(name) == "predicted") <= 0.05


def test_names_of_cells() -> None:
    assert [case_of(f"rep_t5_{table}_x_128") for table in (1, 2, 3, 4, 5, 6, 12)] == [1, 1, 2, 2, 3, 3, 0]
    assert [is_latency(f"rep_t5_{table}_x") for table in (1, 2, 3, 4, 5, 6, 12)] == [True, False] * 3 + [False]
    assert set(of_cells.CHOSEN) >= {"rep_t5_5_read_4k", "rep_t5_12_*"}


# --- the benchmark


def document() -> dict[str, Any]:
    """A document in the format of shell_bench, in which all cells except one are 5 % above the published value."""
    found: dict[tuple[int, str, int], dict[str, Any]] = {}
    for name, value in published().items():
        table = int(name.split("_")[2])
        if table == 12:
            continue
        size = next(size for size, text in SIZES.items() if text == name.rpartition("_")[2])
        case, inner = case_of(name), name.split("_", 3)[3].rpartition("_")[0]
        way = inner.split("_")[0]
        way = way if case == 1 else {"w": "write", "r": "read"}.get(way, way)
        row = found.setdefault((case, way, size), {
            "case": case, "way": way, "bytes": size, "descriptor_ns": 0.0, "total_ns": 0.0, "sections": [],
            "transactions": 0, "wrong": 0,
        })  # fmt: skip
        if not is_latency(name):
            row["sections"].append({"name": inner.split("_", 1)[1], "ns": 1.05 * value})
        elif inner.endswith("desc"):
            row["descriptor_ns"] = 1.05 * value
        else:
            row["total_ns"] = 1.05 * value
    found[2, "read", 4096]["total_ns"] = 1.2 * 1536
    return {
        "rows": list(found.values()),
        "spike": [{"variant": "as measured", "transactions": 3, "total_ns": 3600.0, "wrong": 0}],
        "parameters": [{"name": "rx", "value": 11, "unit": "cycles", "mark": "fitted", "source": "CMAC"}],
    }


def test_bars_are_the_largest_error_of_a_case() -> None:
    results = ProbeResults()
    add_thesis(results, document())
    assert len(results.thesis) == 174
    bars = bars_of(results, None)
    assert list(bars) == ["thesis_case1_error", "thesis_case2_error", "thesis_case3_error"]
    assert [round(bar["value"], 6) for bar in bars.values()] == [5.0, 20.0, 5.0]
    assert [bar["pass"] for bar in bars.values()] == [True, False, True]
    basis = basis_of("thesis_case2_error", results)
    assert "Table 5.3" in basis.uses
    assert "8 latencies predicted: mean 6.9 %, worst 20.0 %" in basis.beside
    assert "4 latencies fitted: mean 5.0 %, worst 5.0 %" in basis.beside


def test_wrong_data_are_no_result() -> None:
    wrong = document()
    wrong["spike"][0]["wrong"] = 3
    with pytest.raises(BenchError, match="3 wrong bytes"):
        add_thesis(ProbeResults(), wrong)


@pytest.mark.usefixtures("program")
def test_a_run_and_its_report(tmp_path: Path) -> None:
    file = tmp_path / "probe.json"
    bench = run(file, only=["thesis"], quick=True, say=lambda _: None)
    assert load_bench(file) == bench
    assert [bench.bars[f"thesis_case{case}_error"].passed for case in (1, 2, 3)] == [True] * 3
    assert {cell.mark for cell in bench.results.thesis} == {"fitted", "predicted"}
    found = simulated.from_probe(json.loads(file.read_text())["results"])
    assert {name: figure.mark for name, figure in found.items()} == {name: mark_of(name) for name in published()}
    page = report.build([file])
    words = " ".join(parsed(page).text)
    assert page.count('<svg class="wide" ') == 7
    for part in ("case 1: CMAC and host memory", "case 2", "case 3", "4 KiB from HBM to the host", "predicted",
                 "latency against offered rate", "rates at saturation", "paths beside each other"):  # fmt: skip
        assert part in words
    assert dataclasses.asdict(bench.results)["thesis_parameters"]
    load = bench.results.thesis_load
    assert {(row.case, row.way) for row in load if row.scenario == "alone"} == set(LOAD_WAYS)
    for row in load:
        assert row.packets == row.delivered + row.dropped
        assert row.dropped == 0 or row.way == "in" or (row.case, row.way) == (2, "write")
        # In a short run the first packets find an empty shell, so the rate may be 10 % above the steady rate.
        assert row.gbytes_per_s <= 1.1 * row.bound_gbytes_per_s
        if row.scenario == "alone" and row.share == 0.1 and row.bytes <= 1024:
            # Random packets may arrive faster than the shell accepts them. Descriptors arrive one fetch at a time.
            assert row.unloaded_ns - 8 <= row.mean_ns <= 1.25 * row.unloaded_ns, row
    assert {one.mark for one in bench.results.thesis_limits} == {"given", "bound"}
    assert bench.results.thesis_load_variants


def test_a_packet_that_nobody_counted_is_an_error() -> None:
    lost = document()
    row = {"wrong": 0, "packets": 5, "delivered": 3, "dropped": 1}
    lost["load"] = {"rows": [row], "variants": [], "limits": []}
    with pytest.raises(BenchError, match="lost 1 packets"):
        add_thesis(ProbeResults(), lost)
