# SPDX-License-Identifier: Apache-2.0
"""The plots of bypass's chapter."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from wherry.bypass.bench.schema import (
    Batching,
    BypassResults,
    Constant,
    Overload,
    OverloadSlice,
    Qemu,
    RatePoint,
    Resources,
    RtlCycles,
    RtlLatency,
    RtlOverload,
    RtlPoint,
    RtlRate,
    Tcp,
    TimeSlice,
)
from wherry.report import (
    COLOURS,
    INK,
    PUBLISHED,
    Published,
    grouped_bars,
    legend_above,
    panels,
    plain_axis,
    stacked_bars,
)

WAYS = {"in_place": "in place", "stream": "by the stream"}
SCENARIOS = {
    "software": ("software (scenario 1)", COLOURS[2]),
    "both": ("in and out over PCIe (scenario 3)", COLOURS[0]),
    "receive": ("in only (scenario 4)", COLOURS[1]),
    "transmit": ("out only (scenario 4)", COLOURS[3]),
}
LINE_GBPS = 9.383  # frames of 300 bytes, plus FCS, at 10 Gbit/s


def rtl_rates(rows: Sequence[RtlRate], published: Published) -> Figure:
    """The core's rate as a share of line rate and of the card's link."""
    figure, ((left, right),) = panels(1, 2, 10.5, 1.2 + 0.22 * len(rows), sharey=True)
    names = [
        f"{row.mbits // 1000}G, {row.size} B, {WAYS[row.way]}{f', {row.lost} lost' if row.lost else ''}"
        if row.name.startswith(f"rate_{row.size}b_{row.mbits // 1000}g_{row.way}")
        else row.name
        for row in rows
    ]
    stacked_bars(left, names, [("share of line rate", [row.share_of_line for row in rows], COLOURS[0])])
    left.set_xlabel("of what Ethernet allows")
    stacked_bars(right, names, [("share of the card's link", [row.share_of_link for row in rows], COLOURS[1])])
    right.invert_yaxis()  # both panels inverted the shared axis; this restores its direction
    right.set_xlabel("of what the card's PCIe link carries")
    for axes in (left, right):
        axes.axvline(1, color=INK, linewidth=0.8, alpha=0.6)
    return figure


def _cross(axes: Axes, x: float, y: float, label: str | None) -> None:
    axes.plot([x], [y], "x", color=PUBLISHED, markersize=8, markeredgewidth=2, label=label, zorder=5)


def rtl_latency(rows: Sequence[RtlLatency], published: Published) -> Figure:
    """Mean latency by topology, and loss."""
    topologies = list(dict.fromkeys(row.topology for row in rows))
    figure, ((left, right),) = panels(1, 2, 9.5, 3.2)
    ways = list(dict.fromkeys(row.way for row in rows))
    for axes, key, label in ((left, "mean_us", "mean latency [us]"), (right, "loss", "lost [%]")):
        series: dict[str, tuple[Sequence[float | None], str]] = {
            WAYS[way]: (
                [
                    next((getattr(r, key) * (100 if key == "loss" else 1) for r in rows
                          if (r.topology, r.way) == (topology, way)), None)
                    for topology in topologies
                ],
                COLOURS[place],
            )
            for place, way in enumerate(ways)
        }  # fmt: skip
        grouped_bars(axes, topologies, series)
        axes.set_ylabel(label)
    overloaded = (published["hb_overload_latency"]["value"], published["hb_loss_no_writeback"]["value"])
    paper = {"switch": (published["hb_s3_latency_avg"]["value"], 0.0), "amd": (None, 0.0), "intel": overloaded}
    for place, topology in enumerate(topologies):
        latency, loss = paper.get(topology, (None, None))
        if latency is not None:
            _cross(left, place, latency, "the paper's core" if topology == "switch" else None)
        if loss is not None:
            _cross(right, place, loss, None)
    left.set_yscale("log")
    plain_axis(left.yaxis)
    legend_above(figure, left, 3)
    return figure


def rtl_overload(rows: Sequence[RtlOverload], published: Published) -> Figure:
    """The core's rate under overload as a share of the largest possible rate."""
    figure, ((axes,),) = panels(1, 1, 8.5, 1.2 + 0.26 * len(rows))
    names = [f"{row.name}, limited by {row.limited_by}" for row in rows]
    stacked_bars(axes, names, [("passed", [row.share_of_limit for row in rows], COLOURS[0])])
    axes.axvline(1, color=INK, linewidth=0.8, alpha=0.6)
    axes.set_xlabel("of what an ideal core would pass")
    return figure


def rtl_cycles(rows: Sequence[RtlCycles], published: Published) -> Figure:
    """The least and the most cycles of each path."""
    figure, ((axes,),) = panels(1, 1, 7.0, 1.2 + 0.3 * len(rows))
    stacked_bars(axes, [row.path for row in rows], [
        ("least", [float(row.least) for row in rows], COLOURS[0]),
        ("to the most", [float(row.most - row.least) for row in rows], COLOURS[1]),
    ])  # fmt: skip
    axes.set_xlabel("cycles of 4 ns")
    legend_above(figure, axes, 2)
    return figure


def latency_over_time(rows: Sequence[TimeSlice], published: Published) -> Figure:
    """The mean latency of each scenario as a line, with its range and the paper's means."""
    figure, ((axes,),) = panels(1, 1, 8.5, 4.0)
    reading = "one_fetch" if any(row.reading == "one_fetch" for row in rows) else rows[0].reading
    for scenario, (name, colour) in SCENARIOS.items():
        here = [row for row in rows if (row.scenario, row.reading) == (scenario, reading)]
        if not here:
            continue
        at = [row.at_us / 1000 for row in here]
        axes.plot(at, [row.mean_us for row in here], color=colour, label=name)
        axes.fill_between(at, [row.min_us for row in here], [row.max_us for row in here], color=colour, alpha=0.2,
                          linewidth=0)  # fmt: skip
    for of, label in (
        ("hb_s3_latency_avg", "paper: means"), ("hb_s4_rx_latency_avg", None), ("hb_s4_tx_latency_avg", None),
        ("hb_s1_latency_mostly", None),
    ):  # fmt: skip
        axes.axhline(published[of]["value"], color=PUBLISHED, linestyle="--", linewidth=1.4, label=label)
    axes.annotate("software, mostly below", (0.01, published["hb_s1_latency_mostly"]["value"]), color=PUBLISHED,
                  xycoords=("axes fraction", "data"), va="top", fontsize=8)  # fmt: skip
    axes.set_ylim(bottom=0)
    axes.set_xlabel("ms")
    axes.set_ylabel("latency [us]")
    legend_above(figure, axes, 3)
    return figure


CURVES = {
    ("host_bypassing", "switch", "any_fetches"): ("paper's core, switch", COLOURS[0], "-"),
    ("host_bypassing", "amd", "any_fetches"): ("paper's core, AMD root", COLOURS[2], "-"),
    ("host_bypassing", "intel", "any_fetches"): ("paper's core, Intel root", COLOURS[4], "-"),
    ("host_bypassing", "switch", "one_fetch"): ("the same three, one_fetch", COLOURS[0], ":"),
    ("host_bypassing", "amd", "one_fetch"): (None, COLOURS[2], ":"),
    ("host_bypassing", "intel", "one_fetch"): (None, COLOURS[4], ":"),
    ("dpdk", "host", "one_fetch"): ("software (scenario 1)", COLOURS[5], "-"),
    ("dpdk_fpga", "host", "one_fetch"): ("software and FPGA (scenario 2)", COLOURS[1], "-"),
}


def rates(
    rows: Sequence[RatePoint], published: Published, curves: Sequence[RtlPoint], ours: Sequence[RtlLatency]
) -> Figure:
    """Latency and loss by rate, with the paper's numbers where it gives them."""
    figure, ((left, right),) = panels(1, 2, 11.0, 4.2)
    for (system, topology, reading), (name, colour, style) in CURVES.items():
        here = [row for row in rows if (row.system, row.topology, row.reading) == (system, topology, reading)]
        if here:
            known = [row for row in here if row.latency_us > 0]
            left.plot([r.rate_gbps for r in known], [r.latency_us for r in known], style, marker="o", markersize=3,
                      color=colour, label=name)  # fmt: skip
            right.plot([r.rate_gbps for r in here], [r.loss_percent for r in here], style, marker="o", markersize=3,
                       color=colour)  # fmt: skip
    band = published["hb_intel_latency"]
    left.fill_between([0.1, 7], band["low"], band["high"], color=PUBLISHED, alpha=0.18, linewidth=0,
                      label="paper: Intel root, to 7 Gbit/s")  # fmt: skip
    _cross(left, LINE_GBPS, published["hb_s3_latency_avg"]["value"], "paper: switch")
    first = published["hb_s2_first_loss"]
    right.axvspan(first["low"], first["high"], color=PUBLISHED, alpha=0.3, linewidth=0)
    right.axvline(published["hb_intel_first_loss"]["value"], color=PUBLISHED, linestyle="--", linewidth=1.4)
    for of in ("hb_loss_no_writeback", "hb_loss_writeback"):
        _cross(right, LINE_GBPS, published[of]["value"], None)
    for topology, style in (("switch", "-"), ("amd", "--"), ("intel", ":")):
        points = [row for row in curves if row.topology == topology]
        if points:
            at = [point.rate_gbps for point in points]
            left.plot(at, [point.latency_us for point in points], style, color=INK, label=f"our core, {topology}")
            right.plot(at, [point.loss_percent for point in points], style, color=INK)
    for row in ours:
        left.plot([LINE_GBPS], [row.mean_us], "*", color=INK, markersize=9,
                  label="our core, line rate" if row is ours[0] else None)  # fmt: skip
        right.plot([LINE_GBPS], [100 * row.loss], "*", color=INK, markersize=9)
    left.set_yscale("log")
    plain_axis(left.yaxis)
    left.set_ylabel("latency [us]")
    right.set_ylabel("lost [%]")
    right.set_ylim(0, 20)
    for axes in (left, right):
        axes.set_xlabel("input rate [Gbit/s]")
    right.set_title("first losses, published: dashed and band", loc="left", fontsize=9)
    legend_above(figure, left, 3)
    return figure


def overload(rows: Sequence[OverloadSlice], published: Published, sums: Sequence[Overload]) -> Figure:
    """Latency over time under overload, and the loss."""
    figure, ((left, right),) = panels(1, 2, 11.0, 3.8, width_ratios=(2, 1))
    curves = list(dict.fromkeys((row.topology, row.writeback) for row in rows))
    for place, (topology, writeback) in enumerate(curves):
        here = [row for row in rows if (row.topology, row.writeback) == (topology, writeback)]
        at = [row.at_us / 1000 for row in here]
        name = f"{topology}, write-back {'on' if writeback else 'off'}"
        left.plot(at, [row.mean_us for row in here], color=COLOURS[place], label=name,
                  linestyle="--" if topology == "switch" and writeback else "-")  # fmt: skip
        top = max(row.mean_us for row in here)
        left.fill_between(at, 0, top, where=[row.reordered > 0 for row in here], color=COLOURS[4], alpha=0.08,
                          linewidth=0)  # fmt: skip
    left.axhline(published["hb_overload_latency"]["value"], color=PUBLISHED, linestyle="--", linewidth=1.4,
                 label="paper: almost, Intel root")  # fmt: skip
    left.set_xlabel("ms")
    left.set_ylabel("latency [us]")
    names = [f"{row.topology}\n{'on' if row.writeback else 'off'}" for row in sums]
    grouped_bars(right, names, {"lost": ([row.loss_percent for row in sums], COLOURS[0])})
    for place, row in enumerate(sums):
        if row.published_loss_percent is not None:
            _cross(right, place, row.published_loss_percent, None)
    right.set_ylabel("lost [%]; cross: paper")
    legend_above(figure, left, 3)
    return figure


def _beside(axes: Axes, names: Sequence[str], ours: Sequence[float], paper: Sequence[float], what: str) -> None:
    grouped_bars(axes, names, {"model": (ours, COLOURS[0]), "paper": (paper, PUBLISHED)})
    axes.set_title(what, loc="left")


def tcp(rows: Sequence[Tcp], published: Published) -> Figure:
    """Goodput, latency, loss."""
    figure, ((first, second, third),) = panels(1, 3, 10.5, 3.2)
    names = [row.topology for row in rows]
    _beside(first, names, [r.goodput_gbps for r in rows], [r.published_goodput_gbps for r in rows], "goodput [Gbit/s]")
    _beside(second, names, [r.latency_us for r in rows], [r.published_latency_us for r in rows], "latency [us]")
    _beside(third, names, [r.loss_percent for r in rows], [r.published_loss_percent for r in rows], "lost [%]")
    legend_above(figure, first, 2)
    return figure


def batching(rows: Sequence[Batching], published: Published) -> Figure:
    """Latency and bytes by batch size."""
    figure, ((left, right),) = panels(1, 2, 9.5, 3.2)
    batches = sorted({row.batch for row in rows})
    readings = list(dict.fromkeys(row.reading for row in rows))

    def of(reading: str, key: str) -> list[float | None]:
        return [next((getattr(r, key) for r in rows if (r.reading, r.batch) == (reading, batch)), None)
                for batch in batches]  # fmt: skip

    names = [f"{batch} packets" for batch in batches]
    latency = {f"model, {name}": (of(name, "latency_us"), COLOURS[place]) for place, name in enumerate(readings)}
    grouped_bars(left, names, latency | {"paper": (of(readings[0], "published_latency_us"), PUBLISHED)})
    left.set_ylabel("latency [us]")
    grouped_bars(right, names, {
        f"model, {readings[0]}": (of(readings[0], "outgoing"), COLOURS[0]),
        "paper": (of(readings[0], "published_outgoing"), PUBLISHED),
    })  # fmt: skip
    right.set_ylim(310, 326)
    right.set_ylabel("bytes from the FPGA a packet")
    legend_above(figure, left, 3)
    return figure


def errors(rows: Sequence[Constant], published: Published, results: BypassResults) -> Figure:
    """The models' error for each published figure, fitted and predicted."""
    found: list[tuple[str, float, str]] = []
    for one in results.latency:
        if one.error_percent is not None and one.reading == "one_fetch":
            found.append((f"latency, {one.scenario}", one.error_percent, one.mark))
    for row in results.batching:
        if row.reading == "one_fetch":
            error = 100 * abs(row.latency_us / row.published_latency_us - 1)
            found.append((f"latency, batches of {row.batch}", error, row.mark))
        else:
            error = 100 * abs(row.outgoing / row.published_outgoing - 1)
            found.append((f"bytes out, batches of {row.batch}", error, row.mark))
    for load in results.overload:
        if load.published_loss_percent:
            error = 100 * abs(load.loss_percent / load.published_loss_percent - 1)
            found.append((f"loss, Intel root, write-back {'on' if load.writeback else 'off'}", error, load.mark))
    for line in results.tcp:
        if line.mark == "predicted":
            error = 100 * abs(line.goodput_gbps / line.published_goodput_gbps - 1)
            found.append((f"TCP goodput, {line.topology}", error, line.mark))
    figure, ((axes,),) = panels(1, 1, 8.0, 1.4 + 0.26 * max(len(found), 1))
    stacked_bars(axes, [name for name, _, _ in found], [
        (mark, [error if of == mark else 0.0 for _, error, of in found], colour)
        for mark, colour in (("predicted", COLOURS[0]), ("fitted", COLOURS[5]))
    ])  # fmt: skip
    axes.set_xlabel(f"error [%]; {len(rows)} constants, {sum(row.mark == 'fitted' for row in rows)} of them fitted")
    legend_above(figure, axes, 2)
    return figure


def resources(rows: Sequence[Resources], published: Published) -> Figure:
    """LUTs and memories of each block, and those of the paper's core."""
    names = [*(row.name for row in rows), "paper: rings, buffers", "paper: with the bridge"]
    figure, ((left, right),) = panels(1, 2, 10.0, 1.2 + 0.28 * len(names), sharey=True)
    buffers = sum(published[f"hb_res_bram_{part}"]["value"] for part in ("rx_buffer", "tx_buffer", "rings"))
    stacked_bars(left, names, [
        ("LUT", [*(float(row.lut) for row in rows), 0, 0], COLOURS[0]),
        ("LUT as RAM", [*(float(row.lutram) for row in rows), 0, 0], COLOURS[1]),
    ])  # fmt: skip
    left.set_xlabel("LUTs (the paper gives per cent alone)")
    stacked_bars(right, names, [
        ("BRAM36", [*(row.bram36 for row in rows), 0, 0], COLOURS[2]),
        ("URAM", [*(float(row.uram) for row in rows), 0, 0], COLOURS[3]),
        ("paper: BRAM", [*([0.0] * len(rows)), buffers, published["hb_res_bram_total"]["value"]], PUBLISHED),
    ])  # fmt: skip
    right.invert_yaxis()  # both panels inverted the shared axis; this restores its direction
    right.set_xlabel("BRAM36, URAM")
    handles = [*left.get_legend_handles_labels()[0], *right.get_legend_handles_labels()[0]]
    labels = [*left.get_legend_handles_labels()[1], *right.get_legend_handles_labels()[1]]
    figure.legend(handles, labels, loc="outside upper center", ncols=5)
    return figure


def qemu(rows: Sequence[Qemu], published: Published) -> Figure:
    """Frames sent and echoed, and errors."""
    figure, ((axes,),) = panels(1, 1, 7.5, 1.3 + 0.4 * len(rows))
    stacked_bars(axes, [f"{row.nic}, {row.qemu}" for row in rows], [
        ("right", [float(row.frames - row.wrong - row.lost) for row in rows], COLOURS[2]),
        ("wrong or lost", [float(row.wrong + row.lost) for row in rows], COLOURS[4]),
    ])  # fmt: skip
    axes.set_xlabel("frames, there and back")
    legend_above(figure, axes, 2)
    return figure
