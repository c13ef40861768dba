# SPDX-License-Identifier: Apache-2.0
"""The report's plots of route."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from wherry.report import (
    COLOURS,
    INK,
    PUBLISHED,
    Published,
    grouped_bars,
    legend_above,
    panels,
    plain_axis,
    size_axis,
)
from wherry.route.bench.schema import (
    AgentMemory,
    AgentRate,
    ApplicationRow,
    HistogramRow,
    Latency,
    MessageSizes,
    PeerRow,
    RandomSizes,
    Sweep,
    WeakScaling,
)
from wherry.units import size_text

PLACEMENTS = {
    "inline": ("inline", COLOURS[0], "o-"),
    "shared": ("shared (agent on the rank's core)", COLOURS[1], "s-"),
    "host": ("host (agents on the other core)", COLOURS[2], "^-"),
}


def histogram(rows: Sequence[HistogramRow], peers: Sequence[PeerRow], published: Published) -> Figure:
    """Updates per second of our histogram, the hand-written exchange and the peers."""
    figure, ((axes,),) = panels(1, 1, 8.0, 3.4)
    sizes = sorted({row.counters_log2 for row in rows})
    by_size = {row.counters_log2: row for row in rows}
    series: dict[str, tuple[Sequence[float | None], str]] = {
        "route, inline": ([by_size[size].mups for size in sizes], COLOURS[0]),
        "hand-written exchange (limit)": ([by_size[size].limit_mups for size in sizes], COLOURS[5]),
    }
    for index, name in enumerate(dict.fromkeys(row.peer for row in peers)):
        of = {row.counters_log2: row.mups for row in peers if row.peer == name}
        series[name] = ([of.get(size) for size in sizes], COLOURS[1 + index % 4])
    grouped_bars(axes, [f"2^{size} counters" for size in sizes], series)
    axes.set_ylabel("M updates/s, two ranks")
    legend_above(figure, axes, 3)
    return figure


def peers(rows: Sequence[PeerRow], published: Published) -> Figure:
    """The speed-up over each peer: the medians and all measured values."""
    figure, ((axes,),) = panels(1, 1, 8.0, 3.2)
    names = list(dict.fromkeys(row.peer for row in rows))
    sizes = sorted({row.counters_log2 for row in rows})
    for index, size in enumerate(sizes):
        chosen = [(names.index(row.peer) + 0.16 * (index - (len(sizes) - 1) / 2), row) for row in rows
                  if row.counters_log2 == size]  # fmt: skip
        axes.errorbar(
            [at for at, _ in chosen],
            [row.ratio for _, row in chosen],
            [[row.ratio - row.ratio_min for _, row in chosen], [row.ratio_max - row.ratio for _, row in chosen]],
            fmt="o",
            capsize=3,
            color=COLOURS[index % len(COLOURS)],
            label=f"2^{size} counters: median, min to max",
        )
    axes.axhline(1, color=INK, linewidth=0.8, alpha=0.6)
    axes.set_xticks(range(len(names)), names)
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("route, inline / peer")
    legend_above(figure, axes, 2)
    return figure


def agent_rate(rows: Sequence[AgentRate], published: Published) -> Figure:
    """The rate of one routing thread."""
    figure, ((axes,),) = panels(1, 1, 6.0, 2.8)
    grouped_bars(axes, [f"{row.size} bytes" for row in rows], {"route": ([row.mmps for row in rows], COLOURS[2])})
    axes.set_ylabel("M messages/s")
    return figure


def random_sizes(rows: Sequence[RandomSizes], published: Published) -> Figure:
    """Payload rate for random sizes compared with copies."""
    figure, ((axes,),) = panels(1, 1, 6.0, 2.8)
    series = {
        "route, inline": ([row.payload_gbytes for row in rows], COLOURS[0]),
        "plain copies, same buffers": ([row.copy_gbytes for row in rows], COLOURS[5]),
    }
    grouped_bars(axes, ["8 to 4096 bytes"] * len(rows), series)
    axes.set_ylabel("GB/s each way")
    legend_above(figure, axes, 2)
    return figure


def latency(rows: Sequence[Latency], published: Published) -> Figure:
    """One-way latency of one message on an idle system."""
    figure, ((axes,),) = panels(1, 1, 7.0, 3.0)
    series = {"p50": ([row.p50_us for row in rows], COLOURS[0]), "p99": ([row.p99_us for row in rows], COLOURS[5])}
    grouped_bars(axes, [row.placement for row in rows], series)
    axes.set_yscale("log")
    plain_axis(axes.yaxis)
    axes.set_ylabel("us, one way")
    axes.legend(loc="best")
    return figure


def message_sizes(rows: Sequence[MessageSizes], published: Published) -> Figure:
    """Messages and payload per second, by size and placement."""
    figure, ((left, right),) = panels(1, 2, 9.6, 3.6)
    for placement, (label, colour, style) in PLACEMENTS.items():
        chosen = sorted((row for row in rows if row.placement == placement), key=lambda row: row.size)
        sizes = [row.size for row in chosen]
        left.plot(sizes, [row.mmps for row in chosen], style, color=colour, label=label)
        right.plot(sizes, [row.gbps for row in chosen], style, color=colour)
    left.set_yscale("log")
    plain_axis(left.yaxis)
    left.set_ylabel("M messages/s, both ranks")
    right.set_ylabel("Gbit/s of payload, both ranks")
    right.set_ylim(bottom=0)
    for axes in (left, right):
        size_axis(axes, [row.size for row in rows], "payload of a message")
    legend_above(figure, left, 3)
    return figure


_PARAMETERS = {"buffer_bytes": "size of a buffer", "buffers": "buffers to each next hop", "routing_threads": "threads"}


def sweeps(rows: Sequence[Sweep], published: Published) -> Figure:
    """Figure 7: one column per setting, with rates above and average transfers below. Circles mark the defaults."""
    parameters = [name for name in _PARAMETERS if any(row.parameter == name for row in rows)]
    figure, (top, bottom) = panels(2, len(parameters), 3.4 * len(parameters) + 0.6, 5.6)
    for rate, transfer, parameter in zip(top, bottom, parameters, strict=True):
        here = [row for row in rows if row.parameter == parameter]
        for placement, (label, colour, style) in PLACEMENTS.items():
            chosen = sorted((row for row in here if row.placement == placement), key=lambda row: row.value)
            if not chosen:
                continue
            values = [row.value for row in chosen]
            rate.plot(values, [row.mmps for row in chosen], style, color=colour, label=label)
            transfer.plot(values, [row.rank_transfer_bytes / 1024 for row in chosen], style, color=colour)
            agents = [(row.value, row.agent_transfer_bytes / 1024) for row in chosen if row.agent_transfer_bytes]
            transfer.plot(*zip(*agents, strict=True), ":", color=colour, label="of agents") if agents else None
            for row in chosen:
                if row.is_default:
                    rate.plot([row.value], [row.mmps], "o", markersize=10, markerfacecolor="none", color=INK)
        _paper_optimum(rate, parameter, published)
        rate.set_ylim(bottom=0)
        transfer.set_yscale("log", base=2)
        transfer.yaxis.set_major_formatter(FuncFormatter(lambda value, _: size_text(value * 1024)))
        for axes in (rate, transfer):
            _powers(axes, sorted({row.value for row in here}), parameter)
        transfer.legend(loc="best") if transfer.get_legend_handles_labels()[0] else None
        rate.set_title(_PARAMETERS[parameter], loc="left")
    top[0].set_ylabel("M messages/s, 8 ranks")
    bottom[0].set_ylabel("average transfer")
    legend_above(figure, top[0], 3)
    return figure


def _powers(axes: Axes, values: Sequence[int], parameter: str) -> None:
    if parameter == "buffer_bytes":
        size_axis(axes, values, "")
        return
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(list(values)))
    axes.xaxis.set_minor_locator(NullLocator())
    plain_axis(axes.xaxis)


def _paper_optimum(axes: Axes, parameter: str, published: Published) -> None:
    """Marks the value from which the paper's applications no longer gained."""
    if parameter == "buffer_bytes":
        plateau = published["bud_opt_size_plateau"]
        axes.axvspan(plateau["low"], plateau["high"], color=PUBLISHED, alpha=0.2, linewidth=0)
    elif parameter == "buffers":
        axes.axvline(published["bud_opt_buf_plateau"]["value"], color=PUBLISHED, linestyle="--", linewidth=1.2)


def weak_scaling(rows: Sequence[WeakScaling], published: Published) -> Figure:
    """Figure 8: the cost of a message and the average transfer, by number of nodes."""
    rows = sorted(rows, key=lambda row: row.nodes)
    nodes = [row.nodes for row in rows]
    figure, ((left, right),) = panels(1, 2, 9.6, 3.4)
    left.plot(
        nodes, [row.over_2_nodes for row in rows], "o-", color=COLOURS[2], label="cost of a message over 2 nodes'"
    )
    left.axhline(1, color=INK, linewidth=0.8, alpha=0.6)
    left.set_ylabel("ratio")
    left.set_ylim(bottom=0)
    left.legend(loc="lower right")
    right.plot(nodes, [row.rank_transfer_bytes / 1e3 for row in rows], "o-", color=COLOURS[0], label="ranks to agents")
    right.plot(nodes, [row.agent_transfer_bytes / 1e3 for row in rows], "s-", color=COLOURS[2], label="agents to all")
    band = published["bud_scal_hist_agent_agent"]
    right.axhspan(band["low"], band["high"], color=PUBLISHED, alpha=0.2, linewidth=0, label="paper: agent to agent")
    ends = [published[f"bud_scal_hist_agent_app_{n}"]["value"] for n in (3, 8)]
    right.plot([3, 8], ends, "D--", color=PUBLISHED, label="paper: agent to application", linewidth=1)
    right.set_ylabel("average transfer [kB]")
    right.set_ylim(bottom=0)
    right.legend(loc="best")
    for axes in (left, right):
        axes.set_xticks(nodes)
        axes.set_xlabel("nodes, on the same two cores")
    return figure


def agent_memory(rows: Sequence[AgentMemory], published: Published) -> Figure:
    """Resident memory of an agent, compared with the computed size of its buffers."""
    rows = sorted(rows, key=lambda row: row.nodes)
    nodes = [row.nodes for row in rows]
    figure, ((left, right),) = panels(1, 2, 9.6, 3.2)
    mib = 1 << 20
    left.plot(nodes, [row.rss_bytes / mib for row in rows], "o-", color=COLOURS[2], label="resident (Rss)")
    left.plot(nodes, [row.pss_bytes / mib for row in rows], "s--", color=COLOURS[0], label="its share (Pss)")
    left.plot(nodes, [row.idle_rss_bytes / mib for row in rows], ":", color=COLOURS[5], label="without a job")
    first = rows[0].rss_bytes - rows[0].idle_rss_bytes
    grown = [(row.rss_bytes - row.idle_rss_bytes - first) / mib for row in rows]
    buffers = [row.inbox_bytes + row.lane_bytes - rows[0].inbox_bytes - rows[0].lane_bytes for row in rows]
    right.plot(nodes, grown, "o-", color=COLOURS[2], label=f"measured, beyond {nodes[0]} node")
    right.plot(nodes, [value / mib for value in buffers], "--", color=INK, label="buffers, as laid out")
    for axes in (left, right):
        axes.set_xticks(nodes)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("nodes")
        axes.set_ylabel("MiB")
        axes.legend(loc="best")
    return figure


def applications(rows: Sequence[ApplicationRow], published: Published) -> Figure:
    """Table 2: speed-up over `shared` by placement, network share and M:C, with the published values."""
    figure, ((left, middle, right),) = panels(1, 3, 12.6, 3.8, width_ratios=[1.5, 1, 1])
    names = [row.app for row in rows]
    speedups: dict[str, tuple[Sequence[float | None], str]] = {
        "inline": ([row.inline_speedup for row in rows], COLOURS[0]),
        "host": ([row.speedup for row in rows], COLOURS[2]),
        "paper: x86 over none": ([row.published_speedup for row in rows], PUBLISHED),
    }
    grouped_bars(left, names, speedups)
    left.axhline(1, color=INK, linewidth=0.8, alpha=0.6)
    left.set_title("speed-up over shared", loc="left")
    grouped_bars(
        middle,
        names,
        {
            "host": ([100 * row.network_share for row in rows], COLOURS[2]),
            "paper": ([100 * row.published_network_share for row in rows], PUBLISHED),
        },
    )
    middle.set_title("network share [%]", loc="left")
    grouped_bars(
        right,
        names,
        {
            "counted": ([row.mc_ratio for row in rows], COLOURS[2]),
            "estimated": ([row.mc_estimate for row in rows], COLOURS[5]),
            "paper": ([row.published_mc_ratio for row in rows], PUBLISHED),
        },
    )
    right.set_title("memory to communication", loc="left")
    right.legend(loc="best")
    for axes in (middle, right):
        axes.set_yscale("log")
        plain_axis(axes.yaxis)
    for axes in (left, middle, right):
        axes.tick_params(axis="x", labelrotation=30)
    legend_above(figure, left, 3)
    return figure
