# SPDX-License-Identifier: Apache-2.0
"""The report's chapters of the LAMMPS jobs: lammps_lj.py, and lammps_fix.py (`fix wherry` compared with other ways)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from wherry.errors import BenchError
from wherry.report import (
    COLOURS,
    BarLine,
    Chapter,
    Section,
    Totals,
    cores_text,
    legend_above,
    machine_text,
    panels,
    plain_axis,
    stacked_bars,
    styled,
    versions_text,
)

_TOTALS = [
    ("call_us", "offload call", "us"),
    ("hold_ms", "sources held", "ms"),
    ("stall_ms", "of it not covered by the application's bookkeeping", "ms"),
    ("host_convert_write_ms", "host serialising itself: convert and write (as the paper's baseline)", "ms"),
    ("host_wrap_write_ms", "host serialising itself: wrap and write (the best way)", "ms"),
    ("agent_gb_s", "agent throughput", "GB/s"),
]


def chapter(document: Any, file: str) -> Chapter:
    """Makes the chapter of the job's summary. Raises BenchError."""
    try:
        return _chapter(document)
    except (KeyError, TypeError, ValueError) as error:
        raise BenchError(f"{file} is not a summary of the job lammps_lj: {error!r}") from None


def _chapter(document: Mapping[str, Any]) -> Chapter:
    verdict, totals, frames, parameters = (document[k] for k in ("verdict", "totals", "frames", "parameters"))
    lines = [
        (what, f"{totals[key]['median']:.3g}", unit, f"{totals[key]['min']:.3g} to {totals[key]['max']:.3g}")
        for key, what, unit in _TOTALS
    ]
    worst = verdict["largest_relative_difference"]
    agreement = f"largest relative difference {worst:.1e}" if worst is not None else "figures do not agree"
    text = (
        f"{parameters['atoms']:,} atoms, {parameters['steps']} steps, a frame every {parameters['every']}: "
        f"{verdict['frames_read']} of {verdict['frames_offloaded']} frames read and checked, {agreement} "
        f"(allowed: {verdict['tolerance']:g})."
    )
    figure = styled(lambda: plot(frames))
    title = "An independent reader checks the physics"
    return Chapter(
        heading="Main job: LAMMPS",
        code="",
        anchor="lammps",
        link="LAMMPS job",
        facts={
            "measured": document["when"],
            "machine": machine_text(document["machine"]),
            "pinning": ", ".join(f"{who} on core {core}" for who, core in document["pinning"].items()),
            "transports": f"{document['transports']} ({document['one_sided']})",
            "versions": versions_text(document["wherry"], document["versions"]),
        },
        command="python apps/lammps/lammps_lj.py",
        make="make run report",
        totals=Totals(title, bool(verdict["pass"]), text, ("per frame", "median", "min to max"), lines),
        sections=[Section("frames", title, "", "", lambda: figure, (), "", frames)],
    )


def plot(frames: Sequence[Mapping[str, float]]) -> Figure:
    """The main job: the host time of each frame, by time step."""
    figure, ((axes,),) = panels(1, 1, 9.0, 3.4)
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
    plain_axis(axes.yaxis)
    axes.set_ylabel("ms per frame")
    axes.set_xlabel("time step")
    legend_above(figure, axes, 2)
    return figure


# ---- fix wherry

_FIX_USES = {
    "lammps_host_lost_ratio": "`host_time`, id type x v: the best other way over `fix wherry`",
    "lammps_host_lost_ratio_positions": "the same, x alone",
    "lammps_host_lost_ratio_dump_binary": "the same, id type x v: `dump custom`, binary, in /dev/shm",
    "lammps_host_lost_ratio_flight": "the same, id type x v: Flight DoPut",
    "lammps_host_lost_ratio_without_id": "the same, x v: the best other way",
}


def fix_chapter(document: Any, file: str) -> Chapter:
    """The chapter of the job's output. Raises BenchError."""
    try:
        return _fix_chapter(document)
    except (KeyError, TypeError, ValueError) as error:
        raise BenchError(f"{file} is not a summary of the job lammps_fix: {error!r}") from None


def _fix_chapter(document: Mapping[str, Any]) -> Chapter:
    bars = document["bars"]
    demanded = [bar for bar in bars.values() if "target" in bar]
    rows, parts, runs = (document["results"][name] for name in ("host_time", "fix_wherry", "whole_runs"))
    verdict = document["verdict"]
    figure = styled(lambda: plot_ways(rows))
    checked = (
        f"{verdict['frames_read']} frames of the fix were read and checked by an independent reader: "
        f"{'all agree with LAMMPS' if verdict['pass'] else 'they do not agree'}."
    )
    sections = [
        Section(
            "host-time",
            "Host time lost to a frame",
            "",
            "What does a frame cost the time steps, by the way it gets out?",
            lambda: figure,
            (),
            checked,
            rows,
        ),
        Section(
            "fix-wherry",
            "What fix wherry does with its time",
            "",
            "",
            lambda: styled(lambda: plot_parts(parts)),
            (),
            "",
            parts,
        ),
    ]
    if runs:
        sections.append(
            Section(
                "whole-runs",
                "Check: whole runs",
                "",
                "How much longer is a step with a frame than one without, by the time of whole runs?",
                lambda: styled(lambda: plot_runs(runs)),
                (),
                "",
                runs,
            )
        )
    return Chapter(
        heading="Job: LAMMPS with fix wherry",
        code="",
        anchor="lammps-fix",
        link="LAMMPS, fix wherry",
        facts={
            "measured": document["when"],
            "machine": machine_text(document["machine"]),
            "cores": cores_text(document["pinning"]),
            "transports": f"{document['transports']} ({document['one_sided']})",
            "repetitions": document["repetitions"],
            "versions": versions_text(document["wherry"], document["versions"]),
        },
        command="python apps/lammps/lammps_fix.py",
        make="make run report",
        bars=[_line(name, bar) for name, bar in bars.items()],
        met=f"{sum(bar.get('pass') is True for bar in bars.values())} of {len(demanded)}",
        sections=sections,
    )


def _line(name: str, bar: Mapping[str, Any]) -> BarLine:
    return BarLine(
        name=name,
        value=f"{bar['value']:.3g}",
        unit=bar["unit"],
        spread=f"{bar['min']:.3g} to {bar['max']:.3g}",
        target=bar.get("target", ""),
        passed=bar.get("pass"),
        published="",
        uses=_FIX_USES.get(name, ""),
        beside="",
    )


def plot_ways(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Host time of each way of output, for both choices of columns."""
    figure, ((axes,),) = panels(1, 1, 9.0, 4.0)
    names = list(dict.fromkeys(row["way"] for row in rows))
    for offset, columns, colour in ((0.2, "id type x v", COLOURS[0]), (-0.2, "x", COLOURS[1])):
        times = {row["way"]: row["lost_ms"] for row in rows if row["columns"] == columns}
        places = [len(names) - names.index(way) + offset for way in times]
        axes.barh(places, list(times.values()), height=0.38, color=colour, label=columns)
    axes.set_yticks([len(names) - i for i in range(len(names))], names)
    axes.set_xscale("log")
    plain_axis(axes.xaxis)
    axes.set_xlabel("ms of the host's time per frame")
    legend_above(figure, axes, 2)
    return figure


def plot_parts(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """The parts of the time of `fix wherry`."""
    figure, ((axes,),) = panels(1, 1, 9.0, 2.2)
    colours = {"calls": COLOURS[0], "copies": COLOURS[1], "waits": COLOURS[4]}
    parts = [(part, [row[f"{part}_us"] for row in rows], colour) for part, colour in colours.items()]
    stacked_bars(axes, [row["columns"] for row in rows], parts)
    axes.set_xlabel("us per frame")
    legend_above(figure, axes, 3)
    return figure


def plot_runs(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """For whole runs, how much longer a step with a frame takes."""
    shown = [row for row in rows if row["way"] != "a step without output"]
    figure, ((axes,),) = panels(1, 1, 9.0, 2.2)
    middle = [row["ms"] for row in shown]
    around = [[row["ms"] - row["ms_min"] for row in shown], [row["ms_max"] - row["ms"] for row in shown]]
    axes.barh([row["way"] for row in shown], middle, xerr=around, color=COLOURS[0])
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_xlabel("ms per step, beyond a step without output; lines: least to most")
    return figure
