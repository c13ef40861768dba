# SPDX-License-Identifier: Apache-2.0
"""Fits the shell's parameters to cells of the thesis. The fit uses only the cells in its arguments, and reads no file.

Most parameters are delays in whole cycles. Each cell contains a few delays, each a known number of times. A round
simulates, and then changes each delay by the error of its own cells (least squares). Sizes and stores are not delays.
The fit tries every value of each of them, fits the delays again, and keeps the value with the smallest sum of squared
relative errors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Simulate = Callable[[Mapping[str, int]], Mapping[str, float]]
"""A function that simulates the cells, by id, for given parameters."""
CYCLE_NS = 4.0
CMAC_CYCLE_NS = 1e9 / 322_265_625
ROUNDS = 6


@dataclass(frozen=True, slots=True)
class Delay:
    """A delay: its name, the length of its cycle, and the patterns of cells that contain it, each with the number of
    times."""

    name: str
    cycle_ns: float
    cells: Mapping[str, int]


DELAYS = (
    Delay("flight", CYCLE_NS, {r"t5_[15]_\w+_desc_": 2, r"t5_[26]_\w+_host_qdma_": 2, r"t5_[26]_\w+_qdma_host_": 1}),
    Delay("rx", CYCLE_NS, {r"t5_2_in_cmac_\d": 1, r"t5_4_w_cmac_": 1}),
    Delay("tx", CMAC_CYCLE_NS, {r"t5_2_out_cmac_\d": 1, r"t5_4_r_cmac_": 1}),
    Delay("box", CYCLE_NS, {r"t5_2_out_qdma_cmac_": 1, r"t5_2_in_cmac_qdma_": 1}),
    Delay("h2c_stream", CYCLE_NS, {r"t5_2_out_qdma_\d": 1}),
    Delay("c2h_stream", CYCLE_NS, {r"t5_2_in_qdma_\d": 1}),
    Delay("h2c_memory", CYCLE_NS, {r"t5_6_w_qdma_\d": 1}),
    Delay("c2h_memory", CYCLE_NS, {r"t5_6_r_qdma_\d": 1}),
    Delay("mover_write", CYCLE_NS, {r"t5_4_w_dm_\d": 1}),
    Delay("mover_read", CYCLE_NS, {r"t5_4_r_dm_\d": 1}),
    Delay("hbm_write", CYCLE_NS, {r"t5_4_w_dm_hbm_": 1}),
    Delay("hbm_read", CYCLE_NS, {r"t5_6_r_hbm_qdma_": 1}),
    Delay("qdma_write_route", CYCLE_NS, {r"t5_6_w_qdma_hbm_": 1}),
    Delay("mover_read_route", CYCLE_NS, {r"t5_4_r_dm_hbm_": 1}),
)
"""All delays. Each one follows the other delays that its cells contain."""
OPTIONS = {
    "completion": (64, 128, 256, 512),
    "mps": (128, 256, 512, 1024),
    "mrrs": (512, 1024, 2048),
    "second_store": (0, 1, 2),
}
START = {delay.name: 20 for delay in DELAYS} | {"completion": 256, "mps": 256, "mrrs": 512, "second_store": 0}
"""The start of the fit: usual sizes, and delays that do not depend on the tables."""


def fit(simulate: Simulate, targets: Mapping[str, float], start: Mapping[str, int] | None = None) -> dict[str, int]:
    """The parameters with which the simulation is closest to `targets`. Raises ValueError if the fit does not
    converge."""
    best = settle(simulate, targets, START if start is None else start)
    for _ in range(ROUNDS):
        before = dict(best)
        for name, values in OPTIONS.items():
            others = (settle(simulate, targets, best | {name: value}) for value in values if value != best[name])
            best = min([best, *others], key=lambda one: misfit(simulate(one), targets))
        if best == before:
            return best
    raise ValueError(f"the fit did not settle within {ROUNDS} rounds")


def settle(simulate: Simulate, targets: Mapping[str, float], start: Mapping[str, int]) -> dict[str, int]:
    """Returns `start` with the delays that fit the targets best."""
    values = dict(start)
    for _ in range(ROUNDS):
        found, before = simulate(values), dict(values)
        moved: dict[str, float] = {}
        for delay in DELAYS:
            moved[delay.name] = max(values[delay.name] + _lacking(delay, found, targets, moved, values), 1.0)
        values |= {name: round(value) for name, value in moved.items()}
        if values == before:
            break
    return values


def _lacking(delay: Delay, found: Mapping[str, float], targets: Mapping[str, float], moved: Mapping[str, float],
             values: Mapping[str, int]) -> float:  # fmt: skip
    """The cycles by which the delay is too short: least squares over its cells, minus what changes of other delays
    contribute."""
    above = below = 0.0
    for name, target in targets.items():
        times = next((times for pattern, times in delay.cells.items() if re.search(pattern, name)), 0)
        if times:
            brought = sum((round(moved[other]) - values[other]) * CYCLE_NS for other in _within(delay, name)
                          if other in moved)  # fmt: skip
            above += times * (target - found[name] - brought)
            below += times * times
    return above / below / delay.cycle_ns if below else 0.0


def _within(delay: Delay, name: str) -> tuple[str, ...]:
    """The other delays in a cell of `delay`, which are fitted to their own cells."""
    if delay.name in ("qdma_write_route", "mover_read_route"):
        return ("hbm_write",) if delay.name == "qdma_write_route" else ("hbm_read",)
    return ("box",) if re.search(r"t5_4_\w_cmac_", name) else ()


def misfit(found: Mapping[str, float], targets: Mapping[str, float]) -> float:
    """The sum of squared relative errors."""
    return sum((found[name] / target - 1) ** 2 for name, target in targets.items())
