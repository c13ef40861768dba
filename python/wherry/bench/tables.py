# SPDX-License-Identifier: Apache-2.0
"""Prints a benchmark's results as tables for people."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from wherry.bench.benchmark import basis_of
from wherry.bench.schema import Run
from wherry.bench.words import met_of
from wherry.units import number_text, size_text

ONLY_IN_JSON = ("samples", "arguments", "mc_missing", "placement")
"""These columns would make a table too wide."""


def print_bench(bench: Run, console: Console) -> None:
    """Prints the tables of all experiments, then the bars."""
    for section in dataclasses.fields(bench.results):
        rows: list[Any] = getattr(bench.results, section.name)
        if rows:
            console.print(_table(section.metadata["title"], rows))
            console.print()
    if bench.bars:
        console.print(_bars(bench))


def _table(title: str, rows: Sequence[Any]) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    names = [field.name for field in dataclasses.fields(rows[0]) if field.name not in ONLY_IN_JSON]
    for name in names:
        text = any(isinstance(getattr(row, name), str | bool | list) for row in rows)
        title = name.replace("_gbps", " Gbit/s").replace("gbps", "Gbit/s").replace("mmps", "M messages/s")
        table.add_column(title.replace("mups", "M updates/s"), justify="left" if text else "right")
    for row in rows:
        table.add_row(*(_cell(name, getattr(row, name)) for name in names))
    return table


def _cell(name: str, value: object) -> str:
    if name == "size" and isinstance(value, int):
        return size_text(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return ""
    if isinstance(value, list):
        return escape(" ".join(map(str, value)))
    return number_text(value) if isinstance(value, int | float) else escape(str(value))


def _bars(bench: Run) -> Table:
    table = Table(title=f"Bars: {met_of(bench)} met", title_justify="left", box=None, pad_edge=False)
    table.add_column("bar")
    for name in ("median", "min", "max", "target"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for name in ("published", "uses", "beside it"):
        table.add_column(name)
    verdicts = {True: "[green]met[/green]", False: "[red]missed[/red]", None: ""}
    for name, bar in bench.bars.items():
        unit = f" {bar.unit}" if bar.unit else ""
        basis = basis_of(name, bench)
        figures = (number_text(bar.value) + unit, number_text(bar.min), number_text(bar.max), bar.target or "")
        table.add_row(name, *figures, verdicts[bar.passed], bar.published or "", basis.uses, basis.beside)
    return table
