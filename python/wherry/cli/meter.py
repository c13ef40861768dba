# SPDX-License-Identifier: Apache-2.0
"""What the parts of `wherry top` are made of: counters between two pages, and what a part shows."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table

from wherry.cli.session import SessionFile
from wherry.units import bytes_text, number_text


class Meter:
    """Remembers, for one page, what was read for the page before it."""

    def __init__(self) -> None:
        self._before: dict[Hashable, tuple[Any, float]] = {}
        self._now: dict[Hashable, tuple[Any, float]] = {}

    def next_page(self) -> None:
        """What was read until now is that of the page before."""
        self._before, self._now = self._now, {}

    def since(self, key: Hashable, value: Any, at: float) -> tuple[Any, float] | None:
        """What `key` was on the page before, and how many seconds before `at`; None: it was not on that page.

        `at`: time.monotonic() when `value` was read, which is remembered.
        """
        self._now[key] = value, at
        before = self._before.get(key)
        return None if before is None or before[1] >= at else (before[0], at - before[1])

    def rate(self, key: Hashable, value: float, at: float) -> float | None:
        """How much a counter has grown in each second since the page before; None: not known, or it began again."""
        before = self.since(key, value, at)
        return None if before is None or value < before[0] else (value - before[0]) / before[1]


@dataclass(frozen=True, slots=True)
class AgentReading:
    """What an agent's metrics were at one moment."""

    session: SessionFile
    metrics: Mapping[str, float]
    """Empty: it serves none."""
    at: float = field(default_factory=time.monotonic)

    def value(self, name: str) -> float:
        """Of a metric; 0: the agent does not have it."""
        return self.metrics.get(name, 0.0)

    def of_this_agent(self, name: str) -> Hashable:
        """The key of a counter: another agent's, at the same place later, is another one."""
        return self.session.pid, self.session.written(), name

    def rate(self, meter: Meter, name: str) -> float | None:
        """Of a counter of the metrics."""
        return meter.rate(self.of_this_agent(name), self.value(name), self.at)


@dataclass(frozen=True, slots=True)
class TopPart:
    """What a service shows in `wherry top`."""

    document: Mapping[str, object]
    """For --json."""
    shown: Sequence[Table | str]
    """For people, from top to bottom. Texts are plain."""


def rate_text(rate: float | None, *, of_bytes: bool = False) -> str:
    """ "1,234/s"; a dash where it is not known."""
    if rate is None:
        return "-"
    return f"{bytes_text(rate) if of_bytes else number_text(rate)}/s"


def plain_table(title: str, texts: Sequence[str], numbers: Sequence[str]) -> Table:
    """A table as those of `wherry top` are: columns of text, then columns of figures."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None)
    for name in texts:
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table
