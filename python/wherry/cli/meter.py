# SPDX-License-Identifier: Apache-2.0
"""Building blocks of `wherry top`: rates of counters between two pages, and the parts of a page."""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table

from wherry.cli.session import SessionFile
from wherry.units import bytes_text, number_text


class Meter:
    """Remembers the counters of the previous page, to compute rates."""

    def __init__(self) -> None:
        self._before: dict[Hashable, tuple[Any, float]] = {}
        self._now: dict[Hashable, tuple[Any, float]] = {}

    def next_page(self) -> None:
        """Begins a new page: the counters read so far become those of the previous page."""
        self._before, self._now = self._now, {}

    def since(self, key: Hashable, value: Any, at: float) -> tuple[Any, float] | None:
        """The value of `key` on the previous page, and its age in seconds at `at`. None: `key` was not on that page.

        `at`: time.monotonic() when `value` was read. Both are remembered for the next page.
        """
        self._now[key] = value, at
        before = self._before.get(key)
        return None if before is None or before[1] >= at else (before[0], at - before[1])

    def rate(self, key: Hashable, value: float, at: float) -> float | None:
        """A counter's growth per second since the previous page; None if the counter is new or was reset."""
        before = self.since(key, value, at)
        return None if before is None or value < before[0] else (value - before[0]) / before[1]


@dataclass(frozen=True, slots=True)
class AgentReading:
    """An agent's metrics at one moment."""

    session: SessionFile
    metrics: Mapping[str, float]
    """Empty: the agent serves no metrics."""
    at: float = field(default_factory=time.monotonic)

    def value(self, name: str) -> float:
        """The value of a metric; 0 if the agent does not have it."""
        return self.metrics.get(name, 0.0)

    def of_this_agent(self, name: str) -> Hashable:
        """The key of a counter. A later agent with the same session file has another key."""
        return self.session.pid, self.session.written(), name

    def rate(self, meter: Meter, name: str) -> float | None:
        """The growth of the agent's counter `name` per second. None: not known."""
        return meter.rate(self.of_this_agent(name), self.value(name), self.at)

    def buckets(self, name: str) -> dict[float, float]:
        """The buckets of a histogram in the metrics: for each bound, the number of values at or below it. The last
        bound is infinite."""
        head, tail = f'{name}_bucket{{le="', '"}'
        return {
            float(key.removeprefix(head).removesuffix(tail)): value
            for key, value in self.metrics.items()
            if key.startswith(head)
        }


def bound_of_share(buckets: Mapping[float, float], before: Mapping[float, float], share: float) -> float | None:
    """The smallest bound of a histogram with at least `share` of the values since `before` at or below the bound.

    None: there were no values. Infinite: more than 1 - `share` of the values are beyond the last bound.
    """
    grown = {bound: value - before.get(bound, 0.0) for bound, value in sorted(buckets.items())}
    count = max(grown.values(), default=0.0)
    if count <= 0:
        return None
    return next((bound for bound, value in grown.items() if value >= share * count), math.inf)


@dataclass(frozen=True, slots=True)
class TopPart:
    """A service's part of `wherry top`."""

    document: Mapping[str, object]
    """The content for --json."""
    shown: Sequence[Table | str]
    """The tables and plain texts for people, from top to bottom."""


def rate_text(rate: float | None, *, of_bytes: bool = False) -> str:
    """A rate as text, such as "1,234/s"; a dash if it is not known."""
    if rate is None:
        return "-"
    return f"{bytes_text(rate) if of_bytes else number_text(rate)}/s"


def plain_table(title: str, texts: Sequence[str], numbers: Sequence[str]) -> Table:
    """A table in the style of `wherry top`, with columns of text followed by columns of numbers."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None)
    for name in texts:
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table
