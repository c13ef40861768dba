# SPDX-License-Identifier: Apache-2.0
"""Compares the model with measurements from other sources (heldout.json), which no fit uses."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wherry.probe.model.driver import Driver
from wherry.probe.model.link import parse
from wherry.probe.model.memory_access import designs
from wherry.probe.model.parameters import Parameters
from wherry.probe.model.published import held_out

WITHIN = 0.10
"""The allowed error of a held-out value."""
IN = {"MiB/s": ("GB/s", (1 << 20) / 1e9), "GB/s": ("GB/s", 1.0), "us": ("us", 1.0)}
"""For each unit of a source: the unit used here, and the factor."""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """One value of another source."""

    name: str
    measured: float
    model: float
    unit: str
    bound: bool
    """The model gives only an upper bound, not a prediction."""
    miss: str
    """Why the model is known to miss this value. Empty if it is not."""
    what: str
    address: str
    date: str

    @property
    def error(self) -> float:
        """The relative error."""
        return self.model / self.measured - 1

    @property
    def counted(self) -> bool:
        """Whether the value counts: it is a prediction and not a declared miss."""
        return not self.bound and not self.miss


def rows(parameters: Parameters, values: Sequence[Mapping[str, Any]] | None = None) -> list[HeldOut]:
    """The rows of all values of heldout.json, or of `values`."""
    found = []
    for entry in held_out() if values is None else values:
        unit, factor = IN[entry["unit"]]
        found.append(
            HeldOut(
                name=entry["name"],
                measured=statistics.mean(entry["printed"]) * factor,
                model=_model(entry["case"], parameters),
                unit=unit,
                bound=entry["case"]["kind"] == "bound",
                miss=entry.get("miss", ""),
                what=entry["what"],
                address=entry["address"],
                date=entry["date"],
            )
        )
    return found


def _model(case: Mapping[str, Any], parameters: Parameters) -> float:
    """The model's value: GB/s, or us of a call."""
    if case["kind"] == "channels":
        design = designs(parameters)["ddr"]
        count, size = case["channels"], case["bytes"]
        return design.h2c(count, size) if case["flow"] == "h2c" else design.c2h(count, size)
    link = parse(case["link"])
    if case["kind"] == "call":
        rate = link.reads(64) if case["flow"] == "h2c" else link.writes(128)
        return Driver(parameters.call_ns).time_ns(case["bytes"], rate) / 1e3
    if case["kind"] == "reads":
        return link.reads(case["completion"], case["request"])
    found = link.writes(case["payload"])
    if "bus_bytes" in case:  # a bus that transfers the header in a separate cycle
        cycles = case["payload"] / case["bus_bytes"]
        found = min(found, case["bus_bytes"] * case["bus_mhz"] / 1e3 * cycles / (cycles + 1))
    return found
