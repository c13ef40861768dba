# SPDX-License-Identifier: Apache-2.0
"""The bars of `wherry bench probe`."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from wherry.probe.bench import designs
from wherry.probe.bench.dma import DMA_TARGETS
from wherry.probe.bench.schema import CACHE_USES, Gain, ProbeResults
from wherry.probe.shell.cells import is_latency

TARGETS = {
    "probe_quick_s": ("<= 20", "s"),
    "probe_full_s": ("<= 180", "s"),
    "harness_ns": ("<= 30", "ns"),
    "aa_no_difference": (">= 0.95", ""),
    "flipped_byte_noticed": (">= 1", ""),
    "paths_without_figures": ("<= 0", "paths"),
    "thesis_case1_error": ("<= 10", "%"),
    "thesis_case2_error": ("<= 10", "%"),
    "thesis_case3_error": ("<= 10", "%"),
    "profile_move_gain": (">= 1.05", "x"),
    "profile_move_worst_size": (">= 0.97", "x"),
    "profile_route_gain": (">= 1.05", "x"),
    "profile_route_worst_size": (">= 0.97", "x"),
}
"""Every bar: its target, and its unit."""

EXPERIMENT_OF = {
    "probe_quick_s": "quick",
    "probe_full_s": "full",
    "harness_ns": "quick",
    "aa_no_difference": "twice",
    "flipped_byte_noticed": "spoiled",
    "paths_without_figures": "quick",
    **dict.fromkeys(CACHE_USES, "cache"),
    "profile_move_gain": "profile",
    "profile_move_worst_size": "profile",
    "profile_route_gain": "profile",
    "profile_route_worst_size": "profile",
    "model_outside_range_max": "model",
    "model_predicted_mean_error": "model",
    "model_heldout_values": "model",
    "model_heldout_worst": "model",
    "thesis_case1_error": "thesis",
    "thesis_case2_error": "thesis",
    "thesis_case3_error": "thesis",
    **dict.fromkeys(designs.TARGETS, "designs"),
    **dict.fromkeys(DMA_TARGETS, "dma"),
}


GAIN_OF = {"move": "turn", "route": "throughput"}
"""The figure that a service's gain bar uses. move's settings make the turns of transfers shorter, and its throughput
must not change."""


def gains_of(rows: Sequence[Gain], service: str) -> dict[str, list[float]]:
    """The bars of a service's gain, each as value, minimum and maximum: the mean over all sizes, and the worst size.
    Each size counts with the mean over its kinds."""
    sizes: dict[int, list[Gain]] = {}
    for row in rows:
        if row.service == service:
            sizes.setdefault(row.size, []).append(row)
    if not sizes:
        return {}

    def each(figure: str) -> list[list[float]]:
        names = (figure, f"{figure}_least", f"{figure}_most")
        return [
            [statistics.geometric_mean(getattr(row, name) for row in of) for name in names] for of in sizes.values()
        ]

    gains = each(GAIN_OF[service])
    return {
        f"profile_{service}_gain": [statistics.geometric_mean(column) for column in zip(*gains, strict=True)],
        f"profile_{service}_worst_size": min(gains + each("throughput")),
    }


def bars_of(results: ProbeResults, without: Sequence[str] | None) -> dict[str, dict[str, Any]]:
    """The bars with a value in this run. `without`: the paths without figures; None: no suite was run."""
    values: dict[str, list[float]] = {}
    for suite in results.suites:
        if suite.suite in ("quick", "full"):
            values[f"probe_{suite.suite}_s"] = [suite.seconds]
    costs = [max(suite.harness_batched_ns, suite.harness_timed_ns) for suite in results.suites]
    if costs:
        values["harness_ns"] = [max(costs), min(costs)]
    if results.same:
        same = sum(row.verdict == "no difference" for row in results.same)
        values["aa_no_difference"] = [same / len(results.same)]
    if results.spoiled:
        noticed = sum(row.cells > 0 and row.noticed == row.cells for row in results.spoiled)
        values["flipped_byte_noticed"] = [noticed / len(results.spoiled)]
    if without is not None:
        values["paths_without_figures"] = [float(len(without))]
    for cell in results.thesis:
        if is_latency(cell.id):
            values.setdefault(f"thesis_case{cell.case}_error", []).append(cell.off_percent)
    values |= {name: [max(of)] for name, of in values.items() if name.startswith("thesis_")}
    for service in ("move", "route"):
        values |= gains_of(results.gains, service)
    found = {}
    for name, (target, unit) in TARGETS.items():
        if name in values:
            value = values[name][0]
            comparison, limit = target.split()
            met = value >= float(limit) if comparison == ">=" else value <= float(limit)
            found[name] = {"value": value, "min": min(values[name]), "max": max(values[name]), "target": target,
                           "pass": met, "unit": unit, "published": None}  # fmt: skip
    return found
