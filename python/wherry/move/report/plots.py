# SPDX-License-Identifier: Apache-2.0
"""The report's plots of move."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from wherry.move.bench.schema import (
    ApproachRow,
    Bandwidth,
    Buffers,
    Conversion,
    FlightRow,
    Initiate,
    Mapped,
    PythonCall,
    ReaderLoad,
)
from wherry.report import (
    COLOURS,
    PUBLISHED,
    Published,
    legend_above,
    panels,
    plain_axis,
    reference_line,
    size_axis,
)
from wherry.units import size_text


def initiate(rows: Sequence[Initiate], published: Published) -> Figure:
    """Figure 2: host time of the call by size, with warm and with cold caches."""
    figure, ((axes,),) = panels(1, 1, 7.6, 3.9)
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
    plain_axis(axes.yaxis)
    axes.set_ylabel("host time of the call [us]")
    size_axis(axes, [row.size for row in rows])
    legend_above(figure, axes, 2)
    return figure


def python_calls(rows: Sequence[PythonCall], _published: Published) -> Figure:
    """Host time of the call in Python by the number of columns, for arrays named in each call and arrays bound once."""
    figure, ((axes,),) = panels(1, 1, 7.6, 3.2)
    for index, (call, name) in enumerate((("offload", "offload(): arrays named each time"), ("bind", "bound once"))):
        chosen = sorted((row for row in rows if row.call == call), key=lambda row: row.columns)
        columns = [row.columns for row in chosen]
        axes.plot(columns, [row.warm_us for row in chosen], "o-", color=COLOURS[index], label=f"{name}, warm caches")
        axes.plot(columns, [row.cold_us for row in chosen], "x:", color=COLOURS[index], label=f"{name}, cold caches")
    axes.set_yscale("log")
    plain_axis(axes.yaxis)
    axes.set_xlabel("columns")
    axes.set_ylabel("host time of the call [us]")
    legend_above(figure, axes, 2)
    return figure


def readers(rows: Sequence[ReaderLoad], _published: Published) -> Figure:
    """Host time of a frame: the call and the wait, by the reader or the operators beside it."""
    figure, ((axes,),) = panels(1, 1, 7.6, 3.0)
    names = {
        "none": "no reader",
        "plain": "a reader",
        "lz4": "a reader, LZ4",
        "lz4_operator": "operators: LZ4",
        "sort_operator": "operators: filter, sort, LZ4",
    }
    places = range(len(rows))
    calls = [row.call_us for row in rows]
    axes.barh(places, calls, color=COLOURS[0], label="the call")
    axes.barh(places, [row.wait_us for row in rows], left=calls, color=COLOURS[1], label="the wait after the work")
    axes.set_yticks(list(places), [names[row.reader] for row in rows])
    axes.invert_yaxis()
    axes.set_xlabel("host time of one frame [us]")
    legend_above(figure, axes, 2)
    return figure


def bandwidth(rows: Sequence[Bandwidth], published: Published) -> Figure:
    """Figure 3: offloads and raw gets, and their ratio."""
    rows = sorted(rows, key=lambda row: row.size)
    sizes = [row.size for row in rows]
    figure, ((left, right),) = panels(1, 2, 9.6, 3.5)
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
    reference_line(right, sizes)
    _from(right, sizes, published["sdms_sdms_vs_qperf1_size"]["value"], published["sdms_sdms_vs_qperf1"]["value"] / 100)
    right.set_ylim(0, max(1.15, *ratio) * 1.1)
    right.set_ylabel("ratio")
    right.legend(loc="lower right")
    for axes in (left, right):
        size_axis(axes, sizes)
    return figure


def _from(axes: Axes, sizes: Sequence[int], start: float, value: float) -> None:
    """Draws a published lower bound that applies from the size `start`."""
    end = max(*sizes, start * 2)
    text = f"paper: at least {value:g} from {size_text(start)}"
    axes.plot([start, end], [value, value], "--", color=PUBLISHED, linewidth=1.4, label=text)
    axes.plot([start], [value], marker="D", color=PUBLISHED, markersize=4)


def mapped(rows: Sequence[Mapped], published: Published) -> Figure:
    """Offloads from mapped memory compared with memcpy."""
    rows = sorted(rows, key=lambda row: row.size)
    sizes = [row.size for row in rows]
    figure, ((left, right),) = panels(1, 2, 9.6, 3.2)
    left.plot(sizes, [row.memcpy_gbps for row in rows], "s--", color=COLOURS[5], label="memcpy, one core")
    left.plot(sizes, [row.move_gbps for row in rows], "o-", color=COLOURS[2], label="move, mapped memory")
    left.set_ylabel("Gbit/s")
    left.set_ylim(bottom=0)
    left.legend(loc="best")
    right.plot(sizes, [row.ratio for row in rows], "o-", color=COLOURS[2], label="move / memcpy")
    reference_line(right, sizes)
    right.set_ylim(0, max(1.15, *(row.ratio for row in rows)) * 1.1)
    right.set_ylabel("ratio")
    right.legend(loc="best")
    for axes in (left, right):
        size_axis(axes, sizes)
    return figure


def buffers(rows: Sequence[Buffers], published: Published) -> Figure:
    """Figure 4: allocators and caching, with one panel for each destination allocator, as in the paper."""
    figure, (pair,) = panels(1, 2, 9.6, 3.6, sharey=True)
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
        size_axis(axes, sizes)
    pair[0].set_ylabel("Gbit/s")
    legend_above(figure, pair[0], 4)
    return figure


_STEPS = {
    "cpp": [("arrays_us", "arrays"), ("ipc_us", "IPC"), ("batch_us", "record batch"), ("schema_us", "schema")],
    "c_abi": [("ipc_us", "IPC"), ("batch_us", "import"), ("arrays_us", "arrays"), ("schema_us", "schema")],
}
_STEP_COLOURS = {"arrays_us": COLOURS[0], "ipc_us": COLOURS[1], "batch_us": COLOURS[2], "schema_us": COLOURS[3]}


def conversion(rows: Sequence[Conversion], published: Published, *, api: str) -> Figure:
    """Figures 7 (api "cpp") and 8 ("c_abi"): the share of each step of the conversion by size, with one panel per
    column count."""
    rows = [row for row in rows if row.api == api]
    counts = sorted({row.columns for row in rows})
    figure, (grid,) = panels(1, len(counts), min(10.5, 1.4 + 3.1 * len(counts)), 3.5, sharey=True)
    for axes, columns in zip(grid, counts, strict=True):
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
        size_axis(axes, sizes, "data in all columns")
    grid[0].set_ylabel("share of the conversion [%]")
    legend_above(figure, grid[0], 5)
    return figure


APPROACHES = {
    "host_serialization": ("host serialization", COLOURS[0], "-", "o"),
    "smartnic_serialization": ("agent serialization", COLOURS[4], "-", "v"),
    "idp_ipc": ("in transit, IPC", COLOURS[1], "-", "s"),
    "idp_page_aligned_ipc": ("in transit, page-aligned IPC", COLOURS[1], "--", "D"),
    "idp_c_abi": ("in transit, C ABI", COLOURS[2], "-", "^"),
}


def approaches(rows: Sequence[ApproachRow], published: Published) -> Figure:
    """Figure 11: host time, throughput, and throughput from a freshly written source, with one row per column count."""
    counts = sorted({row.columns for row in rows})
    figure, grid = panels(len(counts), 3, 12.6, 0.6 + 2.9 * len(counts))
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
        plain_axis(left.yaxis)
        left.set_ylabel("us")
        if columns == 1:
            _paper_throughput(middle, [row for row in here if row.approach == "host_serialization"], published)
        top = max(middle.get_ylim()[1], right.get_ylim()[1])
        for axes in (middle, right):
            axes.set_ylabel("Gbit/s")
            axes.set_ylim(0, top)
        for axes in (left, middle, right):
            size_axis(axes, [row.size for row in here])
    legend_above(figure, grid[0][1], 3)
    return figure


def _paper_throughput(axes: Axes, baseline: Sequence[ApproachRow], published: Published) -> None:
    """Draws the paper's throughput of page-aligned placement: its ratio to host serialization, times our own host
    serialization."""
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
    """Offloads compared with Flight's DoPut: ratios of throughput and host CPU time, with one column and with
    sixteen."""
    figure, ((left, right),) = panels(1, 2, 9.6, 3.2)
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
        reference_line(axes, sizes)
        axes.set_ylabel("ratio")
        axes.legend(loc="best")
        size_axis(axes, sizes)
    return figure
