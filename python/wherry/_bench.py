# SPDX-License-Identifier: Apache-2.0
"""Runs a benchmark program, and prints what came out of it."""

from __future__ import annotations

import dataclasses
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from wherry import _bases, _paths, bench_schema
from wherry.bench_schema import BenchError, MoveBench

TITLES = {
    "initiate": "Host time of one offload call (figure 2)",
    "bandwidth": "Move against a raw get, heap memory (figure 3)",
    "mapped": "Move from mapped memory against memcpy",
    "buffers": "Buffer management (figure 4)",
    "conversion": "Steps of the conversion on the host (figures 7 and 8)",
    "approaches": "Five approaches (figure 11)",
    "flight": "Move against Arrow Flight DoPut, 1 column",
    "flight_16_columns": "Move against Arrow Flight DoPut, 16 columns",
}


def run_move(json_file: Path, *, quick: bool = False, only: Sequence[str] = ()) -> MoveBench:
    """Runs bench_move, whose progress goes to standard error, and returns the validated results.

    Raises NotFound when it was not built; BenchError when it fails or writes what it should not.
    """
    program = _paths.bench_move()
    json_file.parent.mkdir(parents=True, exist_ok=True)
    line = [str(program), "--json", str(json_file)]
    line += ["--quick"] if quick else []
    line += ["--only", ",".join(only)] if only else []
    process = subprocess.Popen(line, stdin=subprocess.DEVNULL)
    try:
        status = process.wait()
    except KeyboardInterrupt:  # the terminal has sent it to the program, too; otherwise it is ended here
        process.terminate()
        process.wait()
        raise
    if status:
        how = f"exit status {status}" if status > 0 else f"signal {-status}"
        raise BenchError(f"{program} failed ({how}); its last lines above say why")
    return bench_schema.load(json_file)


def print_move(bench: MoveBench, console: Console) -> None:
    """Tables of all experiments, then the bars."""
    for section in dataclasses.fields(bench.results):
        rows: list[Any] = getattr(bench.results, section.name)
        if rows:
            console.print(_table(TITLES[section.name], rows))
            console.print()
    if bench.bars:
        console.print(_bars(bench))


def _table(title: str, rows: Sequence[Any]) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    names = [field.name for field in dataclasses.fields(rows[0])]
    for name in names:
        text = isinstance(getattr(rows[0], name), str | bool)
        table.add_column(
            name.replace("_gbps", " Gbit/s").replace("gbps", "Gbit/s"), justify="left" if text else "right"
        )
    for row in rows:
        table.add_row(*(_cell(name, getattr(row, name)) for name in names))
    return table


def _cell(name: str, value: object) -> str:
    if name == "size" and isinstance(value, int):
        return size_text(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.3g}" if isinstance(value, float) and abs(value) < 1000 else _whole(value)


def _whole(value: object) -> str:
    return f"{value:,.0f}" if isinstance(value, float) else str(value)


def size_text(size: float) -> str:
    """4096 as "4 KiB"."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return f"{size / factor:g} {unit}"
    return f"{size:g} B"


def _bars(bench: MoveBench) -> Table:
    met = sum(bar.passed for bar in bench.bars.values())
    table = Table(title=f"Bars: {met} of {len(bench.bars)} met", title_justify="left", box=None, pad_edge=False)
    table.add_column("bar")
    for name in ("median", "min", "max", "target"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for name in ("published", "uses", "beside it"):
        table.add_column(name)
    show: Callable[[float], str] = lambda value: f"{value:.3g}"  # noqa: E731
    for name, bar in bench.bars.items():
        verdict = "[green]met[/green]" if bar.passed else "[red]missed[/red]"
        unit = f" {bar.unit}" if bar.unit else ""
        basis = _bases.basis_of(name, bench.results)
        figures = (show(bar.value) + unit, show(bar.min), show(bar.max), bar.target)
        table.add_row(name, *figures, verdict, bar.published or "", basis.uses, basis.beside)
    return table
