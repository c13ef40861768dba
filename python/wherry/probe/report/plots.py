# SPDX-License-Identifier: Apache-2.0
"""The plots of probe's chapters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.figure import Figure

from wherry.probe.bench.schema import (
    DmaRate,
    PathFigures,
    Same,
    Spoiled,
    Suite,
    ThesisCell,
    ThesisLoad,
    ThesisSpike,
)
from wherry.probe.shell.cells import SIZES
from wherry.report import (
    COLOURS,
    INK,
    PUBLISHED,
    grouped_bars,
    legend_above,
    panels,
    plain_axis,
    size_axis,
    stacked_bars,
)
from wherry.units import size_text

STYLES = ("-", "--", ":", "-.")
WAYS = (
    (1, "2_out", "outgoing", ("host_qdma", "qdma", "qdma_cmac", "cmac")),
    (1, "2_in", "incoming", ("cmac", "cmac_qdma", "qdma", "qdma_host")),
    (2, "4_w", "write to HBM", ("cmac", "dm", "dm_hbm")),
    (2, "4_r", "read from HBM", ("dm_hbm", "dm", "cmac")),
    (3, "6_w", "write to HBM", ("host_qdma", "qdma", "qdma_hbm")),
    (3, "6_r", "read from HBM", ("hbm_qdma", "qdma", "qdma_host")),
)
"""For each direction: the case, the table and direction in the ids of cells, its name, and its sections in the order of
the path."""
LOAD_WAYS = {
    (1, "out"): "host to network",
    (1, "in"): "network to host",
    (2, "write"): "network to HBM",
    (2, "read"): "HBM to network",
    (3, "write"): "host to HBM",
    (3, "read"): "HBM to host",
}
"""The names of the paths of rows under load, by case and direction."""
LOAD_SIZES = (64, 256, 1024, 4096)
"""The sizes that are drawn; the results contain more."""


def _by_id(rows: Iterable[PathFigures]) -> dict[str, list[PathFigures]]:
    found: dict[str, list[PathFigures]] = {}
    for row in sorted(rows, key=lambda row: row.size):
        found.setdefault(row.id, []).append(row)
    return found


def _line(place: int) -> dict[str, Any]:
    return {"color": COLOURS[place % len(COLOURS)], "linestyle": STYLES[place // len(COLOURS) % len(STYLES)]}


def latency(rows: Sequence[PathFigures]) -> Figure:
    """Latency by size: a line for each path, with its range."""
    figure, ((axes,),) = panels(1, 1, 9.0, 4.6)
    for place, (name, points) in enumerate(_by_id(rows).items()):
        sizes = [row.size for row in points]
        axes.plot(sizes, [row.p50_ns / 1000 for row in points], marker="o", label=name, **_line(place))
        axes.fill_between(sizes, [row.least_ns / 1000 for row in points], [row.most_ns / 1000 for row in points],
                          color=_line(place)["color"], alpha=0.15, linewidth=0)  # fmt: skip
    axes.set_yscale("log")
    plain_axis(axes.yaxis)
    axes.set_ylabel("us")
    size_axis(axes, [row.size for row in rows], "bytes of a transfer")
    legend_above(figure, axes, 5)
    return figure


def bandwidth(rows: Sequence[PathFigures]) -> Figure:
    """Bandwidth by size: a line for each path, at the best depth of each size."""
    figure, ((axes,),) = panels(1, 1, 9.0, 4.6)
    for place, (name, points) in enumerate(_by_id(rows).items()):
        best: dict[int, float] = {}
        for row in points:
            best[row.size] = max(best.get(row.size, 0.0), row.gbytes_per_s)
        axes.plot(list(best), list(best.values()), marker="o", label=name, **_line(place))
    axes.set_yscale("log")
    plain_axis(axes.yaxis)
    axes.set_ylabel("GB/s")
    size_axis(axes, [row.size for row in rows], "bytes of a transfer")
    legend_above(figure, axes, 5)
    return figure


def wake(rows: Sequence[PathFigures]) -> Figure:
    """Latency and CPU time of each way to wake a process."""
    figure, ((left, right),) = panels(1, 2, 10.0, 1.4 + 0.3 * len(rows), sharey=True)
    names = [row.id for row in rows]
    stacked_bars(left, names, [("median", [row.p50_ns / 1000 for row in rows], COLOURS[0])])
    left.set_xlabel("us")
    stacked_bars(right, names, [
        ("caller", [row.cpu_ns / 1000 for row in rows], COLOURS[2]),
        ("woken", [row.other_cpu_ns / 1000 for row in rows], COLOURS[1]),
    ])  # fmt: skip
    right.invert_yaxis()  # both panels inverted the shared axis; this restores its direction
    right.set_xlabel("us of CPU time a call")
    legend_above(figure, right, 2)
    return figure


def chase(rows: Sequence[PathFigures]) -> Figure:
    """The time of a random load: a line for each number of chains."""
    figure, ((axes,),) = panels(1, 1, 8.0, 3.6)
    for place, depth in enumerate(sorted({row.depth for row in rows})):
        points = sorted((row for row in rows if row.depth == depth), key=lambda row: row.size)
        label = "1 chain" if depth == 1 else f"{depth} chains"
        axes.plot([row.size for row in points], [row.p50_ns for row in points], marker="o", label=label, **_line(place))
    axes.set_yscale("log")
    plain_axis(axes.yaxis)
    axes.set_ylabel("ns a load")
    size_axis(axes, [row.size for row in rows], "bytes that the loads go round in")
    legend_above(figure, axes, 4)
    return figure


def same(rows: Sequence[Same]) -> Figure:
    """The confidence intervals, sorted, and the band of no difference."""
    figure, ((axes,),) = panels(1, 1, 9.0, 3.4)
    ordered = sorted(rows, key=lambda row: row.ratio)
    places = list(range(len(ordered)))
    colours = [COLOURS[2] if row.verdict == "no difference" else COLOURS[4] for row in ordered]
    axes.vlines(places, [row.low for row in ordered], [row.high for row in ordered], colors=colours, linewidth=1.0)
    axes.scatter(places, [row.ratio for row in ordered], c=colours, s=8, zorder=3)
    axes.axhspan(1 / 1.05, 1.05, color=INK, alpha=0.08, linewidth=0)
    finite = [value for row in rows for value in (row.low, row.high) if math.isfinite(value) and value > 0]
    axes.set_yscale("log")
    axes.set_ylim(max(0.2, min(finite, default=0.5) / 1.1), min(5.0, max(finite, default=2.0) * 1.1))
    plain_axis(axes.yaxis)
    axes.yaxis.set_minor_formatter(lambda value, _: f"{value:g}")
    axes.set_ylabel("second series / first")
    axes.set_xlabel("paths and shapes, sorted")
    return figure


def spoiled(rows: Sequence[Spoiled]) -> Figure:
    """The cells with flipped bytes that were noticed, and those that were not."""
    figure, ((axes,),) = panels(1, 1, 8.0, 1.2 + 0.24 * len(rows))
    stacked_bars(axes, [row.id for row in rows], [
        ("noticed", [float(row.noticed) for row in rows], COLOURS[2]),
        ("not noticed", [float(row.cells - row.noticed) for row in rows], COLOURS[4]),
    ])  # fmt: skip
    axes.set_xlabel("cells")
    legend_above(figure, axes, 2)
    return figure


def suites(rows: Sequence[Suite]) -> Figure:
    """The seconds of each suite."""
    figure, ((axes,),) = panels(1, 1, 6.0, 2.6)
    grouped_bars(axes, [row.suite for row in rows], {"seconds": ([row.seconds for row in rows], COLOURS[0])})
    axes.set_ylabel("s")
    return figure


def stacks(cells: Sequence[ThesisCell]) -> Figure:
    """The sections of each latency, simulated and published: a panel for each direction, a pair of bars for each
    size."""
    known, case = {cell.id: cell for cell in cells}, cells[0].case
    ways = [way for way in WAYS if way[0] == case]
    figure, (row,) = panels(1, 2, 10.4, 4.2)
    for axes, (_, key, title, names) in zip(row, ways, strict=True):
        sizes = {size: name for size, name in SIZES.items() if f"rep_t5_{key}_{names[0]}_{name}" in known}
        labels, bars = [], {name: list[float]() for name in names}
        for size, suffix in sizes.items():
            labels += [size_text(size), f"{size_text(size)}, published"]
            for name in names:
                cell = known[f"rep_t5_{key}_{name}_{suffix}"]
                bars[name] += [cell.simulated_ns, cell.published_ns]
        colours = dict(zip(names, COLOURS, strict=False))
        stacked_bars(axes, labels, [(name.replace("_", "-").upper(), bars[name], colours[name]) for name in names])
        for tick in axes.get_yticklabels()[1::2]:
            tick.set_color(PUBLISHED)
        axes.set_xlabel("ns, without the descriptor" if case != 2 else "ns")
        axes.set_title(title)
        axes.legend(loc="upper right", fontsize=7)
    return figure


def spike(rows: Sequence[ThesisSpike], published: float | None) -> Figure:
    """The latency at the spike: a bar for each variant."""
    figure, ((axes,),) = panels(1, 1, 9.0, 2.6)
    names = [f"{row.variant} ({row.transactions})" for row in rows]
    stacked_bars(axes, names, [("simulated", [row.total_ns for row in rows], COLOURS[0])])
    if published is not None:
        axes.axvline(published, color=PUBLISHED, linestyle="--", label="published (Table 5.5)")
    axes.set_xlabel("ns (in brackets: transactions with the card's memory)")
    legend_above(figure, axes, 2)
    return figure


def load_latency(rows: Sequence[ThesisLoad]) -> Figure:
    """Latency under load: a panel for each path, a line for each size."""
    figure, grid = panels(2, 3, 10.8, 6.0)
    for axes, (key, title) in zip((axes for line in grid for axes in line), LOAD_WAYS.items(), strict=True):
        for place, size in enumerate(LOAD_SIZES):
            points = [row for row in rows if (row.case, row.way) == key and row.bytes == size and row.share < 1]
            if not points:
                continue
            rate = [row.offered_gbytes_per_s for row in points]
            axes.plot(rate, [row.mean_ns for row in points], "o-", markersize=3, color=COLOURS[place],
                      label=size_text(size))  # fmt: skip
            axes.plot(rate, [row.p99_ns for row in points], ":", color=COLOURS[place])
            axes.plot([0], [points[0].unloaded_ns], "_", markersize=9, color=INK, alpha=0.6)
        axes.set_title(title)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("GB/s offered")
        axes.set_ylabel("ns")
        plain_axis(axes.yaxis)
    legend_above(figure, grid[0][0], 4)
    return figure


def load_rates(rows: Sequence[ThesisLoad]) -> Figure:
    """Rates by size with their bounds, and the share of lost packets."""
    figure, ((left, right),) = panels(1, 2, 10.4, 3.8)
    for place, (key, title) in enumerate(LOAD_WAYS.items()):
        points = sorted((row for row in rows if (row.case, row.way) == key), key=lambda row: row.bytes)
        sizes = [row.bytes for row in points]
        colour = COLOURS[place % len(COLOURS)]
        left.plot(sizes, [row.gbytes_per_s for row in points], "o-", markersize=3, color=colour, label=title)
        left.plot(sizes, [row.bound_gbytes_per_s for row in points], "--", linewidth=0.8, color=colour)
        right.plot(sizes, [100 * row.dropped / row.packets for row in points], "o-", markersize=3, color=colour)
    for axes in (left, right):
        size_axis(axes, [row.bytes for row in rows], "bytes of a packet")
        axes.set_ylim(bottom=0)
    left.set_ylabel("GB/s")
    right.set_ylabel("% dropped")
    legend_above(figure, left, 3)
    return figure


def load_together(rows: Sequence[ThesisLoad]) -> Figure:
    """For each scenario, a panel with each path's rate as a share of its rate alone."""
    scenarios = list(dict.fromkeys(row.scenario for row in rows))
    figure, (line,) = panels(1, len(scenarios), 2.9 * len(scenarios) + 0.4, 3.6)
    for axes, scenario in zip(line, scenarios, strict=True):
        for place, (key, title) in enumerate(LOAD_WAYS.items()):
            points = [row for row in rows if row.scenario == scenario and (row.case, row.way) == key]
            shares = [row.share for row in points]
            got = [row.share * row.gbytes_per_s / row.offered_gbytes_per_s for row in points]
            axes.plot(shares, got, "o-", markersize=3, color=COLOURS[place % len(COLOURS)], label=title)
        axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8, alpha=0.4)
        axes.set_title(scenario, fontsize=8)
        axes.set_xlabel("offered, share of alone")
    line[0].set_ylabel("got, share of alone")
    legend_above(figure, line[0], 3)
    return figure


def dma(rows: Sequence[DmaRate]) -> Figure:
    """The rate of the DMA engine, and the bound of the link."""
    figure, ((axes,),) = panels(1, 1, 8.0, 1.4 + 0.24 * len(rows))
    stacked_bars(axes, [row.name for row in rows], [
        ("reached", [row.gbytes_per_s for row in rows], COLOURS[2]),
        ("to the bound of the link", [max(row.bound_gbytes_per_s - row.gbytes_per_s, 0.0) for row in rows], COLOURS[0]),
    ])  # fmt: skip
    axes.set_xlabel("GB/s")
    legend_above(figure, axes, 2)
    return figure
