# SPDX-License-Identifier: Apache-2.0
"""The results of lammps_fix.py: figures by way, its bars, the table and the sentence, the summary file."""

from __future__ import annotations

import argparse
import contextlib
import statistics
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from lammps_lj import Expected
from rich.console import Console
from rich.table import Table
from ways import ALL, BOTH, Cost, Way

import wherry
from wherry.system import this_machine

BARS: dict[str, tuple[str, str, float | None]] = {
    # name: (columns, prefixes of the other ways' names, target). The best of the other ways counts.
    "lammps_host_lost_ratio": (ALL, "", 2.0),
    "lammps_host_lost_ratio_positions": ("x", "", 10.0),
    "lammps_host_lost_ratio_dump_binary": (ALL, "dump_binary", 20.0),
    "lammps_host_lost_ratio_flight": (ALL, "flight", 10.0),
    "lammps_host_lost_ratio_without_id": (BOTH, "", None),
}
"""The job's claims, each a ratio: host time lost with the other way over host time lost with `fix wherry`. A claim
without a target is only shown."""


@dataclass(slots=True)
class Measured:
    """One way's frames of one choice of columns."""

    way: Way
    costs: list[Cost] = field(default_factory=list)

    def lost_ms(self) -> list[float]:
        """Of each frame."""
        return [1e3 * cost.lost for cost in self.costs]

    def median_ms(self) -> float:
        """Of all frames."""
        return statistics.median(self.lost_ms())

    def part_us(self, part: str) -> float:
        """Median of one part of Cost."""
        return 1e6 * float(statistics.median(getattr(cost, part) for cost in self.costs))


@dataclass(slots=True)
class Report:
    """All results of the job."""

    measured: list[Measured] = field(default_factory=list)
    expected: list[Expected] = field(default_factory=list)
    positions: dict[int, tuple[float, float, float]] = field(default_factory=dict)
    """For the frames that have positions alone: the sum of the positions along each axis, by step."""
    whole_runs: dict[str, list[float]] = field(default_factory=dict)
    """For the second part, by way: the extra time of a step beside a run without output, ms, one value for each
    round."""
    problems: list[str] = field(default_factory=list)
    session: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    def of(self, name: str, columns: str) -> Measured:
        """The way of that name."""
        return next(one for one in self.measured if (one.way.name, one.way.columns) == (name, columns))

    def has(self, name: str, columns: str) -> bool:
        """Whether that way was tried."""
        return any((one.way.name, one.way.columns) == (name, columns) for one in self.measured)

    def best_other(self, columns: str, names: str = "") -> Measured:
        """The cheapest of the other ways whose names begin with one of `prefixes`."""
        others = [
            one
            for one in self.measured
            if one.way.columns == columns and one.way.name != "wherry" and one.way.name.startswith(names)
        ]
        return min(others, key=Measured.median_ms)


def ratios(one: Measured, ours: Measured) -> list[float]:
    """One ratio for each round: the cost of the other way's frame over that of ours."""
    return [a / b for a, b in zip(one.lost_ms(), ours.lost_ms(), strict=True)]


def bars(report: Report) -> dict[str, dict[str, Any]]:
    """By name, as docs/reference/bench-json.md has them."""
    found = {}
    for name, (columns, others, target) in BARS.items():
        values = ratios(report.best_other(columns, others), report.of("wherry", columns))
        value = statistics.median(values)
        found[name] = {"value": value, "min": min(values), "max": max(values), "unit": "", "published": None}
        if target is not None:
            found[name] |= {"target": f">= {target:g}", "pass": value >= target}
    return found


def print_details(console: Console, report: Report) -> None:
    """The parts of `fix wherry`'s time, and the check by whole runs."""
    for columns in (ALL, "x"):
        ours = report.of("wherry", columns)
        calls, copies, waits = (ours.part_us(part) for part in ("calls", "copies", "waits"))
        console.print(
            f"fix wherry, {columns}: {calls:.1f} us in calls, {copies:.1f} us copying, {waits:.1f} us waiting",
            highlight=False,
        )
    for name, values in report.whole_runs.items():
        console.print(
            f"whole runs, {name}: {statistics.median(values):.2f} ms a step [{min(values):.2f} to {max(values):.2f}]",
            highlight=False,
        )


def print_table(console: Console, report: Report) -> None:
    """Prints the table, and its conclusion in one sentence."""
    frames = len(report.of("wherry", ALL).costs)
    table = Table(title=f"Host time that LAMMPS loses to one frame: median of {frames} \\[least to most], ms")
    table.add_column("way")
    for what in (ALL, "x alone"):
        table.add_column(what, justify="right")
        table.add_column("of ours", justify="right")
    for one in (m for m in report.measured if m.way.columns == ALL):
        cells = [one.way.label]
        for columns in (ALL, "x"):
            if not report.has(one.way.name, columns):
                cells += ["", ""]
                continue
            same, ours = report.of(one.way.name, columns), report.of("wherry", columns)
            cells.append(f"{same.median_ms():.3f} \\[{min(same.lost_ms()):.3f} to {max(same.lost_ms()):.3f}]")
            cells.append("" if same is ours else f"{statistics.median(ratios(same, ours)):.1f}x")
        table.add_row(*cells)
    console.print(table)
    whole, alone = report.best_other(ALL), report.best_other("x")
    console.print(
        f"A frame of all columns costs LAMMPS {report.of('wherry', ALL).median_ms():.2f} ms with fix wherry and "
        f"{whole.median_ms():.2f} ms with the best other way ({whole.way.label}); a frame of positions costs "
        f"{report.of('wherry', 'x').median_ms():.3f} ms and {alone.median_ms():.2f} ms ({alone.way.label}).",
        highlight=False,
    )


def summary(options: argparse.Namespace, cores: tuple[int, int], report: Report) -> dict[str, Any]:
    """The summary file."""
    versions = {name: metadata.version(name) for name in ("duckdb", "numpy", "pyarrow")}
    with contextlib.suppress(metadata.PackageNotFoundError):
        versions["adios2"] = metadata.version("adios2")
    return {
        "schema": 1,
        "name": "lammps_fix",
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "wherry": wherry.__version__,
        "machine": asdict(this_machine()),
        "versions": report.versions | versions,
        "pinning": {"application": cores[0], "agent": cores[1]},
        "repetitions": options.rounds,
        **report.session,
        "parameters": {"atoms": options.atoms, "every": options.every, "check": options.check},
        "verdict": {"pass": not report.problems, "problems": report.problems, "frames_read": len(report.expected)},
        "bars": bars(report),
        "results": {
            "host_time": [
                {
                    "way": one.way.name,
                    "columns": one.way.columns,
                    "lost_ms": one.median_ms(),
                    "lost_ms_min": min(ms),
                    "lost_ms_max": max(ms),
                    "lost_ms_mean": statistics.fmean(ms),
                }
                for one in report.measured
                for ms in [one.lost_ms()]
            ],
            "fix_wherry": [
                {"columns": columns}
                | {f"{part}_us": report.of("wherry", columns).part_us(part) for part in ("calls", "copies", "waits")}
                for columns in (ALL, "x")
            ],
            "whole_runs": [
                {"way": name, "ms": statistics.median(values), "ms_min": min(values), "ms_max": max(values)}
                for name, values in report.whole_runs.items()
            ],
        },
    }
