# SPDX-License-Identifier: Apache-2.0
"""Decides from the spread of their rounds whether two measurements of a path and size differ.

For each pair of rows the module computes the exact 99 % confidence interval of the ratio of their times. The method is
the Hodges-Lehmann estimate of the shift between the logarithms. Its interval is that of the Mann-Whitney test (M.
Hollander, D. A. Wolfe, "Nonparametric Statistical Methods", section 4.3). It only assumes that the distributions of
both runs' rounds have the same shape. A pair differs if its whole interval is more than 5 % away from 1. Two samples of
seven rounds from the same distribution are called different in less than 1 % of cases.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from wherry.errors import BenchError
from wherry.probe.schema import MeasuredPath, ProbeRun, Row

DOUBT = 0.01
"""The probability that an interval does not contain the true ratio."""
MARGIN = 0.05
"""A ratio this close to 1 is not a difference."""

Verdict = Literal["no difference", "faster", "slower", "undecided"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of run B with run A for one path and shape."""

    path: MeasuredPath
    a: Row
    b: Row
    ratio: float
    """The Hodges-Lehmann estimate of the ratio of B's time to A's."""
    low: float
    high: float
    """The ends of the confidence interval. 0 and infinity: there are too few rounds."""
    verdict: Verdict
    """The verdict on B. "undecided": there are too few rounds for an interval."""


@functools.cache
def _counts(n: int, m: int) -> tuple[int, ...]:
    """For each Mann-Whitney U from 0 to n * m, how many of the C(n + m, n) orders of n and m values have it."""
    if n == 0 or m == 0:
        return (1,)
    # If the largest value belongs to the first sample, it is above all m values of the second and adds m to U; else it
    # adds 0.
    found = [0] * (n * m + 1)
    for u, count in enumerate(_counts(n - 1, m)):
        found[u + m] += count
    for u, count in enumerate(_counts(n, m - 1)):
        found[u] += count
    return tuple(found)


def interval(a: Sequence[float], b: Sequence[float], doubt: float = DOUBT) -> tuple[float, float, float]:
    """The ratio of b to a, and the ends of its confidence interval. All values must be positive."""
    shifts = sorted(math.log(y) - math.log(x) for x in a for y in b)
    middle = math.exp((shifts[(len(shifts) - 1) // 2] + shifts[len(shifts) // 2]) / 2)
    counts = _counts(len(a), len(b))
    allowed = doubt / 2 * sum(counts)
    below, left = 0, 0.0
    for count in counts:  # `below`: how many shifts may lie outside at each end
        left += count
        if left > allowed:
            break
        below += 1
    if below == 0:
        return middle, 0.0, math.inf
    return middle, math.exp(shifts[below - 1]), math.exp(shifts[-below])


def compare_rounds(a: Sequence[float], b: Sequence[float]) -> tuple[float, float, float, Verdict]:
    """The ratio, its interval, and the verdict on b."""
    ratio, low, high = interval(a, b)
    verdict: Verdict = "no difference"
    if not math.isfinite(high):
        verdict = "undecided"
    elif low > 1 + MARGIN:
        verdict = "slower"
    elif high < 1 / (1 + MARGIN):
        verdict = "faster"
    return ratio, low, high, verdict


def _by_key(run: ProbeRun, series: int) -> dict[tuple[str | int, ...], tuple[MeasuredPath, Row]]:
    return {row.key: (path, row) for path, row in run.rows if row.series == series and not row.refused}


def _compared(pairs: Iterable[tuple[MeasuredPath, Row, Row]]) -> list[Comparison]:
    return [Comparison(path, a, b, *compare_rounds(a.rounds, b.rounds)) for path, a, b in pairs]


def compare(a: ProbeRun, b: ProbeRun) -> list[Comparison]:
    """Compares rows that both runs have. Raises BenchError if the runs have no row in common, or if a path was measured
    in one run and simulated or modelled in the other."""
    mine, theirs = _by_key(a, 0), _by_key(b, 0)
    for key in mine.keys() & theirs.keys():
        kinds = {mine[key][0].provenance, theirs[key][0].provenance}
        if len(kinds) > 1:
            raise BenchError(
                f"{key[0]} is {' in one run and '.join(sorted(kinds))} in the other: they cannot be compared"
            )
    found = _compared((path, row, theirs[key][1]) for key, (path, row) in mine.items() if key in theirs)
    if not found:
        raise BenchError("the two runs have no path, size and depth in common")
    return found


def compare_series(run: ProbeRun) -> list[Comparison]:
    """Compares the two series of a run with --twice. Any difference between them is noise. Raises BenchError if there
    is only one series."""
    second = _by_key(run, 1)
    found = _compared((path, row, second[key][1]) for key, (path, row) in _by_key(run, 0).items() if key in second)
    if not found:
        raise BenchError("the run has one series: `wherry probe run --twice` measures two")
    return found
