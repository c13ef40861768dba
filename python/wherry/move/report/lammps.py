# SPDX-License-Identifier: Apache-2.0
"""The report's chapter of the main job, apps/lammps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from wherry.errors import BenchError
from wherry.report import (
    COLOURS,
    Chapter,
    Section,
    Totals,
    legend_above,
    machine_text,
    panels,
    plain_axis,
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
    """Of what the job wrote. Raises BenchError."""
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
    """The main job: what each frame cost the host, by time step."""
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
