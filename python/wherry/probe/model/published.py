# SPDX-License-Identifier: Apache-2.0
"""The published values of papers 000, 002, 003 and other sources, and the figures that are compared with them.

published.json contains the bandwidths and latencies of the three papers. tools/fidelity.py writes it from
spec/published and adds the verdicts of docs/reference/fidelity.md. heldout.json contains values of other sources, which
no fit uses.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

_HERE = Path(__file__).resolve().parent

Mark = Literal["fitted", "predicted", "simulated", "given", "bound"]
"""The mark of a figure:

fitted     a number of the model was fitted to this value, or chosen after the value was seen
predicted  no number of the model was fitted to this value
simulated  a simulation without a fitted number
given      computed from specifications and the paper's set-up
bound      the model or the paper gives only a bound
"""


@dataclass(frozen=True, slots=True)
class Figure:
    """Our figure, in the unit of the published value. `low` equals `high` if the figure is not a range."""

    low: float
    high: float
    mark: Mark
    how: str
    """The part of the model that computes the figure."""
    note: str = ""

    @property
    def provenance(self) -> Literal["simulated", "modelled"]:
        """Whether the figure comes from a simulation or from a formula. No figure is measured."""
        return "simulated" if self.how.startswith("bench ") else "modelled"


def one(value: float, mark: Mark, how: str, note: str = "") -> Figure:
    """Makes a figure that is a single number."""
    return Figure(value, value, mark, how, note)


@dataclass(frozen=True, slots=True)
class Range:
    """A published value, or a range of values."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        """The middle of the range."""
        return (self.low + self.high) / 2

    def off_middle(self, value: float) -> float:
        """The relative error from the middle: 0.1 means 10 % more."""
        return value / self.middle - 1

    def outside(self, value: float) -> float:
        """The relative distance from the nearer end of the range; 0 inside the range."""
        if value > self.high:
            return value / self.high - 1
        return value / self.low - 1 if value < self.low else 0.0

    def __str__(self) -> str:
        return f"{self.low:g}" if self.low == self.high else f"{self.low:g} to {self.high:g}"


@functools.cache
def entries() -> dict[str, dict[str, Any]]:
    """The entries of published.json, by id."""
    text = (_HERE / "published.json").read_text(encoding="utf-8")
    return {entry["id"]: entry for entry in json.loads(text)["values"]}


def range_of(ids: Iterable[str], known: Mapping[str, Mapping[str, Any]] | None = None) -> Range:
    """The range of one quantity that the paper states in several places. `known`: values to use instead of
    entries()."""
    ends: list[float] = []
    for identifier in ids:
        entry = (entries() if known is None else known)[identifier]
        ends += [entry[key] for key in ("value", "low", "high") if key in entry]
    return Range(min(ends), max(ends))


@functools.cache
def held_out() -> list[dict[str, Any]]:
    """The values of heldout.json."""
    found: list[dict[str, Any]] = json.loads((_HERE / "heldout.json").read_text(encoding="utf-8"))["values"]
    return found
