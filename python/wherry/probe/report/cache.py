# SPDX-License-Identifier: Apache-2.0
"""The report's sections of `wherry bench probe --only cache`: compares paper 001, section 6, with this machine and
models."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from wherry.probe.bench.schema import (
    FAR,
    NEAR,
    CacheAgent,
    CacheNeighbour,
    CacheTouch,
    CacheTraffic,
    ProbeResults,
)
from wherry.report import (
    COLOURS,
    PUBLISHED,
    Published,
    Sections,
    grouped_bars,
    legend_above,
    panels,
    plain_axis,
    size_axis,
)
from wherry.units import size_text


def add_cache(sections: Sections, results: ProbeResults) -> None:
    """Adds the sections of the present rows. Each section says whether its figures are measured, simulated or
    estimated."""
    sections.add(
        results.cache_agent,
        "cache-agent",
        "An agent's rate",
        "Measured. One routing thread forwards messages that another core wrote; the communication buffers are small, "
        "or larger than the caches. Counters of cache misses stand in the table where the machine has them.",
        lambda rows, _: agent(rows),
        ours=_counters_sentence(results.cache_agent),
    )
    sections.add(
        results.cache_traffic,
        "cache-traffic",
        "Memory traffic of an agent",
        "Simulated: each load and store of the routing kernel, in models of three machines' caches. A device writes "
        "what arrives into the last level (direct cache access), or into memory. Models have no prefetcher.",
        traffic,
        figures=["figure 11"],
        ours=_traffic_sentence(results.cache_traffic),
    )
    sections.add(
        results.cache_touch,
        "cache-touch",
        "Receive and touch each byte",
        "Measured times; another core stands for the device. Flushed lines are what a device without direct cache "
        "access leaves. Where the machine has no counter, the share of misses is estimated from the times.",
        touch,
        figures=["figure 11 right"],
        ours=_touch_sentence(results.cache_touch),
    )
    sections.add(
        results.cache_neighbour,
        "cache-neighbour",
        "An agent beside a neighbour",
        "Measured. A thread on the other core adds vectors larger than the last level, for a share of its time. The "
        "rate that the agent keeps is that of the same repetition without it.",
        neighbour,
        figures=["figure 11 left"],
        ours=_neighbour_sentence(results.cache_neighbour),
    )


def agent(rows: Sequence[CacheAgent]) -> Figure:
    """The agent's rate by the size of all buffers."""
    figure, ((axes,),) = panels(1, 1, 6.4, 3.2)
    sizes = [row.buffer_bytes for row in rows]
    axes.plot(sizes, [row.gbytes_per_s for row in rows], marker="o", color=COLOURS[0])
    axes.fill_between(sizes, [row.least for row in rows], [row.most for row in rows],
                      color=COLOURS[0], alpha=0.15, linewidth=0)  # fmt: skip
    axes.set_ylim(bottom=0)
    axes.set_ylabel("GB/s routed")
    size_axis(axes, sizes, "communication buffers")
    return figure


def traffic(rows: Sequence[CacheTraffic], known: Published) -> Figure:
    """Loads and fills of each system as bars, with and without direct cache access, for large and small rings."""
    figure, grid = panels(1, 2, 9.0, 3.6, sharey=True)
    systems = list(dict.fromkeys(row.system for row in rows))
    large = {system: max(row.buffer_bytes for row in rows if row.system == system) for system in systems}
    for axes, larger in zip(grid[0], (False, True), strict=True):
        found = {(row.system, row.direct): row for row in rows if (row.buffer_bytes == large[row.system]) == larger}
        series = {
            f"{what}, {'direct' if direct else 'by memory'}": (
                [getattr(found[system, direct], name) if (system, direct) in found else None for system in systems],
                COLOURS[place],
            )
            for place, (what, name, direct) in enumerate(
                (
                    ("loads", "loads_per_byte", True),
                    ("stores", "fills_per_byte", True),
                    ("loads", "loads_per_byte", False),
                    ("stores", "fills_per_byte", False),
                )
            )
        }
        grouped_bars(axes, [system.replace("_", " ") for system in systems], series)
        axes.set_title("buffers beyond the last level" if larger else f"buffers of {_smaller(rows)}")
    ratio = known["bud_llc_dpu_vs_volume"]["value"]
    grid[0][1].axhline(ratio, color=PUBLISHED, linestyle="--", label=f"paper, BlueField-3: {ratio:g}")
    grid[0][0].set_ylabel("bytes from memory for a byte routed")
    legend_above(figure, grid[0][1], 5)
    return figure


def _smaller(rows: Sequence[CacheTraffic]) -> str:
    return size_text(min(row.buffer_bytes for row in rows))


def touch(rows: Sequence[CacheTouch], known: Published) -> Figure:
    """The time of a line by the place of the data, and the share of lines that came from memory."""
    figure, grid = panels(1, 2, 9.0, 3.4)
    times, shares = grid[0]
    names = [row.place for row in rows]
    times.barh(range(len(rows)), [row.ns_per_line for row in rows], 0.62, color=COLOURS[0], linewidth=0,
               xerr=[[row.ns_per_line - row.least_ns for row in rows], [row.most_ns - row.ns_per_line for row in rows]],
               error_kw={"linewidth": 0.8})  # fmt: skip
    times.set_yticks(range(len(rows)), names)
    times.invert_yaxis()
    times.set_xlabel("ns for 64 bytes, measured")
    told = [row for row in rows if row.miss_share is not None]
    shares.barh([row.place for row in told], [100 * (row.miss_share or 0) for row in told], 0.62, color=COLOURS[1],
                linewidth=0)  # fmt: skip
    shares.invert_yaxis()
    if not told:
        shares.set_yticks([])
    for name, text in (("intel", "Intel"), ("bf3", "BlueField-3"), ("grace", "Grace")):
        value = known[f"bud_dca_miss_{name}"]["value"]
        shares.axvline(value, color=PUBLISHED, linestyle="--", linewidth=1)
        shares.annotate(f" paper: {text}", (value, 1), xycoords=("data", "axes fraction"), rotation=90, va="top",
                        fontsize=7, color=PUBLISHED)  # fmt: skip
    shares.set_xlim(-2, 102)
    shares.set_xlabel(f"% of lines from memory, {told[0].share_is if told else 'not known'}")
    return figure


def neighbour(rows: Sequence[CacheNeighbour], known: Published) -> Figure:
    """The share of its rate that the agent keeps, by the neighbour's intensity."""
    figure, ((axes,),) = panels(1, 1, 6.4, 3.4)
    far = sorted((row for row in rows if row.neighbour in (FAR, "none")), key=lambda row: row.intensity)
    shares = [100 * row.intensity for row in far]
    axes.plot(shares, [row.kept for row in far], marker="o", color=COLOURS[0], label=FAR)
    axes.fill_between(shares, [row.least for row in far], [row.most for row in far],
                      color=COLOURS[0], alpha=0.15, linewidth=0)  # fmt: skip
    near = [row for row in rows if row.neighbour == NEAR]
    axes.plot([100 * row.intensity for row in near], [row.kept for row in near], "s", color=COLOURS[2], label=NEAR)
    kept = 1 - known["bud_intf_mem_slowdown"]["value"] / 100
    axes.axhline(kept, color=PUBLISHED, linestyle="--", label=f"paper, BlueField-3: {kept:.2f}")
    axes.set_ylim(bottom=0)
    plain_axis(axes.yaxis)
    axes.set_xlabel("% of its time that the neighbour works")
    axes.set_ylabel("rate that the agent keeps")
    legend_above(figure, axes, 3)
    return figure


def _counters_sentence(rows: Sequence[CacheAgent]) -> str:
    if not rows:
        return ""
    if rows[0].not_counted:
        return f"Cache misses are not counted here: {rows[0].not_counted}."
    return "; ".join(f"{size_text(row.buffer_bytes)}: {row.misses_per_line:.2g} misses for 64 bytes" for row in rows)


def _traffic_sentence(rows: Sequence[CacheTraffic]) -> str:
    return "; ".join(
        f"{row.system.replace('_', ' ')}, {size_text(row.buffer_bytes)}, {'direct' if row.direct else 'by memory'}: "
        f"{row.loads_per_byte:.2g} loaded, {row.fills_per_byte:.2g} filled"
        for row in rows
        if row.buffer_bytes == max(one.buffer_bytes for one in rows if one.system == row.system)
    )


def _touch_sentence(rows: Sequence[CacheTouch]) -> str:
    return "; ".join(f"{row.place}: {row.ns_per_line:.3g} ns a line" for row in rows)


def _neighbour_sentence(rows: Sequence[CacheNeighbour]) -> str:
    return "; ".join(
        f"{row.neighbour}, {100 * row.intensity:g} %: keeps {row.kept:.2f}" for row in rows if row.neighbour != "none"
    )
