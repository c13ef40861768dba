# SPDX-License-Identifier: Apache-2.0
"""One experiment of the report, of whichever benchmark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from wherry import _published
from wherry._plots import Published


@dataclass(frozen=True, slots=True)
class Section:
    """What the experiment asks, how it is drawn, what the paper found, and what we did."""

    anchor: str
    title: str
    figure: str
    """Of the paper, as "figure 2", or nothing."""
    question: str
    draw: Callable[[], Figure]
    published: Sequence[Mapping[str, Any]]
    """The published values that the plot shows."""
    ours: str
    """One sentence about our result, or nothing."""
    rows: Sequence[Any]
    """Dataclasses or mappings of one kind: the data table."""


class Sections:
    """Collects the experiments of one benchmark that a run holds."""

    def __init__(self, part: str) -> None:
        """`part`: whose published values they are drawn with, as "kv"."""
        self.found: list[Section] = []
        self._known = _published.values(part)

    def add(
        self,
        rows: Sequence[Any],
        anchor: str,
        title: str,
        question: str,
        draw: Callable[[Any, Published], Figure],
        *,
        figures: Sequence[str] = (),
        ours: str = "",
    ) -> None:
        """Nothing if there are no rows. `figures`: of the paper, as "figure 7" or "table 5.7"."""
        if not rows:
            return
        names = {name.replace(" ", "_").replace(".", "_") for name in figures}
        shown = [entry for entry in self._known.values() if entry["shown_in"] in names]
        known = self._known
        self.found.append(
            Section(anchor, title, ", ".join(figures), question, lambda: draw(rows, known), shown, ours, rows)
        )
