# SPDX-License-Identifier: Apache-2.0
"""Runs a benchmark program, and prints what came out of it."""

from __future__ import annotations

import dataclasses
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from wherry import _bases, bench_schema
from wherry.bench_schema import Bench, BenchError, MoveBench
from wherry.system import paths

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
ROUTE_TITLES = {
    "histogram": "Histogram, inline, against a hand-written exchange",
    "peers": "Histogram against peers in the same run",
    "random_sizes": "Messages of 8 to 4096 bytes against plain copies",
    "agent_rate": "What one routing thread forwards",
    "latency": "One message on an idle system",
    "message_sizes": "Messages by size and placement",
    "sweeps": "Transfer size, number of buffers, routing threads (figure 7)",
    "weak_scaling": "Weak scaling on the same two cores (figure 8)",
    "agent_memory": "Memory of an agent as nodes grow",
    "link": "Whole buffers between two nodes",
    "applications": "Applications by placement (table 2)",
}
KV_TITLES = {
    "rtl_latency": "The RTL core, idle, one operation (tables 5.7 to 5.9)",
    "line_rate": "The RTL core at 100 Gbit/s",
    "resources": "Cores by Yosys (table 5.10)",
    "software": "One operation at a time, a leader and a follower, in turns (table 5.13)",
    "throughput": "Many operations in flight, one node on one core, in turns",
    "failover": "Leader killed to first acknowledged write",
}
ONLY_IN_JSON = ("samples", "arguments", "mc_missing", "placement")
"""Columns that would make a table too wide."""


def run_move(json_file: Path, *, quick: bool = False, only: Sequence[str] = ()) -> MoveBench:
    """Runs bench_move, whose progress goes to standard error, and returns the validated results.

    Raises NotFound when it was not built; BenchError when it fails or writes what it should not.
    """
    more = ["--only", ",".join(only)] if only else []
    run_program(paths.bench_move(), json_file, quick=quick, more=more)
    return bench_schema.parse_move(bench_schema.read_json(json_file), str(json_file))


def run_program(program: Path, json_file: Path, *, quick: bool, more: Sequence[str]) -> None:
    """Runs a benchmark program to its good end. Raises BenchError."""
    json_file.parent.mkdir(parents=True, exist_ok=True)
    line = [str(program), "--json", str(json_file), *(["--quick"] if quick else []), *more]
    status = wait_for(subprocess.Popen(line, stdin=subprocess.DEVNULL))
    if status:
        how = f"exit status {status}" if status > 0 else f"signal {-status}"
        raise BenchError(f"{program} failed ({how}); its last lines above say why")


def wait_for(process: subprocess.Popen[Any]) -> int:
    """Its exit status. After Ctrl-C it is given the time to end what it has started."""
    try:
        return process.wait()
    except KeyboardInterrupt:  # the terminal has sent it to the program, too; otherwise it is ended here
        process.terminate()
        process.wait()
        raise


def print_bench(bench: Bench, console: Console) -> None:
    """Tables of all experiments, then the bars."""
    titles = {"move": TITLES, "route": ROUTE_TITLES, "kv": KV_TITLES}[bench.name]
    for section in dataclasses.fields(bench.results):
        rows: list[Any] = getattr(bench.results, section.name)
        if rows:
            console.print(_table(titles[section.name], rows))
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
    return f"{value:.3g}" if isinstance(value, float) and abs(value) < 1000 else escape(_whole(value))


def _whole(value: object) -> str:
    return f"{value:,.0f}" if isinstance(value, float) else str(value)


def size_text(size: float) -> str:
    """4096 as "4 KiB"."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return f"{size / factor:g} {unit}"
    return f"{size:g} B"


def met_of(bench: Bench) -> str:
    """How many of the bars that demand something are met: "3 of 4"."""
    demanding = [bar.passed for bar in bench.bars.values() if bar.passed is not None]
    return f"{sum(demanding)} of {len(demanding)}"


def _bars(bench: Bench) -> Table:
    table = Table(title=f"Bars: {met_of(bench)} met", title_justify="left", box=None, pad_edge=False)
    table.add_column("bar")
    for name in ("median", "min", "max", "target"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for name in ("published", "uses", "beside it"):
        table.add_column(name)
    show: Callable[[float], str] = lambda value: f"{value:.3g}"  # noqa: E731
    verdicts = {True: "[green]met[/green]", False: "[red]missed[/red]", None: ""}
    for name, bar in bench.bars.items():
        unit = f" {bar.unit}" if bar.unit else ""
        basis = _bases.basis_of(name, bench.results)
        figures = (show(bar.value) + unit, show(bar.min), show(bar.max), bar.target or "")
        table.add_row(name, *figures, verdicts[bar.passed], bar.published or "", basis.uses, basis.beside)
    return table
