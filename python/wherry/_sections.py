# SPDX-License-Identifier: Apache-2.0
"""One experiment of the report, of whichever benchmark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure


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
