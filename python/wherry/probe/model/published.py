# SPDX-License-Identifier: Apache-2.0
"""Published values of papers 000, 002, 003 and of others, with which the model is compared, and our own figures.

published.json holds the bandwidths and latencies of the three papers. tools/fidelity.py writes it from spec/published,
with the verdicts of docs/reference/fidelity.md. heldout.json holds values of other sources, which no fit uses.
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
"""Of a figure:

fitted     a number of the model was set to this value, or chosen after it was seen
predicted  no number was
simulated  a simulation without a fitted number
given      arithmetic on what specifications and the paper's set-up say
bound      the model has a bound alone, or the paper has
"""


@dataclass(frozen=True, slots=True)
class Figure:
    """In the unit of the published value. `low` is `high` unless the model has a range."""

    low: float
    high: float
    mark: Mark
    how: str
    """What computes it."""
    note: str = ""

    @property
    def provenance(self) -> Literal["simulated", "modelled"]:
        """Whether the time comes from a simulation or a formula. No value of the model is measured."""
        return "simulated" if self.how.startswith("bench ") else "modelled"


def one(value: float, mark: Mark, how: str, note: str = "") -> Figure:
    """A figure that is one number."""
    return Figure(value, value, mark, how, note)


@dataclass(frozen=True, slots=True)
class Range:
    """A published value, or a range."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        """Half way."""
        return (self.low + self.high) / 2

    def off_middle(self, value: float) -> float:
        """Relative error: 0.1 means 10 % more than the middle."""
        return value / self.middle - 1

    def outside(self, value: float) -> float:
        """Relative distance to the nearer end; 0 inside."""
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
    """The range of the paper's values of one quantity, from several places. `known`: instead of entries()."""
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
