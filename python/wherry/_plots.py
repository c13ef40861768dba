# SPDX-License-Identifier: Apache-2.0
"""The report's plots, one function a figure: measurements in, a matplotlib Figure out.

Text and axes are drawn in INK, which to_svg() turns into `currentColor`, so that one SVG suits a light and a dark
page. Published values are always drawn in PUBLISHED, dashed or as a band, and named with what they are.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from wherry._bench import size_text
from wherry.bench_schema import ApproachRow, Bandwidth, Buffers, Conversion, FlightRow, Initiate, Mapped

INK = "#010203"  # a colour that nothing else uses
PUBLISHED = "#c0399f"
COLOURS = ("#2f7fc1", "#e0812f", "#2a9d74", "#8d6fd1", "#d0455b", "#8a8f98")

Published = Mapping[str, Mapping[str, Any]]
"""Published values by id, as data/published_move.json has them."""

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


def styled(draw: Callable[[], Figure]) -> Figure:
    """Runs `draw` under the report's style."""
    with mpl.rc_context(_STYLE):
        return draw()


def to_svg(figure: Figure, salt: str) -> str:
    """The figure as an <svg> element. `salt` keeps the ids of several figures of one page apart."""
    with mpl.rc_context({**_STYLE, "svg.hashsalt": salt}):
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    svg = text.getvalue()
    return svg[svg.index("<svg") :].replace(INK, "currentColor")


def _sizes(axes: Axes, sizes: Iterable[int], label: str = "data in one offload") -> None:
    """A logarithmic axis of sizes with a few labelled powers of two."""
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


def _plain(axis: Any) -> None:
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _above(figure: Figure, axes: Axes, columns: int) -> None:
    """One legend for the whole figure, above its panels."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=columns)


def _panels(rows: int, columns: int, width: float, height: float, **options: Any) -> tuple[Figure, list[list[Axes]]]:
    figure = Figure(figsize=(width, height), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, **options)
    return figure, [list(row) for row in grid]


def initiate(rows: Sequence[Initiate], published: Published) -> Figure:
    """Figure 2: host time of the call by size, with warm caches and with cold ones."""
    figure, ((axes,),) = _panels(1, 1, 7.6, 3.9)
    for index, columns in enumerate(sorted({row.columns for row in rows})):
        chosen = sorted((row for row in rows if row.columns == columns), key=lambda row: row.size)
        sizes = [row.size for row in chosen]
        colour = COLOURS[index % len(COLOURS)]
        name = f"{columns} column{'s' if columns > 1 else ''}"
        axes.plot(sizes, [row.p50_us for row in chosen], "o-", color=colour, label=f"{name}: median, min to p99")
        low, high = [row.min_us for row in chosen], [row.p99_us for row in chosen]
        axes.fill_between(sizes, low, high, color=colour, alpha=0.2, linewidth=0)
        cold = [row.after_wait_p50_us for row in chosen]
        axes.plot(sizes, cold, "x:", color=colour, label=f"{name}: median right after a wait (cold caches)")
    band = published["sdms_init_host_avg"]
    axes.axhspan(band["low"], band["high"], color=PUBLISHED, alpha=0.25, linewidth=0)
    axes.axhline(band["low"], color=PUBLISHED, linestyle="--", linewidth=1, label="paper: averages, 250 to 350 us")
    axes.axhline(band["high"], color=PUBLISHED, linestyle="--", linewidth=1)
    axes.set_yscale("log")
    _plain(axes.yaxis)
    axes.set_ylabel("host time of the call [us]")
    _sizes(axes, [row.size for row in rows])
    _above(figure, axes, 2)
    return figure


def bandwidth(rows: Sequence[Bandwidth], published: Published) -> Figure:
    """Figure 3: move against raw gets, and their ratio."""
    rows = sorted(rows, key=lambda row: row.size)
    sizes = [row.size for row in rows]
    figure, ((left, right),) = _panels(1, 2, 9.6, 3.5)
    left.plot(sizes, [row.raw_gbps for row in rows], "s--", color=COLOURS[5], label="raw UCX get, one at a time")
    left.plot(sizes, [row.move_gbps for row in rows], "o-", color=COLOURS[0], label="move")
    left.set_ylabel("Gbit/s")
    left.set_ylim(bottom=0)
    left.legend(loc="best")
    ratio = [row.ratio for row in rows]
    right.fill_between(
        sizes,
        [row.ratio_min for row in rows],
        [row.ratio_max for row in rows],
        color=COLOURS[0],
        alpha=0.2,
        linewidth=0,
    )
    right.plot(sizes, ratio, "o-", color=COLOURS[0], label="move / raw get: median, min to max")
    _reference(right, sizes)
    _from(right, sizes, published["sdms_sdms_vs_qperf1_size"]["value"], published["sdms_sdms_vs_qperf1"]["value"] / 100)
    right.set_ylim(0, max(1.15, *ratio) * 1.1)
    right.set_ylabel("ratio")
    right.legend(loc="lower right")
    for axes in (left, right):
        _sizes(axes, sizes)
    return figure


def _reference(axes: Axes, sizes: Sequence[int]) -> None:
    axes.plot([min(sizes), max(sizes)], [1, 1], color=INK, linewidth=0.8, alpha=0.6)


def _from(axes: Axes, sizes: Sequence[int], start: float, value: float) -> None:
    """A published lower bound that holds from a size on."""
    end = max(*sizes, start * 2)
    text = f"paper: at least {value:g} from {size_text(start)}"
    axes.plot([start, end], [value, value], "--", color=PUBLISHED, linewidth=1.4, label=text)
    axes.plot([start], [value], marker="D", color=PUBLISHED, markersize=4)


def mapped(rows: Sequence[Mapped], published: Published) -> Figure:
    """Move from mapped memory against memcpy."""
    rows = sorted(rows, key=lambda row: row.size)
    sizes = [row.size for row in rows]
    figure, ((left, right),) = _panels(1, 2, 9.6, 3.2)
    left.plot(sizes, [row.memcpy_gbps for row in rows], "s--", color=COLOURS[5], label="memcpy, one core")
    left.plot(sizes, [row.move_gbps for row in rows], "o-", color=COLOURS[2], label="move, mapped memory")
    left.set_ylabel("Gbit/s")
    left.set_ylim(bottom=0)
    left.legend(loc="best")
    right.plot(sizes, [row.ratio for row in rows], "o-", color=COLOURS[2], label="move / memcpy")
    _reference(right, sizes)
    right.set_ylim(0, max(1.15, *(row.ratio for row in rows)) * 1.1)
    right.set_ylabel("ratio")
    right.legend(loc="best")
    for axes in (left, right):
        _sizes(axes, sizes)
    return figure


def buffers(rows: Sequence[Buffers], published: Published) -> Figure:
    """Figure 4: allocators and caching; one panel a destination allocator, as in the paper."""
    figure, (pair,) = _panels(1, 2, 9.6, 3.6, sharey=True)
    sizes = sorted({row.size for row in rows})
    titles = {"memalign": "(a) destination page-aligned", "malloc": "(b) destination from malloc"}
    for axes, server in zip(pair, titles, strict=True):
        for index, (client, cache) in enumerate([(c, k) for c in ("memalign", "malloc") for k in (True, False)]):
            chosen = sorted(
                (r for r in rows if (r.server_alloc, r.client_alloc, r.cache) == (server, client, cache)),
                key=lambda row: row.size,
            )
            axes.plot(
                [row.size for row in chosen],
                [row.gbps for row in chosen],
                "o-" if cache else "s--",
                color=COLOURS[index // 2],
                label=f"source {client}, {'cached' if cache else 'no cache'}",
            )
        axes.set_title(titles[server], loc="left")
        axes.set_ylim(bottom=0)
        _sizes(axes, sizes)
    pair[0].set_ylabel("Gbit/s")
    _above(figure, pair[0], 4)
    return figure


_STEPS = {
    "cpp": [("arrays_us", "arrays"), ("ipc_us", "IPC"), ("batch_us", "record batch"), ("schema_us", "schema")],
    "c_abi": [("ipc_us", "IPC"), ("batch_us", "import"), ("arrays_us", "arrays"), ("schema_us", "schema")],
}
_STEP_COLOURS = {"arrays_us": COLOURS[0], "ipc_us": COLOURS[1], "batch_us": COLOURS[2], "schema_us": COLOURS[3]}


def conversion(rows: Sequence[Conversion], api: str, published: Published) -> Figure:
    """Figures 7 (api "cpp") and 8 ("c_abi"): the share of each step in the conversion, by size; one panel a column
    count."""
    rows = [row for row in rows if row.api == api]
    counts = sorted({row.columns for row in rows})
    figure, (panels,) = _panels(1, len(counts), min(10.5, 1.4 + 3.1 * len(counts)), 3.5, sharey=True)
    for axes, columns in zip(panels, counts, strict=True):
        chosen = sorted((row for row in rows if row.columns == columns), key=lambda row: row.size)
        sizes = [row.size for row in chosen]
        totals = [sum(getattr(row, step) for step, _ in _STEPS[api]) or 1.0 for row in chosen]
        shares = [
            [100 * getattr(row, step) / total for row, total in zip(chosen, totals, strict=True)]
            for step, _ in _STEPS[api]
        ]
        axes.stackplot(
            sizes,
            shares,
            labels=[name for _, name in _STEPS[api]],
            colors=[_STEP_COLOURS[step] for step, _ in _STEPS[api]],
            alpha=0.85,
            linewidth=0,
        )
        if api == "cpp":
            low = published["sdms_cpp_array_ipc_share"]["low"]
            text = f"paper: arrays + IPC at least {low:g} %"
        else:
            low = published["sdms_c_ipc_share"]["low"]
            text = f"paper: IPC at least {low:g} %"
        axes.axhline(low, color=PUBLISHED, linestyle="--", linewidth=1.6, label=text)
        axes.set_ylim(0, 100)
        axes.set_title(f"{columns} column{'s' if columns > 1 else ''}", loc="left")
        axes.grid(visible=False)
        _sizes(axes, sizes, "data in all columns")
    panels[0].set_ylabel("share of the conversion [%]")
    _above(figure, panels[0], 5)
    return figure


APPROACHES = {
    "host_serialization": ("host serialization", COLOURS[0], "-", "o"),
    "smartnic_serialization": ("agent serialization", COLOURS[4], "-", "v"),
    "idp_ipc": ("in transit, IPC", COLOURS[1], "-", "s"),
    "idp_page_aligned_ipc": ("in transit, page-aligned IPC", COLOURS[1], "--", "D"),
    "idp_c_abi": ("in transit, C ABI", COLOURS[2], "-", "^"),
}


def approaches(rows: Sequence[ApproachRow], published: Published) -> Figure:
    """Figure 11: host time, throughput, and throughput of a source that was just written; one row a column count."""
    counts = sorted({row.columns for row in rows})
    figure, grid = _panels(len(counts), 3, 12.6, 0.6 + 2.9 * len(counts))
    for (left, middle, right), columns in zip(grid, counts, strict=True):
        here = [row for row in rows if row.columns == columns]
        for name, (label, colour, line, marker) in APPROACHES.items():
            chosen = sorted((row for row in here if row.approach == name), key=lambda row: row.size)
            sizes = [row.size for row in chosen]
            style: dict[str, Any] = {"color": colour, "linestyle": line, "marker": marker, "label": label}
            left.plot(sizes, [row.host_us for row in chosen], **style)
            middle.plot(sizes, [row.gbps for row in chosen], **style)
            right.plot(sizes, [row.fresh_gbps for row in chosen], **style)
        noun = f"{columns} column{'s' if columns > 1 else ''}"
        left.set_title(f"{noun}: host time of one offload", loc="left")
        middle.set_title("throughput (bars)", loc="left")
        right.set_title("throughput, source just written", loc="left")
        left.set_yscale("log")
        _plain(left.yaxis)
        left.set_ylabel("us")
        if columns == 1:
            _paper_throughput(middle, [row for row in here if row.approach == "host_serialization"], published)
        top = max(middle.get_ylim()[1], right.get_ylim()[1])
        for axes in (middle, right):
            axes.set_ylabel("Gbit/s")
            axes.set_ylim(0, top)
        for axes in (left, middle, right):
            _sizes(axes, [row.size for row in here])
    _above(figure, grid[0][1], 3)
    return figure


def _paper_throughput(axes: Axes, baseline: Sequence[ApproachRow], published: Published) -> None:
    """Where page-aligned placement would be if it related to our own host serialization as it did in the paper."""
    for share, start in (
        ("sdms_idp_vs_host_128k", "sdms_idp_size_threshold_87"),
        ("sdms_idp_vs_host_1m", "sdms_idp_size_threshold_95"),
    ):
        low, fraction = published[start]["value"], published[share]["value"] / 100
        above = sorted((row for row in baseline if row.size >= low), key=lambda row: row.size)
        if above:
            axes.plot(
                [row.size for row in above],
                [row.gbps * fraction for row in above],
                ":" if fraction < 0.9 else "-.",
                color=PUBLISHED,
                linewidth=1.4,
                label=f"paper: page-aligned above {fraction:.0%} of host from {size_text(low)}".replace("%", " %"),
            )


def flight(one: Sequence[FlightRow], sixteen: Sequence[FlightRow], published: Published) -> Figure:
    """Move against Flight's DoPut: throughput and host CPU, as ratios; one column, and sixteen."""
    figure, ((left, right),) = _panels(1, 2, 9.6, 3.2)
    for rows, noun, style in ((one, "1 column", "o-"), (sixteen, "16 columns", "s--")):
        chosen = sorted(rows, key=lambda row: row.size)
        sizes = [row.size for row in chosen]
        if not chosen:
            continue
        throughput, cpu = [row.throughput_ratio for row in chosen], [row.cpu_ratio for row in chosen]
        left.plot(sizes, throughput, style, color=COLOURS[0], label=f"throughput, move / Flight, {noun}")
        right.plot(sizes, cpu, style, color=COLOURS[2], label=f"host CPU per batch, Flight / move, {noun}")
    sizes = [row.size for row in [*one, *sixteen]]
    for axes in (left, right):
        _reference(axes, sizes)
        axes.set_ylabel("ratio")
        axes.legend(loc="best")
        _sizes(axes, sizes)
    return figure


def lammps(frames: Sequence[Mapping[str, float]]) -> Figure:
    """The main job: what each frame cost the host, by time step."""
    figure, ((axes,),) = _panels(1, 1, 9.0, 3.4)
    steps = [frame["step"] for frame in frames]
    series = [
        ("host_convert_write_ms", 1.0, "host serialising itself: convert and write", COLOURS[4], "-"),
        ("host_wrap_write_ms", 1.0, "host serialising itself: wrap and write", COLOURS[1], "-"),
        ("hold_ms", 1.0, "sources held (application may compute, not overwrite)", COLOURS[5], "--"),
        ("call_us", 1e-3, "offload call", COLOURS[0], "-"),
    ]
    for key, scale, label, colour, line in series:
        axes.plot(
            steps, [frame[key] * scale for frame in frames], line, marker="o", markersize=3, color=colour, label=label
        )
    axes.set_yscale("log")
    _plain(axes.yaxis)
    axes.set_ylabel("ms per frame")
    axes.set_xlabel("time step")
    _above(figure, axes, 2)
    return figure
