# SPDX-License-Identifier: Apache-2.0
"""The report's chapter of `wherry probe model --json FILE`. Other chapters of probe also use model_sections()."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from wherry.errors import BenchError
from wherry.probe.model import Parameters
from wherry.probe.model.rows import USES
from wherry.report import (
    COLOURS,
    PUBLISHED,
    BarLine,
    Chapter,
    Section,
    legend_above,
    panels,
    plain_axis,
    size_axis,
)

SIZES = tuple(sorted({1 << power for power in range(6, 27)} | {(runs << 23) + 4096 for runs in range(1, 8)}
                     | {runs << 23 for runs in range(1, 8)}))  # fmt: skip
"""The sizes of the curves: powers of two from 64 bytes to 64 MiB, multiples of a run, and these multiples plus one
page."""
DESIGNS = {"ddr": "DDR4", "microblaze": "beside a MicroBlaze", "petalinux": "beside PetaLinux"}
CHANNELS = (1, 2, 3, 4)
FLOWS = {"h2c": "host to card", "c2h": "card to host"}
Record = Mapping[str, Any]


def chapter(document: Any, file: str) -> Chapter:
    """Makes the chapter of a JSON document. Raises BenchError."""
    try:
        return Chapter(
            heading="Model",
            code="wherry probe model",
            anchor="bars",
            link="The model of host-card paths",
            facts={
                "parameters": ", ".join(f"{name} {value:.6g}" for name, value in document["parameters"].items()),
                "measured": "nothing: this is a model; docs/design/probe-model.md says how far to believe it",
                "versions": f"wherry {document['wherry']}",
            },
            command="wherry probe model",
            make="make report",
            bars=_bars(document),
            met=f"{sum(bar['pass'] for bar in document['bars'].values())} of {len(document['bars'])}",
            sections=model_sections(document),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BenchError(f"{file}: not what `wherry probe model --json` writes: {error!r}") from None


def _bars(document: Record) -> list[BarLine]:
    return [
        BarLine(
            name=name,
            value=f"{bar['value']:.3g}",
            unit=bar["unit"],
            spread="",
            target=bar["target"],
            passed=bar["pass"],
            published="",
            uses=USES[name],
            beside=document["beside"][name],
        )
        for name, bar in document["bars"].items()
    ]


def model_sections(document: Record) -> list[Section]:
    """The sections that compare the model with published values: 13 bandwidths, size curves, channels, held-out values,
    all other rows."""
    parameters = Parameters(**document["parameters"])
    thirteen, held_out = document["bandwidths"], document["heldout"]
    others = [row for row in document["rows"] if row["error_percent"] is not None]
    marks = {"fitted": sum(row["mark"] == "fitted" for row in thirteen)}
    return [
        _section("model-bandwidths", "The 13 bandwidths of paper 000",
                 "Published ranges and the model. "
                 f"{marks['fitted']} of them set its six numbers; the others are predicted.",
                 lambda: bandwidths(thirteen), thirteen, "figure 8 to figure 14"),
        _section("model-sizes", "Bandwidth by the size of a transfer",
                 "One channel, blocking transfers: a call costs a fixed time, and each 8 MiB begins another run of "
                 "descriptors. The paper's curves are figures without numbers; its peaks are drawn as lines.",
                 lambda: size_curves(parameters, thirteen), size_rows(parameters), "figure 8 to figure 14"),
        _section("model-channels", "Bandwidth by channels",
                 "Whole runs of descriptors. Channels to the host share the link (exact mean-value analysis).",
                 lambda: channel_curves(parameters, thirteen), channel_rows(parameters), "figure 16, figure 18"),
        _section("model-heldout", "Held out: what others measured",
                 "No fit saw these values. Missed ones are named with the reason.",
                 lambda: held_out_plot(held_out), held_out, ""),
        _section("model-rows", "Other published bandwidths and latencies of papers 000, 002 and 003",
                 "The error off the middle of each published range, by what may be claimed of the figure.",
                 lambda: errors(others), others, ""),
    ]  # fmt: skip


def stored_sections() -> list[Section]:
    """The same sections for the stored parameters, for the chapter of a run that has the model's bars."""
    from wherry.probe.model import document, everything, stored

    return model_sections(document(stored(), *everything(stored())))


def _section(anchor: str, title: str, question: str, draw: Any, rows: Sequence[Any], figure: str) -> Section:
    return Section(anchor, title, figure, question, draw, (), "", rows)


def _range_of(rows: Sequence[Record], name: str) -> tuple[float, float] | None:
    """The published range of a row, by id."""
    return next(((row["published_low"], row["published_high"]) for row in rows if name in row["ids"]), None)


def bandwidths(rows: Sequence[Record]) -> Figure:
    """For each bandwidth, the published range and the model's value."""
    figure, ((axes,),) = panels(1, 1, 9.0, 1.2 + 0.3 * len(rows))
    for place, row in enumerate(rows):
        low, high = row["published_low"], row["published_high"]
        axes.barh(place, max(high - low, 0.03), 0.55, low, color=PUBLISHED, alpha=0.45, linewidth=0,
                  label="published" if place == 0 else "")  # fmt: skip
    for index, mark in enumerate(("fitted", "predicted")):
        of_mark = [(row["model_low"], place) for place, row in enumerate(rows) if row["mark"] == mark]
        axes.plot([value for value, _ in of_mark], [place for _, place in of_mark], "D" if index else "o",
                  color=COLOURS[1 - index], label=f"model, {mark}")  # fmt: skip
    axes.set_yticks(range(len(rows)), [row["ids"][0].removeprefix("ma_") for row in rows])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("GB/s")
    legend_above(figure, axes, 3)
    return figure


def size_rows(parameters: Parameters) -> list[dict[str, Any]]:
    """The data of the size curves as a table: GB/s by design and direction."""
    from wherry.probe.model import designs

    of = designs(parameters)
    return [
        {"size": size} | {f"{name}_{flow}_gbytes": of[name].one(flow, size) for name in DESIGNS for flow in FLOWS}
        for size in SIZES
    ]


PEAKS = {
    ("ddr", "h2c"): "ma_ddr_h2c_1ch",
    ("ddr", "c2h"): "ma_ddr_c2h_1ch",
    ("microblaze", "h2c"): "ma_mb_h2c_1ch",
    ("microblaze", "c2h"): "ma_mb_c2h_1ch",
    ("petalinux", "h2c"): "ma_pl_h2c_1ch",
}
AT_1_MIB = {"h2c": "ma_bram_h2c_1ch", "c2h": "ma_bram_c2h_1ch"}


def size_curves(parameters: Parameters, thirteen: Sequence[Record]) -> Figure:
    """Rate by size: a panel for each direction, a curve for each design."""
    rows = size_rows(parameters)
    figure, (row,) = panels(1, 2, 9.4, 3.6, sharey=True)
    for axes, (flow, title) in zip(row, FLOWS.items(), strict=True):
        for index, (name, label) in enumerate(DESIGNS.items()):
            values = [point[f"{name}_{flow}_gbytes"] for point in rows]
            axes.plot(SIZES, values, color=COLOURS[index], label=f"model, {label}")
            published = _range_of(thirteen, PEAKS.get((name, flow), ""))
            if published:
                axes.axhspan(published[0], max(published[1], published[0] + 0.03), color=COLOURS[index], alpha=0.18)
        at = _range_of(thirteen, AT_1_MIB[flow])
        if at:
            axes.plot([1 << 20], [at[0]], "s", color=PUBLISHED, label="published, BRAM at 1 MiB")
        axes.set_title(title)
        size_axis(axes, SIZES, "bytes of a transfer (bands: published peaks)")
    row[0].set_ylabel("GB/s")
    legend_above(figure, row[0], 4)
    return figure


def channel_rows(parameters: Parameters) -> list[dict[str, Any]]:
    """The data of the channel curves as a table: GB/s by the number of channels."""
    from wherry.probe.model import designs

    of = designs(parameters)
    return [
        {"channels": count}
        | {f"{name}_h2c_gbytes": of[name].h2c(count) for name in DESIGNS}
        | {f"{name}_c2h_gbytes": of[name].c2h(count) for name in DESIGNS}
        for count in CHANNELS
    ]


BY_CHANNELS = {
    ("ddr", "h2c"): {1: "ma_ddr_h2c_1ch", 4: "ma_ddr_h2c_multi"},
    ("ddr", "c2h"): {1: "ma_ddr_c2h_1ch", 4: "ma_ddr_c2h_multi"},
    ("microblaze", "h2c"): {1: "ma_mb_h2c_1ch"},
    ("microblaze", "c2h"): {1: "ma_mb_c2h_1ch", 4: "ma_mb_c2h_multi"},
    ("petalinux", "h2c"): {1: "ma_pl_h2c_1ch", 4: "ma_pl_h2c_multi"},
    ("petalinux", "c2h"): {2: "ma_pl_c2h_2ch", 4: "ma_pl_c2h_3_4ch"},
}


def channel_curves(parameters: Parameters, thirteen: Sequence[Record]) -> Figure:
    """Rate by number of channels: a panel for each direction, with published ranges as bars."""
    rows = channel_rows(parameters)
    figure, (row,) = panels(1, 2, 9.4, 3.4, sharey=True)
    for axes, (flow, title) in zip(row, FLOWS.items(), strict=True):
        for index, (name, label) in enumerate(DESIGNS.items()):
            axes.plot(CHANNELS, [point[f"{name}_{flow}_gbytes"] for point in rows], "o-", color=COLOURS[index],
                      label=f"model, {label}")  # fmt: skip
            for count, identifier in BY_CHANNELS[name, flow].items():
                published = _range_of(thirteen, identifier)
                if published:
                    at = count + 0.08 * (index - 1)
                    ends = [published[0] - 0.05, published[1] + 0.05]
                    axes.plot([at, at], ends, color=PUBLISHED, linewidth=3, alpha=0.6)
        axes.set_title(title)
        axes.set_xticks(CHANNELS)
        axes.set_xlabel("channels (bars: published)")
        plain_axis(axes.yaxis)
    row[0].set_ylabel("GB/s")
    legend_above(figure, row[0], 3)
    return figure


def held_out_plot(rows: Sequence[Record]) -> Figure:
    """The model's error for each value of another source."""
    return _error_plot([row["name"] for row in rows], rows, {"predicted": 0, "missed": 4, "bound": 5}, 10)


def errors(rows: Sequence[Record]) -> Figure:
    """The error of each row that has an error."""
    return _error_plot([row["ids"][0] for row in rows], rows, {"predicted": 0, "fitted": 1, "given": 5, "simulated": 2})


def _error_plot(names: Sequence[str], rows: Sequence[Record], marks: Mapping[str, int], within: float = 0) -> Figure:
    figure, ((axes,),) = panels(1, 1, 9.0, 1.2 + 0.2 * len(rows))
    if within:
        axes.axvspan(-within, within, color=COLOURS[2], alpha=0.12, label=f"within {within:g} %")
    for mark, colour in marks.items():
        of_mark = [(place, row["error_percent"]) for place, row in enumerate(rows) if row["mark"] == mark]
        if of_mark:
            axes.barh([place for place, _ in of_mark], [error for _, error in of_mark], 0.6, color=COLOURS[colour],
                      label=mark, linewidth=0)  # fmt: skip
    axes.set_yticks(range(len(rows)), names, fontsize=7.5)
    axes.margins(y=0.01)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("model over published, per cent")
    legend_above(figure, axes, 4)
    return figure
