# SPDX-License-Identifier: Apache-2.0
"""The style of the report's plots, and their building blocks. A plot is a function that takes measurements and returns
a Figure.

Text and axes have the colour INK, which to_svg() replaces with `currentColor`, so that one SVG suits light and dark
pages. Published values always have the colour PUBLISHED, a dashed line or a band, and a label.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from wherry.units import size_text

INK = "#010203"
"""The colour of text and axes. Nothing else uses it."""
PUBLISHED = "#c0399f"
"""The colour of published values."""
COLOURS = ("#2f7fc1", "#e0812f", "#2a9d74", "#8d6fd1", "#d0455b", "#8a8f98")

Published = Mapping[str, Mapping[str, Any]]
"""Published values by id, from wherry/<service>/bench/published.json."""

_STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.grid": True,
    "grid.color": INK,
    "grid.alpha": 0.13,
    "grid.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.7,
    "lines.markersize": 4,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "svg.fonttype": "path",
}


NARROW_IN = 4.3
"""The width of a figure for a phone, in inches. At a width of 360 pixels, text of 9.5 points is 11 pixels high."""
_MOST_BESIDE = 2
"""The most legend entries side by side on a phone."""
_narrow: ContextVar[bool] = ContextVar("narrow", default=False)


def styled(draw: Callable[[], Figure], *, narrow: bool = False) -> Figure:
    """Runs `draw` with the report's style. `narrow`: draw for a phone, with panels below each other."""
    before = _narrow.set(narrow)
    try:
        with mpl.rc_context(_STYLE):
            return draw()
    finally:
        _narrow.reset(before)


def to_svg(figure: Figure, salt: str) -> str:
    """The figure as an <svg> element. `salt` makes the ids of the page's figures distinct."""
    with mpl.rc_context({**_STYLE, "svg.hashsalt": salt}):
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    svg = text.getvalue()
    return svg[svg.index("<svg") :].replace(INK, "currentColor")


def size_axis(axes: Axes, sizes: Iterable[int], label: str = "data in one offload") -> None:
    """Makes a logarithmic axis of sizes that labels a few powers of two."""
    axes.set_xscale("log", base=2)
    low, high = min(sizes), max(sizes)
    first, last = math.floor(math.log2(max(low, 1))), math.ceil(math.log2(max(high, 1)))
    step = max(1, math.ceil((last - first) / 6))
    if step > 1:
        step += step % 2
    ticks = [2**power for power in range(first, last + 1) if power % step == 0] or [low]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: size_text(value)))
    axes.tick_params(axis="x", labelrotation=0, labelsize=8)
    axes.set_xlabel(label)


def plain_axis(axis: Any) -> None:
    """Formats an axis with plain numbers instead of powers of ten."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def legend_above(figure: Figure, axes: Axes, columns: int) -> None:
    """Draws one legend for the whole figure above its panels."""
    handles, labels = axes.get_legend_handles_labels()
    columns = min(columns, _MOST_BESIDE) if _narrow.get() else columns
    figure.legend(handles, labels, loc="outside upper center", ncols=columns)


def panels(rows: int, columns: int, width: float, height: float, **options: Any) -> tuple[Figure, list[list[Axes]]]:
    """An empty figure, with a size in inches, and its axes by row and column. On a phone, all axes are in one
    column."""
    if not _narrow.get():
        figure = Figure(figsize=(width, height), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False, **options)
        return figure, [list(row) for row in grid]
    # On a phone, each panel has its own axes with labels. Axes are not shared, and all widths are equal.
    count = rows * columns
    each = height / rows if columns > 1 else height / count
    figure = Figure(figsize=(min(width, NARROW_IN), each * count), layout="constrained")
    stacked = figure.subplots(count, 1, squeeze=False)
    return figure, [[stacked[row * columns + column][0] for column in range(columns)] for row in range(rows)]


def reference_line(axes: Axes, sizes: Sequence[int]) -> None:
    """Draws a line at the ratio 1."""
    axes.plot([min(sizes), max(sizes)], [1, 1], color=INK, linewidth=0.8, alpha=0.6)


def grouped_bars(axes: Axes, groups: Sequence[str], series: Mapping[str, tuple[Sequence[float | None], str]]) -> None:
    """Draws bars side by side. `series`: for each name, a value per group (None: no bar) and a colour."""
    width = 0.8 / max(len(series), 1)
    for index, (name, (values, colour)) in enumerate(series.items()):
        known = [(place, value) for place, value in enumerate(values) if value is not None]
        at = [place - 0.4 + width * (index + 0.5) for place, _ in known]
        axes.bar(at, [value for _, value in known], width * 0.92, color=colour, label=name, linewidth=0)
    axes.set_xticks(range(len(groups)), groups)
    axes.grid(visible=False, axis="x")


def stacked_bars(axes: Axes, names: Sequence[str], parts: Sequence[tuple[str, Sequence[float], str]]) -> None:
    """Draws horizontal stacked bars, the first on top. Each of `parts` has a name, a value for each bar, and a
    colour."""
    left = [0.0] * len(names)
    for name, values, colour in parts:
        axes.barh(range(len(names)), values, 0.62, left, color=colour, label=name, linewidth=0)
        left = [at + value for at, value in zip(left, values, strict=True)]
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
