# SPDX-License-Identifier: Apache-2.0
"""The report's part about the shell of paper 003: stacked bars of the sections, beside the published ones."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from wherry.bench import size_text
from wherry.probe.bench.schema import ProbeResults, ThesisCell, ThesisSpike
from wherry.probe.shell.cells import SIZES
from wherry.report import COLOURS, PUBLISHED, Sections, legend_above, panels, stacked_bars

WAYS = (
    (1, "2_out", "outgoing", ("host_qdma", "qdma", "qdma_cmac", "cmac")),
    (1, "2_in", "incoming", ("cmac", "cmac_qdma", "qdma", "qdma_host")),
    (2, "4_w", "write to HBM", ("cmac", "dm", "dm_hbm")),
    (2, "4_r", "read from HBM", ("dm_hbm", "dm", "cmac")),
    (3, "6_w", "write to HBM", ("host_qdma", "qdma", "qdma_hbm")),
    (3, "6_r", "read from HBM", ("hbm_qdma", "qdma", "qdma_host")),
)
"""Case, table and direction as in the ids of the cells, the direction's name, its sections in the order of the path."""
SPIKE = "rep_t5_5_read_4k"
CASES = {1: "CMAC and host memory", 2: "CMAC and HBM", 3: "HBM and host memory"}


def add_thesis(sections: Sections, results: ProbeResults) -> None:
    """A section for each case, and one for the spike."""
    for case, title in CASES.items():
        of_case = [cell for cell in results.thesis if cell.case == case]
        predicted = sum(cell.mark == "predicted" for cell in of_case)
        sections.add(
            of_case,
            f"thesis-{case}",
            f"The thesis's shell, case {case}: {title}",
            "Simulated: the sections of a packet's path, the upper bar of each pair ours, the lower one published "
            f"(Table 5.{2 * case}). Numbers were set to 128 bytes and 2 KiB; {predicted} of {len(of_case)} cells are "
            "predicted.",
            lambda rows, _, case=case: stacks(rows, case),
        )
    published = next((cell.published_ns for cell in results.thesis if cell.id == SPIKE), None)
    sections.add(
        results.thesis_spike,
        "thesis-spike",
        "The thesis's shell: 4 KiB from HBM to the host",
        "Simulated: a descriptor is cut where a buffer crosses a boundary of 4 KiB, and the engine does one transaction "
        "after the other. Without either there is no spike.",
        lambda rows, _: spike(rows, published),
    )


def stacks(cells: Sequence[ThesisCell], case: int) -> Figure:
    """A panel for each direction, a pair of bars for each size."""
    known = {cell.id: cell for cell in cells}
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
        axes.set_xlabel("ns, without the descriptor" if case != 2 else "ns")  # noqa: PLR2004: it has none
        axes.set_title(title)
        axes.legend(loc="upper right", fontsize=7)
    return figure


def spike(rows: Sequence[ThesisSpike], published: float | None) -> Figure:
    """A bar for each variant."""
    figure, ((axes,),) = panels(1, 1, 9.0, 2.6)
    names = [f"{row.variant} ({row.transactions})" for row in rows]
    stacked_bars(axes, names, [("simulated", [row.total_ns for row in rows], COLOURS[0])])
    if published is not None:
        axes.axvline(published, color=PUBLISHED, linestyle="--", label="published (Table 5.5)")
    axes.set_xlabel("ns (in brackets: transactions with the card's memory)")
    legend_above(figure, axes, 2)
    return figure
