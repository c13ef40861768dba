# SPDX-License-Identifier: Apache-2.0
"""The experiment `thesis`: the shell of paper 003, simulated, beside its tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wherry.errors import BenchError
from wherry.probe.bench.schema import ProbeResults, ThesisCell, ThesisParameter, ThesisSpike
from wherry.probe.measuring import simulate_shell
from wherry.probe.model.published import entries
from wherry.probe.shell.cells import case_of, cells, mark_of, why_fitted


def add_thesis(results: ProbeResults, document: Mapping[str, Any] | None = None) -> None:
    """Runs the simulation, or takes what it wrote. Raises BenchError: data came out wrong; NotFound."""
    document = simulate_shell() if document is None else document
    if wrong := sum(row["wrong"] for row in (*document["rows"], *document["spike"])):
        raise BenchError(f"the simulated shell delivered {wrong} wrong bytes")
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
