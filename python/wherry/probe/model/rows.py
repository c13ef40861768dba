# SPDX-License-Identifier: Apache-2.0
"""A row for each published bandwidth and latency of papers 000, 002 and 003, and the bars that summarise the rows."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wherry.probe.model import arithmetic, heldout, memory, simulated
from wherry.probe.model.heldout import HeldOut
from wherry.probe.model.memory_access import QUANTITIES, designs, predict
from wherry.probe.model.parameters import Parameters, stored
from wherry.probe.model.published import Figure, Range, entries, one, range_of

PAPERS = {"ma": "000", "bud": "001", "hb": "002", "rep": "003"}
"""The paper of a value, by the first part of its id."""
MODEL = "link, call and channels"
"""The part of the model that computes the bandwidths of paper 000."""


@dataclass(frozen=True, slots=True)
class Row:
    """A published value, or several values of one quantity, and our figure."""

    ids: tuple[str, ...]
    paper: str
    quantity: str
    unit: str
    published: Range
    source: str
    figure: Figure | None
    """Our figure. None: there is no model of the value, and `why` says what exists."""
    verdict: str
    """The verdict of docs/reference/fidelity.md."""
    why: str
    simulation: Figure | None = None
    """A simulation's result for the same value, in addition to the model's `figure`."""

    @property
    def off_middle(self) -> float | None:
        """The relative error from the middle of the published range. None without a figure, for a bound, or if the
        middle is 0."""
        if self.figure is None or self.figure.mark == "bound" or self.published.middle == 0:
            return None
        return self.published.off_middle((self.figure.low + self.figure.high) / 2)

    @property
    def outside(self) -> float | None:
        """The relative distance of the figure's worse end from the published range. 0: the figure is inside the
        range."""
        if self.off_middle is None or self.figure is None:
            return None
        return max((self.published.outside(end) for end in (self.figure.low, self.figure.high)), key=abs)


def figures(parameters: Parameters, simulations: Mapping[str, Figure]) -> dict[str, Figure]:
    """All figures by id: of the model, of the arithmetic and of the simulations."""
    values = predict(parameters)
    design = designs(parameters)["ddr"]
    contradiction = "contradicts section 6.2, which has {} GB/s for the same design"
    return {
        **arithmetic.figures(),
        **memory.figures(),
        **simulations,
        **{one_.name: one(values[one_.name], "fitted" if one_.fitted else "predicted", MODEL) for one_ in QUANTITIES},
        "ma_cmp_h2c_1ch": one(design.one_peak("h2c"), "fitted", MODEL, contradiction.format("10.8")),
        "ma_cmp_c2h_1ch": one(design.one_peak("c2h"), "fitted", MODEL, contradiction.format("11.8 to 12")),
    }


def rows(
    parameters: Parameters,
    simulations: Mapping[str, Figure] | None = None,
    published: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Row]:
    """All rows, in the order of the published tables. The defaults are the recorded simulations and the stored
    published values. tools/fidelity.py passes others."""
    published = entries() if published is None else published
    known = figures(parameters, simulated.recorded() if simulations is None else simulations)
    beside_it = simulated.recorded(simulated.DESIGNS_RECORDED)
    together = {one_.name: one_ for one_ in QUANTITIES}
    inside = {other for one_ in QUANTITIES for other in one_.ids[1:]}
    found = []
    for identifier, entry in published.items():
        if identifier in inside:
            continue
        quantity = together.get(identifier)
        ids = quantity.ids if quantity else (identifier,)
        found.append(
            Row(
                ids=ids,
                paper=PAPERS[identifier.partition("_")[0]],
                quantity=entry["quantity"],
                unit=entry["unit"],
                published=range_of(ids, published),
                source=entry["source"],
                figure=known.get(identifier),
                verdict=entry["verdict"],
                why=entry["why"],
                simulation=beside_it.get(identifier),
            )
        )
    return found


def bandwidths(found: Sequence[Row]) -> list[Row]:
    """The rows of the 13 bandwidths of paper 000 that the bars use."""
    names = {one_.name for one_ in QUANTITIES}
    return [row for row in found if row.ids[0] in names]


TARGETS = {
    "model_outside_range_max": ("<= 3", "%"),
    "model_predicted_mean_error": ("<= 5", "%"),
    "model_heldout_values": (">= 8", ""),
    "model_heldout_worst": ("<= 10", "%"),
}
"""The target and the unit of each bar."""

USES = {
    "model_outside_range_max": "the farthest of 13 bandwidths of paper 000 from its published range. Modelled",
    "model_predicted_mean_error": "the mean size of the error off the middle, of those not fitted. Modelled",
    "model_heldout_values": "values of other sources that no fit saw, without bounds and declared misses",
    "model_heldout_worst": "the largest error of those",
}


def bars(found: Sequence[Row], others: Sequence[HeldOut]) -> dict[str, dict[str, Any]]:
    """The bars in the form of a benchmark's JSON."""
    thirteen = bandwidths(found)
    predicted = [row for row in thirteen if row.figure is not None and row.figure.mark == "predicted"]
    counted = [row for row in others if row.counted]
    values = {
        "model_outside_range_max": 100 * max(abs(row.outside or 0.0) for row in thirteen),
        "model_predicted_mean_error": 100 * statistics.mean(abs(row.off_middle or 0.0) for row in predicted),
        "model_heldout_values": float(len(counted)),
        "model_heldout_worst": 100 * max(abs(row.error) for row in counted),
    }
    made = {}
    for name, value in values.items():
        target, unit = TARGETS[name]
        limit = float(target.split()[1])
        met = value >= limit if target.startswith(">=") else value <= limit
        made[name] = {"value": value, "min": value, "max": value, "unit": unit, "target": target, "pass": met}
    return made


def beside(bar: str, found: Sequence[Row], others: Sequence[HeldOut]) -> str:
    """Rows that a bar does not use, but that its reader should see."""
    if bar == "model_predicted_mean_error":
        predicted = [row for row in bandwidths(found) if row.figure is not None and row.figure.mark == "predicted"]
        worst = max(predicted, key=lambda row: abs(row.off_middle or 0.0))
        return f"{len(predicted)} of 13; the worst, {worst.ids[0]}: {100 * (worst.off_middle or 0.0):+.1f} %"
    if bar == "model_heldout_worst":
        return "missed: " + "; ".join(f"{row.name} {100 * row.error:+.1f} %" for row in others if row.miss)
    return ""


def everything(parameters: Parameters) -> tuple[list[Row], list[HeldOut]]:
    """All rows, and all held-out values."""
    return rows(parameters), heldout.rows(parameters)


def claims() -> dict[str, dict[str, Any]]:
    """The bars with the stored numbers, for a benchmark's JSON."""
    return bars(*everything(stored()))


def basis(bar: str) -> tuple[str, str]:
    """The source of the bar of that name, and the other figure for its reader. Empty for a bar that does not belong to
    the model."""
    return (USES[bar], beside(bar, *everything(stored()))) if bar in USES else ("", "")
