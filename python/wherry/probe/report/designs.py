# SPDX-License-Identifier: Apache-2.0
"""The report's sections of the simulated designs of paper 000: figures 8 to 18, with the published points in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from wherry.probe.bench.designs import (
    BRAM_BYTES,
    CAP_GBYTES,
    RUN_BYTES,
    DesignLinux,
    DesignPoint,
    DesignTurns,
    DesignWay,
    cap_cycles,
)
from wherry.probe.bench.schema import ProbeResults
from wherry.probe.model.published import Range, range_of
from wherry.probe.model.simulated import DESIGNS as OF_PAPER
from wherry.report import COLOURS, Section, Sections, legend_above, panels, plain_axis, size_axis

PUBLISHED = "#444444"
DESIGNS = {"bram": "BRAM", "ddr4": "DDR4", "softcore": "DDR4 beside a soft core", "linux": "DDR4 beside Linux"}
FLOWS = {"h2c": "host to card", "c2h": "card to host"}


def design_sections(results: ProbeResults) -> list[Section]:
    """The sections of the experiment `designs`. Empty without it."""
    sections = Sections("probe")
    xdma = [row for row in results.designs if row.preset == "xdma" and row.notice == "interrupt"]
    sections.add(
        xdma,
        "designs",
        "Four FPGA designs of paper 000, simulated: bandwidth by size",
        "Simulated: XDMA's engine and driver as the paper had them, interrupts, 1 and 4 channels. Bars are what the "
        "paper publishes of that design and number of channels, at the size of its peak; its curves are figures "
        "without numbers.",
        lambda rows, _: curves(rows),
        figures=("figure 8 to figure 18",),
    )
    sections.add(
        [row for row in results.designs if row.preset == "wherry" and row.channels in (1, 4)],
        "designs-wherry",
        "The same designs with our engine's limits and a driver in user space, simulated",
        "Simulated: polled, one transfer a channel at a time. The difference is the call, not the link.",
        lambda rows, _: curves(rows, published=False),
    )
    sections.add(
        results.design_ways,
        "designs-ways",
        "The way to the memory, and one channel",
        "Simulated: register slices between engine and memory. What is under way is limited: a longer way is slower.",
        lambda rows, _: ways(rows),
        ours=_cap(results.design_ways),
    )
    sections.add(
        results.design_turns,
        "designs-turns",
        "Turns in one bank",
        "Simulated: four streams over one stream, by the bytes of a turn, at the memory's port.",
        lambda rows, _: turns(rows),
    )
    sections.add(
        results.design_linux,
        "designs-linux",
        "Beside Linux' own traffic",
        "Simulated: whole runs; the core idle, and at 100 MHz in the last window of the recording: user space.",
        lambda rows, _: linux(rows),
        figures=("figure 13", "figure 14"),
    )
    return sections.found


def _cap(rows: Sequence[DesignWay]) -> str:
    if not rows:
        return ""
    cycles = {flow: cap_cycles(rows, flow) for flow in FLOWS}
    there, back = (f"{cycles[flow]:.0f}" for flow in FLOWS)
    return f"{CAP_GBYTES} GB/s come with {there} cycles of 300 MHz to the card, {back} to the host."


def _published(design: str, flow: str, channels: int) -> Range | None:
    for identifier, (of, way, counts) in OF_PAPER.items():
        if (of, way) == (design, flow) and channels in counts:
            return range_of((identifier,))
    return None


def curves(rows: Sequence[DesignPoint], published: bool = True) -> Figure:
    """Rate by size: a panel for each direction and number of channels, a curve for each design."""
    figure, axes_of = panels(2, 2, 9.6, 6.4, sharey=True)
    for line, channels in zip(axes_of, (1, 4), strict=True):
        for axes, (flow, title) in zip(line, FLOWS.items(), strict=True):
            for index, (design, label) in enumerate(DESIGNS.items()):
                points = sorted((row.size, row.gbytes_per_s) for row in rows
                                if (row.design, row.flow, row.channels) == (design, flow, channels))  # fmt: skip
                axes.plot([size for size, _ in points], [rate for _, rate in points], color=COLOURS[index],
                          label=f"simulated, {label}")  # fmt: skip
                of = _published(design, flow, channels) if published else None
                if of is not None:
                    at = (BRAM_BYTES if design == "bram" else RUN_BYTES) * (1 + 0.25 * index)
                    axes.plot([at, at], [of.low - 0.05, of.high + 0.05], color=COLOURS[index], linewidth=4, alpha=0.55)
            axes.set_title(f"{title}, {channels} channel{'s' if channels > 1 else ''}")
            size_axis(axes, [row.size for row in rows], "bytes of a transfer")
        line[0].set_ylabel("GB/s")
    legend_above(figure, axes_of[0][0], 2)
    return figure


def ways(rows: Sequence[DesignWay]) -> Figure:
    """Rate in GB/s by interconnect cycles, with the paper's values."""
    figure, ((axes,),) = panels(1, 1, 7.6, 3.2)
    for index, (flow, title) in enumerate(FLOWS.items()):
        points = [row for row in rows if row.flow == flow]
        axes.plot([row.cycles for row in points], [row.gbytes_per_s for row in points], "o-", color=COLOURS[index],
                  label=f"simulated, {title}")  # fmt: skip
    axes.axhspan(9.4, 9.5, color=PUBLISHED, alpha=0.25, label="published, one channel beside a MicroBlaze")
    axes.set_xlabel("cycles of 300 MHz, there and back")
    axes.set_ylabel("GB/s")
    legend_above(figure, axes, 3)
    return figure


def turns(rows: Sequence[DesignTurns]) -> Figure:
    """The rate of four streams as a share of one stream's rate."""
    figure, ((axes,),) = panels(1, 1, 7.6, 3.2)
    kinds = sorted({(row.controller, row.flow) for row in rows})
    for index, (controller, flow) in enumerate(kinds):
        rates: dict[tuple[int, int], Any] = {(row.turn, row.streams): row.memory_gbytes_per_s for row in rows
                                             if (row.controller, row.flow) == (controller, flow)}  # fmt: skip
        sizes = sorted({turn for turn, _ in rates})
        axes.plot(sizes, [rates[turn, 4] / rates[turn, 1] for turn in sizes], "o-", color=COLOURS[index],
                  label=f"controller {controller}, {FLOWS[flow]}")  # fmt: skip
    size_axis(axes, [row.turn for row in rows], "bytes of a turn")
    axes.set_ylabel("four streams / one")
    axes.set_ylim(0, 1.1)
    legend_above(figure, axes, 2)
    return figure


def linux(rows: Sequence[DesignLinux]) -> Figure:
    """Throughput under Linux by the number of channels, with the paper's ranges."""
    figure, (line,) = panels(1, 2, 9.4, 3.4, sharey=True)
    last = max((row.window for row in rows if row.window is not None), default=None)
    rows = [row for row in rows if row.window in (None, last)]
    for axes, (flow, title) in zip(line, FLOWS.items(), strict=True):
        kinds = sorted({(row.controller, row.core_mhz) for row in rows if row.core_mhz in (0, 100)})
        for index, (controller, mhz) in enumerate(kinds):
            points = [row for row in rows if (row.controller, row.core_mhz, row.flow) == (controller, mhz, flow)]
            rates = [row.gbytes_per_s for row in points]
            axes.plot([row.channels for row in points], rates, "o-", color=COLOURS[index],
                      label=f"controller {controller}, {'Linux' if mhz else 'idle core'}")  # fmt: skip
        for channels in (1, 2, 3, 4):
            of = _published("linux", flow, channels)
            if of is not None:
                axes.plot(
                    [channels, channels], [of.low - 0.05, of.high + 0.05], color=PUBLISHED, linewidth=4, alpha=0.4
                )
        axes.set_title(title)
        axes.set_xlabel("channels (bars: published)")
        axes.set_xticks([1, 2, 3, 4])
        plain_axis(axes.yaxis)
    line[0].set_ylabel("GB/s")
    legend_above(figure, line[0], 2)
    return figure
