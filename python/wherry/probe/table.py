# SPDX-License-Identifier: Apache-2.0
"""Prints runs and comparisons as tables for people, in the style of perftest."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from wherry.units import size_text

if TYPE_CHECKING:
    from wherry.probe.comparing import Comparison
    from wherry.probe.lines import PathLine
    from wherry.probe.schema import MeasuredPath, ProbeRun, Row


def time_text(ns: float) -> str:
    """Formats a time in ns: 1234.0 as "1.23 us"."""
    for unit, factor in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= factor:
            return f"{ns / factor:.3g} {unit}"
    return f"{ns:.3g} ns"


def _plain(title: str, columns: Sequence[tuple[str, bool]]) -> Table:
    """An empty table. `columns`: the name of each column, and whether it contains text."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name, text in columns:
        table.add_column(name, justify="left" if text else "right", no_wrap=not text)
    return table


def listing(paths: Iterable[PathLine]) -> Table:
    """A table of all paths, with the reason if a path cannot run on this machine."""
    table = _plain("Paths", [("id", True), ("from", True), ("to", True), ("initiator", True), ("here", True)])
    for path in paths:
        here = path.provenance if not path.absent else f"absent: {path.absent}"
        table.add_row(path.id, path.from_, path.to, path.initiator, escape(here))
    return table


def _marks(row: Row) -> str:
    marks = ["unsettled"] if row.unsettled else []
    marks += [f"{row.disturbed} of {len(row.rounds)} disturbed"] if row.disturbed else []
    marks += [f"timed by {row.batch}"] if row.batch > 1 else []
    return ", ".join(marks)


def path_table(path: MeasuredPath) -> Table:
    """A table of the rows of a path that were not refused."""
    title = f"{path.id}: {path.from_} to {path.to}, {path.provenance}"
    names = (("bytes", False), ("shape", True), ("p50", False), ("least", False), ("most", False), ("p99", False),
             ("p99.9", False), ("max", False), ("GB/s", False), ("M/s", False), ("CPU", False), ("other CPU", False),
             ("marks", True))  # fmt: skip
    table = _plain(escape(title), names)
    said = [] if path.provenance == "measured" else [path.provenance]  # shown on every line
    for row in path.rows:
        if row.refused or row.series:
            continue
        times = (row.p50_ns, row.least, row.most, row.p99_ns, row.p999_ns, row.max_ns)
        rate = f"{row.gbytes_per_s:.3g}" if row.gbytes_per_s else ""
        cpu = (row.cpu_user_ns + row.cpu_system_ns, row.other_user_ns + row.other_system_ns)
        millions = f"{row.transfers_per_s / 1e6:.3g}"
        table.add_row(size_text(row.bytes), row.words, *map(time_text, times), rate, millions, *map(time_text, cpu),
                      ", ".join([*said, *filter(None, [_marks(row)])]))  # fmt: skip
    return table


def remarks(run: ProbeRun) -> list[str]:
    """Remarks that are not in the tables: absent paths, wrong data, refused figures."""
    found = [f"{path.id}: absent: {path.absent}" for path in run.paths if path.absent]
    found += [f"{path.id}: {path.note}" for path in run.paths if path.note and path.rows]
    for path in run.paths:
        for trouble in path.troubles:
            kind = "WRONG DATA" if trouble.wrong else "not measured"
            found.append(f"{path.id}, {size_text(trouble.bytes)} {trouble.words}: {kind}: {trouble.why}")
        found += [f"{path.id}, {size_text(row.bytes)} {row.words}: refused: {row.refused}"
                  for row in path.rows if row.refused]  # fmt: skip
    return found


def comparison_table(found: Iterable[Comparison], all_rows: bool) -> Table:
    """A table of the pairs that differ, or of all pairs."""
    names = (("path", True), ("bytes", False), ("shape", True), ("A", False), ("B", False), ("B / A", False),
             ("99 % interval", False), ("B is", True))  # fmt: skip
    table = _plain("Comparison of times", names)
    for one in found:
        if not all_rows and one.verdict == "no difference":
            continue
        ends = f"{one.low:.3f} to {one.high:.3f}" if math.isfinite(one.high) else ""
        table.add_row(one.path.id, size_text(one.a.bytes), one.a.words, time_text(one.a.p50_ns),
                      time_text(one.b.p50_ns), f"{one.ratio:.3f}", ends, one.verdict)  # fmt: skip
    return table
