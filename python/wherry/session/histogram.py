# SPDX-License-Identifier: Apache-2.0
"""Histograms of the agent's metrics: what they say of a time, and of the time between two readings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts by bucket, as Prometheus' text format has them."""

    bounds: tuple[float, ...]
    """Upper ones, inclusive, rising; the last is infinite."""
    counts: tuple[float, ...]
    """Of each bucket and all before it."""
    sum: float

    @property
    def count(self) -> int:
        """How many values there are."""
        return int(self.counts[-1])

    @property
    def mean(self) -> float | None:
        """None: there are no values."""
        return self.sum / self.count if self.count else None

    def since(self, before: Self) -> Histogram | None:
        """What came after `before`; None: that was not the same histogram, or it has begun again meanwhile."""
        if before.bounds != self.bounds or any(b > n for b, n in zip(before.counts, self.counts, strict=True)):
            return None
        counts = tuple(n - b for b, n in zip(before.counts, self.counts, strict=True))
        return Histogram(self.bounds, counts, self.sum - before.sum)

    def quantile(self, part: float) -> float | None:
        """About the value below which `part` of the values are; None: there are none.

        As Prometheus' histogram_quantile(): values are spread evenly within their bucket, and above the last finite
        bound nothing is known, so that bound is the answer.
        https://prometheus.io/docs/prometheus/latest/querying/functions/#histogram_quantile
        """
        if not self.count:
            return None
        wanted = part * self.counts[-1]
        below, low = 0.0, 0.0
        for bound, count in zip(self.bounds, self.counts, strict=True):
            if count >= wanted and count > below:
                return low if math.isinf(bound) else low + (bound - low) * (wanted - below) / (count - below)
            below, low = count, bound if math.isfinite(bound) else low
        return low


def find_histograms(metrics: Mapping[str, float]) -> dict[str, Histogram]:
    """All that are whole, by name; see find_histogram()."""
    names = dict.fromkeys(sample.partition("_bucket{")[0] for sample in metrics if "_bucket{" in sample)
    found = {name: find_histogram(metrics, name) for name in names}
    return {name: one for name, one in found.items() if one is not None}


def find_histogram(metrics: Mapping[str, float], name: str) -> Histogram | None:
    """The histogram without labels of that name on a page that read_metrics() read; None: there is none, or a part of
    it is missing."""
    begin, end = f'{name}_bucket{{le="', '"}'
    found: list[tuple[float, float]] = []
    for sample, value in metrics.items():
        if sample.startswith(begin) and sample.endswith(end):
            try:
                found.append((float(sample[len(begin) : -len(end)]), value))
            except ValueError:
                return None
    found.sort()
    total, count = metrics.get(f"{name}_sum"), metrics.get(f"{name}_count")
    if total is None or not found or found[-1] != (math.inf, count):
        return None
    return Histogram(tuple(bound for bound, _ in found), tuple(value for _, value in found), total)
