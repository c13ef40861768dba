# SPDX-License-Identifier: Apache-2.0
"""The rule of `wherry probe compare`, against another implementation and on many synthetic runs."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import pytest
from test_probe_lines import END, PATH, START, Document, collected, row

from wherry.errors import BenchError
from wherry.probe.comparing import MARGIN, compare, compare_rounds, compare_series, interval
from wherry.probe.schema import ProbeRun


def limits_by_counting(n: int, m: int, doubt: float) -> int:
    """How many of the n * m shifts may lie outside the interval at each end, counted over all orders of n + m
    values."""
    found = [0] * (n * m + 1)
    for places in itertools.combinations(range(n + m), n):
        found[sum(place - index for index, place in enumerate(places))] += 1
    below, left = 0, 0
    for count in found:
        left += count
        if left > doubt / 2 * sum(found):
            break
        below += 1
    return below


@pytest.mark.parametrize(("n", "m"), [(3, 3), (4, 4), (4, 6), (5, 5), (7, 7), (6, 8)])
def test_limits_are_those_of_counting_all_orders(n: int, m: int) -> None:
    draw = random.Random(n * 10 + m)
    a, b = ([math.exp(draw.gauss(0, 1)) for _ in range(count)] for count in (n, m))
    middle, low, high = interval(a, b)
    shifts = sorted(y / x for x in a for y in b)
    below = limits_by_counting(n, m, 0.01)
    if below == 0:
        assert (low, high) == (0.0, math.inf)
    else:
        assert low == pytest.approx(shifts[below - 1])
        assert high == pytest.approx(shifts[-below])
    assert low <= middle <= high
    assert math.log(middle) == pytest.approx((math.log(shifts[(n * m - 1) // 2]) + math.log(shifts[n * m // 2])) / 2)


def test_limits_of_the_published_table() -> None:
    """For 7 and 7 values and two-sided 1 %, U = 4 is the largest significant value (Hollander and Wolfe, table A.6)."""
    assert limits_by_counting(7, 7, 0.01) == 5


NOISES: dict[str, Any] = {
    "normal": lambda draw: 1000 * math.exp(draw.gauss(0, 0.02)),
    "wide": lambda draw: 1000 * math.exp(draw.gauss(0, 0.3)),
    "tail": lambda draw: 1000 * (1 + 0.02 * draw.paretovariate(1.5)),
    "two speeds": lambda draw: draw.choice((1000, 1400)) * math.exp(draw.gauss(0, 0.01)),
    "steps of the histogram": lambda draw: 1000 + 16 * draw.randrange(4),
}


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("rounds", [5, 7, 15])
def test_a_run_against_itself_shows_no_difference(noise: str, rounds: int) -> None:
    """At least 99 % of 2,000 pairs of series from one distribution show no difference; the requirement is 95 %."""
    draw, one = random.Random(rounds), NOISES[noise]
    same = sum(
        compare_rounds([one(draw) for _ in range(rounds)], [one(draw) for _ in range(rounds)])[3] == "no difference"
        for _ in range(2000)
    )
    assert same >= 0.985 * 2000


@pytest.mark.parametrize(("factor", "verdict"), [(1.3, "slower"), (1 / 1.3, "faster")])
def test_a_real_difference_is_found(factor: float, verdict: str) -> None:
    draw = random.Random(3)
    found = 0
    for _ in range(500):
        a = [NOISES["normal"](draw) for _ in range(7)]
        b = [factor * NOISES["normal"](draw) for _ in range(7)]
        found += compare_rounds(a, b)[3] == verdict
    assert found >= 490


def test_a_difference_within_the_margin_is_none() -> None:
    assert compare_rounds([1000.0] * 7, [1000.0 * (1 + MARGIN) - 1] * 7)[3] == "no difference"
    assert compare_rounds([1000.0] * 7, [1000.0 * (1 + MARGIN) + 1] * 7)[3] == "slower"
    assert compare_rounds([1000.0] * 7, [1000.0 / (1 + MARGIN) - 1] * 7)[3] == "faster"


def test_too_few_rounds_are_undecided() -> None:
    assert compare_rounds([1.0] * 3, [2.0] * 3)[3] == "undecided"
    assert compare_rounds([1.0] * 4, [2.0] * 4)[3] == "undecided"
    assert compare_rounds([1.0] * 5, [2.0] * 5)[3] == "slower"


def run_of(*rows: Document, **path: Any) -> ProbeRun:
    return collected(START, *rows, PATH | path, END)


def test_rows_of_one_shape_are_compared() -> None:
    slow = row(rounds=[3000.0] * 7)
    a = run_of(row(), row(depth=4), row(bytes=64), row(align=1, refused="too fast"))
    b = run_of(row(depth=4, rounds=[3000.0] * 7), row(), row(bytes=512), row(align=1), slow | {"notice": "blocking"})
    found = {(one.a.depth, one.a.bytes, one.a.align): one.verdict for one in compare(a, b)}
    assert found == {(1, 4096, 0): "no difference", (4, 4096, 0): "slower"}


def test_runs_with_nothing_in_common_are_refused() -> None:
    with pytest.raises(BenchError, match="no path, size and depth in common"):
        compare(run_of(row()), run_of(row(bytes=8)))
    with pytest.raises(BenchError, match=r"measured in the other|simulated in the other"):
        compare(run_of(row()), run_of(row(), provenance="simulated"))


def test_two_series_of_a_run_are_compared() -> None:
    found = compare_series(run_of(row(), row(series=1, rounds=[2000.0] * 7), row(bytes=8), row(bytes=8, series=1)))
    assert [(one.a.bytes, one.verdict) for one in found] == [(4096, "slower"), (8, "no difference")]
    with pytest.raises(BenchError, match="has one series"):
        compare_series(run_of(row()))
