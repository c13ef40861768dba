# SPDX-License-Identifier: Apache-2.0
"""The experiment `thesis`: simulates the shell of paper 003 and compares the result with the paper's tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wherry.errors import BenchError
from wherry.probe.bench.schema import (
    ProbeResults,
    ThesisCell,
    ThesisLimit,
    ThesisLoad,
    ThesisLoadVariant,
    ThesisParameter,
    ThesisSpike,
)
from wherry.probe.measuring import simulate_shell
from wherry.probe.model.published import entries
from wherry.probe.shell.cells import case_of, cells, mark_of, why_fitted

PACKETS, PACKETS_QUICK = 300, 100
"""The number of packets of a run under load. Runs of small packets use more (sim/shell/load/sweep.cpp)."""


def add_thesis(results: ProbeResults, document: Mapping[str, Any] | None = None, *, quick: bool = False) -> None:
    """Adds the results of a simulation. None: runs the simulation. Raises BenchError if data was wrong; NotFound."""
    document = simulate_shell(packets=PACKETS_QUICK if quick else PACKETS) if document is None else document
    load = document.get("load", {"rows": [], "variants": [], "limits": []})
    rows = (*document["rows"], *document["spike"], *load["rows"], *load["variants"])
    if wrong := sum(row["wrong"] for row in rows):
        raise BenchError(f"the simulated shell delivered {wrong} wrong bytes")
    if lost := sum(row["packets"] - row["delivered"] - row["dropped"] for row in load["rows"]):
        raise BenchError(f"the simulated shell lost {lost} packets that it did not count")
    published = entries()
    for identifier, value in cells(document).items():
        known = published[identifier]["value"]
        results.thesis.append(
            ThesisCell(
                id=identifier,
                case=case_of(identifier),
                published_ns=known,
                simulated_ns=value,
                off_percent=100 * abs(value / known - 1),
                mark=mark_of(identifier),
                why=why_fitted(identifier),
            )
        )
    results.thesis_spike.extend(
        ThesisSpike(row["variant"], row["transactions"], row["total_ns"]) for row in document["spike"]
    )
    results.thesis_parameters.extend(ThesisParameter(**row) for row in document["parameters"])
    results.thesis_load.extend(ThesisLoad(**_without_wrong(row)) for row in load["rows"])
    results.thesis_load_variants.extend(ThesisLoadVariant(**_without_wrong(row)) for row in load["variants"])
    results.thesis_limits.extend(ThesisLimit(**row) for row in load["limits"])


def _without_wrong(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "wrong"}
