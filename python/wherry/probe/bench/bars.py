# SPDX-License-Identifier: Apache-2.0
"""The claims of `wherry bench probe`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wherry.probe.bench.dma import DMA_TARGETS
from wherry.probe.bench.schema import ProbeResults

TARGETS = {
    "probe_quick_s": ("<= 20", "s"),
    "probe_full_s": ("<= 180", "s"),
    "harness_ns": ("<= 30", "ns"),
    "aa_no_difference": (">= 0.95", ""),
    "flipped_byte_noticed": (">= 1", ""),
    "paths_without_figures": ("<= 0", "paths"),
}
"""Every bar: what it must be, and its unit."""

EXPERIMENT_OF = {
    "probe_quick_s": "quick",
    "probe_full_s": "full",
    "harness_ns": "quick",
    "aa_no_difference": "twice",
    "flipped_byte_noticed": "spoiled",
    "paths_without_figures": "quick",
    "model_outside_range_max": "model",
    "model_predicted_mean_error": "model",
    "model_heldout_values": "model",
    "model_heldout_worst": "model",
    **dict.fromkeys(DMA_TARGETS, "dma"),
}


def bars_of(results: ProbeResults, without: Sequence[str] | None) -> dict[str, dict[str, Any]]:
    """Those that are known. `without`: paths without figures; None: no suite was run."""
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
    found = {}
    for name, (target, unit) in TARGETS.items():
        if name in values:
            value = values[name][0]
            comparison, limit = target.split()
            met = value >= float(limit) if comparison == ">=" else value <= float(limit)
            found[name] = {"value": value, "min": min(values[name]), "max": max(values[name]), "target": target,
                           "pass": met, "unit": unit, "published": None}  # fmt: skip
    return found
