# SPDX-License-Identifier: Apache-2.0
"""Simulated figures for three papers. Paper 002: core, NIC and topologies, from `wherry bench bypass`. Paper 003: the
shell, from `wherry bench probe`. Paper 000: the four designs (docs/design/designs.md), from `wherry bench probe --only
designs`.

design_figures.json contains the figures of paper 000, which the tables show beside the model's figures. simulated.json
contains the others. tools/fidelity.py --record writes both files. The programs are deterministic. All rows of paper 002
use the reading `any_fetches` (docs/reference/bench-bypass.md), because the reading `one_fetch` was chosen after
published values were seen. If `one_fetch` gives another value, a note states it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from wherry.probe.model.published import Figure, Mark, one

RECORDED = Path(__file__).with_name("simulated.json")
DESIGNS_RECORDED = Path(__file__).with_name("design_figures.json")
DESIGNS_HOW = "bench probe: designs"

DESIGNS_FITTED = {
    "ma_bram_h2c_1ch": "the call was set to this and the other direction",
    "ma_bram_c2h_1ch": "the call was set to this and the other direction",
    "ma_ddr_h2c_1ch": "the link's round trip was set to it",
    "ma_mb_h2c_1ch": "the way to the memory was set to both directions",
    "ma_mb_c2h_1ch": "the way and the engine's cycles were set to it",
}
"""Published values to which a number of the simulation was fitted, and the reason."""

DESIGNS: dict[str, tuple[str, str, tuple[int, ...]]] = {
    "ma_bram_h2c_1ch": ("bram", "h2c", (1,)),
    "ma_bram_c2h_1ch": ("bram", "c2h", (1,)),
    "ma_ddr_h2c_1ch": ("ddr4", "h2c", (1,)),
    "ma_ddr_c2h_1ch": ("ddr4", "c2h", (1,)),
    "ma_ddr_h2c_multi": ("ddr4", "h2c", (2, 3, 4)),
    "ma_ddr_c2h_multi": ("ddr4", "c2h", (2, 3, 4)),
    "ma_mb_h2c_1ch": ("softcore", "h2c", (1,)),
    "ma_mb_c2h_1ch": ("softcore", "c2h", (1,)),
    "ma_mb_c2h_multi": ("softcore", "c2h", (2, 3, 4)),
    "ma_pl_h2c_1ch": ("linux", "h2c", (1,)),
    "ma_pl_h2c_multi": ("linux", "h2c", (2, 3, 4)),
    "ma_pl_c2h_3_4ch": ("linux", "c2h", (3, 4)),
    "ma_pl_c2h_2ch": ("linux", "c2h", (2,)),
}
"""The design, the direction and the numbers of channels of each published value."""
_BRAM_BYTES, _RUN_BYTES = 1 << 20, 8 << 20
READING, OTHER = "any_fetches", "one_fetch"
BATCH_OF_8_NS = 1680
"""The published value hb_batch8_theory: the time of seven packets, in ns."""
FLAT_GBPS = 7.0
"""The highest rate for which the paper gives the Intel root's latency."""
RISEN = 1.2
"""Latency counts as risen from this ratio to the latency at the lowest rate."""


def recorded(file: Path = RECORDED) -> dict[str, Figure]:
    """The recorded figures, by the id of the published value."""
    document = json.loads(file.read_text(encoding="utf-8"))
    return {identifier: Figure(**figure) for identifier, figure in document["figures"].items()}


def document_of(figures: Mapping[str, Figure], source: str) -> str:
    """The text of simulated.json."""
    note = f"written by tools/fidelity.py --record, from {source}"
    rounded = {
        name: asdict(figure) | {"low": float(f"{figure.low:.6g}"), "high": float(f"{figure.high:.6g}")}
        for name, figure in figures.items()
    }
    return json.dumps({"note": note, "figures": rounded}, indent=1) + "\n"


def from_bypass(results: Mapping[str, Any]) -> dict[str, Figure]:
    """Figures from the `results` of a bypass document, for the experiments that it contains."""
    found: dict[str, Figure] = {}
    for part, read in _PARTS.items():
        if results.get(part):
            found |= read(results[part])
    return found


def from_probe(results: Mapping[str, Any]) -> dict[str, Figure]:
    """Figures from the `results` of a probe document with the experiment `thesis`. Empty without it."""
    return {
        cell["id"]: one(cell["simulated_ns"], cell["mark"], "bench probe: thesis", cell["why"])
        for cell in results.get("thesis", ())
    }


def from_designs(results: Mapping[str, Any]) -> dict[str, Figure]:
    """Figures from the `results` of a probe document with the experiment `designs`. Empty without it."""
    if not results.get("designs"):
        return {}
    rates = {
        (row["design"], row["flow"], row["channels"], row["size"]): float(row["gbytes_per_s"])
        for row in results["designs"]
        if (row["notice"], row["preset"]) == ("interrupt", "xdma")
    }
    found = {}
    for identifier, (design, flow, channels) in DESIGNS.items():
        size = _BRAM_BYTES if design == "bram" else _RUN_BYTES
        values = [rates[design, flow, count, size] for count in channels]
        mark: Mark = "fitted" if identifier in DESIGNS_FITTED else "predicted"
        found[identifier] = Figure(min(values), max(values), mark, DESIGNS_HOW, DESIGNS_FITTED.get(identifier, ""))
    return found


def _row(rows: Iterable[Mapping[str, Any]], **wanted: Any) -> Mapping[str, Any]:
    return next(row for row in rows if all(row[key] == value for key, value in wanted.items()))


def _latency(rows: list[Mapping[str, Any]]) -> dict[str, Figure]:
    def us(scenario: str, reading: str = READING) -> float:
        return float(_row(rows, scenario=scenario, reading=reading)["mean_us"])

    def figure(scenario: str, mark: Mark, note: str = "") -> Figure:
        beside = f"{us(scenario, OTHER):.2f} us with one descriptor read under way"
        return one(us(scenario), mark, "bench bypass: latency", f"{beside}; {note}" if note else beside)

    most = max(row["max_us"] for row in rows if row["scenario"] == "software")
    gap = 1e3 * (us("both") - us("receive") - us("transmit"))
    return {
        "hb_s1_latency_mostly": one(most, "bound", "bench bypass: latency", "peaks every 2 s are not modelled"),
        "hb_s3_latency_avg": figure("both", "predicted"),
        "hb_s4_rx_latency_avg": figure("receive", "fitted", "rx_ns was set to it by arithmetic"),
        "hb_s4_tx_latency_avg": figure("transmit", "fitted", "tx_ns was set to it by arithmetic"),
        "hb_rx_tx_sum_gap": one(gap, "predicted", "bench bypass: latency"),
    }


def _batching(rows: list[Mapping[str, Any]]) -> dict[str, Figure]:
    def us(batch: int, reading: str = READING) -> float:
        return float(_row(rows, batch=batch, reading=reading)["latency_us"])

    how = "bench bypass: batching"
    found = {}
    for batch in (1, 8, 16):
        row = _row(rows, batch=batch, reading=READING)
        found[f"hb_t2_b{batch}_out"] = one(row["outgoing"], "predicted", how)
        found[f"hb_t2_b{batch}_in"] = one(row["ingoing"], "predicted", how)
        beside = f"{us(batch, OTHER):.2f} us with one descriptor read under way"
        if batch > 1:
            beside += ", chosen after the value was seen"
        found[f"hb_t2_b{batch}_latency"] = one(us(batch), "predicted", how, beside)
    more = us(8) - us(1)
    other = us(8, OTHER) - us(1, OTHER)
    beside = f"{other:.2f} us with one descriptor read under way, chosen after the value was seen"
    found["hb_batch8_measured"] = one(more, "predicted", how, beside)
    beside = "with one descriptor read under way, chosen after the value was seen; with any number there is no gap"
    found["hb_batch8_gap"] = one(BATCH_OF_8_NS - 1e3 * other, "fitted", how, beside)
    return found


def _overload(rows: list[Mapping[str, Any]]) -> dict[str, Figure]:
    how, fit = "bench bypass: overload", "rests on two settings that were fitted (docs/design/nic-model.md)"
    with_, without = (_row(rows, topology="intel", writeback=on) for on in (True, False))
    ends = sorted((with_["latency_us"], without["latency_us"]))
    return {
        "hb_loss_writeback": one(with_["loss_percent"], "fitted", how, fit),
        "hb_loss_no_writeback": one(without["loss_percent"], "fitted", how, fit),
        "hb_overload_latency": Figure(ends[0], ends[1], "predicted", how, "without and with write-back"),
    }


def _tcp(rows: list[Mapping[str, Any]]) -> dict[str, Figure]:
    how = "bench bypass: tcp"
    found = {}
    for topology in ("amd", "switch"):
        row = _row(rows, topology=topology)
        found[f"hb_t1_{topology}_goodput"] = one(row["goodput_gbps"], "predicted", how, "the loop is not modelled")
        found[f"hb_t1_{topology}_latency"] = one(row["latency_us"], "bound", how, "a lower bound: no loop")
        found[f"hb_t1_{topology}_loss"] = one(row["loss_percent"], "predicted", how)
    return found


def _rates(rows: list[Mapping[str, Any]]) -> dict[str, Figure]:
    how = "bench bypass: rates"

    def of(system: str, topology: str, reading: str = READING) -> list[Mapping[str, Any]]:
        wanted = (system, topology, reading)
        found = [row for row in rows if (row["system"], row["topology"], row["reading"]) == wanted]
        return sorted(found, key=lambda row: float(row["rate_gbps"]))

    def first(points: list[Mapping[str, Any]], is_so: Callable[[Mapping[str, Any]], bool]) -> tuple[float, float]:
        """The first rate at which `is_so` is true, and the rate before it."""
        index = next(index for index, row in enumerate(points) if is_so(row))
        return points[index - 1]["rate_gbps"], points[index]["rate_gbps"]

    intel, both = of("host_bypassing", "intel"), of("dpdk_fpga", "host", OTHER)
    flat = [row["latency_us"] for row in intel if row["rate_gbps"] <= FLAT_GBPS]
    beside = [row["latency_us"] for row in of("host_bypassing", "intel", OTHER) if row["rate_gbps"] <= FLAT_GBPS]
    note = f"{min(beside):.2f} to {max(beside):.2f} us with one descriptor read under way" if beside else ""
    lowest = both[0]["latency_us"]
    found = {
        "hb_intel_latency": Figure(min(flat), max(flat), "predicted", how, note),
        "hb_intel_first_loss": Figure(*first(intel, lambda row: row["loss_percent"] > 0.1), "fitted", how,
                                      "between two points of the sweep"),
        "hb_s2_first_loss": Figure(*first(both, lambda row: row["loss_percent"] > 0.1), "fitted", how,
                                   "between two points of the sweep"),
        "hb_s2_latency_rise_rate": Figure(*first(both, lambda row: row["latency_us"] > RISEN * lowest), "fitted", how,
                                          f"latency is {RISEN} times the lowest; follows from the fit of the loss"),
    }  # fmt: skip
    for name, system, topology, reading in (("hb_switch_loss_udp", "host_bypassing", "switch", READING),
                                            ("hb_amd_loss_udp", "host_bypassing", "amd", READING),
                                            ("hb_dpdk_loss_udp", "dpdk", "host", OTHER)):  # fmt: skip
        most = max(row["nic_loss_percent"] for row in of(system, topology, reading))
        found[name] = one(most, "predicted", how)
    return found


_PARTS = {"latency": _latency, "batching": _batching, "overload": _overload, "tcp": _tcp, "rates": _rates}
